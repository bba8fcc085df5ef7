use std::collections::BTreeSet;

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::ChaCha20Rng;
use serde_json::{Value, json};

use super::*;
use crate::model::{Difficulty, RecipeId};

fn decl(params: &str) -> RecipeDecl {
    let head = recipe_text();
    let (before, rest) = head.split_once("[params.rows]").unwrap();
    let (_, wrong) = rest.split_once("[[wrong]]").unwrap();
    let text = format!("{before}{params}\n[[wrong]]{wrong}");
    RecipeDecl::parse(&RecipeId::parse("garden/dig-bed").unwrap(), &text)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Every value of `[params.x]` for many seeds, sorted.
fn values(param: &str, difficulty: Difficulty) -> Vec<Value> {
    let decl = decl(&format!("[params.x]\n{param}"));
    let draw = |seed| decl.draw(difficulty, &mut ChaCha20Rng::seed_from_u64(seed))["x"].clone();
    let texts: BTreeSet<String> = (0..400).map(|seed| draw(seed).to_string()).collect();
    let mut values: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    values.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).unwrap());
    values
}

#[test]
fn parameters_take_exactly_the_declared_values() {
    for (param, difficulty, expected) in [
        ("type = 'choice'\nfrom = ['b', 'a']", Difficulty::Easy, json!(["a", "b"])),
        ("type = 'choice'\nfrom = [{a = 1, b = [true]}]", Difficulty::Easy, json!([{"a": 1, "b": [true]}])),
        ("type = 'int'\nmin = -2\nmax = 3", Difficulty::Easy, json!([-2, -1, 0, 1, 2, 3])),
        ("type = 'int'\nmin = 10\nmax = 29\nstep = 5", Difficulty::Easy, json!([10, 15, 20, 25])),
        ("type = 'int'\nmin = 7\nmax = 7", Difficulty::Easy, json!([7])),
        ("type = 'float'\nmin = 0.1\nmax = 0.4\ndigits = 1", Difficulty::Easy, json!([0.1, 0.2, 0.3, 0.4])),
        ("type = 'float'\nmin = -1\nmax = 1\ndigits = 0", Difficulty::Easy, json!([-1.0, 0.0, 1.0])),
        (
            "type = 'sample'\nfrom = ['a', 'b', 'c']\nn = 2",
            Difficulty::Easy,
            json!([["a", "b"], ["a", "c"], ["b", "a"], ["b", "c"], ["c", "a"], ["c", "b"]]),
        ),
        ("type = 'by_difficulty'\neasy = 1\nhard = 'many'", Difficulty::Hard, json!(["many"])),
        ("type = 'constant'\nvalue = [1, 2.5, false]", Difficulty::Easy, json!([[1, 2.5, false]])),
    ] {
        assert_eq!(Value::from(values(param, difficulty)), expected, "{param}");
    }
}

#[test]
fn drawing_is_golden() {
    let decl = decl(
        "[params.a]\ntype = 'int'\nmin = 0\nmax = 999999\n\
         [params.b]\ntype = 'float'\nmin = 0\nmax = 1\ndigits = 4\npublic = true\n\
         [params.c]\ntype = 'sample'\nfrom = [1, 2, 3, 4, 5, 6]\nn = 4\npublic = true\n",
    );
    let drawn = decl.draw(Difficulty::Easy, &mut ChaCha20Rng::seed_from_u64(7));
    insta::assert_snapshot!(serde_json::to_string(&drawn).unwrap(), @r#"{"a":750837,"b":0.796,"c":[5,2,4,1]}"#);
    assert_eq!(decl.public_names(), ["b", "c"]);
}

#[test]
fn a_new_parameter_moves_no_other() {
    let a = "[params.a]\ntype = 'int'\nmin = 0\nmax = 999999\n";
    let draw =
        |decl: RecipeDecl| decl.draw(Difficulty::Easy, &mut ChaCha20Rng::seed_from_u64(7))["a"].clone();
    let before = "[params.A]\ntype = 'int'\nmin = 0\nmax = 9\n".replace("params.A", "params.a0");
    assert_eq!(draw(decl(a)), draw(decl(&format!("{before}{a}"))));
}

proptest! {
    #[test]
    fn numbers_stay_in_range(min in -1000i64..1000, span in 0i64..5000, step in 1i64..50, digits in 0u32..6, seed: u64) {
        let max = min + span;
        let decl = decl(&format!(
            "[params.i]\ntype = 'int'\nmin = {min}\nmax = {max}\nstep = {step}\n\
             [params.f]\ntype = 'float'\nmin = {min}\nmax = {max}\ndigits = {digits}\n"
        ));
        let drawn = decl.draw(Difficulty::Easy, &mut ChaCha20Rng::seed_from_u64(seed));
        let whole = drawn["i"].as_i64().unwrap();
        prop_assert!((min..=max).contains(&whole) && (whole - min) % step == 0);
        let number = drawn["f"].as_f64().unwrap();
        prop_assert!(number >= min as f64 && number <= max as f64);
        let scaled = number * 10f64.powi(digits as i32);
        prop_assert!((scaled - scaled.round()).abs() < 1e-6, "{number} has more than {digits} decimals");
    }
}
