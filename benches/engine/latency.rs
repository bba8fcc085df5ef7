//! One command in a running sandbox, compared with one `docker exec` in the same container.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;
use termsmith::model::ShellOutcome;
use termsmith::sandbox::{ExecLimit, Image, Sandbox};
use tokio::process::Command;

use crate::report::{Line, Section, Unit, Who};
use crate::sample::{Sample, rounds};
use crate::{BenchContext, fixture};

const ROUNDS: usize = 100;
const WITHIN: Duration = Duration::from_secs(30);
/// Our commands in each round. They are so short that the engine's command dominates a round's time.
const EACH: usize = 10;
/// First calls connect, load and cache.
const WARM_UP: usize = 3;

/// The measured command: in the shell, and as a program.
const COMMANDS: [(&str, &[&str]); 2] = [(":", &["/bin/bash", "-c", ":"]), ("/bin/true", &["/bin/true"])];

/// The measurements of one command.
#[derive(Default)]
struct Measured {
    ours: Sample,
    api: Sample,
    cli: Sample,
}

pub(crate) async fn measure(context: &BenchContext) -> anyhow::Result<Section> {
    let sandbox = fixture::launch(&context.engine, &Image::named(fixture::BASE)).await?;
    let has_cli = docker(&["version"]).await.is_ok();
    let mut measured = [Measured::default(), Measured::default()];
    for _ in 0..WARM_UP {
        round(context, &sandbox, has_cli, &mut [Measured::default(), Measured::default()]).await?;
    }
    for _ in rounds(ROUNDS, WITHIN) {
        round(context, &sandbox, has_cli, &mut measured).await?;
    }
    sandbox.destroy().await;
    context.engine.close().await;

    let mut section = Section::new("latency", "one command in a running sandbox, until its status is known");
    for ((command, argv), measured) in COMMANDS.into_iter().zip(measured) {
        let ours = Line::new(
            Who::Termsmith,
            format!("`{command}` in the sandbox's shell"),
            Unit::Milliseconds,
            &measured.ours,
        )
        .aim("≤ 2 ms", |p50| p50 <= 2.0);
        let argv = argv.join(" ");
        let api = Line::new(Who::Engine, format!("`{argv}` by exec, API"), Unit::Milliseconds, &measured.api)
            .times_lower(&ours)
            .aim("≥ 30 ×", |ratio| ratio >= 30.0);
        let cli =
            Line::new(Who::Engine, format!("`docker exec … {argv}`"), Unit::Milliseconds, &measured.cli)
                .times_lower(&ours);
        let mut group = vec![ours, api];
        if has_cli {
            group.push(cli);
        }
        section.groups.push(group);
    }
    if !has_cli {
        section.notes.push("no `docker` command here, so the API stands for the engine alone".to_owned());
    }
    Ok(section)
}

async fn round(
    context: &BenchContext,
    sandbox: &Sandbox,
    has_cli: bool,
    measured: &mut [Measured; 2],
) -> anyhow::Result<()> {
    let container = sandbox.id().as_str();
    for ((command, argv), measured) in COMMANDS.into_iter().zip(measured) {
        for _ in 0..EACH {
            let started = Instant::now();
            let done = sandbox.shell(command, &ExecLimit::default()).await?;
            measured.ours.push_since(started);
            ensure!(done.outcome == ShellOutcome::Exited(0), "`{command}` ended with {:?}", done.outcome);
        }
        let started = Instant::now();
        context.bare.exec(container, argv).await?;
        measured.api.push_since(started);
        if has_cli {
            let argv: Vec<_> = ["exec", container].iter().chain(argv).copied().collect();
            let started = Instant::now();
            docker(&argv).await?;
            measured.cli.push_since(started);
        }
    }
    Ok(())
}

async fn docker(args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("docker");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.kill_on_drop(true).status().await?;
    ensure!(status.success(), "`docker {}` ended with {status}", args.join(" "));
    Ok(())
}
