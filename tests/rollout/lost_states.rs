//! States that a solver leaves and from which nothing can be started again.

use serde_json::json;

use super::endings::{block, run_rollout};
use super::endpoint::{Answer, Server};

/// A solver is root in its container: it can leave a state from which no further round could begin, and a failed submission would have no verdict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_cannot_be_started_is_the_solvers_failure() {
    let server = Server::start(|body, _| {
        let messages = body["messages"].as_array().unwrap();
        let assistant = messages.iter().filter(|message| message["role"] == "assistant").count();
        // A file in the place of the folder in which the engine mounts the guest.
        let spoil = "mv /.termsmith /older && touch /.termsmith";
        Answer::Text(block(if assistant == 0 { spoil } else { "submit" }))
    })
    .await;
    let (found, document) =
        tokio::task::block_in_place(|| run_rollout(&server, &["--arm", "self-correction", "--rounds", "1"]));
    assert_eq!(found, json!(["sandbox_lost", "fail", "policy", false, 0.0]));
    assert_eq!(document["extra"]["rounds"].as_array().unwrap().len(), 1);
}
