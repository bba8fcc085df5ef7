//! Details of one model reply in addition to its text.

/// Token ids, log-probabilities and price of one model reply. Servers need not report any of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallDetail {
    /// Token ids of the rendered prompt.
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Token ids of the reply.
    pub completion_token_ids: Option<Vec<u32>>,
    /// Natural logarithms of probabilities, one per token of the reply.
    pub logprobs: Option<Vec<f64>>,
    /// US dollars charged for the reply, including failed attempts before it.
    pub usd: Option<f64>,
}
