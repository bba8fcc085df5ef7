use super::*;
use crate::model::RecipeId;

/// The embedded assets, and `more`.
fn with(more: FileTree) -> Assets {
    let mut tree = FileTree::default();
    for folder in ["domains", "templates"] {
        for (path, bytes, executable) in Assets::embedded().files_under(folder) {
            tree.insert(
                RelPath::new(format!("{folder}/{path}")).unwrap(),
                File { bytes: bytes.to_vec(), executable },
            );
        }
    }
    tree.files.extend(more.files);
    Assets::from_tree(tree)
}

#[test]
fn a_new_domain_loads_as_it_is() {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap();
    let files = new_domain(&assets, &specs, "marine_biology").unwrap();
    let paths: Vec<_> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["domains/marine_biology.toml"]);
    let specs = load_domains(&with(files)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(specs["marine_biology"].title, "Marine biology");
}

#[test]
fn a_new_recipe_loads_as_it_is_in_every_domain() {
    let assets = Assets::embedded();
    let mut specs = load_domains(&assets).unwrap();
    let own = new_domain(&assets, &specs, "marine_biology").unwrap();
    specs = load_domains(&with(own.clone())).unwrap();
    for domain in specs.keys() {
        let id = format!("{domain}/a-first-try");
        let mut files = new_recipe(&assets, &specs, &id).unwrap();
        for (path, file) in files.iter() {
            let text = file.as_text().unwrap();
            for place in [
                "__TITLE__",
                "__DOMAIN__",
                "__NAME__",
                "__BASE__",
                "__SKILL__",
                "__FIXTURE__",
                "__LANGUAGE__",
            ] {
                assert!(!text.contains(place), "{path} still has {place}");
            }
        }
        files.files.extend(own.files.clone());
        let loaded = load_recipe(&with(files), &specs, &RecipeId::parse(id).unwrap()).unwrap();
        let decl = loaded.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(decl.title, "A first try");
        assert_eq!(decl.public_names(), ["minimum"]);
    }
}

#[test]
fn names_that_cannot_be_taken() {
    let assets = Assets::embedded();
    let specs = load_domains(&assets).unwrap();
    for (name, expected) in [
        ("Marine", "`Marine` is not a valid name for a domain"),
        ("marine biology", "`marine biology` is not a valid name for a domain"),
        ("../etc", "`../etc` is not a valid name for a domain"),
        ("coding", "domain `coding` exists already"),
    ] {
        let message = new_domain(&assets, &specs, name).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
    let (domain, recipe) = (domain_text(), recipe_text());
    let assets = super::assets(&[("garden", &domain)], &[("garden/dig-bed", &recipe)]);
    let specs = load_domains(&assets).unwrap();
    for (id, expected) in [
        ("dig", "`dig` is not a valid name for a recipe\nhint: write `DOMAIN/NAME`"),
        ("garden/Dig", "`garden/Dig` is not a valid name for a recipe\nhint: names are kebab-case"),
        ("garden/../x", "`garden/../x` is not a valid name for a recipe"),
        ("gardn/dig", "unknown domain `gardn`\nhint: did you mean `garden`?"),
        ("garden/dig-bed", "recipe `garden/dig-bed` exists already"),
        ("garden/other", "`templates/scaffold/recipe` is missing"),
    ] {
        let message = new_recipe(&assets, &specs, id).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}
