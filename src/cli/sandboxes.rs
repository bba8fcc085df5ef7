//! `clean`: removes termsmith's containers and images from the engine.

use super::args::CleanArgs;
use super::config::{Config, Format, runtime};
use super::exit::Status;
use super::failure::Outcome;
use super::say;
use crate::sandbox::{CleanScope, Removed};

pub(super) fn clean(config: &Config, args: &CleanArgs) -> Outcome {
    let scope = if args.images { CleanScope::Everything } else { CleanScope::Containers };
    let removed = runtime()?.block_on(async {
        let engine = config.engine.connect().await?;
        engine.remove_all(scope).await
    })?;
    match config.format {
        Format::Json => {
            say::json(&serde_json::json!({
                "containers": removed.containers, "images": removed.images, "layers": removed.layers,
            }))?;
        }
        Format::Text => {
            let Removed { containers, images, layers } = removed;
            let agents = if args.images { format!(", and {layers} layers of agents") } else { String::new() };
            say::line(format!("removed {containers} containers and {images} images{agents}"))?;
        }
    }
    Ok(Status::Ok)
}
