//! The task that is tried, and the sandboxes that are measured.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use termsmith::assets::Assets;
use termsmith::domain::{Domains, plan};
use termsmith::model::{Draft, FileTree, Limits, Profile, RecipeId, Seed};
use termsmith::pipeline::{Workshop, file_draft};
use termsmith::sandbox::{Engine, EngineError, Image, ImageSpec, LaunchSpec, Network, Sandbox};
use termsmith::screen::Gear;
use termsmith::store::{RunDir, Store};

/// The image of everything that needs no task: the base of all task images.
pub(crate) const BASE: &str = "debian:bookworm-slim";
const SEED: Seed = Seed(7);

/// A rendered task and its image.
pub(crate) struct Fixture {
    pub(crate) draft: Draft,
    /// The task's Harbor directory.
    pub(crate) directory: FileTree,
    pub(crate) image: Image,
    pub(crate) environment_digest: String,
    /// What is brought against every task.
    pub(crate) gear: Gear,
}

impl Fixture {
    pub(crate) async fn build(engine: &Engine, recipe: &str) -> anyhow::Result<Self> {
        let workshop = Workshop::load(&Assets::embedded())?;
        let id = RecipeId(recipe.to_owned());
        let known = || workshop.recipes.keys().map(RecipeId::as_str).collect::<Vec<_>>().join(", ");
        let found =
            workshop.recipes.get(&id).with_context(|| format!("no recipe `{id}`; there are {}", known()))?;
        let only = BTreeMap::from([(id.clone(), found.decl.clone())]);
        let planned = plan(&workshop.domains, &only, SEED, 1, &Domains::All);
        let blueprint = planned.blueprints.first().with_context(|| format!("`{id}` cannot be planned"))?;
        let scratch = tempfile::tempdir()?;
        let store = Store::new(RunDir::open(scratch.path())?);
        let filed = file_draft(&workshop, &store, blueprint, None)?;
        if filed.draft.task.subject.programs {
            bail!(
                "the tests of `{id}` run programs, so its trials take three containers; choose another one"
            );
        }
        let spec = ImageSpec {
            digest: &filed.environment_digest,
            context: &filed.draft.task.environment,
            timeout: Duration::from_secs(filed.draft.task.limits.build_timeout_sec.into()),
        };
        let image = engine.ensure_image(&spec).await?;
        let environment_digest = filed.environment_digest;
        Ok(Self {
            draft: filed.draft,
            directory: filed.directory,
            image,
            environment_digest,
            gear: workshop.gear,
        })
    }
}

/// A sandbox with the limits that tasks have by default.
pub(crate) async fn launch(engine: &Engine, image: &Image) -> Result<Sandbox, EngineError> {
    let limits = Limits::default();
    let spec = LaunchSpec {
        image,
        limits: &limits,
        profile: Profile::Plain,
        network: Network::None,
        workdir: "/",
        purpose: "bench",
        preload: Vec::new(),
    };
    engine.launch(&spec).await
}
