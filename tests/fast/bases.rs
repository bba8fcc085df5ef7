//! Every base in `templates/bases/` keeps some rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn bases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/bases");
    let mut bases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    bases.sort();
    assert!(bases.iter().any(|base| base.ends_with("core")), "{bases:?}");
    bases
}

fn read(base: &Path, name: &str) -> String {
    fs::read_to_string(base.join(name)).unwrap_or_else(|error| panic!("{}/{name}: {error}", base.display()))
}

/// The words after each `apt-get install`, without options.
fn installed(dockerfile: &str) -> Vec<String> {
    let joined = dockerfile.replace("\\\n", " ");
    let commands = joined.split("&&").flat_map(str::lines);
    let lists = commands.filter_map(|command| Some(command.split_once("apt-get install")?.1));
    lists.flat_map(str::split_whitespace).filter(|word| !word.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn all_start_alike_so_that_engines_share_the_layers() {
    let core = read(&bases()[0].with_file_name("core"), "Dockerfile");
    assert!(core.starts_with("FROM debian:bookworm-slim\n"), "{core}");
    for base in bases() {
        assert!(read(&base, "Dockerfile").starts_with(&core), "{}", base.display());
    }
}

#[test]
fn the_declaration_names_what_the_dockerfile_installs() {
    for base in bases() {
        let declared: toml::Table = read(&base, "base.toml").parse().unwrap();
        let keys: BTreeSet<&str> = declared.keys().map(String::as_str).collect();
        assert_eq!(keys, ["description", "packages", "title", "version"].into(), "{}", base.display());
        let packages: Vec<String> = declared["packages"].clone().try_into().unwrap();
        let packages: BTreeSet<String> = packages.into_iter().collect();
        let installed: BTreeSet<String> = installed(&read(&base, "Dockerfile")).into_iter().collect();
        assert_eq!(packages, installed, "{}", base.display());
    }
}

#[test]
fn builds_need_nothing_but_a_debian_mirror() {
    for base in bases() {
        let dockerfile = read(&base, "Dockerfile");
        for package in installed(&dockerfile) {
            assert!(!package.contains('='), "archives drop old versions: {package}");
        }
        // Behind a proxy that inspects TLS, an image does not trust the proxy's certificate yet.
        for word in ["http", "pip install", "\nADD ", "\nCOPY ", "--platform"] {
            assert!(!dockerfile.contains(word), "{}: {word}", base.display());
        }
    }
}
