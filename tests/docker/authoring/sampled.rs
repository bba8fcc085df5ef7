//! The three ways in which a request is sampled.

use serde_json::Value;

use super::author::{RUN, configure, server};
use crate::support::bench::Bench;
use crate::support::engine::docker;

/// The first request of a run with this `sampling`, and the request that the task began with.
async fn sampled(sampling: &str, says: &'static str) -> (Value, String) {
    let server = server(move |stage, _| (stage == "idea").then(|| says.to_owned())).await;
    let bench = Bench::new();
    configure(&bench, &server);
    let settings = std::fs::read_to_string(bench.path("termsmith.toml")).unwrap();
    let settings = settings.replace("[roles.sampler]\n", &format!("[roles.sampler]\n{sampling}\n"));
    bench.write("termsmith.toml", &settings);
    bench.run(&[&RUN[..], &["--out", "out", "--blind", "0"]].concat()).ok();
    let records = std::fs::read_dir(bench.path("out/store/authoring")).unwrap();
    let files = records.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let record: Vec<_> = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let [record] = record.as_slice() else { panic!("{} records", record.len()) };
    let record: Value = serde_json::from_str(record).unwrap();
    let record = &record["value"];
    let method = record["sampling"].as_str().unwrap_or_else(|| panic!("{record}"));
    assert!(sampling.contains(&format!("\"{method}\"")), "{record}");
    (server.seen()[0].body.clone(), record["request"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_sampled_as_the_endpoint_allows() {
    if docker().await.is_none() {
        return;
    }
    let (body, request) = sampled("sampling = { method = \"chat\" }", "Please sort the guests.").await;
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    assert_eq!(request, "Please sort the guests.");

    // The given beginning belongs to the request, whether or not the server repeats it.
    let prefill = "sampling = { method = \"prefill\", begin = \"In /app I have\" }";
    for says in [" a list of guests.", "In /app I have a list of guests."] {
        let (body, request) = sampled(prefill, says).await;
        assert_eq!(body["messages"][2]["content"], "In /app I have");
        assert_eq!(body["messages"][2]["role"], "assistant");
        assert_eq!(request, "In /app I have a list of guests.");
    }

    let prefix = "sampling = { method = \"prefix\", template = \"<s>{system}</s><u>\", stop = [\"</u>\"] }";
    let (body, request) = sampled(prefix, " Sort my guests.\n").await;
    assert!(body.get("messages").is_none());
    let prompt = body["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("<s>You are an assistant") && prompt.ends_with("</s><u>"), "{prompt}");
    assert_eq!(body["stop"], serde_json::json!(["</u>"]));
    assert_eq!(request, "Sort my guests.");
}
