//! Brings the reply to an agent's client, which may give up while the model works.

use std::future::Future;
use std::time::Duration;

use super::dialect::{Refusal, Responder};
use crate::llm::Reply;
use crate::sandbox::RelayReply;

/// Time between two signs of life. The shortest time-out of a client without any byte is 180 s by
/// default (Claude Code), and users set shorter ones. Most refusals come before the first sign, so
/// they still have a status of their own.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// What a client gets.
#[derive(Debug)]
pub(super) enum Answer {
    Reply(Box<Reply>),
    Refused(Refusal),
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It was handed to the client's connection.
    Sent,
    /// The client closed its connection before.
    ClientGone,
}

/// Sends the client signs of life until there is an answer, and then the answer. A client that goes
/// away does not stop the work on its answer. If the work fails, the connection is closed.
pub(super) async fn deliver<E>(
    client: RelayReply,
    responder: Responder,
    work: impl Future<Output = Result<Answer, E>>,
) -> Result<Delivery, E> {
    deliver_with_signs(SIGN_OF_LIFE, client, responder, work).await
}

async fn deliver_with_signs<E>(
    every: Duration,
    client: RelayReply,
    mut responder: Responder,
    work: impl Future<Output = Result<Answer, E>>,
) -> Result<Delivery, E> {
    tokio::pin!(work);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut work => break answer?,
            () = tokio::time::sleep(every) => {}
        }
        // A client that is gone is found out again when it is sent the answer.
        if let Some(bytes) = responder.alive()
            && client.send(bytes).await.is_err()
        {
            break work.await?;
        }
    };
    let bytes = match &answer {
        Answer::Reply(reply) => responder.reply(reply),
        Answer::Refused(refusal) => responder.refuse(refusal),
    };
    Ok(match client.all(bytes).await {
        Ok(()) => Delivery::Sent,
        Err(_) => Delivery::ClientGone,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::dialect::{Inquiry, RefusalKind, inquire};
    use super::super::http::Request;
    use super::*;

    const BUSY: Duration = Duration::from_millis(5);

    fn responder(body: &str) -> Responder {
        match inquire(&Request::post("/v1/messages", body), "m") {
            Inquiry::Asked(asked) => asked.responder,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a refusal after `works`, and returns what the client got, by parts.
    async fn got(stream: bool, works: Duration) -> Vec<String> {
        let body = format!(r#"{{"messages":[],"stream":{stream}}}"#);
        let (client, mut parts, _leaves) = RelayReply::to_receiver();
        let read = tokio::spawn(async move {
            let mut all = Vec::new();
            while let Some(part) = parts.recv().await {
                all.push(String::from_utf8(part).unwrap());
            }
            all
        });
        let work = async {
            tokio::time::sleep(works).await;
            Ok::<_, Infallible>(Answer::Refused(Refusal::new(RefusalKind::Limit, "no")))
        };
        let delivery = deliver_with_signs(BUSY, client, responder(&body), work).await;
        assert_eq!(delivery, Ok(Delivery::Sent));
        read.await.unwrap()
    }

    #[tokio::test]
    async fn streams_have_signs_of_life() {
        let at_once = got(true, Duration::ZERO).await;
        assert!(at_once.len() == 1 && at_once[0].starts_with("HTTP/1.1 403"), "{at_once:?}");
        let late = got(true, BUSY * 20).await;
        assert!(late[0].starts_with("HTTP/1.1 200") && late[0].contains("event: ping"), "{late:?}");
        assert!(late.len() > 2 && late.last().unwrap().contains("event: error"), "{late:?}");
        let whole = got(false, BUSY * 20).await;
        assert!(whole.len() == 1 && whole[0].starts_with("HTTP/1.1 403"), "{whole:?}");
    }

    #[tokio::test]
    async fn the_work_goes_on_without_the_client() {
        for stream in [true, false] {
            let (client, _parts, leaves) = RelayReply::to_receiver();
            let body = format!(r#"{{"messages":[],"stream":{stream}}}"#);
            let mut done = false;
            let work = async {
                drop(leaves);
                tokio::time::sleep(BUSY * 4).await;
                done = true;
                Ok::<_, Infallible>(Answer::Refused(Refusal::new(RefusalKind::Limit, "no")))
            };
            let delivery = deliver_with_signs(BUSY, client, responder(&body), work).await;
            assert_eq!((delivery, done), (Ok(Delivery::ClientGone), true));
        }
    }
}
