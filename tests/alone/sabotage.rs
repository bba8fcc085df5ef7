//! Hostile solvers in real trials, each with a sibling beside it. The saboteur's trial must have
//! the expected end. Its sibling must pass every check. The host must not change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bollard::Docker;
use futures_util::StreamExt as _;
use termsmith::model::{FileTree, Outcome, Task, environment_digest};
use termsmith::sandbox::{Engine, ImageSpec};
use termsmith::verify::{Act, Condition, HashedTask, Images, SANDBOX_LOST, Trial, run_trial};
use tokio_util::sync::CancellationToken;

use crate::host::{self, Host};
use crate::support::engine::{DOCKER, docker, eventually, run};
use crate::support::task::{REFERENCE, Shape, task, tree};

/// Concurrent saboteurs, each with a sibling.
const LANES: usize = 2;
/// Maximum number of siblings of one saboteur, one after another. More would only take time.
const MAX_SIBLINGS: usize = 6;
/// Maximum memory of this process: a few copies of two archives at their limit. A saboteur writes
/// 100 GB.
const MAX_MEMORY: u64 = 2 << 30;
/// Characters of the output that an error message shows.
const MAX_SHOWN: usize = 1500;

/// One saboteur.
struct Saboteur {
    name: &'static str,
    /// The script that runs as `bash /solution/solve.sh`.
    script: String,
    shape: Shape,
    timeout_sec: u32,
    ends: Ends,
    /// Words that its output must contain.
    says: &'static [&'static str],
}

/// The expected end of a trial. In every end the saboteur fails.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// Every check has a result, and not all of them passed.
    Judged,
    /// The state cannot be judged. The reason contains these words.
    Spoilt(&'static str),
    /// The sandbox was lost. The reason contains these words.
    Lost(&'static str),
    /// Its time limit was reached.
    OutOfTime,
    /// Failed or out of time, depending on which limit the machine reaches first.
    Failed,
}

fn saboteur(
    name: &'static str,
    script: impl Into<String>,
    ends: Ends,
    says: &'static [&'static str],
) -> Saboteur {
    Saboteur { name, script: script.into(), shape: Shape::Files, timeout_sec: 120, ends, says }
}

/// Solves the task, and then damages the programs that the tests run.
fn with_programs(name: &'static str, spoil: &str, ends: Ends) -> Saboteur {
    Saboteur { shape: Shape::Programs, ..saboteur(name, format!("{REFERENCE}{spoil}"), ends, &[]) }
}

/// Solves the task but for its service, which runs `victim.py` with this argument.
fn service(name: &'static str, argument: &str) -> Saboteur {
    let start = format!(
        "cp /solution/victim.py .; echo 'setsid python3 /app/victim.py {argument} </dev/null >/dev/null 2>&1 & sleep 1' >start.sh"
    );
    Saboteur { shape: Shape::Service, ..saboteur(name, format!("{REFERENCE}{start}"), Ends::Failed, &[]) }
}

fn python(script: &str) -> String {
    format!("python3 - <<'EOF'\nimport mmap, os, sys, time\n{script}\nEOF\n")
}

fn saboteurs() -> Vec<Saboteur> {
    use Ends::{Failed, Judged, Lost, OutOfTime, Spoilt};
    vec![
        // The longest saboteurs come first, so that none delays the end of the test.
        saboteur(
            "a million inodes",
            python(
                "for i in range(1_000_000):\n  if i % 5000 == 0: os.mkdir(f'/var/tmp/{i}'); os.chdir(f'/var/tmp/{i}')\n  os.mknod(str(i))",
            ) + "sleep 100",
            Lost("disk limit of 250000 files exceeded"),
            &[],
        ),
        saboteur(
            "folders in each other, more than an engine may have files open",
            nest(25_000) + "sleep 100",
            Lost("folders are nested deeper than they can be removed"),
            &[],
        ),
        saboteur(
            "a full disk below paths that are too long",
            nest(1000) + "sleep 100",
            Lost("folders are nested deeper than they can be removed"),
            &[],
        ),
        saboteur(
            "fork bomb",
            python(
                // The first process continues until it meets the limit, although its children leave
                // it hardly any processor time.
                "first, end, met = os.getpid(), time.time() + 60, ''\nwhile time.time() < end and not (met and os.getpid() == first):\n  try: os.fork()\n  except OSError as error: met = error\nif os.getpid() == first: print(met)",
            ) + "bomb() { bomb | bomb & }; bomb",
            Judged,
            &["Resource temporarily unavailable"],
        ),
        saboteur(
            "memory hog",
            format!(
                "{hog}echo status $?\nhead -c 1G /dev/zero >/dev/shm/hog\n({hog}) & ({hog}) & read -rt 1 <> <(:)",
                hog = python("held = []\nwhile True: held.append(bytearray(10 << 20))")
            ),
            Judged,
            &["status 137", "No space left on device"],
        ),
        saboteur(
            "a sparse file of 100 GB as the wanted output",
            "truncate -s 100G sum.txt; echo status $?; mkdir -p /srv/shelf/box; \
             dd if=/dev/null of=/srv/shelf/box/sparse bs=1 seek=100G; echo status $?; stat -c %s sum.txt",
            Judged,
            &["File size limit exceeded", "status 153\n0\n"],
        ),
        saboteur(
            "100 GB of sparse files in a carried folder",
            "mkdir -p /srv/shelf/box; for i in {1..800}; do truncate -s 128M /srv/shelf/box/$i; done; du -s --apparent-size /srv/shelf/box",
            Spoilt("`/srv/shelf/box` has more than 268435456 bytes"),
            &["104857"],
        ),
        saboteur(
            "files of 400 MB without a name",
            python(
                "held = []\nfor kind in range(4):\n  file = open(f'/var/tmp/{kind}', 'wb+', buffering=0); os.unlink(file.name)\n  for _ in range(100): file.write(b'x' * (1 << 20))\n  held.append(file if kind % 2 else mmap.mmap(file.fileno(), 100 << 20))\n  file = None\ntime.sleep(100)",
            ),
            Lost("disk limit of 128 MiB exceeded"),
            &[],
        ),
        saboteur(
            "110,000 entries in a carried folder",
            python("os.mkdir('many'); os.chdir('many')\nfor i in range(110_000): os.mknod(str(i))")
                + "ls many | wc -l",
            Spoilt("`/app` holds more than 100000 entries"),
            &["110000"],
        ),
        saboteur(
            "kill everything, again and again",
            "setsid bash -c 'while :; do kill -9 -1; done' & kill -9 -1",
            Judged,
            &[],
        ),
        saboteur(
            "race of links against the extraction",
            "setsid python3 /solution/racer.py </dev/null >/dev/null 2>&1 & read -rt 2 <> <(:); echo racing",
            Judged,
            &["racing"],
        ),
        saboteur(
            "the guest's pipes",
            "python3 /solution/pipes.py; exec >&- 2>&-; sleep 1",
            // On a busy machine these floods take longer than the time limit.
            Failed,
            &["none of process 1's", "flooded a pipe of the shell's"],
        ),
        saboteur(
            "a file where the guest is mounted",
            format!("{REFERENCE}mv /.termsmith /older && echo x >/.termsmith; ls -d /older"),
            Spoilt("sandbox_lost"),
            &["/older"],
        ),
        saboteur(
            "a folder where the guest is mounted",
            format!("{REFERENCE}mv /.termsmith /older; mkdir -p /.termsmith/guest; ls -d /older"),
            Spoilt("sandbox_lost"),
            &["/older"],
        ),
        // An engine writes such names into an archive. A naive reader takes a part of the name for
        // the record of another path.
        saboteur(
            "a name that is a record of an archive's header",
            format!(
                "{REFERENCE}{}",
                python(
                    "os.makedirs('é\\n24 path=tests/pytest.py\\nz'); open('é\\n12 path=app\\nz', 'w').close(); os.remove('sum.txt'); print('named')"
                )
            ),
            Judged,
            &["named"],
        ),
        Saboteur {
            shape: Shape::System,
            ..saboteur(
                "a socket in the place of /etc/hosts",
                format!(
                    "{REFERENCE}mv /etc /old; mkdir /etc; cp -a /old/. /etc; rm -f /etc/hosts\n{}",
                    python("import socket\nsocket.socket(socket.AF_UNIX).bind('/etc/hosts'); print('bound')")
                ),
                Spoilt("sandbox_lost"),
                &["bound"],
            )
        },
        saboteur(
            "a path that no other container can hold",
            python(
                "os.chdir('/app'); open('ballast', 'wb').write(os.urandom(9 << 20))\nfor i in range(15): os.mkdir('d' * 250); os.chdir('d' * 250)\nos.mkdir('e' * 200); os.chdir('e' * 200); open('f' * (4091 - len('/app') - 15 * 251 - 201 - 1), 'w').close(); print('made')",
            ),
            Spoilt("`/app` has paths of more than 3800 bytes"),
            &["made"],
        ),
        saboteur(
            "12,000 FIFOs with long names",
            format!(
                "{REFERENCE}{}",
                python(
                    "for i in range(8): os.mkdir('d' * 250); os.chdir('d' * 250)\nfor i in range(12_000):\n  try: os.mkfifo(str(i))\n  except OSError: break\nprint(i)"
                )
            ),
            Spoilt("the paths in `/app` have more than 16777216 bytes"),
            &["11999"],
        ),
        saboteur(
            "paths of 100 MB in all",
            python(
                "for i in range(8): os.mkdir('d' * 250); os.chdir('d' * 250)\nfor i in range(60_000): os.mknod(str(i))",
            ) + "sleep 100",
            Lost("disk limit of 32 MiB of paths exceeded"),
            &[],
        ),
        saboteur(
            "ten gigabytes in no time",
            "for i in 0 1 2 3 4 5 6 7 8 9; do fallocate -l 1G /var/tmp/$i; echo status $?; done; du -s /var/tmp",
            Judged,
            &["Operation not supported", "status 1"],
        ),
        saboteur("no standard output, and no end", "exec >&- 2>&-; sleep 1000", OutOfTime, &[]).within(8),
        saboteur(
            "1 GB of output in one line",
            "head -c 1G /dev/zero | tr '\\0' x; echo; echo through",
            Judged,
            &["bytes omitted", "through"],
        ),
        // It is judged like any other wrong table. The check's strange message does not prevent a
        // verdict.
        saboteur(
            "half a character in a failure message",
            r#"printf %s '["\ud800 \udfff\u001b[2K"]' >table.json; cat table.json"#,
            Judged,
            &["ud800"],
        ),
        saboteur("mounts and devices", attempts("mounts"), Judged, &["14 of 14 attempts refused"]),
        saboteur("namespaces and process 1", attempts("namespaces"), Judged, &["13 of 13 attempts refused"]),
        saboteur("the kernel's knobs", attempts("kernel"), Judged, &["22 of 22 attempts refused"]),
        saboteur(
            "sockets of the engine, and the network",
            attempts("network"),
            Judged,
            &["8 of 8 attempts refused"],
        ),
        saboteur(
            "what the kernel counts by user",
            "python3 /solution/counters.py",
            Lost("limit of 64 inotify instances exceeded"),
            &[],
        ),
        saboteur(
            "a loop in the place of the work directory",
            "cd /; rm -rf /app; ln -s /app /app",
            Spoilt("cannot resolve `/app`"),
            &[],
        ),
        saboteur(
            "a file in the place of a folder",
            "rm -rf /srv; echo >/srv",
            Spoilt("cannot resolve `/srv/shelf/box`"),
            &[],
        ),
        with_programs(
            "the work directory is a descriptor of the runtime's",
            "cd /; rm -rf /app; ln -s /proc/self/fd/7 /app",
            Judged,
        ),
        with_programs(
            "a FIFO in the place of /etc/passwd, which the engine opens at each start",
            "rm /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group; printf '#!/bin/sh\\necho 0\\n' >bin/total",
            Judged,
        ),
        with_programs(
            "a link to a FIFO in the place of /etc/group",
            "mkfifo /srv/pipe; ln -sf /srv/pipe /etc/group; printf '#!/bin/sh\\necho 0\\n' >bin/total",
            Judged,
        ),
        with_programs(
            "folders of mounts lead to the host",
            "printf '#!/bin/sh\\necho 0\\n' >bin/total; read -r mark folder </solution/host; cd /; mv /etc /old; ln -s ../../../../..$folder /etc; mv /.termsmith /older; ln -s $folder /.termsmith",
            Judged,
        ),
        // These try to blame the infrastructure: they end or silence the guest from within the
        // container.
        saboteur(
            "a guest behind a thousand busy loops, idle by its scheduler",
            "python3 /solution/starve.py && sleep 100",
            Failed,
            &[],
        )
        .within(8),
        saboteur("limits of process 1", "python3 /solution/victim.py limits; echo over", Failed, &[])
            .within(20),
        saboteur(
            "processor time of process 1",
            "prlimit --pid 1 --cpu=1:1; head -c 20G /dev/zero; sleep 100",
            Failed,
            &[],
        )
        .within(20),
        saboteur(
            "memory, and process 1 as the one to go",
            "python3 /solution/victim.py memory; sleep 100",
            Failed,
            &[],
        )
        .within(20),
        saboteur(
            "memory at the edge, and a page cache that is never warm",
            "python3 /solution/victim.py edge",
            Failed,
            &[],
        )
        .within(10),
        saboteur("all processes, and no shell", "python3 /solution/victim.py processes", Failed, &[])
            .within(10),
        saboteur("a stopped shell", "kill -STOP $PPID; sleep 100", OutOfTime, &[]).within(8),
        saboteur(
            "a killed shell, again and again",
            "python3 /solution/victim.py shell; sleep 1",
            Judged,
            &[],
        ),
        saboteur(
            "a hundred floods at once",
            "for i in {1..100}; do cat /dev/zero & done; wait",
            OutOfTime,
            &[],
        )
        .within(8),
        // These leave files that could break archiving or extraction.
        saboteur("odd names, links and times", "python3 /solution/odd.py names", Failed, &[]),
        saboteur("paths longer than any path may be", "python3 /solution/odd.py deep", Failed, &[]),
        saboteur("links to what is not carried", "python3 /solution/odd.py links", Failed, &[]),
        saboteur("folders without any permission", "python3 /solution/odd.py closed", Failed, &[]),
        // These leave files that could crash their reader.
        saboteur(
            "a table of more objects than the verifier has memory",
            "python3 -c 'open(\"table.json\", \"w\").write(\"[\" + \"{},\" * 10_000_000 + \"{}]\")'",
            Failed,
            &[],
        ),
        saboteur(
            "33 MB of line ends for a table",
            "head -c 33000000 /dev/zero | tr '\\0' '\\n' >table.csv",
            Failed,
            &[],
        ),
        saboteur(
            "a table of more rows than the verifier has memory",
            "{ echo a,b,c; yes 1,2,3; } | head -c 33000000 >table.csv",
            Failed,
            &[],
        ),
        saboteur(
            "a table that is small until it is unpacked",
            "head -c 1500000000 /dev/zero | gzip >table.gz; stat -c %s table.gz",
            Failed,
            &[],
        ),
        saboteur(
            "a path that is too long only under the verifier's own",
            python(
                "for _ in range(16): os.mkdir('p' * 250); os.chdir('p' * 250)\nlong = 4090 - len(os.getcwd())\nopen('f' * max(1, min(250, long)), 'w').write('x')\nprint(len(os.getcwd()))",
            ),
            Failed,
            &[],
        ),
        saboteur(
            "a path that is too long only for the watchdog of the verifier",
            python(
                "for _ in range(14): os.mkdir('p' * 245); os.chdir('p' * 245)\nopen('file', 'w').write('x')",
            ),
            Failed,
            &[],
        ),
        with_programs(
            "a program that takes process 1 with it, by memory",
            "printf '#!/bin/sh\nexec python3 /app/victim.py memory\n' >bin/total; cp /solution/victim.py .",
            Failed,
        ),
        with_programs(
            "a program that takes process 1 with it, by its limits",
            "printf '#!/bin/sh\nprlimit --pid 1 --cpu=1:1\nhead -c 20G /dev/zero\n' >bin/total",
            Failed,
        ),
        with_programs(
            "a program that starves process 1",
            "printf '#!/bin/sh\nexec python3 /app/starve.py\n' >bin/total; cp /solution/starve.py .",
            Failed,
        ),
        with_programs(
            "a program that is right only while a process lives that an earlier call left",
            "cat >bin/total <<'EOF'\n#!/bin/sh\nif [ -e /tmp/left ]; then kill -0 \"$(cat /tmp/left)\" || exit 1\nelse setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! >/tmp/left\nfi\n\
             awk '{ sum += $1 } END { print sum }'\nEOF\n",
            Judged,
        ),
        service("a service that ends its container when it is asked", "probed"),
        service("a service that ends its container when it is asked again", "probed-again"),
        service("a service that ends its container as it is brought up", "memory"),
        // They write to the disk for longer than the watchdog's interval.
        with_programs(
            "sparse results that are more than the disk holds",
            "truncate -s 120M sum.txt /srv/shelf/box/sparse; printf '#!/bin/sh\\nsleep 4\\n' >bin/total",
            Judged,
        ),
        with_programs(
            "programs that attack their caller",
            "printf '#!/bin/bash\\nbomb() { bomb | bomb & }; bomb; setsid bash -c \"while :; do kill -9 -1; done\" & head -c 1G /dev/zero\\n' >bin/total",
            Judged,
        ),
    ]
}

/// This many nested folders with long names, and 300 MB below them.
fn nest(depth: u32) -> String {
    python(&format!(
        "os.chdir('/var/tmp')\nfor _ in range({depth}): os.mkdir('d' * 200); os.chdir('d' * 200)\nfor i in range(3): open(str(i), 'wb').write(b'x' * (1000 if {depth} > 9999 else 100 << 20))"
    ))
}

/// A group of `attempts.py`.
fn attempts(group: &str) -> String {
    format!("python3 /solution/attempts.py {group}")
}

impl Saboteur {
    fn within(self, timeout_sec: u32) -> Self {
        Self { timeout_sec, ..self }
    }

    fn files(&self, host: &Host) -> FileTree {
        tree(&[
            ("solve.sh", &self.script),
            ("host", &format!("{} {}\n", host.mark, host.folder.path().display())),
            ("attempts.py", include_str!("sabotage/attempts.py")),
            ("counters.py", include_str!("sabotage/counters.py")),
            ("pipes.py", include_str!("sabotage/pipes.py")),
            ("odd.py", include_str!("sabotage/odd.py")),
            ("starve.py", include_str!("sabotage/starve.py")),
            ("victim.py", include_str!("sabotage/victim.py")),
            ("racer.py", include_str!("sabotage/racer.py")),
        ])
    }

    /// The differences from the expected end.
    fn faults(&self, trial: &Trial, host: &Host) -> Vec<String> {
        let mut faults = Vec::new();
        let (verdict, output) = (&trial.verdict, &trial.log.output);
        let ended = match self.ends {
            Ends::Judged => verdict.outcome == Outcome::Fail && !verdict.checks.is_empty(),
            Ends::Spoilt(why) => {
                verdict.outcome == Outcome::Fail && verdict.checks.is_empty() && verdict.cause.contains(why)
            }
            Ends::Lost(why) => {
                verdict.outcome == Outcome::Fail && verdict.cause == SANDBOX_LOST && output.contains(why)
            }
            Ends::OutOfTime => verdict.outcome == Outcome::Timeout,
            Ends::Failed => matches!(verdict.outcome, Outcome::Fail | Outcome::Timeout),
        };
        if !ended {
            faults.push(format!("expected {:?}, got {verdict:?}", self.ends));
        }
        let unsaid = self.says.iter().filter(|words| !output.contains(**words));
        faults.extend(unsaid.map(|words| format!("did not say `{words}`")));
        if output.contains("MANAGED") {
            faults.push("managed what must be refused".to_owned());
        }
        let known = serde_json::to_string(&trial.log).unwrap();
        for secret in host.secrets() {
            let hash = blake3::hash(&secret).to_hex().to_string();
            if known.contains(&hash) || known.contains(host::SECRET) {
                faults.push("has seen a file of the host".to_owned());
            }
        }
        if !faults.is_empty() {
            let end: String = output.chars().rev().take(MAX_SHOWN).collect();
            let end: String = end.chars().rev().collect();
            faults.push(format!("{:?}, {}", trial.exit, end.escape_debug()));
        }
        faults
    }
}

/// The tasks with and without programs, and the image that they share.
struct SabotageContext {
    engine: Engine,
    images: Images,
    files: Task,
    system: Task,
    programs: Task,
    service: Task,
    host: Host,
}

fn hashed(task: &Task) -> HashedTask<'_> {
    HashedTask::new(task, environment_digest(&task.environment, "core")).unwrap()
}

impl SabotageContext {
    async fn new(engine: Engine) -> Self {
        let [files, system, programs, service] =
            [Shape::Files, Shape::System, Shape::Programs, Shape::Service].map(task);
        let digest = environment_digest(&files.environment, "core");
        let spec = ImageSpec {
            digest: digest.as_str(),
            context: &files.environment,
            timeout: Duration::from_secs(600),
        };
        let images = Images::from(engine.ensure_image(&spec).await.unwrap());
        Self { engine, images, files, system, programs, service, host: Host::new() }
    }

    /// Runs one saboteur's trial. Siblings run as long as it lasts. Returns everything that went
    /// wrong.
    async fn sabotage(&self, saboteur: &Saboteur) -> Vec<String> {
        let mut task = match saboteur.shape {
            Shape::Files => self.files.clone(),
            Shape::System => self.system.clone(),
            Shape::Programs => self.programs.clone(),
            Shape::Service => self.service.clone(),
        };
        task.limits.agent_timeout_sec = saboteur.timeout_sec;
        let files = saboteur.files(&self.host);
        let over = AtomicBool::new(false);
        let began = Instant::now();
        let hostile = async {
            let trial = run_trial(
                &self.engine,
                &self.images,
                &hashed(&task),
                Act::Solve(&files),
                Condition::Ordinary,
                &CancellationToken::new(),
            )
            .await;
            over.store(true, Ordering::Relaxed);
            (trial, began.elapsed())
        };
        let siblings = async {
            let (mut count, mut faults) = (0, Vec::new());
            while count == 0 || !over.load(Ordering::Relaxed) && count < MAX_SIBLINGS {
                faults.extend(self.sibling().await);
                faults.extend(self.host.works().err());
                count += 1;
            }
            (count, faults)
        };
        let ((trial, took), (siblings, mut faults)) = tokio::join!(hostile, siblings);
        match trial {
            Ok(trial) => {
                let why = if trial.verdict.cause == SANDBOX_LOST {
                    &trial.log.output
                } else {
                    &trial.verdict.cause
                };
                println!(
                    "{:>5.1} s  {:<66} {:?} {why} ({siblings} siblings)",
                    took.as_secs_f64(),
                    saboteur.name,
                    trial.verdict.outcome
                );
                faults.extend(saboteur.faults(&trial, &self.host));
            }
            Err(error) => faults.push(format!("taken for a failure of the engine: {error}")),
        }
        faults.into_iter().map(|fault| format!("{}: {fault}", saboteur.name)).collect()
    }

    /// Runs the reference, which must pass every check. Returns the reason if it does not.
    async fn sibling(&self) -> Option<String> {
        let task = &self.programs;
        match run_trial(
            &self.engine,
            &self.images,
            &hashed(task),
            Act::Solve(&task.solution),
            Condition::Ordinary,
            &CancellationToken::new(),
        )
        .await
        {
            Ok(trial) if trial.verdict.passed() && trial.verdict.checks.len() == task.checks.len() => None,
            Ok(trial) => Some(format!("the sibling: {:?} {:?}", trial.verdict, trial.log)),
            Err(error) => Some(format!("the sibling: {error}")),
        }
    }
}

#[test]
fn saboteurs_harm_neither_the_host_nor_their_siblings() {
    sabotaged(1);
}

/// `make test-slow` runs all of them.
#[test]
fn some_saboteurs_harm_neither_the_host_nor_their_siblings() {
    sabotaged(8);
}

/// Runs every `step`th saboteur beside honest trials.
fn sabotaged(step: usize) {
    run(async {
        if docker().await.is_none() {
            return;
        }
        // A separate connection, which can be closed.
        let context = SabotageContext::new(DOCKER.connect().await.unwrap()).await;
        assert_eq!(context.sibling().await, None);
        let only = std::env::var("TERMSMITH_TEST_SABOTEUR").unwrap_or_default();
        let saboteurs: Vec<_> =
            saboteurs().into_iter().filter(|row| row.name.contains(&only)).step_by(step).collect();
        let faults: Vec<Vec<String>> = futures_util::stream::iter(&saboteurs)
            .map(|saboteur| context.sabotage(saboteur))
            .buffer_unordered(LANES)
            .collect()
            .await;
        assert!(faults.iter().all(Vec::is_empty), "{}", faults.concat().join("\n"));

        // The engine still answers, and has released its resources.
        assert_eq!(context.sibling().await, None);
        let began = Instant::now();
        context.engine.close().await;
        println!("{:>5.1} s  cleared away", began.elapsed().as_secs_f64());
        let api = Docker::connect_with_defaults().unwrap();
        assert_eq!(host::left_on_engine(&api).await, Vec::<String>::new());
        eventually("no process outlives its container", async || host::strays(&api).await.is_empty()).await;
        eventually("the disk is given back", async || context.host.has_its_disk()).await;
        assert_eq!(context.host.harm(), Vec::<String>::new());
        let peak = host::peak_memory();
        println!("{:>5} MiB of memory at most", peak >> 20);
        assert!(peak < MAX_MEMORY, "{peak} bytes of memory");
    });
}

/// Runnable processes for each processor. So many make programs meet their time limits.
const HOGS: usize = 8;

/// Processes on the host that use all processors. They end when this is dropped.
struct Hogs(Vec<std::process::Child>);

impl Hogs {
    fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // Each is in a session of its own, because the kernel divides processor time among sessions
        // first. Each ends by itself after a minute of processor time, because a killed test ends
        // none.
        let hog = || {
            let spin = "ulimit -t 60; while :; do :; done";
            std::process::Command::new("setsid").args(["sh", "-c", spin]).spawn().unwrap()
        };
        Self((0..processors * HOGS).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            hog.kill().unwrap();
            hog.wait().unwrap();
        }
    }
}

/// The cause in the verdict on an edited solution that met its limit.
const EDITED: &str = "the edited solution ran many times as long as the reference";

#[test]
fn an_edit_of_a_solution_that_loops_ends_long_before_the_limit_of_the_task() {
    run(async {
        if docker().await.is_none() {
            return;
        }
        let context = SabotageContext::new(DOCKER.connect().await.unwrap()).await;
        let check = async |edit: &str, limit_of_task: u32, expect: (Outcome, &str)| {
            let solution = tree(&[("solve.sh", &format!("{REFERENCE}{edit}\n"))]);
            let act = Act::Edit { solution: &solution, within: Duration::from_secs(4) };
            let mut task = context.programs.clone();
            task.limits.agent_timeout_sec = limit_of_task;
            let stop = CancellationToken::new();
            let trial =
                run_trial(&context.engine, &context.images, &hashed(&task), act, Condition::Ordinary, &stop)
                    .await;
            let verdict = trial.unwrap().verdict;
            assert_eq!((verdict.outcome, verdict.cause.as_str()), expect, "{edit}");
        };
        check("while :; do :; done", 3600, (Outcome::Timeout, EDITED)).await;
        check("while :; do :; done", 2, (Outcome::Timeout, "the solver ran longer than 2 s")).await;
        check("exit 0", 3600, (Outcome::Pass, "")).await;
        context.engine.close().await;
    });
}

#[test]
fn a_busy_host_fails_no_right_program_and_passes_none_that_hangs() {
    run(async {
        if docker().await.is_none() {
            return;
        }
        let context = SabotageContext::new(DOCKER.connect().await.unwrap()).await;
        let check = async |waits: &str, expect: Outcome| {
            let total =
                format!("#!/usr/bin/python3\nimport sys, time\n{waits}\nprint(sum(map(int, sys.stdin)))\n");
            let solve = format!("{REFERENCE}cp /solution/total bin/total\nchmod 755 bin/total\n");
            let files = tree(&[("solve.sh", &solve), ("total", &total)]);
            let act = Act::Solve(&files);
            let (task, stop) = (&context.programs, CancellationToken::new());
            let hogs = Hogs::new();
            let trial =
                run_trial(&context.engine, &context.images, &hashed(task), act, Condition::Ordinary, &stop)
                    .await;
            drop(hogs);
            let trial = trial.unwrap();
            println!("{:>5.1} s  {waits}: {:?}", trial.log.seconds, trial.verdict.outcome);
            assert_eq!(trial.verdict.outcome, expect, "{waits}: {:?}", trial.log);
        };
        // This is within the time limit, if the program has a processor.
        check("while time.process_time() < 2: pass", Outcome::Pass).await;
        check("time.sleep(1000)", Outcome::Fail).await;
        context.engine.close().await;
    });
}
