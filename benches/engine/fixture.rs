//! The task and the sandboxes that are measured.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use termsmith::assets::Assets;
use termsmith::domain::{Domains, plan};
use termsmith::harbor::Publication;
use termsmith::model::{Draft, EnvironmentDigest, FileTree, Limits, Profile, RecipeId, Seed};
use termsmith::pipeline::{PipelineAssets, hash_draft};
use termsmith::sandbox::{Engine, EngineError, Image, ImageSpec, LaunchSpec, Network, Sandbox};
use termsmith::screen::AttackSuite;
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
    pub(crate) environment_digest: EnvironmentDigest,
    /// The attacks of screening.
    pub(crate) suite: AttackSuite,
}

impl Fixture {
    pub(crate) async fn build(engine: &Engine, recipe: &str) -> anyhow::Result<Self> {
        let assets = PipelineAssets::load(&Assets::embedded())?;
        let id = RecipeId::parse(recipe)?;
        let known = || assets.recipes.keys().map(RecipeId::as_str).collect::<Vec<_>>().join(", ");
        let found =
            assets.recipes.get(&id).with_context(|| format!("no recipe `{id}`; there are {}", known()))?;
        let only = BTreeMap::from([(id.clone(), found.decl.clone())]);
        let planned = plan(&assets.domains, &only, SEED, 1, &Domains::All);
        let blueprint = planned.blueprints.first().with_context(|| format!("`{id}` cannot be planned"))?;
        let scratch = tempfile::tempdir()?;
        let store = Store::new(RunDir::open(scratch.path())?);
        let hashed = hash_draft(&assets, &store, blueprint, &Publication::default())?;
        if hashed.draft.task.submission.programs {
            bail!(
                "the tests of `{id}` run programs, so its trials take three containers; choose another one"
            );
        }
        let spec = ImageSpec {
            digest: hashed.environment_digest.as_str(),
            context: &hashed.draft.task.environment,
            timeout: Duration::from_secs(hashed.draft.task.limits.build_timeout_sec.into()),
        };
        let image = engine.ensure_image(&spec).await?;
        let environment_digest = hashed.environment_digest;
        Ok(Self {
            draft: hashed.draft,
            directory: hashed.directory,
            image,
            environment_digest,
            suite: assets.suite,
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
        layer: None,
    };
    engine.launch(&spec).await
}
