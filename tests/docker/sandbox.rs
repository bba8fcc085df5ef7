//! Behaviour of sandboxes: one table for all engines.

use std::time::Duration;

use termsmith::model::ShellOutcome::{self, Exited, ShellDied, TimedOut};
use termsmith::sandbox::{ExecLimit, Process, Sandbox, SandboxError};

use crate::support::engine::{engines, eventually, launch, limit, output, run, shell};

/// Runs commands in one shell, one after another. Checks the outcome and the output of each.
async fn check(sandbox: &Sandbox, engine: &str, rows: &[(&str, ShellOutcome, &str)]) {
    for (command, outcome, expected) in rows {
        let result = shell(sandbox, command).await;
        let text = String::from_utf8_lossy(&result.output);
        assert_eq!((result.outcome, &*text), (*outcome, *expected), "{engine}: {command}");
        assert_eq!(result.bytes, expected.len() as u64, "{engine}: {command}");
    }
}

#[test]
fn a_shell_keeps_its_state_and_reports_statuses() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let rows = [
                ("", Exited(0), ""),
                ("mkdir -p sub && cd sub && export A=1 && B=2 && f() { echo \"f $1\"; }", Exited(0), ""),
                ("basename \"$PWD\"; echo $A $B; f x", Exited(0), "sub\n1 2\nf x\n"),
                ("false", Exited(1), ""),
                ("echo $?", Exited(0), "1\n"),
                ("(exit 77)", Exited(77), ""),
                ("echo $?; echo $?", Exited(0), "77\n0\n"),
                ("echo out; echo err >&2; echo out", Exited(0), "out\nerr\nout\n"),
                ("nonsense", Exited(127), "bash: line 1: nonsense: command not found\n"),
                (
                    "echo 'open",
                    Exited(2),
                    "bash: eval: line 1: unexpected EOF while looking for matching `''\n",
                ),
                ("echo still here", Exited(0), "still here\n"),
                ("cat; read x; echo \"$?\"", Exited(0), "1\n"),
                ("cat <<'EOF'\n$A\n\tb\nEOF", Exited(0), "$A\n\tb\n"),
                ("x='ä…😀'; echo ${#x} $x", Exited(0), "3 ä…😀\n"),
                ("echo a\\\\b; echo 'trailing ' ", Exited(0), "a\\b\ntrailing \n"),
                ("# only a comment", Exited(0), ""),
                ("printf 'no newline'", Exited(0), "no newline"),
                ("sh -c 'exit 5' & wait $!; echo $?", Exited(0), "5\n"),
                ("trap 'echo trapped' ERR; false; trap - ERR", Exited(0), "trapped\n"),
                ("[ -t 0 ] || [ -t 1 ] || echo no terminal", Exited(0), "no terminal\n"),
                ("echo $TERM $USER $LANG", Exited(0), "dumb root C.UTF-8\n"),
                ("IFS=:; set -u; shopt -s extglob; set -f", Exited(0), ""),
                ("x=a:b; echo $x *", Exited(0), "a b *\n"),
                ("ls /proc/self/fd", Exited(0), "0\n1\n2\n3\n"),
            ];
            check(&sandbox, name, &rows).await;
        }
    });
}

#[test]
fn a_dead_shell_is_replaced_and_reported() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            for (command, status) in [
                ("exit 9", 9),
                ("set -e; false", 1),
                ("exec sh -c 'exit 5'", 5),
                ("kill -9 $$", 137),
                ("kill -TERM 0", 143),
            ] {
                shell(&sandbox, "export LOST=yes").await;
                let result = shell(&sandbox, &format!("echo before; {command}")).await;
                assert_eq!(result.outcome, ShellDied(status), "{name}: {command}");
                assert_eq!(result.output, b"before\n", "{name}: {command}");
                assert!(result.shell_restarted, "{name}: {command}");
                let next = shell(&sandbox, "echo ${LOST:-new}").await;
                assert_eq!(
                    (next.output.as_slice(), next.shell_restarted),
                    (&b"new\n"[..], false),
                    "{name}: {command}"
                );
            }
            // The shell is killed between two commands.
            shell(&sandbox, "echo $$ >shell").await;
            let kill = Process { cwd: sandbox.workdir().to_owned(), ..sh("kill -9 $(cat shell)") };
            sandbox.spawn(&kill).await.unwrap();
            assert!(shell(&sandbox, "true").await.shell_restarted, "{name}");
            assert!(!shell(&sandbox, "true").await.shell_restarted, "{name}");
        }
    });
}

#[test]
fn binary_output_is_left_alone() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let result = shell(&sandbox, r"printf '\x01\x02\xff\x00\xfe\r\n\x00'").await;
            assert_eq!(result.output, b"\x01\x02\xff\x00\xfe\r\n\x00", "{name}");
        }
    });
}

#[test]
fn long_output_keeps_its_two_ends_and_exact_counts() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let limit = ExecLimit { max_output: 1000, ..ExecLimit::default() };
            let command = "echo first; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo last";
            let result = sandbox.shell(command, &limit).await.unwrap();
            let text = String::from_utf8(result.output).unwrap();
            let total = "first\n".len() + 8_000_000 + "\nlast\n".len();
            assert_eq!(result.bytes, total as u64, "{name}");
            let expected = format!(
                "first\n{}\n… {} bytes omitted …\n{}\nlast\n",
                "x".repeat(500 - 6),
                total - 1000,
                "x".repeat(500 - 6)
            );
            assert_eq!(text, expected, "{name}");
        }
    });
}

#[test]
fn background_jobs_neither_block_nor_vanish() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let limit = limit(Duration::from_secs(20));
            for command in
                ["sleep 1000 &", "yes &", "yes >/dev/null 2>&1 &", "(sleep 1000; echo late) & disown"]
            {
                let result = sandbox.shell(command, &limit).await.unwrap();
                assert_eq!(result.outcome, Exited(0), "{name}: {command}");
            }
            // Meanwhile `yes` floods the shell's output.
            let result = sandbox.shell("kill $(jobs -p); wait; echo done", &limit).await.unwrap();
            assert_eq!(result.outcome, Exited(0), "{name}");
            assert!(result.output.ends_with(b"done\n"), "{name}");
            // Output that a job writes after its command is shown with the next command.
            shell(&sandbox, "mkfifo gate; (read x <gate; echo from the job; echo x >gate) &").await;
            shell(&sandbox, "echo go >gate; read x <gate").await;
            assert_eq!(output(&sandbox, "wait; echo next").await, "next\n", "{name}");
        }
    });
}

#[test]
fn a_time_out_ends_the_command_and_nothing_else() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            shell(&sandbox, "cd /usr; KEPT=yes; sleep 1000 & SERVICE=$!").await;
            let short = limit(Duration::from_millis(700));
            for command in [
                "echo partial; sleep 50; echo no; touch /tmp/never",
                "echo partial; while sleep 50; do :; done; echo no",
                "echo partial; until sleep 50; do echo no; done",
                "echo partial; for i in 1 2 3; do sleep 50 || echo no; done",
                "g() { sleep 50; echo no; }; echo partial; g | cat; echo no",
                "echo partial; (sleep 50; echo no); echo no",
                "echo partial; x=$(sleep 50; echo no); echo no$x",
                "echo partial; if sleep 50; then echo no; else echo no; fi",
                "echo partial; trap '' TERM INT; sleep 50; echo no",
                "echo partial; sleep 50 & wait; echo no",
            ] {
                let result = sandbox.shell(command, &short).await.unwrap();
                assert_eq!(result.outcome, TimedOut, "{name}: {command}");
                assert_eq!(result.output, b"partial\n", "{name}: {command}");
                let state = output(&sandbox, "trap - TERM INT; echo $PWD $KEPT").await;
                // Bash may print that a background job died before this output.
                assert!(state.ends_with("/usr yes\n"), "{name}: {command}: {state}");
            }
            assert_eq!(shell(&sandbox, "kill -0 $SERVICE").await.outcome, Exited(0), "{name}");
            assert_eq!(shell(&sandbox, "test -e /tmp/never").await.outcome, Exited(1), "{name}");
        }
    });
}

#[test]
fn a_shell_that_cannot_be_interrupted_is_replaced() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let short = limit(Duration::from_millis(700));
            for command in ["while :; do :; done", "trap '' RTMAX; while :; do :; done", "exec sleep 1000"] {
                let result = sandbox.shell(&format!("echo partial; {command}"), &short).await.unwrap();
                assert_eq!(result.outcome, TimedOut, "{name}: {command}");
                assert_eq!(result.output, b"partial\n", "{name}: {command}");
                assert!(result.shell_restarted, "{name}: {command}");
                assert_eq!(output(&sandbox, "echo usable").await, "usable\n", "{name}: {command}");
            }
        }
    });
}

#[test]
fn processes_in_sessions_of_their_own_survive_time_out_and_shell() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let start = "setsid sh -c 'echo $$ >daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 & \
                         until [ -s daemon ]; do :; done; sleep 50";
            let result = sandbox.shell(start, &limit(Duration::from_secs(1))).await.unwrap();
            assert_eq!(result.outcome, TimedOut, "{name}");
            shell(&sandbox, "exit").await;
            assert_eq!(output(&sandbox, "kill -0 $(cat daemon) && echo alive").await, "alive\n", "{name}");
        }
    });
}

#[test]
fn all_processes_are_ended_and_files_stay() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let start = "echo $$ >shell; sleep 1000 & echo $! >job; \
                         setsid sh -c 'echo $$ >daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 & \
                         until [ -s daemon ]; do :; done";
            assert_eq!(shell(&sandbox, start).await.outcome, Exited(0), "{name}");
            sandbox.end_processes().await.unwrap();
            for file in ["shell", "job", "daemon"] {
                // A kill is asynchronous: the kernel ends the process, and the guest reaps it
                // later.
                eventually(&format!("{name}: `{file}` has ended"), async || {
                    let alive = format!("kill -0 $(cat {file}) 2>/dev/null");
                    shell(&sandbox, &alive).await.outcome == Exited(1)
                })
                .await;
            }
            assert_eq!(output(&sandbox, "echo usable").await, "usable\n", "{name}");
        }
    });
}

#[test]
fn statuses_are_not_forged() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            // By descriptor number in the shell and in a subshell, and through the shell's
            // descriptors in `/proc`.
            let own =
                r"for n in {3..60} {190..210}; do printf '1 0\0002 0\0003 0\000x\0-1' >&$n; done 2>/dev/null";
            let every = |action: &str| {
                let each = r"for f in /proc/$PPID/fd/*; do case ${f##*/} in 0|1|2) ;; *)";
                format!("bash -c '{each} {action};; esac; done' 2>/dev/null")
            };
            let child = every(r#"for n in {1..9}; do printf "$n 0\0" >$f; done"#);
            let token = every(r#"case $(readlink $f) in socket:*) read -rd "" t <$f && echo got $t;; esac"#);
            let torn = every(r#"case $(readlink $f) in pipe:*) printf "\377 torn" >$f;; esac"#);
            for (command, status) in [
                (format!("{own}; false"), 1),
                (format!("({own}); sleep 0.2; (exit 9)"), 9),
                (format!("{child}; sleep 0.2; (exit 5)"), 5),
                (format!("{token} >stolen; [ ! -s stolen ] && (exit 4)"), 4),
                (format!("{torn}; (exit 3)"), 3),
                ("(exit 7)".to_owned(), 7),
            ] {
                // A fake status in the output is shown as output.
                let result = shell(&sandbox, &command).await;
                assert_eq!(result.outcome, Exited(status), "{name}: {command}");
            }
            check(&sandbox, name, &[("echo a; false", Exited(1), "a\n"), ("echo b", Exited(0), "b\n")]).await;
        }
    });
}

/// The signal of a time-out must not skip a later command.
#[test]
fn a_late_time_out_skips_no_command() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            shell(&sandbox, "(sleep 0.3; kill -s RTMAX $$) &").await;
            tokio::time::sleep(Duration::from_millis(600)).await;
            check(&sandbox, name, &[("echo a; false", Exited(1), "a\n"), ("echo b", Exited(0), "b\n")]).await;
        }
    });
}

#[test]
fn commands_that_cannot_be_sent_are_refused() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let refused = sandbox.shell("echo \0", &ExecLimit::default()).await;
            assert!(matches!(refused, Err(SandboxError::Nul { .. })), "{name}: {refused:?}");
            let refused = sandbox.shell(&"x".repeat(2 << 20), &ExecLimit::default()).await;
            assert!(matches!(refused, Err(SandboxError::TooLarge { .. })), "{name}: {refused:?}");
            let long = format!("true {}", "x".repeat(1_000_000));
            assert_eq!(shell(&sandbox, &long).await.outcome, Exited(0), "{name}");
        }
    });
}

#[test]
fn a_dropped_command_is_ended_and_the_next_one_gets_its_own_answer() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let limit = limit(Duration::from_secs(60));
            let dropped = sandbox.shell("echo dropped; sleep 1000; echo no", &limit);
            let _ = tokio::time::timeout(Duration::from_millis(200), dropped).await;
            let result = sandbox.shell("echo mine", &limit).await.unwrap();
            assert_eq!((result.outcome, result.output.as_slice()), (Exited(0), &b"mine\n"[..]), "{name}");
            assert!(result.took < Duration::from_secs(50), "{name}");
        }
    });
}

fn sh(script: &str) -> Process {
    Process::new("/bin/sh").args(["-c", script])
}
