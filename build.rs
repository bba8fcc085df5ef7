//! Compiles the guest: a static program that runs in any image of this architecture.

use std::env;
use std::path::Path;
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=src/guest");
    if let Err(message) = build_guest() {
        println!("cargo::error={message}");
        exit(1);
    }
}

fn build_guest() -> Result<(), String> {
    let var = |name: &str| env::var(name).map_err(|error| format!("{name}: {error}"));
    let out = Path::new(&var("OUT_DIR")?).join("guest");
    // Cargo can compile a package's own binaries only for the package's target features, and artifact dependencies are
    // unstable; a direct call needs neither. `crt-static` works with glibc, so no musl target has to be installed.
    let status = Command::new(var("RUSTC")?)
        .args([
            "--crate-name",
            "guest",
            "--crate-type",
            "bin",
            "--edition",
            "2024",
            "--target",
            &var("TARGET")?,
        ])
        .args(["-C", "target-feature=+crt-static", "-C", "panic=abort", "-C", "opt-level=z", "-C", "lto=fat"])
        .args(["-C", "codegen-units=1", "-C", "strip=symbols", "--cap-lints", "allow", "-o"])
        .arg(&out)
        .arg("src/guest/bin.rs")
        // Flags meant for the host binary (coverage, a linker plug-in) must not reach a program without a runtime for them.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .map_err(|error| format!("failed to run rustc: {error}"))?;
    if !status.success() {
        return Err(format!("failed to compile the guest: rustc ended with {status}"));
    }
    Ok(())
}
