//! A small domain and small recipes, as input for tests of loader, plan and scaffolds.

mod load;
mod params;
mod plan;
mod scaffold;

use super::*;
use crate::assets::Assets;
use crate::model::{File, FileTree, RelPath};

/// A domain with fifteen skills. The first four have descriptions.
pub(super) fn domain_text() -> String {
    let mut text = r#"version = 1
title = "Gardening"
description = "Beds and borders."
languages = ["python", "bash"]
tools = ["spade"]
base = "core"

[kinds]
from-scratch = 3
bug-fix = 1
refactor = 0

[difficulty]
easy = 1
hard = 1

[limits]
memory_mb = 512
"#
    .to_owned();
    for (id, operations) in [
        ("digging", r#""file-system""#),
        ("pruning", r#""text-editing", "testing""#),
        ("grafting", r#""version-control""#),
        ("watering", r#""network", "file-system""#),
    ] {
        text += &format!("\n[[skills]]\nid = \"{id}\"\ntitle = \"{id}\"\noperations = [{operations}]\n");
    }
    for number in 5..=15 {
        text +=
            &format!("\n[[skills]]\nid = \"skill-{number}\"\ntitle = \"t\"\noperations = [\"database\"]\n");
    }
    for (key, text_key, ids) in [
        ("personas", "text", ["gardener", "botanist"]),
        ("fixtures", "description", ["flower-bed", "orchard"]),
        ("verifiers", "description", ["recompute", "replay"]),
    ] {
        for id in ids {
            text += &format!("\n[[{key}]]\nid = \"{id}\"\n{text_key} = \"t\"\n");
        }
    }
    text
}

/// The declaration of a recipe of that domain.
pub(super) fn recipe_text() -> String {
    r#"version = 2
title = "Dig a bed"
kinds = ["from-scratch", "bug-fix"]
difficulties = ["easy", "hard"]
languages = ["bash"]
skills = ["digging", "pruning"]
fixtures = ["flower-bed"]
verifiers = ["recompute"]
base = "core"

[limits]
pids = 64

[submission]
roots = ["/app"]

[params.rows]
type = "by_difficulty"
easy = 3
hard = 9

[params.depth]
type = "int"
min = 10
max = 30
step = 5
public = true

[[wrong]]
name = "too-flat"
why = "stops early"

[[wrong]]
name = "too-deep"
why = "never stops"

[[wrong]]
name = "no-edge"
why = "has no edge"
"#
    .to_owned()
}

/// The other files of that recipe.
const RECIPE_FILES: [&str; 9] = [
    "instruction.md.j2",
    "solution/solve.sh",
    "second/solve.sh.j2",
    "clauses.toml.j2",
    "tests/test_outputs.py.j2",
    "expert.toml",
    "wrong/too-flat.sh",
    "wrong/too-deep.sh.j2",
    "wrong/no-edge.sh",
];

fn add(tree: &mut FileTree, path: &str, text: impl Into<String>) {
    tree.insert(RelPath::new(path).unwrap(), File::text(text));
}

/// Assets with these domains and recipes, and a base.
pub(super) fn assets(domains: &[(&str, &str)], recipes: &[(&str, &str)]) -> Assets {
    let mut tree = FileTree::default();
    add(&mut tree, "templates/bases/core/Dockerfile", "FROM scratch");
    add(&mut tree, "templates/variants/key-order.toml", "");
    add(&mut tree, "templates/variants/row-order.toml", "");
    for (id, text) in domains {
        add(&mut tree, &format!("domains/{id}.toml"), *text);
    }
    for (id, text) in recipes {
        add(&mut tree, &format!("templates/recipes/{id}/recipe.toml"), *text);
        for file in RECIPE_FILES {
            add(&mut tree, &format!("templates/recipes/{id}/{file}"), "");
        }
    }
    Assets::from_tree(tree)
}

/// Three domains with two, one and no recipes.
pub(super) fn garden() -> (Specs, Recipes) {
    let (domain, recipe) = (domain_text(), recipe_text());
    let other = recipe
        .replace("\"digging\", \"pruning\"", "\"watering\"")
        .replace("\"bash\"", "\"bash\", \"python\"");
    let assets = assets(
        &[("garden", &domain), ("orchard", &domain), ("pond", &domain)],
        &[("garden/dig-bed", &recipe), ("garden/water-bed", &other), ("orchard/water-trees", &other)],
    );
    let specs = load_domains(&assets).unwrap();
    let recipes = load_recipes(&assets, &specs).unwrap();
    (specs, recipes)
}

#[test]
fn the_embedded_domains_and_recipes_load() {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(specs.len(), 10);
    for (id, spec) in &specs {
        assert!(spec.personas.len() >= 5 && spec.fixtures.len() >= 5, "{id}");
        assert!(
            spec.kinds.values().all(|weight| *weight > 0.0) && spec.kinds.len() == 4,
            "{id}: all four kinds"
        );
    }
    load_recipes(&assets, &specs).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn schemas_name_every_key() {
    for (schema, text) in [(domain_schema(), domain_text()), (recipe_schema(), recipe_text())] {
        let declared = schema.as_value()["properties"].as_object().unwrap().clone();
        for key in toml::from_str::<toml::Table>(&text).unwrap().keys() {
            assert!(declared.contains_key(key), "{key}");
        }
        assert_eq!(schema.as_value()["additionalProperties"], false);
    }
}
