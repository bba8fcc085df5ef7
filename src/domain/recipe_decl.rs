//! `recipe.toml`: the declaration of a recipe, and the ways in which its tasks vary.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::ChaCha20Rng;
use rand::{Rng as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::load::{check_base, repeated};
use super::param::{Param, ParamFile, ParamRange};
use super::problem::{DomainError, Problem, suggest};
use super::source::{Source, at};
use super::{DomainSpec, LimitOverrides, VariantsDecl};
use crate::model::{Difficulty, EngineeringKind, Profile, RecipeId, Seed, is_kebab_case};

/// All recipes of a run.
pub type Recipes = BTreeMap<RecipeId, RecipeDecl>;

/// The content of `recipe.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "termsmith recipe declaration")]
pub struct RecipeDecl {
    /// The recipe's version, from 1. Raise it whenever the recipe's output changes.
    pub version: u32,
    /// The task in a few words.
    pub title: String,
    /// Engineering kinds of its tasks.
    pub kinds: Vec<EngineeringKind>,
    /// Difficulties of its tasks.
    pub difficulties: Vec<Difficulty>,
    /// Languages of the domain spec that its tasks can ask for.
    pub languages: Vec<String>,
    /// One to four skills of the domain spec. Each task exercises all of them.
    pub skills: Vec<String>,
    /// Fixtures of the domain spec that it can make.
    pub fixtures: Vec<String>,
    /// Verifier kinds of the domain spec that its tests use.
    pub verifiers: Vec<String>,
    /// Base image: the name of a folder in `templates/bases/`.
    pub base: String,
    /// Capability profile of the solver's container.
    #[serde(default)]
    pub profile: Profile,
    /// Limits that differ from the domain's.
    #[serde(default)]
    pub limits: LimitOverrides,
    /// Which part of the solver's container is judged, and how.
    pub submission: SubmissionDecl,
    /// Values that are drawn at random for each task.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ParamFile>")]
    pub params: BTreeMap<String, Param>,
    /// Solutions that look right and miss a requirement.
    pub wrong: Vec<WrongDecl>,
    /// Weights of checks in step scores, by the name of the test function. The default is 1.
    #[serde(default)]
    pub weights: BTreeMap<String, f64>,
    /// Legal variants of the correct state that differ from the common ones.
    #[serde(default)]
    pub variants: VariantsDecl,
}

/// Which part of the solver's container is judged, and how.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmissionDecl {
    /// Absolute paths of folders that are copied to the verifier. The first is the work directory.
    pub roots: Vec<String>,
    /// Whether the tests run programs that the solver left.
    #[serde(default)]
    pub programs: bool,
    /// Shell command that starts services before the tests, in the container with the solver's
    /// programs.
    pub bring_up: Option<String>,
    /// Why the written task declares Harbor's shared mode: its checks look at something that a copy
    /// loses, e.g. owners of files. Without a reason, the tests run in a container of their own.
    pub shared_because: Option<String>,
}

/// One `wrong/<name>.sh`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongDecl {
    /// Kebab-case. It is also the name of the script.
    pub name: String,
    /// The requirement that it misses.
    pub why: String,
}

impl RecipeDecl {
    /// Maximum number of skills of a recipe. A task with more exercises most of them only
    /// incidentally.
    pub const MOST_SKILLS: usize = 4;

    /// Minimum number of known wrong solutions of a recipe. Fewer test the checks too weakly.
    pub const FEWEST_WRONG: usize = 3;

    /// Parses the `recipe.toml` of `id`, and checks everything that does not need the domain.
    pub fn parse(id: &RecipeId, text: &str) -> Result<Self, DomainError> {
        Self::read(&Source::parse(format!("templates/recipes/{id}/recipe.toml"), text)?)
    }

    pub(super) fn read(source: &Source<'_>) -> Result<Self, DomainError> {
        let decl: Self = source.read()?;
        DomainError::unless(decl.check_alone(source), decl)
    }

    /// Draws one value for each parameter. Each parameter has its own generator, so a new parameter
    /// does not change the others.
    pub fn draw(&self, difficulty: Difficulty, rng: &mut ChaCha20Rng) -> BTreeMap<String, Value> {
        let seed = Seed(rng.next_u64());
        let value = |name: &String, param: &Param| {
            param.draw(difficulty, &mut ChaCha20Rng::seed_from_u64(seed.derive(&[name]).0))
        };
        self.params.iter().map(|(name, param)| (name.clone(), value(name, param))).collect()
    }

    /// Names of the parameters that the instruction states.
    pub fn public_names(&self) -> Vec<String> {
        self.params.iter().filter(|(_, param)| param.public).map(|(name, _)| name.clone()).collect()
    }

    fn check_alone(&self, source: &Source<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut complain = |problem: Problem| problems.push(problem);
        if self.version == 0 {
            complain(source.problem(at!["version"], "versions count from 1"));
        }
        if self.title.trim().is_empty() {
            complain(source.problem(at!["title"], "`title` is empty"));
        }
        for (key, empty) in [("kinds", self.kinds.is_empty()), ("difficulties", self.difficulties.is_empty())]
        {
            if empty {
                complain(source.problem(at![key], format!("`{key}` is empty")));
            }
        }
        for (key, list) in self.word_lists() {
            if list.is_empty() {
                complain(source.problem(at![key], format!("`{key}` is empty")));
            }
        }
        if self.skills.len() > Self::MOST_SKILLS {
            let message = format!("{} skills are too many", self.skills.len());
            let hint = format!("name the one to {} that the task is about", Self::MOST_SKILLS);
            complain(source.problem(at!["skills"], message).hint(hint));
        }
        if self.wrong.len() < Self::FEWEST_WRONG {
            let message = format!("{} known wrong solutions are too few", self.wrong.len());
            let hint = format!("declare at least {}, each missing one requirement", Self::FEWEST_WRONG);
            complain(source.problem(at!["wrong"], message).hint(hint));
        }
        for (place, wrong) in self.wrong.iter().enumerate() {
            if !is_kebab_case(&wrong.name) {
                let problem = source
                    .problem(at!["wrong", place, "name"], format!("`{}` is not a valid name", wrong.name));
                complain(problem.hint("names are kebab-case: lower-case letters, digits and single hyphens"));
            }
            if wrong.why.trim().is_empty() {
                complain(
                    source.problem(at!["wrong", place, "why"], format!("`why` of `{}` is empty", wrong.name)),
                );
            }
        }
        for (name, weight) in
            self.weights.iter().filter(|(_, weight)| !(weight.is_finite() && **weight > 0.0))
        {
            let message = format!("the weight of `{name}` is {weight}; it must be positive");
            complain(source.problem(at!["weights", name.as_str()], message));
        }
        problems.extend(self.check_submission(source));
        problems.extend(self.check_params(source));
        problems.extend(self.variants.check(source));
        problems.extend(self.limits.check(source));
        let kinds = self.kinds.iter().map(|kind| kind.as_str());
        let difficulties = self.difficulties.iter().map(|level| level.as_str());
        let in_list = |key: &'static str, place: usize| vec![key.into(), place.into()];
        problems
            .extend(repeated(source, kinds.enumerate().map(|(place, word)| (in_list("kinds", place), word))));
        problems.extend(repeated(
            source,
            difficulties.enumerate().map(|(place, word)| (in_list("difficulties", place), word)),
        ));
        for (key, list) in self.word_lists() {
            problems.extend(repeated(
                source,
                list.iter().enumerate().map(|(place, word)| (in_list(key, place), &**word)),
            ));
        }
        let names = self.wrong.iter().enumerate();
        let names =
            names.map(|(place, wrong)| (vec!["wrong".into(), place.into(), "name".into()], &*wrong.name));
        problems.extend(repeated(source, names));
        problems
    }

    fn check_submission(&self, source: &Source<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.submission.roots.is_empty() {
            let problem = source.problem(at!["submission", "roots"], "`roots` is empty");
            problems.push(problem.hint("name at least the work directory, `/app`"));
        }
        for (place, root) in self.submission.roots.iter().enumerate() {
            let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
            if !root.strip_prefix('/').is_some_and(|rest| rest.split('/').all(plain)) {
                let problem = source
                    .problem(at!["submission", "roots", place], format!("`{root}` is not a valid root"));
                problems.push(
                    problem.hint("roots are absolute folders such as `/app`, without `..` and trailing `/`"),
                );
            }
        }
        if self.submission.bring_up.is_some() && !self.submission.programs {
            let problem = source.problem(at!["submission", "bring_up"], "`bring_up` without `programs`");
            problems.push(problem.hint(
                "services are started only if the tests run the solver's programs: set `programs = true`",
            ));
        }
        problems
    }

    fn check_params(&self, source: &Source<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, param) in &self.params {
            let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if !(name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(letters)) {
                let problem =
                    source.problem(at!["params", name], format!("`{name}` is not a valid parameter name"));
                problems
                    .push(problem.hint(
                        "templates write `p.name`, so use lower-case letters, digits and `_`, and begin with a letter",
                    ));
            }
            if let ParamRange::ByDifficulty(values) = &param.range {
                for level in self.difficulties.iter().filter(|level| !values.contains_key(level)) {
                    let message = format!("parameter `{name}` has no value for `{}`", level.as_str());
                    let hint = "give one for each of `difficulties`";
                    problems.push(source.problem(at!["params", name], message).hint(hint));
                }
            }
        }
        problems
    }

    /// Checks the declaration against the recipe's domain.
    pub(super) fn check_against(
        &self,
        source: &Source<'_>,
        spec: &DomainSpec,
        bases: &BTreeSet<String>,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        let declared: [(&str, Vec<&str>); 4] = [
            ("languages", spec.languages.iter().map(String::as_str).collect()),
            ("skills", spec.skills.iter().map(|skill| skill.id.as_str()).collect()),
            ("fixtures", spec.fixtures.iter().map(|fixture| fixture.id.as_str()).collect()),
            ("verifiers", spec.verifiers.iter().map(|kind| kind.id.as_str()).collect()),
        ];
        for ((key, list), (_, known)) in self.word_lists().into_iter().zip(declared) {
            for (place, word) in list.iter().enumerate().filter(|(_, word)| !known.contains(&word.as_str())) {
                let message = format!("`{word}` is not among the domain's {key}");
                problems.push(
                    source.problem(at![key, place], message).hint(suggest(word, known.iter().copied())),
                );
            }
        }
        problems.extend(check_base(source, &self.base, bases));
        problems
    }

    /// The lists whose words the domain spec must declare.
    fn word_lists(&self) -> [(&'static str, &Vec<String>); 4] {
        [
            ("languages", &self.languages),
            ("skills", &self.skills),
            ("fixtures", &self.fixtures),
            ("verifiers", &self.verifiers),
        ]
    }
}
