//! The model client against faulty endpoints.

mod apis;
mod ask;
mod bench;
mod budget;
mod cassette;
mod faults;
mod journal;
mod secrets;
mod settings;

use std::path::Path;
use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use tempfile::TempDir;
use termsmith::llm::{
    CallError, CallSite, ChatMessage, ChatRequest, ModelRole, Models, Options, Reply, Settings,
};
use termsmith::store::{RunDir, Store};

use crate::support::clock::TestClock;
use crate::support::endpoint::Server;

/// The key. No error and no log may contain it.
const KEY: &str = "sk-test-4f9a77c1";

fn env(name: &str) -> Option<String> {
    (name == "TEST_KEY").then(|| KEY.to_owned())
}

/// Settings with an endpoint at `server`. `endpoint` and `role` are further lines of these two
/// tables.
fn settings(server: &Server, endpoint: &str, role: &str) -> Settings {
    let base = server.base_url();
    let text = format!(
        "version = 1\n[endpoints.test]\nbase_url = \"{base}\"\napi_key_env = \"TEST_KEY\"\n{endpoint}\n\
         [roles.expert]\nendpoint = \"test\"\nmodel = \"tiny\"\nmax_tokens = 64\n{role}\n"
    );
    Settings::parse("termsmith.toml", &text).unwrap()
}

fn options(clock: &Arc<TestClock>) -> Options {
    Options { clock: Arc::clone(clock) as Arc<_>, ..Options::default() }
}

fn store(dir: &Path) -> Store {
    Store::new(RunDir::open(dir).unwrap())
}

/// A folder in memory if possible, since thousands of small files are synced here.
fn fresh_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn fresh_store() -> (TempDir, Store) {
    let dir = fresh_dir();
    let store = store(dir.path());
    (dir, store)
}

fn site(number: u32) -> CallSite {
    CallSite {
        role: ModelRole::Expert,
        unit: format!("unit-{number}"),
        stage: "step".to_owned(),
        round: 0,
        step: 0,
        sample: 0,
    }
}

fn request(number: u32) -> ChatRequest {
    ChatRequest::of(vec![ChatMessage::system("Count."), ChatMessage::user(format!("call {number}"))])
}

/// Makes calls 0 to `count`, `at_once` at a time. Returns their replies in order.
async fn call_all(models: &Models, count: u32, at_once: usize) -> Vec<Result<Reply, CallError>> {
    // They are boxed as `Send`, so that tasks on other threads can await them.
    let calls = (0..count)
        .map(|number| async move { (number, models.call(&site(number), &request(number)).await) }.boxed());
    let mut done: Vec<_> = futures_util::stream::iter(calls).buffer_unordered(at_once).collect().await;
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
