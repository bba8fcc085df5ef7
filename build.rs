//! Embeds the folders `domains/` and `templates/`. Compiles the guest, a static program that runs
//! in any image of this architecture. Computes the build's id, which is a part of results' keys.

use std::error::Error;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "src/folder/walk.rs"]
#[allow(dead_code, unreachable_pub, reason = "written for the crate, which uses more of it")]
mod walk;

/// Files and folders that results depend on. The build's id is a hash of them.
const SOURCES: [&str; 6] = ["src", "domains", "templates", "Cargo.toml", "Cargo.lock", "build.rs"];
/// Limits of an embedded folder. Only a folder that is there by mistake exceeds them.
const BOUNDS: walk::Bounds = walk::Bounds { files: 20_000, depth: 16, bytes: 64 << 20 };

fn main() -> Result<(), Box<dyn Error>> {
    identify_build()?;
    embed_assets()?;
    build_guest()
}

/// Writes `build_id`: 16 hexadecimal digits, a hash of the names and bytes of all sources.
fn identify_build() -> Result<(), Box<dyn Error>> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        add(&mut hasher, source)?;
    }
    write_if_changed(&out("build_id")?, &format!("{:016x}", hasher.finish()))
}

/// Adds a file of the package, or all files of a folder but tests and their snapshots.
fn add(hasher: &mut DefaultHasher, source: &str) -> Result<(), Box<dyn Error>> {
    let place = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(source);
    if !place.is_dir() {
        add_bytes(hasher, source, &fs::read(&place)?);
        return Ok(());
    }
    for found in walk::walk(&place, &BOUNDS, walk::Clutter::LeftOut, walk::Links::Refused)?.files {
        let is_test = found.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "snapshots"));
        if source != "src" || !is_test {
            let bytes = fs::read(place.join(&found.path))?;
            add_bytes(hasher, &format!("{source}/{} {}", found.path, found.executable), &bytes);
        }
    }
    Ok(())
}

fn add_bytes(hasher: &mut DefaultHasher, name: &str, bytes: &[u8]) {
    for part in [name.as_bytes(), bytes] {
        hasher.write_u64(part.len() as u64);
        hasher.write(part);
    }
}

fn out(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    Ok(Path::new(&env::var("OUT_DIR")?).join(name))
}

fn write_if_changed(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    Ok(fs::write(path, text)?)
}

/// Writes `assets.rs`: a table of (path, bytes, executable) of every file below the asset folders.
fn embed_assets() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let mut table = String::from("&[\n");
    for folder in ["domains", "templates"] {
        let place = Path::new(&root).join(folder);
        for found in walk::walk(&place, &BOUNDS, walk::Clutter::LeftOut, walk::Links::Refused)?.files {
            let path = format!("{folder}/{}", found.path);
            // The text names the variable, not its value. A target folder may be shared with
            // another checkout, which may be removed later.
            let file = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})", format!("/{path}"));
            writeln!(table, "    ({path:?}, include_bytes!({file}), {}),", found.executable)?;
        }
    }
    table.push_str("]\n");
    write_if_changed(&out("assets.rs")?, &table)
}

/// Compiles `src/guest/bin.rs` to `$OUT_DIR/guest`, unless that is up to date.
fn build_guest() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-check-cfg=cfg(guest_binary)");
    let (guest, stamp) = (out("guest")?, out("guest_sources")?);
    let mut hasher = DefaultHasher::new();
    for source in ["src/guest", "build.rs"] {
        add(&mut hasher, source)?;
    }
    let compiler = Command::new(env::var("RUSTC")?).arg("-vV").output()?;
    add_bytes(&mut hasher, &env::var("TARGET")?, &compiler.stdout);
    let sources = format!("{:016x}", hasher.finish());
    if guest.is_file() && fs::read_to_string(&stamp).is_ok_and(|old| old == sources) {
        return Ok(());
    }
    // Rustc is called directly. Cargo would compile a binary of this package with the package's own
    // target features, and artifact dependencies are unstable. `crt-static` works with glibc, so no
    // musl target is needed.
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
        .arg(&guest)
        .arg("src/guest/bin.rs")
        // These flags are for the host's binary, e.g. for coverage. A program without a runtime
        // must not get them.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if !status.success() {
        return Err(format!("failed to compile the guest: rustc ended with {status}").into());
    }
    write_if_changed(&stamp, &sources)
}
