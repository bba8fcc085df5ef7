//! Embeds the `domains/` and `templates/` folders.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

#[path = "src/folder/walk.rs"]
#[allow(dead_code, unreachable_pub, reason = "written for the crate, which uses more of it")]
mod walk;

fn main() -> Result<(), Box<dyn Error>> {
    embed_assets()
}

/// Writes `assets.rs`: a table of (path, bytes, executable) of every file below the asset folders.
fn embed_assets() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    // What is embedded is ours; the bounds only stop a folder that was put there by mistake.
    let bounds = walk::Bounds { files: 20_000, depth: 16, bytes: 64 << 20 };
    let mut table = String::from("&[\n");
    for folder in ["domains", "templates"] {
        println!("cargo::rerun-if-changed={folder}");
        let place = Path::new(&root).join(folder);
        for found in walk::walk(&place, &bounds)? {
            let path = format!("{folder}/{}", found.path);
            let file = Path::new(&root).join(&path);
            writeln!(table, "    ({path:?}, include_bytes!({file:?}), {}),", found.executable)?;
        }
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("assets.rs"), table)?;
    Ok(())
}
