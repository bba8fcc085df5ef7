//! Layers of agents: a volume for each, which containers mount read-only.
//!
//! A volume is filled through the archive API, so that the engine may be on another host. Its last
//! file marks it as whole: a volume without that file is filled anew.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountPoint, MountType, MountVolumeOptions, VolumeCreateRequest,
};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder, ListVolumesOptionsBuilder,
    RemoveVolumeOptionsBuilder,
};

use super::api::{self, asked_again};
use super::{DockerEngine, OWNER_LABEL, PURPOSE_LABEL, Shared, terminals};
use crate::model::{File, FileTree, RelPath};
use crate::sandbox::{
    ContainerId, EngineError, Image, ImageError, ImageSpec, KeptLayer, LAYER_PATH, Layer, LayerId,
    LayerState, Preload,
};

/// Label of a layer's volume: its id.
const LAYER_LABEL: &str = "termsmith.layer";
/// Label of a layer's volume: what people call it.
const TITLE_LABEL: &str = "termsmith.title";
/// Digits of the id in a volume's name.
const NAME_DIGITS: usize = 32;
/// The file that marks a volume as whole.
const MARKER: &str = ".termsmith-whole";
/// Where a filler has the volume.
const FILLED_AT: &str = "/layer";
/// The image of fillers. It holds nothing, and its containers are never started.
const DOCKERFILE: &str = "FROM scratch\nCOPY Dockerfile /\n";
/// More than an image without a base takes.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(60);

impl DockerEngine {
    /// Fills the volume of `layer`, unless it is whole.
    pub(in crate::sandbox) async fn keep_layer(&self, layer: &Layer) -> Result<(), EngineError> {
        if self.layer_state(&layer.id).await? == LayerState::Whole {
            return Ok(());
        }
        let shared = &self.shared;
        let volume = volume_name(&layer.id);
        // Another process may be filling it with the same files. Then it is in use, and stays.
        if let Err(error) = shared.remove_volume(&volume).await {
            tracing::debug!(volume, %error, "a volume is not whole, and cannot be removed");
        }
        let request = VolumeCreateRequest {
            name: Some(volume.clone()),
            labels: Some(HashMap::from([
                (LAYER_LABEL.to_owned(), layer.id.to_string()),
                (TITLE_LABEL.to_owned(), layer.title.clone()),
            ])),
            ..VolumeCreateRequest::default()
        };
        let created = shared.docker.create_volume(request).await;
        created.map_err(|error| shared.error("create a volume", error))?;
        let filler = self.filler(&volume).await?;
        let filled = shared.fill(&filler, layer).await;
        shared.remove(filler.as_str()).await?;
        filled
    }

    /// What the engine has of a layer.
    pub(in crate::sandbox) async fn layer_state(&self, id: &LayerId) -> Result<LayerState, EngineError> {
        let shared = &self.shared;
        let volume = volume_name(id);
        match asked_again(|| shared.docker.inspect_volume(&volume)).await {
            Ok(_) => {}
            Err(error) if api::status(&error) == Some(404) => return Ok(LayerState::Missing),
            Err(error) => return Err(shared.error("inspect a volume", error)),
        }
        let filler = self.filler(&volume).await?;
        let path = format!("{FILLED_AT}/{MARKER}");
        let options = ContainerArchiveInfoOptionsBuilder::new().path(&path).build();
        let found = shared.docker.get_container_archive_info(filler.as_str(), Some(options)).await;
        shared.remove(filler.as_str()).await?;
        match found {
            Ok(_) => Ok(LayerState::Whole),
            Err(error) if api::is_missing_path(&error) => Ok(LayerState::HalfFilled),
            Err(error) => Err(shared.error("look into a volume", error)),
        }
    }

    /// The layers that the engine keeps.
    pub(in crate::sandbox) async fn kept_layers(&self) -> Result<Vec<KeptLayer>, EngineError> {
        let volumes = self.shared.layer_volumes().await?;
        let mut kept: Vec<_> = volumes.into_values().collect();
        kept.sort_by(|one, other| (&one.title, &one.id).cmp(&(&other.title, &other.id)));
        Ok(kept)
    }

    /// A container that has the volume, and is never started.
    async fn filler(&self, volume: &str) -> Result<ContainerId, EngineError> {
        let shared = &self.shared;
        let image = self.empty_image().await?;
        // Without the prefix of sandboxes: the sweep must not take it for one that was forgotten.
        let name = format!("{volume}-{}", shared.new_name());
        let body = ContainerCreateBody {
            image: Some(image.reference().to_owned()),
            cmd: Some(vec!["/never-started".to_owned()]),
            labels: Some(HashMap::from([
                (OWNER_LABEL.to_owned(), shared.owner.to_string()),
                (PURPOSE_LABEL.to_owned(), "layer".to_owned()),
            ])),
            host_config: Some(HostConfig {
                mounts: Some(vec![Mount { target: Some(FILLED_AT.to_owned()), ..mount_of(volume) }]),
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(&name).build();
        let created = shared.docker.create_container(Some(options), body).await;
        created.map_err(|error| shared.error("create a container", error))?;
        Ok(ContainerId(name))
    }

    async fn empty_image(&self) -> Result<Image, EngineError> {
        let mut context = FileTree::default();
        if let Ok(path) = RelPath::new("Dockerfile") {
            context.insert(path, File::text(DOCKERFILE));
        }
        let digest = blake3::hash(DOCKERFILE.as_bytes()).to_hex();
        let spec = ImageSpec { digest: &digest, context: &context, timeout: IMAGE_TIMEOUT };
        self.ensure_image(&spec).await.map_err(|error| match error {
            ImageError::Engine(error) => error,
            error @ (ImageError::Build { .. } | ImageError::TimedOut { .. }) => {
                EngineError::Transport { action: "build an empty image", message: error.to_string() }
            }
        })
    }
}

impl Shared {
    async fn fill(&self, filler: &ContainerId, layer: &Layer) -> Result<(), EngineError> {
        self.upload(filler, &Preload { dest: FILLED_AT.to_owned(), tar: layer.tar.clone() }).await?;
        let spooled = |source| EngineError::Spool { source };
        let mut marker = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(layer.id.as_str().len() as u64);
        marker.append_data(&mut header, MARKER, layer.id.as_str().as_bytes()).map_err(spooled)?;
        let tar = marker.into_inner().map_err(spooled)?;
        self.upload(filler, &Preload { dest: FILLED_AT.to_owned(), tar: tar.into() }).await
    }

    /// Removes every layer of an agent. One that a container uses stays.
    pub(super) async fn remove_layers(&self) -> Result<usize, EngineError> {
        let mut removed = 0;
        for volume in self.layer_volumes().await?.into_keys() {
            self.remove_volume(&volume).await?;
            removed += 1;
        }
        Ok(removed)
    }

    async fn layer_volumes(&self) -> Result<BTreeMap<String, KeptLayer>, EngineError> {
        let filters = HashMap::from([("label", vec![LAYER_LABEL])]);
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let listed = self.docker.list_volumes(Some(options)).await;
        let listed = listed.map_err(|error| self.error("list volumes", error))?;
        let named = listed.volumes.into_iter().flatten().map(|mut volume| {
            let mut label = |name| volume.labels.remove(name).unwrap_or_default();
            let layer = KeptLayer { id: LayerId::new(label(LAYER_LABEL)), title: label(TITLE_LABEL) };
            (volume.name, layer)
        });
        Ok(named.collect())
    }

    /// A missing volume is not an error.
    async fn remove_volume(&self, volume: &str) -> Result<(), EngineError> {
        let options = RemoveVolumeOptionsBuilder::new().build();
        match self.docker.remove_volume(volume, Some(options)).await {
            Err(error) if api::status(&error) != Some(404) => Err(self.error("remove a volume", error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The mount of a layer in a solver's container.
pub(super) fn mount(id: &LayerId) -> Mount {
    Mount { target: Some(LAYER_PATH.to_owned()), read_only: Some(true), ..mount_of(&volume_name(id)) }
}

/// Whether a mount of a container is termsmith's own: a solver cannot write there.
pub(super) fn is_ours(mount: &MountPoint) -> bool {
    terminals::is_ours(mount) || mount.destination.as_deref() == Some(LAYER_PATH)
}

fn mount_of(volume: &str) -> Mount {
    Mount {
        typ: Some(MountType::VOLUME),
        source: Some(volume.to_owned()),
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() }),
        ..Mount::default()
    }
}

fn volume_name(id: &LayerId) -> String {
    let digits: String = id.as_str().chars().take(NAME_DIGITS).collect();
    format!("termsmith-layer-{digits}")
}
