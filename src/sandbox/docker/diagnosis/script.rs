//! The script that provides what a diagnosis finds missing.

/// It is part of the program, so that `--templates` cannot replace what runs as root.
pub(in crate::sandbox::docker) const FIX_SCRIPT: &str =
    include_str!("../../../../templates/doctor/fix-docker.sh");

#[cfg(test)]
mod tests;
