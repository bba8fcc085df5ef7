use std::path::Path;

use super::*;
use crate::model::{File, FileTree, RelPath};

fn catalog_of(files: &[(&str, &str)], data: &Path) -> Result<Catalog, CatalogError> {
    let mut tree = FileTree::default();
    for (path, text) in files {
        tree.insert(RelPath::new(format!("templates/{path}")).unwrap(), File::text(*text));
    }
    Catalog::load(&Assets::from_tree(tree), data)
}

const MANIFEST_TEXT: &str = "\
version = \"1.0\"
title = \"X\"
license = \"MIT\"
dialect = \"chat\"
libc = \"any\"
memory_mb = 64
argv = [\"{layer}/x\", \"{model}\"]
check = [\"{layer}/x\", \"--version\"]
";

const LOCK_TEXT: &str = "version = \"1.0\"\n[layer]\nid = \"ab\"\nfiles = 1\nbytes = 2\n";

#[test]
fn every_shipped_manifest_is_sound_and_has_the_lock_of_its_version() {
    let catalog = Catalog::load(&Assets::embedded(), Path::new("/nowhere")).unwrap();
    let names: Vec<_> = catalog.manifests().map(|manifest| manifest.name.as_str()).collect();
    assert_eq!(
        names,
        ["aider", "claude-code", "codex", "mini-swe-agent", "opencode", "openhands", "qwen-code"]
    );
    for manifest in catalog.manifests() {
        let agent = AgentName { name: manifest.name.clone(), version: None };
        let lock = catalog.lock(&agent).unwrap();
        assert_eq!(lock.is_some(), manifest.declared.unavailable.is_none(), "{}", manifest.name);
    }
}

#[test]
fn mistakes_in_manifests_are_named_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let check = |text: &str, expect: &str| {
        let message = catalog_of(&[("agents/x/agent.toml", text)], dir.path()).unwrap_err().to_string();
        assert!(message.contains(expect), "{message}");
        assert!(message.contains("templates/agents/x/agent.toml"), "{message}");
    };
    check(&MANIFEST_TEXT.replace("memory_mb", "memory"), "did you mean `memory_mb`?");
    check(&MANIFEST_TEXT.replace("\"chat\"", "\"chats\""), "did you mean `chat`?");
    check(&MANIFEST_TEXT.replace("{model}", "{modell}"), "there is no placeholder `{modell}`");
    check(&MANIFEST_TEXT.replace("\"{layer}/x\", \"--version\"", ""), "need a word each");
    check(&format!("{MANIFEST_TEXT}runtime = \"python9\"\n"), "there is no runtime `python9`");
    check(&format!("{MANIFEST_TEXT}[[files]]\npath = \"/a\"\ntemplate = \"b.j2\"\n"), "`b.j2` is missing");
    check(&format!("{MANIFEST_TEXT}[python]\nrequirements = [\"x\"]\n"), "need a runtime with Python");
    let package = "[[packages]]\nregistry = \"debian\"\nname = \"p\"\nversion = \"1\"\ninto = \"\"\n";
    check(&format!("{MANIFEST_TEXT}{package}"), "`p` needs `path` and `hash`");
    let package = package.replace("debian", "npm");
    check(&format!("{MANIFEST_TEXT}{package}keep = [\"[\"]\n"), "the pattern `[` of `p` is malformed");
}

#[test]
fn locks_are_found_by_version() {
    let dir = tempfile::tempdir().unwrap();
    let files = [("agents/x/agent.toml", MANIFEST_TEXT), ("agents/x/lock.toml", LOCK_TEXT)];
    let catalog = catalog_of(&files, dir.path()).unwrap();
    let check = |typed: &str, expect: Result<Option<&str>, &str>| {
        let agent: AgentName = typed.parse().unwrap();
        match (catalog.scaffold(&agent), expect) {
            (Ok(scaffold), Ok(Some(name))) => assert_eq!(scaffold.name(), name),
            (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
            (found, expect) => panic!("{typed}: {found:?}, and not {expect:?}"),
        }
    };
    check("x", Ok(Some("x")));
    check("x@1.0", Ok(Some("x")));
    check("y", Err("there is no agent `y`"));
    check("x@2.0", Err("`termsmith agent add x@2.0` installs it"));
    let mut lock = catalog.lock(&"x".parse().unwrap()).unwrap().unwrap();
    lock.version = "2.0".to_owned();
    catalog.keep_lock("x", &lock).unwrap();
    check("x@2.0", Ok(Some("x")));
    let of = |typed: &str| catalog.scaffold(&typed.parse().unwrap()).unwrap().digest();
    assert_ne!(of("x"), of("x@2.0"), "the version is part of the identity");
    fs::write(dir.path().join("locks/x-3_0.toml"), "nonsense").unwrap();
    check("x@3.0", Err("is malformed"));
}
