//! Surface features: properties of a side that do not depend on whether its work is right.
//!
//! If a feature tells chosen sides from rejected ones, a model can learn the feature instead of the
//! work.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::actions::{Action, normalised};
use super::messages::assistant_text;
use super::pairs::SideTurn;
use crate::judge::commands_run;
use crate::model::{Act, Shown, Turn, TurnKind};

/// One surface feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    Characters,
    Turns,
    CharactersPerTurn,
    FinalMessage,
    ProseCharacters,
    Commands,
    DistinctCommands,
    RepeatedCommands,
    CommandCharacters,
    FailedCommands,
    Checks,
    CommentLines,
    MalformedTurns,
    ObservationCharacters,
    FirstPerson,
    Hedges,
    Claims,
    Exclamations,
}

impl Feature {
    pub const ALL: [Self; 18] = [
        Self::Characters,
        Self::Turns,
        Self::CharactersPerTurn,
        Self::FinalMessage,
        Self::ProseCharacters,
        Self::Commands,
        Self::DistinctCommands,
        Self::RepeatedCommands,
        Self::CommandCharacters,
        Self::FailedCommands,
        Self::Checks,
        Self::CommentLines,
        Self::MalformedTurns,
        Self::ObservationCharacters,
        Self::FirstPerson,
        Self::Hedges,
        Self::Claims,
        Self::Exclamations,
    ];

    /// Its name in the card and in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Characters => "characters",
            Self::Turns => "turns",
            Self::CharactersPerTurn => "characters per turn",
            Self::FinalMessage => "length of the final message",
            Self::ProseCharacters => "characters of prose",
            Self::Commands => "commands",
            Self::DistinctCommands => "distinct commands",
            Self::RepeatedCommands => "repeated commands",
            Self::CommandCharacters => "characters of commands",
            Self::FailedCommands => "failed commands",
            Self::Checks => "checks run",
            Self::CommentLines => "comment lines in commands",
            Self::MalformedTurns => "malformed messages",
            Self::ObservationCharacters => "mean length of observations",
            Self::FirstPerson => "words in the first person",
            Self::Hedges => "hedges and apologies",
            Self::Claims => "claims of success",
            Self::Exclamations => "exclamation marks",
        }
    }
}

/// The value of each feature, in the order of [`Feature::ALL`].
pub type Values = [f64; Feature::ALL.len()];

/// Programs that compare or test something. Agents check their work with them.
static CHECKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?m)(?:^|[\s;&|(])(?:diff|cmp|comm|test|\[{1,2}|sha256sum|md5sum|pytest|unittest|ctest|tox)(?:\s|$)|\b(?:make|cargo|go|npm)\s+(?:test|check)\b|\bassert\b",
    )
    .ok()
});
static FIRST_PERSON: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|[Oo]ur|[Ll]et's)\b").ok());
static HEDGES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:sorry|apolog\w+|oops|maybe|perhaps|probably|possibly|might|seems?|hopefully|should (?:be|work)|i (?:think|guess|believe|assume)|not sure|unsure|unclear)\b",
    )
    .ok()
});
static CLAIMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:done|complete[ds]?|finished|success\w*|works|working|correct(?:ly)?|verified|confirmed|passes|passed|agrees?|as expected|ready|all good|in place)\b",
    )
    .ok()
});

/// The features of `side`, from turn `from` on.
pub(super) fn values(side: &[SideTurn<'_>], from: usize) -> Values {
    let turns: Vec<Turn> = side.iter().map(|at| at.turn.clone()).collect();
    let shown: Vec<Vec<Shown>> = side.iter().map(|at| at.shown.to_vec()).collect();
    let failed = commands_run(&turns, &shown).iter().filter(|run| run.turn >= from && run.failed).count();
    let part = side.get(from..).unwrap_or_default();
    let messages: Vec<String> = part.iter().map(|at| assistant_text(at.turn)).collect();
    let commands: Vec<String> = part
        .iter()
        .flat_map(|at| at.turn.acts.iter().map(Act::text))
        .filter(|command| !command.trim().is_empty())
        .map(str::to_owned)
        .collect();
    let distinct: BTreeSet<String> = commands.iter().map(|command| normalised(command)).collect();
    let prose: Vec<String> = part.iter().map(|at| prose(at.turn)).collect();
    let observations: Vec<usize> =
        part.iter().flat_map(|at| at.shown).map(|shown| shown.content.chars().count()).collect();
    let characters: usize = messages.iter().map(|message| message.chars().count()).sum();
    let said = |pattern: &LazyLock<Option<Regex>>| {
        let pattern = LazyLock::force(pattern).as_ref();
        count(pattern.map_or(0, |pattern| prose.iter().map(|text| pattern.find_iter(text).count()).sum()))
    };
    let checks = |command: &&String| CHECKS.as_ref().is_some_and(|pattern| pattern.is_match(command));
    let comments = |command: &String| command.lines().filter(|line| is_comment(line)).count();
    let value = |feature: Feature| match feature {
        Feature::Characters => count(characters),
        Feature::Turns => count(part.len()),
        Feature::CharactersPerTurn => mean(characters, part.len()),
        Feature::FinalMessage => count(messages.last().map_or(0, |message| message.chars().count())),
        Feature::ProseCharacters => count(prose.iter().map(|text| text.chars().count()).sum()),
        Feature::Commands => count(commands.len()),
        Feature::DistinctCommands => count(distinct.len()),
        Feature::RepeatedCommands => count(commands.len() - distinct.len()),
        Feature::CommandCharacters => count(commands.iter().map(|command| command.chars().count()).sum()),
        Feature::FailedCommands => count(failed),
        Feature::Checks => count(commands.iter().filter(checks).count()),
        Feature::CommentLines => count(commands.iter().map(comments).sum()),
        Feature::MalformedTurns => {
            count(part.iter().filter(|at| Action::of(at.turn).kind == TurnKind::Malformed).count())
        }
        Feature::ObservationCharacters => mean(observations.iter().sum(), observations.len()),
        Feature::FirstPerson => said(&FIRST_PERSON),
        Feature::Hedges => said(&HEDGES),
        Feature::Claims => said(&CLAIMS),
        Feature::Exclamations => count(prose.iter().map(|text| text.matches('!').count()).sum()),
    };
    Feature::ALL.map(value)
}

/// The prose of a message, without its commands.
fn prose(turn: &Turn) -> String {
    let mut text = turn.reasoning.clone().unwrap_or_default();
    text.push('\n');
    // terminus-2's replies are JSON, with the commands in it.
    if let Ok(serde_json::Value::Object(reply)) = serde_json::from_str(turn.content.trim()) {
        let said =
            reply.iter().filter(|(name, _)| *name != "commands").filter_map(|(_, value)| value.as_str());
        said.for_each(|part| {
            text.push_str(part);
            text.push('\n');
        });
        return text;
    }
    let mut content = turn.content.clone();
    for act in &turn.acts {
        content = content.replace(act.text().trim(), "");
    }
    text + &content
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#') && !line.trim_start().starts_with("#!")
}

fn count(number: usize) -> f64 {
    number as f64
}

fn mean(sum: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { sum as f64 / of as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ShellOutcome;

    fn turn(content: &str, command: &str, status: i32) -> Turn {
        let acts =
            vec![Act::Command { command: command.to_owned(), outcome: Some(ShellOutcome::Exited(status)) }];
        Turn { content: format!("{content}\n\n```bash\n{command}\n```"), acts, ..Turn::default() }
    }

    #[test]
    fn features_of_a_side() {
        let turns = [
            turn("I look at my files!", "# look\nls -l", 0),
            turn("Sorry, maybe this seems right.", "ls  -l", 0),
            turn("It agrees.", "diff a b", 1),
            Turn {
                content: "The work is complete and verified.".to_owned(),
                kind: TurnKind::Submitted,
                ..Turn::default()
            },
        ];
        let shown: Vec<Vec<Shown>> =
            ["ab", "abcd", "< a"].iter().map(|text| vec![Shown::text(*text)]).chain([Vec::new()]).collect();
        let side: Vec<SideTurn<'_>> =
            turns.iter().zip(&shown).map(|(turn, shown)| SideTurn { turn, shown }).collect();
        let check = |feature: Feature, whole: f64, after: f64| {
            let of = |from| values(&side, from)[Feature::ALL.iter().position(|one| *one == feature).unwrap()];
            assert_eq!((of(0), of(2)), (whole, after), "{feature:?}");
        };
        check(Feature::Turns, 4.0, 2.0);
        check(Feature::FinalMessage, 34.0, 34.0);
        check(Feature::Commands, 3.0, 1.0);
        check(Feature::DistinctCommands, 2.0, 1.0);
        check(Feature::RepeatedCommands, 1.0, 0.0);
        check(Feature::CommandCharacters, 26.0, 8.0);
        check(Feature::FailedCommands, 1.0, 1.0);
        check(Feature::Checks, 1.0, 1.0);
        check(Feature::CommentLines, 1.0, 0.0);
        check(Feature::ObservationCharacters, 3.0, 3.0);
        check(Feature::FirstPerson, 2.0, 0.0);
        check(Feature::Hedges, 3.0, 0.0);
        check(Feature::Claims, 3.0, 3.0);
        check(Feature::Exclamations, 1.0, 0.0);
        // Past the end there are no turns.
        assert_eq!(values(&side, 9), [0.0; Feature::ALL.len()]);
    }

    #[test]
    fn prose_is_what_is_said_beside_commands() {
        let check = |turn: &Turn, expect: &str| assert_eq!(prose(turn).trim(), expect);
        let terminus = Turn {
            content: r#"{"analysis": "I see.", "plan": "Go on.", "commands": [{"keystrokes": "ls\n"}]}"#
                .to_owned(),
            acts: vec![Act::Keys { keys: "ls\n".to_owned() }],
            ..Turn::default()
        };
        check(&terminus, "I see.\nGo on.");
        check(&turn("I look.", "ls", 0), "I look.\n\n```bash\n\n```");
        check(
            &Turn { reasoning: Some("Hm.".to_owned()), ..turn("I look.", "ls", 0) },
            "Hm.\nI look.\n\n```bash\n\n```",
        );
    }
}
