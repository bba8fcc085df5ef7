//! Speed and memory of termsmith, compared with the engine in the same run.
//!
//! `make bench`, or `cargo bench --bench engine -- [SECTION…] [--json]`. No time is asserted. The
//! output has the measurements, their number, and whether an aim was met. Measurements that are
//! compared alternate, because a machine's load changes by the second.

mod agents;
mod args;
mod bare;
mod endpoint;
mod fixture;
mod gauntlet;
mod harbor;
mod held;
mod latency;
mod launch;
mod machine;
mod memory;
mod report;
mod sample;
mod table;
mod trials;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser as _;
use termsmith::sandbox::{ENGINES, Engine};
use tokio::signal::unix::{SignalKind, signal};

use args::{Args, SectionName};
use bare::Bare;
use fixture::Fixture;
use machine::Machine;
use report::{Report, Section};

/// Shared state of all sections.
struct BenchContext {
    engine: Engine,
    bare: Bare,
    fixture: Fixture,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !args.bench {
        // `cargo test --all-targets` runs benches too. A test run should not spend minutes on
        // measurements.
        note("nothing measured; `cargo bench` measures");
        return ExitCode::SUCCESS;
    }
    let done = match &args.fleet {
        Some(base_url) => fleet(base_url),
        None => measured(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// A part of the section `agents`. It is a separate process because its memory is measured.
#[expect(clippy::print_stdout, reason = "its parent reads it")]
fn fleet(base_url: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{}", runtime.block_on(agents::run_fleet(base_url))?);
    Ok(())
}

fn measured(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let engine = ENGINES[0].connect().await?;
        let bare = Bare::connect(&engine).await?;
        let report = tokio::select! {
            report = report(args, &engine, &bare) => report,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
            _ = terminated.recv() => Err(anyhow::anyhow!("terminated")),
        };
        bare.clear().await;
        engine.close().await;
        report
    })?;
    if args.json { table::print_json(&report) } else { table::print_text(&report) }
}

async fn report(args: &Args, engine: &Engine, bare: &Bare) -> anyhow::Result<Report> {
    let started = Instant::now();
    let machine = Machine::look(bare).await?;
    note(&format!("rendering and building {}", args.recipe));
    let fixture = Fixture::build(engine, &args.recipe).await?;
    let context = BenchContext { engine: engine.clone(), bare: bare.clone(), fixture };
    let mut sections = Vec::new();
    for name in args.sections() {
        let began = Instant::now();
        note(&format!("measuring {name} …"));
        let mut section =
            section(name, args, &context).await.with_context(|| format!("section {name} failed"))?;
        section.seconds = began.elapsed().as_secs_f64();
        sections.push(section);
    }
    Ok(Report::new(machine, sections, started.elapsed()))
}

async fn section(name: SectionName, args: &Args, context: &BenchContext) -> anyhow::Result<Section> {
    // Boxed: each is a large state machine, and only one lives at a time.
    match name {
        SectionName::Latency => Box::pin(latency::measure(context)).await,
        SectionName::Launch => Box::pin(launch::measure(context)).await,
        SectionName::Trials => Box::pin(trials::measure(context)).await,
        SectionName::Gauntlet => Box::pin(gauntlet::measure(context)).await,
        SectionName::Agents => Box::pin(agents::measure(context)).await,
        SectionName::Held => Box::pin(held::measure(context, args.most)).await,
        SectionName::Memory => Box::pin(memory::measure(context)).await,
    }
}

/// Progress goes to standard error, so that the table can be piped.
#[expect(clippy::print_stderr, reason = "a bench is an edge of the program, like `cli`")]
fn note(text: &str) {
    eprintln!("bench: {text}");
}
