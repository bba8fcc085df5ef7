//! The funnel: what became of the blueprints that a model wrote. It counts the drafts that each
//! stage accepted, corrected and gave up, and the costs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::render::write_table;
use crate::model::{AuthoringPhase, DifficultyBand, DifficultyRecord, StageName, StageVersion};

/// Maximum number of lost drafts that the text names.
const SHOWN_LOST: usize = 40;

/// A blueprint that a model wrote.
#[derive(Clone, Debug)]
pub struct AuthoredEntry {
    pub task: String,
    /// In the order in which they were examined.
    pub versions: Vec<StageVersion>,
    /// Measured difficulty. Empty if it is not measured.
    pub difficulty_bands: Vec<DifficultyRecord>,
    /// `None` while screening is not complete, or if there is no draft.
    pub certified: Option<bool>,
    /// The stage that gave up, and the first line of the problem.
    pub lost: Option<(StageName, String)>,
}

/// How many drafts passed through the stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Funnel {
    /// Blueprints whose authoring ended.
    pub ended: u32,
    /// Certified drafts that no stage after feasibility had to correct.
    pub first_pass: u32,
    pub certified: u32,
    /// The stages that a draft reached, in order.
    pub stages: Vec<StageCount>,
    /// Model calls by stage. `arbiter` counts the calls that ask who is at fault. `blind` counts
    /// all turns of blind solvers.
    pub calls: BTreeMap<String, CallCount>,
    /// Drafts by their last difficulty band, if difficulty is measured.
    pub difficulty_bands: BTreeMap<DifficultyBand, u32>,
    /// Number of rewrites of drafts that were too easy or too hard.
    pub evolutions: u32,
    /// Drafts that were given up, or rejected at the end, and the reasons.
    pub lost: Vec<Lost>,
}

/// Counts of one stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageCount {
    pub stage: StageName,
    pub phase: AuthoringPhase,
    /// Drafts that reached the stage.
    pub reached: u32,
    /// Of these, drafts whose first version was not sent back.
    pub first: u32,
    /// Of these, drafts that were given up here.
    pub lost: u32,
    /// Versions that were sent back.
    pub repairs: u32,
}

/// Model calls of one stage, over all blueprints of the run folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallCount {
    /// Number of replies.
    pub replies: u64,
    /// Tokens as the servers report them.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Charges in 10⁻¹² US dollars, including requests without a reply.
    pub picodollars: u64,
}

/// A draft that did not become a certified task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    pub task: String,
    pub stage: StageName,
    pub why: String,
}

impl CallCount {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Self) {
        self.replies += other.replies;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.picodollars = self.picodollars.saturating_add(other.picodollars);
    }

    fn usd(self) -> f64 {
        self.picodollars as f64 / 1e12
    }
}

/// The row of [`Funnel::calls`] for the stage of a call site. `None` for calls that write no task.
pub fn call_row(site_stage: &str) -> Option<&str> {
    let stage = site_stage.strip_prefix("author-")?;
    // The arbiter's sites also contain the question.
    Some(stage.split('/').next().unwrap_or(stage))
}

/// Counts `entries`. `stages` has the order of the stages. `None` if no model wrote anything.
pub fn funnel(
    entries: &[AuthoredEntry],
    calls: BTreeMap<String, CallCount>,
    stages: impl Iterator<Item = (StageName, AuthoringPhase)>,
) -> Option<Funnel> {
    if entries.is_empty() && calls.is_empty() {
        return None;
    }
    let mut counts: Vec<_> = stages.map(|(stage, phase)| StageCount::none(stage, phase)).collect();
    let mut funnel = Funnel { calls, ..Funnel::default() };
    for entry in entries {
        funnel.ended += 1;
        let mut repairs: BTreeMap<&StageName, u32> = BTreeMap::new();
        for version in &entry.versions {
            *repairs.entry(&version.stage).or_default() += u32::from(version.problems > 0);
        }
        let mut first_pass = entry.certified == Some(true);
        funnel.certified += u32::from(first_pass);
        for (stage, repairs) in repairs {
            let count = count_of(&mut counts, stage);
            count.reached += 1;
            count.first += u32::from(repairs == 0);
            count.repairs += repairs;
            first_pass &= repairs == 0 || count.phase == AuthoringPhase::Request;
        }
        funnel.first_pass += u32::from(first_pass);
        if let Some(last) = entry.difficulty_bands.last() {
            *funnel.difficulty_bands.entry(last.difficulty_band).or_default() += 1;
            funnel.evolutions += last.evolution;
        }
        if let Some((stage, why)) = &entry.lost {
            count_of(&mut counts, stage).lost += 1;
            funnel.lost.push(Lost { task: entry.task.clone(), stage: stage.clone(), why: why.clone() });
        }
    }
    counts.retain(|count| count.reached > 0 || count.lost > 0);
    Some(Funnel { stages: counts, ..funnel })
}

/// The count of `stage`. A stage of another version comes last.
fn count_of<'a>(counts: &'a mut Vec<StageCount>, stage: &StageName) -> &'a mut StageCount {
    let place = counts.iter().position(|count| count.stage == *stage).unwrap_or_else(|| {
        counts.push(StageCount::none(stage.clone(), AuthoringPhase::Draft));
        counts.len() - 1
    });
    &mut counts[place]
}

impl StageCount {
    fn none(stage: StageName, phase: AuthoringPhase) -> Self {
        Self { stage, phase, reached: 0, first: 0, lost: 0, repairs: 0 }
    }
}

impl Funnel {
    /// The sum over all stages.
    pub fn total(&self) -> CallCount {
        let mut total = CallCount::default();
        self.calls.values().for_each(|calls| total.add(*calls));
        total
    }

    /// Versions that were sent back, over all stages after feasibility.
    pub fn repairs(&self) -> u32 {
        let of_draft = self.stages.iter().filter(|count| count.phase == AuthoringPhase::Draft);
        of_draft.map(|count| count.repairs).sum()
    }

    /// A summary in one line: yields and prices.
    pub fn line(&self) -> String {
        let share = |count: u32| format!("{count} of {}", self.ended);
        let total = self.total();
        let mut text = format!(
            "{} certified, {} at the first pass, {} repairs, {} replies, {} tokens",
            share(self.certified),
            share(self.first_pass),
            self.repairs(),
            total.replies,
            total.input_tokens + total.output_tokens,
        );
        if total.picodollars > 0 {
            text.push_str(&format!(", ${:.4}", total.usd()));
            if self.certified > 0 {
                text.push_str(&format!(
                    " (${:.4} a certified task)",
                    total.usd() / f64::from(self.certified)
                ));
            }
        }
        text
    }
}

/// Appends the funnel as text.
pub(super) fn section(out: &mut String, funnel: &Funnel) {
    let headings =
        ["stage", "reached", "first", "repairs", "lost", "replies", "tokens in", "tokens out", "dollars"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let calls = |name: &str| funnel.calls.get(name).copied().unwrap_or_default();
    let money = |calls: CallCount| {
        [
            calls.replies.to_string(),
            calls.input_tokens.to_string(),
            calls.output_tokens.to_string(),
            format!("{:.4}", calls.usd()),
        ]
    };
    for count in &funnel.stages {
        let stage = count.stage.as_str();
        let counts = [count.reached, count.first, count.repairs, count.lost].map(|count| count.to_string());
        let row = [stage.to_owned()].into_iter().chain(counts).chain(money(calls(stage)));
        rows.push(row.collect());
    }
    for (name, calls) in &funnel.calls {
        if !funnel.stages.iter().any(|count| count.stage.as_str() == name) {
            let empty = std::iter::repeat_n(String::new(), 4);
            rows.push([name.clone()].into_iter().chain(empty).chain(money(*calls)).collect());
        }
    }
    out.push_str("\nwritten by models: ");
    out.push_str(&funnel.line());
    out.push_str("\n\n");
    write_table(out, &rows);
    if !funnel.difficulty_bands.is_empty() {
        let bands = funnel.difficulty_bands.iter().map(|(band, count)| format!("{count} {}", band.as_str()));
        let bands: Vec<_> = bands.collect();
        out.push_str(&format!("\ndifficulty: {}; {} evolutions\n", bands.join(", "), funnel.evolutions));
    }
    if !funnel.lost.is_empty() {
        out.push_str(&format!("\ndrafts that did not become certified tasks ({})\n", funnel.lost.len()));
        for Lost { task, stage, why } in funnel.lost.iter().take(SHOWN_LOST) {
            out.push_str(&format!("  {task}: {}: {why}\n", stage.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [(StageName, AuthoringPhase); 4] = [
        (StageName::of("idea"), AuthoringPhase::Request),
        (StageName::of("feasibility"), AuthoringPhase::Request),
        (StageName::of("solution"), AuthoringPhase::Draft),
        (StageName::of("checks"), AuthoringPhase::Draft),
    ];

    fn version(stage: &'static str, version: u32, problems: u32) -> StageVersion {
        StageVersion { stage: StageName::of(stage), version, problems }
    }

    #[test]
    fn drafts_are_counted_by_stage() {
        let entry = |task: &str, versions: &[(&'static str, u32, u32)], certified, lost| AuthoredEntry {
            task: task.to_owned(),
            versions: versions
                .iter()
                .map(|(stage, number, problems)| version(stage, *number, *problems))
                .collect(),
            difficulty_bands: Vec::new(),
            certified,
            lost,
        };
        let entries = [
            // Feasibility comes before the draft, so its second version is no correction of a
            // draft.
            entry(
                "a",
                &[
                    ("idea", 1, 0),
                    ("feasibility", 1, 1),
                    ("feasibility", 2, 0),
                    ("solution", 1, 0),
                    ("checks", 1, 0),
                ],
                Some(true),
                None,
            ),
            entry(
                "b",
                &[
                    ("idea", 1, 0),
                    ("feasibility", 1, 0),
                    ("solution", 1, 0),
                    ("checks", 1, 3),
                    ("checks", 2, 1),
                    ("checks", 3, 0),
                ],
                Some(true),
                None,
            ),
            entry(
                "c",
                &[("idea", 1, 0), ("feasibility", 1, 0), ("solution", 1, 2)],
                None,
                Some((StageName::of("solution"), "it hangs".to_owned())),
            ),
        ];
        let calls = BTreeMap::from([
            (
                "checks".to_owned(),
                CallCount { replies: 4, input_tokens: 400, output_tokens: 40, picodollars: 2_000_000_000 },
            ),
            ("arbiter".to_owned(), CallCount { replies: 1, ..CallCount::default() }),
        ]);
        let funnel = funnel(&entries, calls, STAGES.into_iter()).unwrap();
        assert_eq!((funnel.ended, funnel.first_pass, funnel.certified, funnel.repairs()), (3, 1, 2, 3));
        let check = |place: usize, reached, first, lost, repairs| {
            let (stage, phase) = STAGES[place].clone();
            assert_eq!(funnel.stages[place], StageCount { stage, phase, reached, first, lost, repairs });
        };
        check(3, 2, 1, 0, 2);
        check(2, 3, 2, 1, 1);
        check(1, 3, 2, 0, 1);
        let mut text = String::new();
        section(&mut text, &funnel);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn rows_of_call_sites() {
        assert_eq!(call_row("author-checks"), Some("checks"));
        assert_eq!(call_row("author-arbiter/0123"), Some("arbiter"));
        assert_eq!(call_row("step"), None);
        assert!(funnel(&[], BTreeMap::new(), STAGES.into_iter()).is_none());
    }
}
