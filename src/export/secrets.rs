//! Finds values in trajectories that look like credentials. They are counted by kind, and masked on
//! request.
//!
//! An agent that prints its environment writes keys into the observations. The form of a value does
//! not show whether it is in use, and tasks contain invented keys too. So an export only reports
//! them by default.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde::{Deserialize, Serialize};

use crate::model::{HandoffShown, Message, Rollout, Shown, Turn};

/// The patterns are built in. So the same trajectories give the same report on every machine.
const PATTERNS: &str = include_str!("../../templates/secrets/patterns.toml");

/// How values that look like credentials are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretHandling {
    /// They are counted.
    #[default]
    Report,
    /// They are counted, and replaced by `[masked: <kind>]`.
    Mask,
}

/// The values that an export found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretReport {
    /// Whether the values were replaced in the rows.
    pub masked: bool,
    /// Number of values by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Number of values by kind, for each trajectory with any. The key is the column
    /// `trajectory_id`.
    pub trajectories: BTreeMap<String, BTreeMap<String, u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    #[allow(dead_code, reason = "for readers of the file")]
    version: u32,
    kind: Vec<DeclaredKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredKind {
    id: String,
    about: String,
    pattern: String,
}

/// The known kinds of credentials.
#[derive(Debug)]
struct Kinds {
    kinds: Vec<Kind>,
    /// Matches if any kind matches. Most texts contain none.
    any: RegexSet,
}

#[derive(Debug)]
struct Kind {
    id: String,
    about: String,
    pattern: Regex,
}

static KINDS: LazyLock<Option<Kinds>> = LazyLock::new(Kinds::load);

impl Kinds {
    fn load() -> Option<Self> {
        let declared: Declared = toml::from_str(PATTERNS).ok()?;
        let any = RegexSet::new(declared.kind.iter().map(|kind| &kind.pattern)).ok()?;
        let kind = |kind: DeclaredKind| {
            Some(Kind { pattern: Regex::new(&kind.pattern).ok()?, id: kind.id, about: kind.about })
        };
        Some(Self { kinds: declared.kind.into_iter().map(kind).collect::<Option<_>>()?, any })
    }

    /// The values in `text`, in order. Where two kinds match, the one that comes first in the file
    /// wins.
    fn find(&self, text: &str) -> Vec<(&str, Range<usize>)> {
        let mut found: Vec<(&str, Range<usize>)> = Vec::new();
        for at in self.any.matches(text) {
            let Some(kind) = self.kinds.get(at) else { continue };
            for captures in kind.pattern.captures_iter(text) {
                let value = captures.get(1).or_else(|| captures.get(0));
                let Some(range) = value.map(|value| value.range()) else { continue };
                let is_free =
                    |(_, other): &(&str, Range<usize>)| range.end <= other.start || other.end <= range.start;
                if found.iter().all(is_free) {
                    found.push((&kind.id, range));
                }
            }
        }
        found.sort_by_key(|(_, range)| range.start);
        found
    }
}

impl SecretReport {
    pub(super) fn new(handling: SecretHandling) -> Self {
        Self { masked: handling == SecretHandling::Mask, ..Self::default() }
    }

    /// Examines all texts of `rollout`, and masks the values that it finds if the handling says so.
    pub(super) fn examine(&mut self, rollout: &mut Rollout) {
        let Some(kinds) = KINDS.as_ref() else { return };
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for text in texts(rollout) {
            let values = kinds.find(text);
            if values.is_empty() {
                continue;
            }
            let mut masked = String::with_capacity(text.len());
            let mut done = 0;
            for (kind, range) in values {
                *found.entry(kind.to_owned()).or_default() += 1;
                masked.push_str(&text[done..range.start]);
                masked.push_str(&format!("[masked: {kind}]"));
                done = range.end;
            }
            masked.push_str(&text[done..]);
            if self.masked {
                *text = masked;
            }
        }
        for (kind, count) in &found {
            *self.kinds.entry(kind.clone()).or_default() += count;
        }
        if !found.is_empty() {
            self.trajectories.insert(rollout.id.clone(), found);
        }
    }

    /// The kinds that were found, each with its description and count.
    pub fn named(&self) -> Vec<(String, u64)> {
        let kinds = KINDS.as_ref().map(|kinds| kinds.kinds.as_slice()).unwrap_or_default();
        let about =
            |id: &String| kinds.iter().find(|kind| kind.id == *id).map_or(id, |kind| &kind.about).clone();
        self.kinds.iter().map(|(id, count)| (about(id), *count)).collect()
    }
}

/// The texts of a rollout that can appear in rows.
fn texts(rollout: &mut Rollout) -> impl Iterator<Item = &mut String> {
    let Rollout { record, shown, handoffs, threads, .. } = rollout;
    let others = record.threads.iter_mut().zip(threads);
    let others = others.flat_map(|(thread, seen)| {
        let opening = thread.opening.iter_mut().flat_map(of_message);
        opening.chain(of_thread(&mut thread.turns, &mut seen.shown, &mut seen.handoffs))
    });
    [&mut record.system, &mut record.prompt, &mut record.verdict.cause]
        .into_iter()
        .chain(record.opening.iter_mut().flat_map(of_message))
        .chain(of_thread(&mut record.turns, shown, handoffs))
        .chain(others)
}

fn of_thread<'a>(
    turns: &'a mut [Turn],
    shown: &'a mut [Vec<Shown>],
    handoffs: &'a mut [HandoffShown],
) -> impl Iterator<Item = &'a mut String> {
    let turns = turns.iter_mut().flat_map(|turn| {
        let calls = turn.tool_calls.iter_mut().map(|call| &mut call.arguments);
        std::iter::once(&mut turn.content).chain(turn.reasoning.as_mut()).chain(calls)
    });
    let shown = shown.iter_mut().flatten().map(|shown| &mut shown.content);
    let context = handoffs.iter_mut().flat_map(|handoff| &mut handoff.context).flat_map(of_message);
    turns.chain(shown).chain(context)
}

fn of_message(message: &mut Message) -> impl Iterator<Item = &mut String> {
    let calls = message.tool_calls.iter_mut().map(|call| &mut call.arguments);
    std::iter::once(&mut message.content).chain(message.reasoning.as_mut()).chain(calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;

    #[test]
    fn values_of_each_kind() {
        let kinds = Kinds::load().unwrap();
        let check = |text: &str, expect: &[(&str, &str)]| {
            let found: Vec<_> =
                kinds.find(text).into_iter().map(|(kind, range)| (kind, &text[range])).collect();
            assert_eq!(found, expect, "{text}");
        };
        let a = |count: usize| "aB3".repeat(count);
        check("id AKIAIOSFODNN7EXAMPLE", &[("aws-access-key", "AKIAIOSFODNN7EXAMPLE")]);
        let github = format!("ghp_{}", a(12));
        check(&format!("remote https://{github}@github.com"), &[("github-token", &github)]);
        let key = format!("sk-proj-{}", a(10));
        check(&format!("OPENAI_API_KEY={key}\n"), &[("api-key", &key)]);
        let key = format!("sk-ant-api03-{}", a(10));
        check(&format!("\"x-api-key\": \"{key}\""), &[("api-key", &key)]);
        let slack = format!("xoxb-{}", a(6));
        check(&slack, &[("slack-token", &slack)]);
        let jwt = format!("eyJ{0}.eyJ{0}.{0}", a(5));
        check(&format!("cookie={jwt};"), &[("jwt", &jwt)]);
        check(
            "AWS_SECRET_ACCESS_KEY: \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz\"",
            &[("assigned-secret", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz")],
        );
        check(
            "Authorization: Bearer abcdef0123456789abcd",
            &[("authorization-header", "abcdef0123456789abcd")],
        );
        check("postgres://app:hunter2secret@db/x", &[("password-in-url", "hunter2secret")]);
        let pem =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\nAAAA\n-----END OPENSSH PRIVATE KEY-----";
        check(&format!("a\n{pem}\nb"), &[("private-key", pem)]);
        // A key inside the arguments of a call, and one that is cut off.
        let pem = "-----BEGIN RSA PRIVATE KEY-----\\nMIIEow==\\n-----END RSA PRIVATE KEY-----";
        check(&format!("{{\"text\":\"{pem}\"}}"), &[("private-key", pem)]);
        check("-----BEGIN PRIVATE KEY-----", &[("private-key", "-----BEGIN PRIVATE KEY-----")]);
        for plain in [
            "total 12",
            "sk-learn",
            "MAX_TOKENS=4096",
            "token: none",
            "https://example.org/a:b",
            "ghp_short",
            "commit 0123456789abcdef0123456789abcdef01234567",
            "-----BEGIN CERTIFICATE-----",
            "TOKEN=$TOKEN",
        ] {
            check(plain, &[]);
        }
    }

    #[test]
    fn rollouts_are_reported_and_masked() {
        let secret = format!("ghp_{}", "aB3".repeat(12));
        let check = |handling: SecretHandling, kept: bool| {
            let mut rollout = fixture::rollout("games", 0, 0, 2, 8);
            rollout.shown[0][0].content.push_str(&format!("\n{secret} {secret}"));
            rollout.record.turns[1].content.push_str(&secret);
            let mut report = SecretReport::new(handling);
            report.examine(&mut fixture::rollout("games", 1, 0, 2, 8));
            report.examine(&mut rollout);
            assert_eq!(report.kinds, BTreeMap::from([("github-token".to_owned(), 3)]));
            assert_eq!(report.trajectories.keys().collect::<Vec<_>>(), [&rollout.id]);
            assert_eq!(report.named(), [("tokens of GitHub".to_owned(), 3)]);
            let shown = &rollout.shown[0][0].content;
            assert_eq!(shown.contains(&secret), kept, "{shown}");
            assert_eq!(shown.ends_with("\n[masked: github-token] [masked: github-token]"), !kept);
            assert_eq!(rollout.record.turns[1].content.contains(&secret), kept);
        };
        check(SecretHandling::Report, true);
        check(SecretHandling::Mask, false);
    }
}
