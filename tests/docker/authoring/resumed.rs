//! Authorings that are killed and continued, and prompts that change between two runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use super::author::{
    RUN, UNFOUNDED, all_checks, answering, checks, configure, requests, server, stage_of, troubled,
};
use crate::support::bench::{Bench, assert_same};
use crate::support::endpoint::{Answer, Kind};
use crate::support::engine::docker;

/// The run is killed after so many requests. They are spread over the stages.
const KILLS: [usize; 4] = [2, 5, 8, 11];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_authoring_pays_for_nothing_twice() {
    if docker().await.is_none() {
        return;
    }
    let args = [&RUN[..], &["--out", "out"]].concat();
    let faultless = server(|_, _| None).await;
    let whole = Bench::new();
    configure(&whole, &faultless);
    whole.run(&args).ok();

    let server = server(|_, _| None).await;
    let bench = Bench::new();
    configure(&bench, &server);
    for kill_at in KILLS {
        let mut running = bench.spawn(&args);
        while server.requests() < kill_at && running.try_wait().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        // The run may have ended already.
        let _ = running.kill();
        running.wait().unwrap();
    }
    bench.run(&args).ok();
    for folder in ["out/store/authoring", "out/store/draft", "out/store/certificate", "out/tasks"] {
        assert_same(&whole.path(folder), &bench.path(folder));
    }
    // At each kill, one request may have been in flight.
    let (once, now) = (faultless.requests(), server.requests());
    assert!(now <= once + KILLS.len(), "{now} requests instead of {once}");
    bench.run(&args).ok();
    assert_eq!(server.requests(), now, "what is done is not done again");
    let funnel = "written by models: 1 of 1 certified, 1 of 1 at the first pass, 0 repairs, ";
    let audit = bench.run(&["audit", "--out", "out"]).ok().out;
    assert!(audit.contains(&format!("{funnel}{once} replies, {} tokens", 110 * once)), "{audit}");
    let card = std::fs::read_to_string(bench.path("out/data/README.md")).unwrap();
    assert!(card.contains("1 of 1 certified"), "{card}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_an_endpoint_change_no_task() {
    if docker().await.is_none() {
        return;
    }
    let args = [&RUN[..], &["--out", "out"]].concat();
    let calm = server(says).await;
    let whole = Bench::new();
    configure(&whole, &calm);
    whole.run(&args).ok();

    // Each request first meets a fault. The thirteen kinds take turns. A reply that is cut off, no
    // JSON, of another schema, or empty is sampled again, and so are a reset and a refusal.
    let met = AtomicUsize::new(0);
    let rough = troubled(says, move |_, attempt| match attempt {
        0 => Kind::FAULTS[met.fetch_add(1, Ordering::Relaxed) % Kind::FAULTS.len()],
        _ => Kind::Reply,
    })
    .await;
    let bench = Bench::new();
    configure(&bench, &rough);
    bench.write(
        "termsmith.toml",
        &std::fs::read_to_string(bench.path("termsmith.toml"))
            .unwrap()
            .replace("\n[roles.sampler]", "\ntimeout_sec = 2\n[roles.sampler]"),
    );
    bench.run(&args).ok();
    for folder in ["out/store/authoring", "out/store/draft", "out/store/certificate", "out/tasks"] {
        assert_same(&whole.path(folder), &bench.path(folder));
    }
    let kinds: BTreeSet<_> = rough.seen().iter().map(|seen| seen.kind).collect();
    assert_eq!(kinds, Kind::FAULTS.into(), "{kinds:?}");
}

/// An author whose first checks demand something that the instruction does not.
fn says(stage: &str, before: usize) -> Option<String> {
    (stage == "checks" && before == 0).then(|| checks(&format!("{}{UNFOUNDED}", all_checks())))
}

/// Each sampler is shown the earlier titles. So a request with a missing predecessor would be
/// another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_could_not_be_sampled_leaves_the_later_ones_open() {
    if docker().await.is_none() {
        return;
    }
    let run = RUN.map(|word| if word == "1" { "2" } else { word });
    let args = [&run[..], &["--out", "out"]].concat();
    let calm = server(|_, _| None).await;
    let whole = Bench::new();
    configure(&whole, &calm);
    whole.run(&args).ok();

    let is_broke = Arc::new(AtomicBool::new(true));
    let broke = is_broke.clone();
    let server = answering(
        |_, _| None,
        move |body, _| {
            (broke.load(Ordering::SeqCst) && stage_of(body) == "idea").then(|| Answer::Raw {
                status: 402,
                headers: vec![("content-type", "application/json".to_owned())],
                body: r#"{"error": {"message": "no credit is left"}}"#.to_owned(),
            })
        },
    )
    .await;
    let bench = Bench::new();
    configure(&bench, &server);
    let ran = bench.run(&args).ends(75);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(summary["left_open"], serde_json::json!(["data-science-model-0001"]), "{summary:#}");
    assert_eq!(requests(&server), [("idea", 1)]);
    is_broke.store(false, Ordering::SeqCst);
    bench.run(&args).ok();
    for folder in ["out/store/authoring", "out/store/draft", "out/store/call"] {
        assert_same(&whole.path(folder), &bench.path(folder));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_prompt_repeats_its_stage_and_nothing_before_it() {
    if docker().await.is_none() {
        return;
    }
    let server = server(|_, _| None).await;
    let bench = Bench::new();
    configure(&bench, &server);
    let templates = bench.path("templates");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"), &templates);
    let args = [&RUN[..], &["--out", "out", "--templates", "templates"]].concat();
    bench.run(&args).ok();
    let before = requests(&server);
    let prompt = templates.join("prompts/author-checks/system.md.j2");
    let text = std::fs::read_to_string(&prompt).unwrap();
    std::fs::write(&prompt, format!("{text}- Be brief.\n")).unwrap();
    bench.run(&args).ok();
    let after = requests(&server);
    let again: Vec<_> =
        before.iter().zip(&after).filter(|(old, new)| old != new).map(|(old, _)| old.0).collect();
    // Later stages see the same checks as before, so their requests are the same too.
    assert_eq!(again, ["checks"]);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
