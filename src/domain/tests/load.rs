use proptest::prelude::*;

use super::*;
use crate::model::RecipeId;

/// `text` with `from` replaced by `to`. `from` must occur in it.
fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

fn check_domain(from: &str, to: &str, expected: &str) {
    let assets = assets(&[("garden", &edit(&domain_text(), from, to))], &[]);
    let message = load_domains(&assets).unwrap_err().to_string();
    assert_eq!(message, expected, "{from} -> {to}");
}

fn check_recipe(from: &str, to: &str, expected: &str) {
    let assets =
        assets(&[("garden", &domain_text())], &[("garden/dig-bed", &edit(&recipe_text(), from, to))]);
    let specs = load_domains(&assets).unwrap();
    let message = load_recipes(&assets, &specs).unwrap_err().to_string();
    assert_eq!(message.replace("templates/recipes/garden/dig-bed/", ""), expected, "{from} -> {to}");
}

#[test]
fn broken_domains() {
    for (from, to, expected) in [
        (
            "version = 1",
            "version = 2",
            "domains/garden.toml:1:11: version 2 of the format is unknown to this build\nhint: it reads version 1; a newer termsmith may read this file",
        ),
        ("version = 1\n", "", "domains/garden.toml:1:1: missing key `version`"),
        (
            "version = 1",
            "version = ",
            "domains/garden.toml:1:11: string values must be quoted, expected literal string",
        ),
        (
            "title = \"Gardening\"",
            "titel = \"Gardening\"",
            "domains/garden.toml:2:1: unknown key `titel`\nhint: did you mean `title`?",
        ),
        ("title = \"Gardening\"", "title = \" \"", "domains/garden.toml:2:9: `title` is empty"),
        (
            "title = \"Gardening\"",
            "title = 7",
            "domains/garden.toml:2:9: invalid type: integer `7`, expected a string",
        ),
        ("[\"spade\"]", "[]", "domains/garden.toml:5:1: `tools` is empty"),
        ("\"python\", \"bash\"", "\"bash\", \"bash\"", "domains/garden.toml:4:22: `bash` occurs twice"),
        (
            "base = \"core\"",
            "base = \"cor\"",
            "domains/garden.toml:6:8: unknown base `cor`\nhint: did you mean `core`?",
        ),
        (
            "base = \"core\"",
            "base = \"core\"\nprofile = \"nett\"",
            "domains/garden.toml:7:11: unknown word `nett`\nhint: did you mean `net`?",
        ),
        (
            "bug-fix = 1",
            "bugfix = 1",
            "domains/garden.toml:10:1: unknown word `bugfix`\nhint: did you mean `bug-fix`?",
        ),
        (
            "bug-fix = 1",
            "bug-fix = -1",
            "domains/garden.toml:10:11: weight -1 of `bug-fix` is negative, or not a number",
        ),
        (
            "bug-fix = 1",
            "bug-fix = nan",
            "domains/garden.toml:10:11: weight NaN of `bug-fix` is negative, or not a number",
        ),
        (
            "easy = 1\nhard = 1",
            "easy = 0\nhard = 0.0",
            "domains/garden.toml:13:2: the mix `difficulty` is empty: no weight is above 0\nhint: give at least one entry a positive weight",
        ),
        (
            "easy = 1\nhard = 1",
            "",
            "domains/garden.toml:13:2: the mix `difficulty` is empty: no weight is above 0\nhint: give at least one entry a positive weight",
        ),
        (
            "memory_mb = 512",
            "memory_mb = 0",
            "domains/garden.toml:18:13: limit `memory_mb` is not a positive number\nhint: remove the key to use the default",
        ),
        (
            "memory_mb = 512",
            "memory = 512",
            "domains/garden.toml:18:1: unknown key `memory`\nhint: did you mean `memory_mb`?",
        ),
        (
            "memory_mb = 512",
            "cpus = inf",
            "domains/garden.toml:18:8: limit `cpus` is not a positive number\nhint: remove the key to use the default",
        ),
        (
            "memory_mb = 512",
            "cpus = 0.5",
            "domains/garden.toml:18:8: limit `cpus` is not a whole number\nhint: Harbor 0.24 reads whole cores only",
        ),
        (
            "\"network\"",
            "\"networks\"",
            "domains/garden.toml:38:15: unknown word `networks`\nhint: did you mean `network`?",
        ),
        ("[\"file-system\"]", "[]", "domains/garden.toml:23:1: skill `digging` exercises no operation"),
        ("id = \"pruning\"", "id = \"digging\"", "domains/garden.toml:26:6: `digging` occurs twice"),
        (
            "id = \"pruning\"",
            "id = \"Pruning_2\"",
            "domains/garden.toml:26:6: `Pruning_2` is not a valid id\nhint: ids are kebab-case: lower-case letters, digits and single hyphens",
        ),
        (
            "\n[[skills]]\nid = \"skill-15\"\ntitle = \"t\"\noperations = [\"database\"]\n",
            "",
            "domains/garden.toml:20:3: 14 skills are too few\nhint: a domain needs at least 15; with fewer, its tasks repeat each other",
        ),
        ("text = \"t\"", "text = \"\"", "domains/garden.toml:97:8: `text` of `gardener` is empty"),
        (
            "text = \"t\"",
            "txt = \"t\"",
            "domains/garden.toml:97:1: unknown key `txt`\nhint: did you mean `text`?",
        ),
    ] {
        check_domain(from, to, expected);
    }
}

#[test]
fn broken_recipes() {
    for (from, to, expected) in [
        ("version = 2", "version = 0", "recipe.toml:1:11: versions count from 1"),
        (
            "[\"from-scratch\", \"bug-fix\"]",
            "[\"from-scratch\", \"refactoring\"]",
            "recipe.toml:3:26: unknown word `refactoring`\nhint: did you mean `refactor`?",
        ),
        ("[\"from-scratch\", \"bug-fix\"]", "[]", "recipe.toml:3:1: `kinds` is empty"),
        (
            "[\"from-scratch\", \"bug-fix\"]",
            "[\"bug-fix\", \"bug-fix\"]",
            "recipe.toml:3:21: `bug-fix` occurs twice",
        ),
        (
            "[\"easy\", \"hard\"]",
            "[\"easy\", \"medium\", \"hard\"]",
            "recipe.toml:17:9: parameter `rows` has no value for `medium`\nhint: give one for each of `difficulties`",
        ),
        (
            "languages = [\"bash\"]",
            "languages = [\"zsh\"]",
            "recipe.toml:5:14: `zsh` is not among the domain's languages\nhint: known are `python`, `bash`",
        ),
        (
            "\"pruning\"]",
            "\"prunning\"]",
            "recipe.toml:6:22: `prunning` is not among the domain's skills\nhint: did you mean `pruning`?",
        ),
        (
            "\"pruning\"]",
            "\"pruning\", \"grafting\", \"watering\", \"skill-5\"]",
            "recipe.toml:6:1: 5 skills are too many\nhint: name the one to 4 that the task is about",
        ),
        (
            "[\"flower-bed\"]",
            "[\"flowerbed\"]",
            "recipe.toml:7:13: `flowerbed` is not among the domain's fixtures\nhint: did you mean `flower-bed`?",
        ),
        (
            "[\"recompute\"]",
            "[\"trust\"]",
            "recipe.toml:8:14: `trust` is not among the domain's verifiers\nhint: known are `recompute`, `replay`",
        ),
        (
            "base = \"core\"",
            "base = \"desktop\"",
            "recipe.toml:9:8: unknown base `desktop`\nhint: known are `core`",
        ),
        (
            "pids = 64",
            "cpus = 0",
            "recipe.toml:12:8: limit `cpus` is not a positive number\nhint: remove the key to use the default",
        ),
        (
            "roots = [\"/app\"]",
            "roots = [\"app\"]",
            "recipe.toml:15:10: `app` is not a valid root\nhint: roots are absolute folders such as `/app`, without `..` and trailing `/`",
        ),
        (
            "roots = [\"/app\"]",
            "roots = [\"/app\", \"/app/../etc\"]",
            "recipe.toml:15:18: `/app/../etc` is not a valid root\nhint: roots are absolute folders such as `/app`, without `..` and trailing `/`",
        ),
        (
            "roots = [\"/app\"]",
            "roots = [\"/app\"]\nbring_up = \"serve\"",
            "recipe.toml:16:12: `bring_up` without `programs`\nhint: services are started only if the tests run the solver's programs: set `programs = true`",
        ),
        (
            "type = \"int\"",
            "type = \"integer\"",
            "recipe.toml:23:8: unknown word `integer`\nhint: known are `choice`, `int`, `float`, `sample`, `by_difficulty`, `constant`",
        ),
        ("max = 30", "max = 3", "recipe.toml:22:1: min 10 and max 3 with step 5 do not form a range"),
        ("max = 30", "max = 30.5", "recipe.toml:22:1: `max` = 30.5 is not a whole number"),
        ("max = 30", "", "recipe.toml:22:1: key `max` is missing"),
        (
            "step = 5",
            "n = 5",
            "recipe.toml:22:1: key `n` does not belong to a parameter of this type, which takes min, max, step",
        ),
        ("step = 5", "stepp = 5", "recipe.toml:26:1: unknown key `stepp`\nhint: did you mean `step`?"),
        (
            "[params.depth]",
            "[params.Depth]",
            "recipe.toml:22:9: `Depth` is not a valid parameter name\nhint: templates write `p.name`, so use lower-case letters, digits and `_`, and begin with a letter",
        ),
        (
            "easy = 3\nhard = 9",
            "easy = 3\nhard = 2026-01-01",
            "recipe.toml:17:1: `2026-01-01` is a bare date; put it in quotes",
        ),
        (
            "name = \"no-edge\"",
            "name = \"no-hedge\"",
            "recipe.toml:38:8: the recipe has no `wrong/no-hedge.sh` or `wrong/no-hedge.sh.j2`\nrecipe.toml:29:3: `wrong/no-edge.sh` is not declared\nhint: add a `[[wrong]]` with its name and why it is wrong, or remove the file",
        ),
        ("name = \"no-edge\"", "name = \"too-deep\"", "recipe.toml:38:8: `too-deep` occurs twice"),
        (
            "[params.depth]",
            "[weights]\ntest_depth = 0.0\n\n[params.depth]",
            "recipe.toml:23:14: the weight of `test_depth` is 0; it must be positive",
        ),
        ("why = \"stops early\"", "why = \"\"", "recipe.toml:31:7: `why` of `too-flat` is empty"),
        (
            "\n[[wrong]]\nname = \"no-edge\"\nwhy = \"has no edge\"\n",
            "",
            "recipe.toml:29:3: 2 known wrong solutions are too few\nhint: declare at least 3, each missing one requirement",
        ),
    ] {
        check_recipe(from, to, expected);
    }
}

#[test]
fn broken_folders() {
    let (domain, recipe) = (domain_text(), recipe_text());
    let long = "x".repeat(60);
    let incomplete = {
        let mut tree = FileTree::default();
        add(&mut tree, "domains/garden.toml", &*domain);
        add(&mut tree, "templates/recipes/garden/dig-bed/recipe.toml", &*recipe);
        add(&mut tree, "templates/recipes/garden/dig-bed/wrong/too-deep.sh.j2", "");
        add(&mut tree, "templates/recipes/garden/dig-bed/wrong/too-flat.sh", "");
        add(&mut tree, "templates/recipes/garden/dig-bed/wrong/no-edge.sh", "");
        Assets::from_tree(tree)
    };
    let without_toml = {
        let mut tree = FileTree::default();
        add(&mut tree, "domains/garden.toml", &*domain);
        add(&mut tree, "templates/recipes/garden/dig-bed/notes.txt", "");
        Assets::from_tree(tree)
    };
    for (assets, expected) in [
        (
            assets(&[("garden", &domain)], &[("gardn/dig-bed", &recipe)]),
            "templates/recipes/gardn/dig-bed/recipe.toml: the recipe is in the folder `gardn`, which is not a domain\nhint: did you mean `garden`?",
        ),
        (
            assets(&[("garden", &domain)], &[("garden/Dig_Bed", &recipe)]),
            "templates/recipes/garden/Dig_Bed: `Dig_Bed` is not a valid name for a recipe\nhint: names are kebab-case, and at most 56 letters long with the domain",
        ),
        (
            assets(&[("garden", &domain)], &[(&format!("garden/{long}"), &recipe)]),
            "templates/recipes/garden/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is not a valid name for a recipe\nhint: names are kebab-case, and at most 56 letters long with the domain",
        ),
        (
            incomplete,
            "templates/recipes/garden/dig-bed: the recipe has no `instruction.md` or `instruction.md.j2`\nhint: it is what a solver reads\ntemplates/recipes/garden/dig-bed: the recipe has no `solution/solve.sh` or `solution/solve.sh.j2`\nhint: it is the reference solution\ntemplates/recipes/garden/dig-bed: the recipe has no `second/solve.sh` or `second/solve.sh.j2`\nhint: it is an independent solution in another language or style\ntemplates/recipes/garden/dig-bed: the recipe has no `tests/test_outputs.py` or `tests/test_outputs.py.j2`\nhint: its `test_…` functions are the checks\ntemplates/recipes/garden/dig-bed: the recipe has no `clauses.toml` or `clauses.toml.j2`\nhint: it says what each sentence of the instruction demands, and how that can be violated\ntemplates/recipes/garden/dig-bed: the recipe has no `expert.toml`\nhint: it scripts the offline expert",
        ),
        (
            without_toml,
            "templates/recipes/garden/dig-bed: the folder has no `recipe.toml`\nhint: `termsmith new recipe garden/dig-bed` shows a complete recipe",
        ),
    ] {
        let specs = load_domains(&assets).unwrap();
        let message = load_recipes(&assets, &specs).unwrap_err().to_string();
        assert_eq!(message, expected);
    }
}

#[test]
fn broken_domain_folders() {
    let latin1 = {
        let mut tree = FileTree::default();
        tree.insert(
            RelPath::new("domains/garden.toml").unwrap(),
            File { bytes: b"title = \"\xe9\"".into(), executable: false },
        );
        Assets::from_tree(tree)
    };
    for (assets, expected) in [
        (
            assets(&[], &[]),
            "domains: the folder contains no domain specs\nhint: `termsmith new domain NAME` creates one",
        ),
        (
            assets(&[("Garden-2", &domain_text())], &[]),
            "domains/Garden-2.toml: `Garden-2` is not a valid name for a domain\nhint: lower-case letters, digits and `_`, at most 32, a letter first",
        ),
        (latin1, "domains/garden.toml: the file is not UTF-8 from byte 9 on\nhint: save it as UTF-8"),
    ] {
        assert_eq!(load_domains(&assets).unwrap_err().to_string(), expected);
    }
}

#[test]
fn every_problem_of_every_file_is_reported_at_once() {
    let broken = edit(&edit(&domain_text(), "bug-fix = 1", "bug-fix = -1"), "\"network\"", "\"network\"");
    let broken = edit(&broken, "id = \"pruning\"", "id = \"digging\"");
    let assets = assets(&[("a", &broken), ("b", "nonsense")], &[]);
    let problems = load_domains(&assets).unwrap_err().problems;
    let capacity: Vec<_> =
        problems.iter().map(|problem| (problem.file.as_str(), problem.at.map(|at| at.line))).collect();
    assert_eq!(
        capacity,
        [("domains/a.toml", Some(10)), ("domains/a.toml", Some(26)), ("domains/b.toml", Some(1))]
    );
}

#[test]
fn broken_variants() {
    let at = "[[wrong]]\nname = \"too-flat\"";
    let check = |table: &str, expected: &str| check_recipe(at, &format!("{table}\n{at}"), expected);
    check(
        "[variants]\ninclude = [\"row-ordr\"]\n",
        "recipe.toml:30:12: unknown variant `row-ordr`\nhint: did you mean `row-order`?",
    );
    check(
        "[variants.exclude]\nkey-order = \" \"\n",
        "recipe.toml:30:13: `key-order` is excluded without a reason\nhint: quote the words of the instruction that forbid it",
    );
    check(
        "[variants]\ninclude = [\"key-order\"]\nexclude = { key-order = \"no\" }\n",
        "recipe.toml:30:1: `key-order` is both included and excluded",
    );
    check(
        "[[variants.own]]\nname = \"spare\"\ntitle = \"t\"\nlegal = \"It is.\"\n",
        "recipe.toml:30:8: the recipe has no `variants/spare.sh` or `variants/spare.sh.j2`",
    );
    check(
        "[[variants.own]]\nname = \"spare\"\ntitle = \"t\"\nlegal = \"\"\n",
        "recipe.toml:32:9: `legal` of `spare` is empty",
    );
    check(
        "[variants]\nonly = []\n",
        "recipe.toml:30:1: unknown key `only`\nhint: known are `include`, `exclude`, `own`",
    );
}

#[test]
fn one_recipe_loads_beside_a_broken_one() {
    let (domain, recipe) = (domain_text(), recipe_text());
    let assets = assets(&[("garden", &domain)], &[("garden/dig-bed", &recipe), ("garden/broken", "x")]);
    let specs = load_domains(&assets).unwrap();
    let load = |id: &str| load_recipe(&assets, &specs, &RecipeId::parse(id).unwrap());
    assert!(load("garden/dig-bed").unwrap().is_ok());
    assert!(load("garden/broken").unwrap().is_err());
    assert!(load("garden/absent").is_none());
    assert!(load_recipes(&assets, &specs).is_err());
}

#[test]
fn limits_of_recipe_domain_and_default_are_merged() {
    let (specs, recipes) = garden();
    let spec = specs.values().next().unwrap();
    let limits = recipes.values().next().unwrap().limits.over(&spec.limits());
    let default = crate::model::Limits::default();
    assert_eq!(limits, crate::model::Limits { memory_mb: 512, pids: 64, ..default });
}

proptest! {
    #[test]
    fn no_edit_breaks_the_loader(at in 0usize..2000, len in 0usize..40, with in "[\\[\\]={}\"'a-z0-9.\n-]{0,12}") {
        let edited = |text: String| {
            let from = at % text.len();
            let to = (from + len).min(text.len());
            format!("{}{with}{}", &text[..from], &text[to..])
        };
        let assets = assets(&[("garden", &edited(domain_text()))], &[]);
        let _ = load_domains(&assets);
        let _ = RecipeDecl::parse(&RecipeId::parse("garden/dig-bed").unwrap(), &edited(recipe_text()));
    }
}
