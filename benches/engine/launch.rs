//! Launch to removal of a sandbox, compared with a bare container.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::{Stream, StreamExt as _};
use termsmith::model::ShellOutcome;
use termsmith::sandbox::{ExecLimit, Image};

use crate::report::{Line, Section, Unit, Who};
use crate::sample::{Sample, milliseconds, rounds};
use crate::{BenchContext, fixture};

const ROUNDS: usize = 40;
const WITHIN: Duration = Duration::from_secs(30);
const WARM_UP: usize = 2;
/// An engine that has not removed a container after this time has stopped answering.
const VERIFIER_TIMEOUT_FACTOR: Duration = Duration::from_secs(60);

/// The measured stages.
#[derive(Default)]
struct Measured {
    /// From the launch to the first command's status.
    usable: Sample,
    /// From the launch until the caller continued.
    returned: Sample,
    /// From the launch until the engine reported the removal.
    gone: Sample,
    /// Create, start and remove by the engine alone.
    bare: Sample,
}

pub(crate) async fn measure(context: &BenchContext) -> anyhow::Result<Section> {
    let image = Image::named(fixture::BASE);
    let mut removals = Removals::listen(&context.bare.docker)?;
    let mut measured = Measured::default();
    for _ in 0..WARM_UP {
        round(context, &image, &mut removals, &mut Measured::default()).await?;
    }
    for _ in rounds(ROUNDS, WITHIN) {
        round(context, &image, &mut removals, &mut measured).await?;
    }
    context.engine.close().await;

    let mut section = Section::new("launch", format!("a container's life, {}, network none", fixture::BASE));
    let ours = |what, sample| Line::new(Who::Termsmith, what, Unit::Milliseconds, sample);
    let whole = ours("launch, `:`, destroy, until the engine reports it gone", &measured.gone);
    let bare = Line::new(Who::Engine, "create, start, remove", Unit::Milliseconds, &measured.bare)
        .multiple(&whole)
        .aim("≤ 1.3 ×", |ratio| ratio <= 1.3);
    let parts = [
        ours("the same, until the caller goes on", &measured.returned),
        ours("of it launch and first command", &measured.usable),
    ];
    section.groups.push([whole, bare].into_iter().chain(parts).collect());
    Ok(section)
}

async fn round(
    context: &BenchContext,
    image: &Image,
    removals: &mut Removals,
    measured: &mut Measured,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let sandbox = fixture::launch(&context.engine, image).await?;
    let first = sandbox.shell(":", &ExecLimit::default()).await?;
    let usable = started.elapsed();
    let name = sandbox.id().as_str().to_owned();
    sandbox.destroy().await;
    let returned = started.elapsed();
    removals.wait_for(&name).await?;
    let gone = started.elapsed();
    ensure!(first.outcome == ShellOutcome::Exited(0), "`:` ended with {:?}", first.outcome);
    measured.usable.push(milliseconds(usable));
    measured.returned.push(milliseconds(returned));
    measured.gone.push(milliseconds(gone));

    let started = Instant::now();
    let name = context.bare.start(image.reference()).await?;
    context.bare.remove(&name).await?;
    measured.bare.push_since(started);
    Ok(())
}

/// The engine's events of removed containers. Termsmith removes in the background, so only the
/// engine reports the end.
struct Removals(Pin<Box<dyn Stream<Item = Result<EventMessage, Error>> + Send>>);

impl Removals {
    fn listen(docker: &Docker) -> anyhow::Result<Self> {
        // From now on, however long the engine takes to answer.
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().to_string();
        let filters = HashMap::from([("type", vec!["container"]), ("event", vec!["destroy"])]);
        let options = EventsOptionsBuilder::new().since(&now).filters(&filters).build();
        Ok(Self(Box::pin(docker.events(Some(options)))))
    }

    async fn wait_for(&mut self, name: &str) -> anyhow::Result<()> {
        let wait = async {
            while let Some(event) = self.0.next().await {
                let attributes = event?.actor.and_then(|actor| actor.attributes).unwrap_or_default();
                if attributes.get("name").is_some_and(|found| found == name) {
                    return Ok(());
                }
            }
            bail!("the engine ended its list of events")
        };
        tokio::time::timeout(VERIFIER_TIMEOUT_FACTOR, wait).await.with_context(|| {
            format!("`{name}` was not removed within {} s", VERIFIER_TIMEOUT_FACTOR.as_secs())
        })?
    }
}
