//! Details of one model reply beyond its text.

/// Token ids, log-probabilities and price of one reply, if the server reported them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallDetail {
    /// Of the rendered prompt.
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Of the reply.
    pub completion_token_ids: Option<Vec<u32>>,
    /// Natural logarithms, one per token of the reply.
    pub logprobs: Option<Vec<f64>>,
    /// US dollars that were charged for the reply, attempts without one included.
    pub usd: Option<f64>,
}
