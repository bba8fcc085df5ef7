//! Shells on the emulated terminal: the end of a wait, and a comparison with a real tmux.

use std::time::Duration;

use termsmith::agent::terminal::{SIZE, Terminal, WaitOutcome, Wake};
use termsmith::agent::terminus::to_bytes;
use termsmith::sandbox::{Process, ProcessOutcome, Sandbox};

use crate::support::engine::{
    context, docker, engines, eventually, image_spec, launch, limits, output, process, run, shell, spec,
};

/// Time limit that only a failing test reaches.
const LONG: Duration = Duration::from_secs(60);
/// Number of commands on a loaded machine. The guest once did not wait for the kernel's worker.
/// Then each of 3 runs had a wait that ended too early, within 75 commands.
const LOADED_ROUNDS: u32 = 100;
/// Time to wait for an event that must not end a wait.
const SHORT: Duration = Duration::from_millis(400);

fn bash(cwd: &str) -> Process {
    let mut process = Process::new("/bin/bash").args(["--norc", "--noprofile"]);
    cwd.clone_into(&mut process.cwd);
    let variables = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("LANG", "C.UTF-8"),
        ("PS1", "$ "),
        ("TERM", "tmux-256color"),
        // The environment that tmux gives its programs.
        ("SHELL", "/bin/bash"),
    ];
    variables.into_iter().fold(process, |process, (name, value)| process.env(name, value))
}

async fn press(terminal: &mut Terminal, keystrokes: &str) {
    let bytes = to_bytes(keystrokes, terminal.key_modes());
    terminal.press(&bytes).await;
}

#[test]
fn a_wait_ends_when_the_shell_is_done() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let mut terminal = Terminal::start(&sandbox, &bash(sandbox.workdir()), SIZE).await.unwrap();
            press(&mut terminal, "").await;
            eventually("the first prompt", async || terminal.screen().starts_with('$')).await;
            for (keystrokes, wait, expected, shown) in [
                ("echo one; sleep 0.2; echo t''wo\n", LONG, WaitOutcome::Early, "\none\ntwo\n$\n"),
                ("seq 1 5000\n", LONG, WaitOutcome::Early, "\n4999\n5000\n$\n"),
                // The shell is already at its prompt, so the wait is for something else.
                ("", SHORT, WaitOutcome::Elapsed, "$\n"),
                // A job of this command may still print. A job of an earlier command does not
                // count.
                ("clear; sleep 1000 &\n", SHORT, WaitOutcome::Elapsed, "[1] "),
                ("echo three\n", LONG, WaitOutcome::Early, "\nthree\n$\n"),
                // Programs that read, programs that compute, and shell built-ins.
                ("cat\n", SHORT, WaitOutcome::Elapsed, "cat\n"),
                ("typed\n", SHORT, WaitOutcome::Elapsed, "typed\ntyped\n"),
                ("C-c", LONG, WaitOutcome::Early, "^C\n$\n"),
                ("while :; do :; done\n", SHORT, WaitOutcome::Elapsed, "done\n"),
                ("C-c", LONG, WaitOutcome::Early, "^C\n$\n"),
                // Half a line is no command. The wait ends until the rest is typed.
                ("echo fo", LONG, WaitOutcome::Early, "$ echo fo\n"),
                ("ur\n", LONG, WaitOutcome::Early, "\nfour\n$\n"),
                // A nested shell has a prompt of its own. It looks like output of a program.
                ("bash --norc\n", SHORT, WaitOutcome::Elapsed, "$ bash --norc\n$\n"),
                ("C-d", LONG, WaitOutcome::Early, "exit\n$\n"),
            ] {
                press(&mut terminal, keystrokes).await;
                let waited = terminal.wait_quiet(wait, Wake::WhenDone).await;
                assert_eq!(waited, expected, "{name}: {keystrokes:?}\n{}", terminal.screen());
                let trimmed = format!("{}\n", terminal.screen().trim_end());
                let there = trimmed.contains(shown);
                // On a busy machine the output may arrive after the end of a short wait.
                if expected == WaitOutcome::Elapsed && !there {
                    eventually(shown, async || terminal.screen().contains(shown.trim_end())).await;
                } else {
                    assert!(there, "{name}: {keystrokes:?}\n{trimmed}");
                }
            }
            press(&mut terminal, "sleep 0.1\n").await;
            assert_eq!(terminal.wait_quiet(SHORT, Wake::Never).await, WaitOutcome::Elapsed, "{name}");
            // The job still runs. It ends with its terminal.
            press(&mut terminal, "kill %1; exit 3\n").await;
            let ended = terminal.wait_quiet(LONG, Wake::Never).await;
            assert_eq!(ended, WaitOutcome::Ended(ProcessOutcome::Exited(3)), "{name}");
            assert!(!terminal.is_alive(), "{name}");
        }
    });
}

/// Every wait ends after the output of its command, even if a loaded machine delivers keys and
/// output late. The load is in the sandbox itself. The engine is the one without CPU limits.
#[test]
fn a_wait_does_not_end_before_the_output_of_its_command() {
    run(async {
        let sandbox = launch(&process()).await;
        let busy = "for n in 1 2 3 4 5 6; do (while :; do :; done) & done; wait";
        let mut load = Process::new("sh").args(["-c", busy]).env("PATH", "/usr/bin:/bin");
        sandbox.workdir().clone_into(&mut load.cwd);
        let mut terminal = Terminal::start(&sandbox, &bash(sandbox.workdir()), SIZE).await.unwrap();
        eventually("the first prompt", async || terminal.screen().starts_with('$')).await;
        let _load = Terminal::start(&sandbox, &load, SIZE).await.unwrap();
        for round in 0..LOADED_ROUNDS {
            press(&mut terminal, &format!("clear; echo round $(({round} + 1))\n")).await;
            let waited = terminal.wait_quiet(LONG, Wake::WhenDone).await;
            assert_eq!(waited, WaitOutcome::Early, "round {round}");
            assert_eq!(terminal.screen().trim_end(), format!("round {}\n$", round + 1), "round {round}");
        }
    });
}

#[test]
fn output_is_read_between_waits() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let mut terminal = Terminal::start(&sandbox, &bash(sandbox.workdir()), SIZE).await.unwrap();
            press(&mut terminal, "yes | head -n 2000000; touch written\n").await;
            eventually("all is written", async || output(&sandbox, "ls").await.contains("written")).await;
            assert_eq!(terminal.wait_quiet(LONG, Wake::WhenDone).await, WaitOutcome::Early, "{name}");
            // The history is between nine tenths full and full.
            let kept = terminal.full_pane().lines().filter(|line| *line == "y").count();
            assert!((1800..2100).contains(&kept), "{name}: {kept}");
        }
    });
}

#[test]
fn a_terminal_has_the_environment_of_tmux() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            // Otherwise a shell on the engine of plain processes would read the profile of the user
            // who runs the tests.
            let home = ("HOME".to_owned(), sandbox.workdir().to_owned());
            let mut terminal = Terminal::open(&sandbox, &[home], SIZE).await.unwrap();
            press(
                &mut terminal,
                "clear; echo $TERM $TERM_PROGRAM $SHELL; stty size; shopt login_shell; pwd\n",
            )
            .await;
            let expected =
                format!("tmux-256color tmux /bin/bash\n40 160\nlogin_shell    \ton\n{}\n", sandbox.workdir());
            eventually("the answers", async || {
                // A tab moves the cursor and writes no characters.
                terminal.screen().replace("login_shell     on", "login_shell    \ton").contains(&expected)
            })
            .await;
            // Terminal queries of programs are answered.
            let ask = "clear; stty -echo; printf '\\033[5;7H\\033[6n'; read -rd R x; stty echo; echo \"at ${x#*[}\"\n";
            press(&mut terminal, ask).await;
            eventually("an answer", async || terminal.screen().contains("at 5;7\n")).await;
            drop(terminal);
            eventually(&format!("{name}: its shell is gone"), async || {
                shell(&sandbox, "pgrep -x bash -f -- '--login' >/dev/null").await.outcome
                    != termsmith::model::ShellOutcome::Exited(0)
            })
            .await;
        }
    });
}

/// Keystrokes and the expected screen. Our terminal and tmux must show the same, but for trailing
/// blanks.
type Steps = &'static [(&'static str, &'static str)];

const PROGRAMS: &[(&str, Steps)] = &[
    (
        "vim",
        &[
            ("vim -u NONE -N -n notes.txt\n", "\"notes.txt\" [New]"),
            ("i", "-- INSERT --"),
            ("first line\nsecond line with 漢字 and é", "漢字 and é"),
            ("Escape", ""),
            (":set number list\n", "  2 second"),
            ("yyp", "  3 second"),
            ("Up", "  2 second"),
            ("dw", "  2 line with"),
            ("C-v", "-- VISUAL BLOCK --"),
            ("Escape", "  1 first"),
            (":split\n", "notes.txt [+]"),
            (":%s/line/LINE/g\n", "LINE"),
            ("C-w", "first"),
            ("j", "first"),
            (":set hlsearch\n", ":set hlsearch"),
            ("/with\n", "/with"),
            (":wqa\n", "$"),
            ("cat notes.txt\n", "first LINE"),
        ],
    ),
    (
        "less",
        &[
            ("seq 1 500 | less\n", "39\n:"),
            (" ", "78\n:"),
            ("b", "39\n:"),
            ("PageDown", "78\n:"),
            ("G", "(END)"),
            ("g", "\n2\n"),
            ("/4.2\n", "402"),
            ("n", "412"),
            ("Down", "413"),
            ("q", "$ seq 1 500 | less\n$"),
        ],
    ),
    (
        "python",
        &[
            ("python3 -q\n", ">>>"),
            ("1 + 1\n", "2\n>>>"),
            ("for n in range(3):\n", "..."),
            ("    print('=' * n)\n", "..."),
            ("\n", "==\n>>>"),
            ("Up", ">>>     print"),
            ("C-u", ">>>"),
            ("imp", ">>> imp"),
            ("BSpace", ">>> im"),
            ("Left", ">>> im"),
            ("x\n", "NameError"),
            ("1/0\n", "ZeroDivisionError"),
            ("C-d", "$"),
        ],
    ),
    (
        "progress",
        &[
            (
                "for n in $(seq 0 5 100); do printf '\\r[%-20s] %3d%%' $(printf '#%.0s' $(seq 0 5 $n)) $n; sleep 0.01; done; echo\n",
                "100%\n$",
            ),
            (
                "for n in 1 2 3; do printf 'job %d\\nall\\n' $n; printf '\\033[2A\\033[K'; sleep 0.05; done; printf '\\033[2B'\n",
                "all\n$",
            ),
            (
                "printf '\\033[?1049h\\033[Hother screen'; sleep 0.2; printf '\\033[?1049l'; echo back\n",
                "back\n$",
            ),
        ],
    ),
    (
        "shell",
        &[
            ("echo one\n", "one\n$"),
            ("Up", "$ echo one"),
            ("C-a", "$ echo one"),
            ("# ", "$ # echo one"),
            ("Enter", "$ # echo one\n$"),
            ("C-r", "reverse-i-search"),
            ("ech", "`ech'"),
            ("C-g", "$"),
            (
                "echo 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 end",
                "end",
            ),
            ("C-a", "end"),
            ("M-f", "end"),
            (" inserted", "inserted"),
            ("C-k", "inserted"),
            ("C-c", "^C"),
            ("ls --color=always /usr | head -3; printf '\\033[31mred\\033[0m\\ttab\\n'\n", "red     tab"),
            ("cat <<E\n", "> "),
            ("héllo 漢字\nE\n", "héllo 漢字\n$"),
            ("seq 1 3000\n", "3000\n$"),
            ("clear\n", "$"),
            ("echo after\n", "after\n$"),
            ("seq 1 30; printf '\\033[5;20r\\033[20;1H\\n\\n\\n\\033[r\\033[40;1H'\n", "$"),
            ("reset\n", "$"),
            ("head -c 3000 /bin/ls | tail -c 2500 | tr -d '\\016\\033'; echo; echo end\n", "end\n$"),
        ],
    ),
    (
        "nano",
        &[
            ("nano -I other.txt\n", "New File"),
            ("some text\rmore", "more"),
            ("C-x", "Save modified buffer"),
            ("n", "$"),
        ],
    ),
];

#[test]
fn programs_render_as_in_tmux() {
    run(async {
        let Some(engine) = docker().await else { return };
        let dockerfile = "FROM debian:bookworm-slim\nRUN apt-get update \\\n && DEBIAN_FRONTEND=noninteractive \
                          apt-get install -y --no-install-recommends less nano procps python3 tmux vim \\\n \
                          && rm -rf /var/lib/apt/lists/*\n";
        let files = context(&[("Dockerfile", dockerfile)]);
        let mut wanted = image_spec("blake3:test-terminal-programs-1", &files);
        wanted.timeout = Duration::from_secs(600);
        let image = engine.ensure_image(&wanted).await.unwrap();
        let limits = limits();
        for (name, steps) in PROGRAMS {
            let sandbox = engine.launch(&spec(&image, &limits)).await.unwrap();
            shell(&sandbox, "mkdir -p /ours/w /tmux/w").await;
            let tmux = Tmux::start(&sandbox).await;
            let mut ours = Terminal::start(&sandbox, &bash("/ours/w"), SIZE).await.unwrap();
            eventually("prompts", async || {
                ours.screen().starts_with('$') && tmux.pane(&[]).await.starts_with('$')
            })
            .await;
            for (keystrokes, shows) in *steps {
                tmux.run(&["send-keys", "-t", "t", "--", keystrokes]).await;
                press(&mut ours, keystrokes).await;
                // The screens are compared more than once, since both may be about to change.
                let mut alike = 0;
                for _ in 0..TRIES {
                    let (full, screen) = ours.panes();
                    let theirs = (tmux.pane(&["-S", "-"]).await, tmux.pane(&[]).await);
                    let right = screen.trim_end().contains(shows.trim_end()) && (full, screen) == theirs;
                    alike = if right { alike + 1 } else { 0 };
                    if alike == CALM {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                if alike < CALM {
                    let history = ours.full_pane() == tmux.pane(&["-S", "-"]).await;
                    let (ours, theirs) = (ours.screen(), tmux.pane(&[]).await);
                    panic!(
                        "{name}: {keystrokes:?} {shows:?} (all alike: {history})\nours:\n{ours}\ntmux:\n{theirs}"
                    );
                }
            }
        }
    });
}

/// Number of comparisons before a difference counts.
const TRIES: u32 = 200;
/// Number of consecutive equal screens required.
const CALM: u32 = 3;

/// A real tmux in the sandbox.
struct Tmux<'a>(&'a Sandbox);

impl<'a> Tmux<'a> {
    async fn start(sandbox: &'a Sandbox) -> Self {
        let tmux = Self(sandbox);
        let size = [SIZE.cols.to_string(), SIZE.rows.to_string()];
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "t",
            "-c",
            "/tmux/w",
            "-x",
            &size[0],
            "-y",
            &size[1],
            // The shell in between would remove it.
            "exec env PS1='$ ' bash --norc --noprofile",
        ])
        .await;
        tmux
    }

    async fn run(&self, args: &[&str]) -> String {
        let base = bash("/");
        let process = Process { argv: ["tmux", "-S", "/tmp/t"].map(Into::into).to_vec(), ..base }.args(args);
        let result = self.0.spawn(&process).await.unwrap();
        assert!(result.success(), "{args:?}: {}", String::from_utf8_lossy(&result.stderr));
        String::from_utf8(result.stdout).unwrap()
    }

    async fn pane(&self, more: &[&str]) -> String {
        self.run(&[&["capture-pane", "-p", "-t", "t"], more].concat()).await
    }
}
