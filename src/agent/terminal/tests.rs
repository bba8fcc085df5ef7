use serde::Deserialize;

use super::Screen;

/// Captures of real tmux, by `tests/readers/tmux_golden.py`.
#[derive(Deserialize)]
struct Screens {
    rows: u16,
    cols: u16,
    history: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input: String,
    screen: String,
    full: String,
    answers: String,
}

/// Bytes that the golden file writes as the characters of the same numbers.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

#[test]
fn screens_are_those_of_tmux() {
    let golden: Screens =
        serde_json::from_str(include_str!("../../../tests/golden/tmux_screens.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &golden.cases {
        let mut screen = Screen::with_history(golden.rows, golden.cols, golden.history);
        screen.feed(&bytes(&case.input));
        // Asked last, so that everything before it has been answered.
        screen.feed(b"\x1b[6n");
        let answers = screen.take_answers();
        let same = (screen.screen(), screen.full_pane(), answers);
        let expected = (case.screen.clone(), case.full.clone(), bytes(&case.answers));
        if same != expected {
            wrong.push(format!(
                "{}: {:?}\n ours {:?}\n      {:?}\n tmux {:?}\n      {:?}\n ours {:?} tmux {:?}",
                case.name,
                case.input,
                same.0,
                same.1,
                expected.0,
                expected.1,
                same.2.escape_ascii().to_string(),
                expected.2.escape_ascii().to_string()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), golden.cases.len(), wrong.join("\n"));
}
