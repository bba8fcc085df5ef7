//! Programs, files, the relay and terminals, on every engine.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use termsmith::model::ShellOutcome::Exited;
use termsmith::sandbox::{ArchiveError, GetError, Process, ProcessOutcome, PtyEvent, PtySize, SandboxError};

use crate::support::engine::{context, engines, eventually, launch, output, run, shell};

fn sh(script: &str) -> Process {
    Process::new("/bin/sh").args(["-c", script])
}

#[test]
fn programs_get_what_they_are_given_and_nothing_else() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            shell(&sandbox, "export SECRET=1").await;
            let check = async |process: Process, outcome: ProcessOutcome, stdout: &[u8], stderr: &[u8]| {
                let result = sandbox.spawn(&process).await.unwrap();
                assert_eq!(result.outcome, outcome, "{name}: {process:?}");
                assert_eq!(result.stdout, stdout, "{name}: {process:?}");
                assert_eq!(result.stderr, stderr, "{name}: {process:?}");
            };
            let ok = || ProcessOutcome::Exited(0);
            check(Process::new("/usr/bin/env"), ok(), b"", b"").await;
            check(Process::new("/usr/bin/env").env("A", "1 2"), ok(), b"A=1 2\n", b"").await;
            check(Process::new("env").env("PATH", "/usr/bin"), ok(), b"PATH=/usr/bin\n", b"").await;
            check(Process { cwd: "/usr".into(), ..Process::new("/bin/pwd") }, ok(), b"/usr\n", b"").await;
            check(sh("echo out; echo err >&2; exit 3"), ProcessOutcome::Exited(3), b"out\n", b"err\n").await;
            check(sh("kill -15 $$"), ProcessOutcome::Signaled(15), b"", b"").await;
            let odd = OsString::from_vec(b"a b\n'\"$x\xff".to_vec());
            let echo = Process::new("/usr/bin/printf").args([OsString::from("%s"), odd.clone()]);
            check(echo, ok(), &odd.clone().into_vec(), b"").await;
            let input: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
            let cat = Process { stdin: input.clone(), max_output: 4 << 20, ..Process::new("/bin/cat") };
            check(cat, ok(), &input, b"").await;
            // The program never reads its input.
            check(Process { stdin: input, ..Process::new("/bin/true") }, ok(), b"", b"").await;
            let gone = sandbox.spawn(&Process::new("/no/such")).await.unwrap();
            assert!(matches!(gone.outcome, ProcessOutcome::NotStarted(_)), "{name}: {gone:?}");
            let nowhere = sandbox
                .spawn(&Process { cwd: "/no/such".into(), ..Process::new("/bin/true") })
                .await
                .unwrap();
            assert!(matches!(nowhere.outcome, ProcessOutcome::NotStarted(_)), "{name}: {nowhere:?}");
        }
    });
}

#[test]
fn programs_end_with_their_session() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            // A child that keeps the output open neither delays the result nor survives.
            let cwd = sandbox.workdir().to_owned();
            let leaver = Process { cwd: cwd.clone(), ..sh("sleep 1000 & echo $! >child; echo left") };
            let result = sandbox.spawn(&leaver).await.unwrap();
            assert_eq!(result.stdout, b"left\n", "{name}");
            // A kill is asynchronous: the kernel ends the process, and the guest reaps it later.
            eventually("the child is gone", async || {
                shell(&sandbox, "kill -0 $(cat child) 2>/dev/null").await.outcome == Exited(1)
            })
            .await;
            let timeout = Duration::from_millis(300);
            let hanging =
                Process { timeout, cwd, ..sh("echo partial; setsid sleep 1000 & echo $! >child; wait") };
            let result = sandbox.spawn(&hanging).await.unwrap();
            assert_eq!(
                (result.outcome, result.stdout.as_slice()),
                (ProcessOutcome::TimedOut, &b"partial\n"[..]),
                "{name}"
            );
            // A kill is asynchronous: the kernel ends the process, and the guest reaps it later.
            eventually("the child is gone", async || {
                shell(&sandbox, "kill -0 $(cat child) 2>/dev/null").await.outcome == Exited(1)
            })
            .await;
        }
    });
}

/// A program that stops its parent must not occupy the host until the time limit.
#[test]
fn stopped_programs_are_killed_unless_they_are_continued() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            for (script, expect) in [
                (
                    "(kill -STOP $$; sleep 1; kill -CONT $$) & wait; echo after",
                    (ProcessOutcome::Exited(0), "after\n"),
                ),
                (
                    "echo before; (kill -STOP $$; sleep 1000) & wait",
                    (ProcessOutcome::Signaled(9), "before\n"),
                ),
            ] {
                let process = Process { cwd: sandbox.workdir().to_owned(), ..sh(script) };
                let result = sandbox.spawn(&process).await.unwrap();
                let stdout = String::from_utf8_lossy(&result.stdout).into_owned();
                assert_eq!((result.outcome, stdout.as_str()), expect, "{name}: {script}");
            }
        }
    });
}

#[test]
fn programs_run_beside_each_other_and_the_shell() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            shell(&sandbox, "mkfifo a b").await;
            // Each program waits for the next one, so none could end alone.
            let cwd = sandbox.workdir().to_owned();
            let first = Process { cwd: cwd.clone(), ..sh("read x <a; echo $x") };
            let second = Process { cwd, ..sh("read x <b; echo $x >a") };
            let (first, second, third) = tokio::join!(
                sandbox.spawn(&first),
                sandbox.spawn(&second),
                shell(&sandbox, "echo through >b")
            );
            assert_eq!(first.unwrap().stdout, b"through\n", "{name}");
            assert!(second.unwrap().success() && third.outcome == Exited(0), "{name}");
        }
    });
}

#[test]
fn files_go_in_and_out() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let root = sandbox.workdir().to_owned();
            let big: Vec<u8> = (0..1_500_000u32).map(|n| (n / 7) as u8).collect();
            for (path, bytes, mode) in [
                ("plain", &b"text\n"[..], 0o644),
                ("deep/er/with space\nand newline", b"", 0o600),
                ("script", b"#!/bin/sh\n", 0o755),
                ("big", &big, 0o640),
            ] {
                let path = format!("{root}/{path}");
                sandbox.put(&path, bytes, mode).await.unwrap();
                assert_eq!(sandbox.get(&path, 2_000_000).await.unwrap(), bytes, "{name}: {path}");
                let stat = Process::new("/usr/bin/stat").args(["-c", "%a", &path]);
                let result = sandbox.spawn(&stat).await.unwrap();
                assert_eq!(result.stdout, format!("{mode:o}\n").as_bytes(), "{name}: {path}");
            }
            sandbox.put_tree(&format!("{root}/tree"), &context(&[("a", "1"), ("b/c", "2")])).await.unwrap();
            assert_eq!(output(&sandbox, "cat tree/a tree/b/c; ls -A tree").await, "12a\nb\n", "{name}");

            // Traps that a solver may have left.
            shell(&sandbox, "ln -s plain link; mkfifo fifo; mkdir folder; ln -s /dev/zero zero").await;
            let get = async |path: &str, max| sandbox.get(&format!("{root}/{path}"), max).await;
            for path in ["link", "fifo", "folder", "zero"] {
                let refused = get(path, 100).await;
                assert!(matches!(refused, Err(GetError::NotRegular { .. })), "{name}: {path}: {refused:?}");
            }
            assert!(matches!(get("none", 100).await, Err(GetError::Missing { .. })), "{name}");
            assert!(matches!(get("big", 100).await, Err(GetError::TooLarge { max: 100, .. })), "{name}");
            for path in ["link", "fifo", "zero"] {
                sandbox.put(&format!("{root}/{path}"), b"new", 0o644).await.unwrap();
                assert_eq!(get(path, 100).await.unwrap(), b"new", "{name}: {path}");
            }
            assert_eq!(
                get("plain", 100).await.unwrap(),
                b"text\n",
                "{name}: a link is replaced, not followed"
            );
            let refused = sandbox.put(&format!("{root}/folder"), b"", 0o644).await;
            assert!(matches!(refused, Err(SandboxError::Failed { .. })), "{name}: {refused:?}");
            assert_eq!(output(&sandbox, "ls -A | grep part").await, "", "{name}: nothing temporary is left");
        }
    });
}

#[test]
fn the_relay_carries_calls_to_the_host_and_back() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let socket = format!("{}/relay/socket", sandbox.workdir());
            let mut calls = sandbox.serve_relay(&socket).await.unwrap();
            assert_eq!(output(&sandbox, "stat -c %a relay/socket").await, "600\n", "{name}");
            let host = async {
                let mut requests = Vec::new();
                while let Some(call) = calls.recv().await {
                    let request = call.request.whole().unwrap();
                    requests.push(request.len());
                    let reply: Vec<u8> = request.iter().rev().copied().collect();
                    call.reply.all(reply).await.unwrap();
                    if requests.len() == 3 {
                        break;
                    }
                }
                requests
            };
            let script = "use IO::Socket::UNIX; for my $n (0, 3, 500000) {
                my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; print $s 'a' . 'b' x $n; $s->flush; shutdown($s, 1);
                local $/; my $r = <$s>; print length($r), substr($r, -1), qq(\\n) }";
            let client = Process::new("/usr/bin/perl").args(["-e", script, &socket]);
            let (requests, client) = tokio::join!(host, sandbox.spawn(&client));
            assert_eq!(String::from_utf8(client.unwrap().stdout).unwrap(), "1a\n4a\n500001a\n", "{name}");
            assert_eq!(requests, [1, 4, 500_001], "{name}");
        }
    });
}

#[test]
fn programs_see_a_terminal() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let script =
                "tty; stty size; trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.01; done";
            let process = sh(script).env("TERM", "xterm").env("PATH", "/usr/bin:/bin");
            let mut pty = sandbox.pty(&process, PtySize { rows: 24, cols: 80 }).await.unwrap();
            let input = pty.input();
            let mut text = String::new();
            let mut resized = false;
            let ended = loop {
                match pty.next().await {
                    PtyEvent::Output(bytes) => text.push_str(&String::from_utf8(bytes).unwrap()),
                    PtyEvent::Ended(outcome) => break outcome,
                    PtyEvent::Lost(why) => panic!("{name}: {why}"),
                    PtyEvent::Status(_) => panic!("{name}: a state without a request"),
                }
                if text.contains("ready") && !resized {
                    resized = true;
                    input.resize(PtySize { rows: 50, cols: 132 }).await;
                }
            };
            assert_eq!(ended, ProcessOutcome::Exited(4), "{name}");
            assert!(text.starts_with("/dev/pts/"), "{name}: {text}");
            assert!(text.ends_with("24 80\r\nready\r\n50 132\r\n"), "{name}: {text}");

            let mut cat =
                sandbox.pty(&Process::new("/bin/cat"), PtySize { rows: 24, cols: 80 }).await.unwrap();
            cat.input().write(b"typed\n\x04").await;
            let mut text = Vec::new();
            while let PtyEvent::Output(bytes) = cat.next().await {
                text.extend(bytes);
            }
            assert_eq!(text, b"typed\r\ntyped\r\n", "{name}");
        }
    });
}

#[test]
fn a_stopped_sandbox_is_files() {
    run(async {
        for (name, engine) in engines().await {
            let sandbox = launch(&engine).await;
            let root = sandbox.workdir().to_owned();
            shell(&sandbox, "echo kept >file; ln -s /etc/passwd link; sleep 1000 &").await;
            let stopped = sandbox.stop().await.unwrap();
            let archive = stopped.archive(&root, 1 << 20).await.unwrap();
            let mut tar = tar::Archive::new(archive.tar.reader());
            let folder = root.rsplit('/').next().unwrap();
            let mut entries: Vec<_> = tar
                .entries()
                .unwrap()
                .map(|entry| {
                    let entry = entry.unwrap();
                    (entry.path().unwrap().to_string_lossy().into_owned(), entry.header().entry_type())
                })
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            let expected = [
                (format!("{folder}/"), tar::EntryType::Directory),
                (format!("{folder}/file"), tar::EntryType::Regular),
                (format!("{folder}/link"), tar::EntryType::Symlink),
            ];
            assert_eq!(entries, expected, "{name}");
            let missing = stopped.archive(&format!("{root}/none"), 1 << 20).await;
            assert!(matches!(missing, Err(ArchiveError::Missing { .. })), "{name}: {missing:?}");
            let large = stopped.archive(&root, 100).await;
            assert!(matches!(large, Err(ArchiveError::TooLarge { max: 100, .. })), "{name}: {large:?}");
        }
    });
}
