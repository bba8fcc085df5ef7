use proptest::prelude::*;
use serde::Deserialize;

use super::Screen;

/// Captures of real tmux. `tests/readers/tmux_golden.py` made them.
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

/// In the golden file, a character stands for the byte with its number.
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
        // Asked last, so that everything before it is answered.
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

#[test]
fn an_unterminated_string_is_abandoned() {
    let mut screen = Screen::new(2, 20);
    screen.feed(b"a\x1b]0;title");
    assert!(screen.open_string().is_some());
    screen.feed(b"more of it");
    assert_eq!(screen.screen(), "a\n\n");
    screen.abandon_string();
    screen.feed(b"b");
    assert_eq!((screen.screen().as_str(), screen.open_string()), ("ab\n\n", None));
}

/// Random bytes. Many of them begin sequences.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let number = prop::sample::select(vec!["", "0", "1", "2", "3", "7", "99", "65536", "2147483647"]);
    let last = prop::sample::select(b"ABCDEFGHJKLMPSTXZ@`bcdefghlmnqrstu".to_vec());
    let whole = prop::sample::select(vec![
        "\x1b7",
        "\x1b8",
        "\x1bM",
        "\x1bD",
        "\x1bE",
        "\x1bH",
        "\x1bc",
        "\x1b#8",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?6h",
        "\x1b[?7l",
        "\x1b[4h",
        "\x1b]0;",
        "\x1bP",
        "\x1b\\",
        "\x07",
        "\x1b(0",
        "\t",
        "\x08",
        "\r",
        "\n",
        "\u{301}",
        "\u{200d}",
        "漢",
        "é",
        "\x1b[41m",
    ]);
    prop_oneof![
        whole.prop_map(|text| text.as_bytes().to_vec()),
        (number.clone(), number, last)
            .prop_map(|(a, b, last)| format!("\x1b[{a};{b}{}", char::from(last)).into_bytes()),
        prop::collection::vec(any::<u8>(), 0..6),
        "[a-z ]{0,9}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn any_bytes_can_be_shown_on_any_screen(
        rows in 0u16..5, cols in 0u16..6, history in 0usize..4, pieces in prop::collection::vec(piece(), 0..60)
    ) {
        let mut whole = Screen::with_history(rows, cols, history);
        let mut apart = Screen::with_history(rows, cols, history);
        whole.feed(&pieces.concat());
        for byte in pieces.concat() {
            apart.feed(&[byte]);
        }
        let pane = whole.full_pane();
        prop_assert_eq!(&pane, &apart.full_pane());
        prop_assert!(pane.ends_with(&whole.screen()));
        prop_assert_eq!(whole.screen().matches('\n').count(), usize::from(rows.max(1)));
        whole.abandon_string();
        whole.feed(b"\x1bcx");
        prop_assert!(whole.screen().starts_with('x'));
    }
}
