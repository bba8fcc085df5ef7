//! Reads files from an image's layers, also those that later layers delete.

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use futures_util::StreamExt as _;
use tar::Archive;

use crate::sandbox::{EngineError, Image, LayerFile};

use super::DockerEngine;

impl DockerEngine {
    /// Regular files of `image` with one of the `sizes`, from every layer.
    pub(in crate::sandbox) async fn layer_files(
        &self,
        image: &Image,
        sizes: &BTreeSet<u64>,
    ) -> Result<Vec<LayerFile>, EngineError> {
        let io =
            |source| EngineError::Io { action: "read the layers of", path: image.reference().into(), source };
        // A saved image has hundreds of megabytes, so it goes to a file.
        let mut spool = tempfile::tempfile().map_err(io)?;
        let mut pieces = Box::pin(self.shared.docker.export_image(image.reference()));
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.shared.error("save an image", error))?;
            spool.write_all(&piece).map_err(io)?;
        }
        let sizes = sizes.clone();
        let read = tokio::task::spawn_blocking(move || files_of(spool, &sizes)).await;
        read.map_err(|error| io(std::io::Error::other(error)))?.map_err(io)
    }
}

/// Reads the archive of an image. It contains one archive for each layer, with names that differ
/// between engines.
fn files_of(mut spool: std::fs::File, sizes: &BTreeSet<u64>) -> std::io::Result<Vec<LayerFile>> {
    spool.seek(SeekFrom::Start(0))?;
    let mut found = Vec::new();
    for entry in Archive::new(spool).entries()? {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        // Other entries are small JSON files. Read as archives, they have no entries.
        let mut layer = Archive::new(entry);
        let Ok(files) = layer.entries() else { continue };
        for file in files {
            let Ok(mut file) = file else { break };
            if file.header().entry_type().is_file() && sizes.contains(&file.size()) {
                let path = format!("/{}", file.path()?.display());
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                found.push(LayerFile { path, bytes });
            }
        }
    }
    Ok(found)
}
