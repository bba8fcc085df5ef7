//! The script that provides requirements that a diagnosis found missing.

/// The script is part of the program, because it runs as root. `--templates` cannot replace it.
pub(in crate::sandbox::docker) const FIX_SCRIPT: &str =
    include_str!("../../../../templates/doctor/fix-docker.sh");

#[cfg(test)]
mod tests;
