//! How drafts end if their author makes one mistake.

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::author::{
    CHECKS_WITHOUT_COUNT, ENVIRONMENT, INSTRUCTION, RUN, UNFOUNDED, all_checks, checks, configure, good,
    server,
};
use crate::support::bench::{Bench, files};
use crate::support::engine::docker;

/// An author's reply at a stage, after this number of replies. `None` for the careful author's
/// reply.
type Says = fn(&str, usize) -> Option<String>;

/// How a draft ends.
enum Ends {
    /// Certified, after this stage wrote so many versions.
    Certified(&'static str, u32),
    /// This stage gave up. A problem contains these words.
    GivenUp(&'static str, &'static str),
}

/// The author's mistake in words, its replies, and the end of the draft.
type Row = (&'static str, Says, Ends);

/// `text`, if this is the first reply of a conversation.
fn first(before: usize, text: impl Into<String>) -> Option<String> {
    (before == 0).then(|| text.into())
}

/// A script that makes the list of names, a link and a repository.
const SETUP: &str = "<file path=\"app/parts/1.txt\">\nZoe\nadam\nÉmile\nBo\nbo\n</file>
<file path=\"app/parts/2.txt\">\nBo\nAnna Lee\nZoe\nadam\n</file>
<file path=\"setup.sh\">
set -e
cat parts/*.txt > names.txt
rm -r parts
ln -s names.txt guests.txt
git init -q book
git -C book -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m First --date 2030-01-01T00:00:00Z
</file>";

/// The tests of what the script made.
const OF_SETUP: &str = "

def test_given():
    \"\"\"“`/app/names.txt` stays as it is”: and the tests know what it was.\"\"\"
    assert subject.pristine(\"app/book/.git.bundle\").read_bytes().startswith(b\"# v2 git bundle\")
    assert not subject.pristine(\"app/parts/1.txt\").exists()
    assert subject.read_bytes(\"/app/names.txt\") == subject.pristine(\"app/names.txt\").read_bytes()
";

/// A check of the count that ignores a missing line feed.
const LAX_COUNT: &str = "

def test_count():
    \"\"\"“the number of different names as one decimal number on a line of its own”: the number.\"\"\"
    assert subject.read_text(\"/app/count.txt\").strip() == str(len(TRUTH))
";

const ROWS: [Row; 21] = [
    ("no mistake", |_, _| None, Ends::Certified("checks", 1)),
    (
        "a judge that writes no JSON",
        |stage, _| (stage == "feasibility").then(|| "Yes, why not?".to_owned()),
        Ends::GivenUp("feasibility", "no usable"),
    ),
    (
        "a request that is refused",
        |stage, _| {
            (stage == "feasibility").then(|| {
                r#"{"feasible": false, "reason": "It needs a network.", "difficulty": "easy", "title": "Fetch it"}"#.to_owned()
            })
        },
        Ends::GivenUp("feasibility", "It needs a network."),
    ),
    (
        "a path that leads out of the folder, at first",
        |stage, before| {
            if stage != "environment" {
                return None;
            }
            first(before, format!("{ENVIRONMENT}\n<file path=\"app/../../etc/cron.d/x\">\nx\n</file>"))
        },
        Ends::Certified("environment", 2),
    ),
    (
        "a file that is too large, always",
        |stage, _| {
            (stage == "environment")
                .then(|| format!("<file path=\"app/x\">\n{}\n</file>", "x".repeat(3 << 20)))
        },
        Ends::GivenUp("environment", "be shorter"),
    ),
    (
        "no files, always",
        |stage, _| (stage == "environment").then(|| "There is nothing to prepare.".to_owned()),
        Ends::GivenUp("environment", "no block"),
    ),
    (
        "an image that does not build, at first",
        |stage, before| {
            if stage != "environment" {
                return None;
            }
            first(
                before,
                format!("{ENVIRONMENT}\n<file path=\"setup.sh\">\necho no such luck; exit 3\n</file>"),
            )
        },
        Ends::Certified("environment", 2),
    ),
    (
        "a machine that is made by a script",
        |stage, _| match stage {
            "environment" => Some(SETUP.to_owned()),
            "checks" => Some(checks(&format!("{}{OF_SETUP}", all_checks()))),
            "configuration" => {
                Some(good("configuration", 0).replace("\"test_input\"", "\"test_given\": 1, \"test_input\""))
            }
            _ => None,
        },
        Ends::Certified("checks", 1),
    ),
    (
        "an instruction that speaks of tests, at first",
        |stage, before| {
            if stage != "instruction" {
                return None;
            }
            first(before, format!("{INSTRUCTION} Hidden tests look at both."))
        },
        Ends::Certified("instruction", 2),
    ),
    (
        "a solution that fails, at first",
        |stage, before| {
            if stage != "solution" {
                return None;
            }
            first(before, "<file path=\"solve.sh\">\nsort -u name.txt > sorted.txt || exit 1\n</file>")
        },
        Ends::Certified("solution", 2),
    ),
    (
        "checks that are no Python, at first",
        |stage, before| {
            if stage != "checks" {
                return None;
            }
            first(before, checks(&format!("{}\ndef broken(:\n", all_checks())))
        },
        Ends::Certified("checks", 2),
    ),
    (
        "a check that no words demand, at first",
        |stage, before| {
            if stage != "checks" {
                return None;
            }
            first(before, checks(&format!("{}{UNFOUNDED}", all_checks())))
        },
        Ends::Certified("checks", 2),
    ),
    (
        "a check that quotes other words, at first",
        |stage, before| {
            if stage != "checks" {
                return None;
            }
            first(before, checks(&all_checks().replace("keep their spelling", "are spelt well")))
        },
        Ends::Certified("checks", 2),
    ),
    (
        "checks that use the network, at first",
        |stage, before| {
            if stage != "checks" {
                return None;
            }
            let fetching =
                "import urllib.request\nurllib.request.urlopen(\"http://192.0.2.1/\", timeout=2)\n";
            first(before, checks(&format!("{fetching}{}", all_checks())))
        },
        Ends::Certified("checks", 2),
    ),
    (
        "checks that an attack passes, at first",
        |stage, before| {
            if stage != "checks" {
                return None;
            }
            first(
                before,
                checks(&format!(
                    "{CHECKS_WITHOUT_COUNT}\n\ndef test_count():\n    \"\"\"“the number of different names as one decimal number on a line of its own”: it is there.\"\"\"\n    assert subject.read_text(\"/app/count.txt\").strip().isdigit()\n"
                )),
            )
        },
        Ends::Certified("checks", 2),
    ),
    (
        "clauses that leave a sentence out, at first",
        |stage, before| {
            if stage != "clauses" {
                return None;
            }
            first(before, "<file path=\"clauses.toml\">\nbackground = [\"Nothing else is wanted\"]\n</file>")
        },
        Ends::Certified("clauses", 2),
    ),
    (
        "checks that a mistake passes, at first",
        |stage, before| {
            if stage != "checks" {
                return None;
            }
            first(before, checks(&format!("{CHECKS_WITHOUT_COUNT}{LAX_COUNT}")))
        },
        Ends::Certified("checks", 2),
    ),
    (
        "a mistake that two versions of the checks miss, and is left out then",
        |stage, before| match stage {
            "checks" => Some(checks(&format!("{CHECKS_WITHOUT_COUNT}{LAX_COUNT}\n# Version {before}.\n"))),
            "mistakes" if before > 0 => Some("<file path=\"mistakes.toml\">\n</file>".to_owned()),
            _ => None,
        },
        Ends::Certified("mistakes", 2),
    ),
    (
        "a mistake that quotes other words, at first",
        |stage, before| {
            if stage != "mistakes" {
                return None;
            }
            first(before, good("mistakes", 0).replace("keep their spelling", "are spelt well"))
        },
        Ends::Certified("mistakes", 2),
    ),
    (
        "a weight of no check, at first",
        |stage, before| {
            if stage != "configuration" {
                return None;
            }
            first(before, r#"{"minutes": 10, "weights": {"test_nothing": 1}}"#)
        },
        Ends::Certified("configuration", 2),
    ),
    (
        "a solver that fails honestly",
        |stage, before| match (stage, before) {
            ("blind", 0) => {
                Some("I copy.\n\n```bash\ncp names.txt sorted.txt; echo 1 > count.txt\n```".to_owned())
            }
            ("arbiter", _) => Some(
                r#"{"fault": "solution", "words": "every name once", "reason": "The file has repetitions."}"#
                    .to_owned(),
            ),
            _ => None,
        },
        Ends::GivenUp("blind", "every blind solver fails"),
    ),
];

/// A row that needs executed violations, which `--rigor quick` does not have.
const SURVIVED: Row = (
    "a violation that two versions of the checks miss, and is replaced then",
    |stage, before| match stage {
        "checks" => Some(checks(&format!(
            "{CHECKS_WITHOUT_COUNT}\n\ndef test_count():\n    \"\"\"“the number of different names as one decimal number on a line of its own”: lax.\"\"\"\n    \
             assert subject.read_text(\"/app/count.txt\").splitlines(True) in ([f\"{{len(TRUTH)}}\\n\"], [f\"{{len(NAMES)}}\\n\"]), {before}\n"
        ))),
        "clauses" if before > 0 => Some(good("clauses", 0).replace("wc -l < names.txt", "wc -c < names.txt")),
        _ => None,
    },
    Ends::Certified("clauses", 2),
);

/// A row that needs executed ablations, which `--rigor quick` does not have.
const NOT_DEMANDED: Row = (
    "a statement of the reference that no sentence demands, and that two versions of the checks miss",
    |stage, before| match stage {
        "solution" if before == 0 => {
            Some(good("solution", 0).replace("LC_ALL=C\n", "LC_ALL=C\ntouch guests-were-sorted\n"))
        }
        "checks" => Some(checks(&format!("{}\n# Version {before}.\n", all_checks()))),
        _ => None,
    },
    Ends::Certified("solution", 2),
);

/// A row that needs mutants, which `--rigor quick` does not have. Some of them change a file that
/// no sentence mentions.
const EQUIVALENT: Row = (
    "mutants that pass and violate nothing",
    |stage, _| match stage {
        "solution" => Some(good("solution", 0).replace("wc -l", "seq 1 9 > steps\nwc -l")),
        // Each of the two numbers, one more and one less.
        "equivalence" => {
            let judged = [1, 2, 3, 4].map(|number| {
                format!(r#"{{"number": {number}, "reason": "No sentence mentions the file."}}"#)
            });
            Some(format!(r#"{{"mutants": [{}]}}"#, judged.join(", ")))
        }
        _ => None,
    },
    Ends::Certified("checks", 1),
);

/// Number of rows at once.
const LANES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mistakes_are_told_to_the_stage_that_made_them() {
    if docker().await.is_none() {
        return;
    }
    let rows = stream::iter(ROWS).map(|row| tokio::spawn(check("quick", row))).buffer_unordered(LANES);
    for checked in rows.collect::<Vec<_>>().await {
        checked.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn violations_that_two_versions_of_the_checks_miss_are_replaced() {
    if docker().await.is_some() {
        check("standard", SURVIVED).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutants_that_violate_nothing_are_set_aside() {
    if docker().await.is_some() {
        check("standard", EQUIVALENT).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_two_versions_of_the_checks_miss_are_left_out() {
    if docker().await.is_some() {
        check("standard", NOT_DEMANDED).await;
    }
}

async fn check(rigor: &str, (name, says, ends): Row) {
    let server = server(says).await;
    let bench = Bench::new();
    configure(&bench, &server);
    let args = RUN.map(|word| if word == "quick" { rigor } else { word });
    let ran = tokio::task::block_in_place(|| bench.run(&[&args[..], &["--out", "out"]].concat()));
    let summary: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{name}: {}{}", ran.out, ran.err));
    let record = record(&bench).unwrap_or_else(|| panic!("{name}: {summary:#}"));
    match ends {
        Ends::Certified(stage, version) => {
            assert_eq!(summary["certified"], 1, "{name}: {summary:#}");
            let versions = record["versions"].as_array().unwrap();
            let of_stage = versions.iter().filter(|found| found["stage"] == stage);
            let last = of_stage.filter_map(|found| found["version"].as_u64()).max();
            assert_eq!(last, Some(version.into()), "{name}: {versions:?}");
        }
        Ends::GivenUp(stage, words) => {
            assert_eq!(record["outcome"]["rejected"], stage, "{name}: {record:#}");
            let told = summary["unmade"].to_string();
            assert!(told.contains(words), "{name}: {told}");
            let folder = if stage == "blind" { "unconfirmed" } else { "rejected" };
            let history = bench.path(&format!("out/{folder}/data-science-model-0000/history.json"));
            let history = std::fs::read_to_string(history).unwrap_or_else(|_| panic!("{name}: no history"));
            assert!(history.contains(words), "{name}: {history}");
        }
    }
}

/// The record of the one authoring.
fn record(bench: &Bench) -> Option<Value> {
    let files = files(&bench.path("out/store/authoring"));
    let (_, bytes) = files.into_iter().next()?;
    Some(serde_json::from_slice::<Value>(&bytes).unwrap()["value"].take())
}
