//! Embeds the `domains/` and `templates/` folders, and compiles the guest: a static program that runs in any image of this
//! architecture.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[path = "src/folder/walk.rs"]
#[allow(dead_code, unreachable_pub, reason = "written for the crate, which uses more of it")]
mod walk;

fn main() -> Result<(), Box<dyn Error>> {
    embed_assets()?;
    build_guest()
}

/// Writes `assets.rs`: a table of (path, bytes, executable) of every file below the asset folders.
fn embed_assets() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    // The bounds only catch a folder that was put there by mistake.
    let bounds = walk::Bounds { files: 20_000, depth: 16, bytes: 64 << 20 };
    let mut table = String::from("&[\n");
    for folder in ["domains", "templates"] {
        println!("cargo::rerun-if-changed={folder}");
        let place = Path::new(&root).join(folder);
        for found in walk::walk(&place, &bounds, walk::Clutter::LeftOut, walk::Links::Refused)?.files {
            let path = format!("{folder}/{}", found.path);
            // The variable instead of its value: a target folder may be shared with another checkout, which may be removed later.
            let file = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})", format!("/{path}"));
            writeln!(table, "    ({path:?}, include_bytes!({file}), {}),", found.executable)?;
        }
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("assets.rs"), table)?;
    Ok(())
}

/// Compiles `src/guest/bin.rs` to `$OUT_DIR/guest`.
fn build_guest() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/guest");
    println!("cargo::rustc-check-cfg=cfg(guest_binary)");
    let out = Path::new(&env::var("OUT_DIR")?).join("guest");
    // Cargo can compile a package's own binaries only for the package's target features, and artifact dependencies are
    // unstable, so rustc is called directly. `crt-static` works with glibc, so no musl target has to be installed.
    let status = Command::new(env::var("RUSTC")?)
        .args([
            "--crate-name",
            "guest",
            "--crate-type",
            "bin",
            "--edition",
            "2024",
            "--target",
            &env::var("TARGET")?,
        ])
        .args(["-C", "target-feature=+crt-static", "-C", "panic=abort", "-C", "opt-level=z", "-C", "lto=fat"])
        .args(["-C", "codegen-units=1", "-C", "strip=symbols", "--cap-lints", "allow"])
        .args(["--cfg", "guest_binary", "-o"])
        .arg(&out)
        .arg("src/guest/bin.rs")
        // Flags meant for the host binary (coverage, a linker plug-in) must not reach a program without a runtime for them.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if !status.success() {
        return Err(format!("failed to compile the guest: rustc ended with {status}").into());
    }
    Ok(())
}
