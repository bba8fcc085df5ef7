//! Parameters: values that a recipe draws at random for each task.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand::rngs::ChaCha20Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Difficulty;

/// One `[params.<name>]` of a recipe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "ParamFile")]
pub struct Param {
    /// Whether the instruction states the value. The scripted expert may use only such values.
    pub public: bool,
    /// The possible values.
    pub range: ParamRange,
}

/// The possible values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamRange {
    /// One item of the list.
    Choice(Vec<Value>),
    /// `min`, `min + step`, … up to `max`.
    Int { min: i64, max: i64, step: i64 },
    /// A number with `digits` decimals, from `min` to `max`, both included.
    Float { min: f64, max: f64, digits: u32 },
    /// `n` different items of the list, in random order.
    Sample { from: Vec<Value>, n: usize },
    /// One value for each difficulty.
    ByDifficulty(BTreeMap<Difficulty, Value>),
    /// Always the same value.
    Constant(Value),
}

/// 2^53: an `f64` represents every whole number up to here.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

impl Param {
    /// Draws a value for `difficulty`. Returns `null` if a by-difficulty parameter has no value for
    /// it. Loading refuses such recipes.
    pub fn draw(&self, difficulty: Difficulty, rng: &mut ChaCha20Rng) -> Value {
        match &self.range {
            ParamRange::Choice(from) => from.get(below(rng, from.len())).cloned().unwrap_or(Value::Null),
            ParamRange::Int { min, max, step } => {
                let steps = max.abs_diff(*min) / step.unsigned_abs().max(1);
                let drawn = rng.random_range(0..=steps);
                Value::from(min.wrapping_add_unsigned(drawn.wrapping_mul(step.unsigned_abs())))
            }
            ParamRange::Float { min, max, digits } => {
                // Drawn as a multiple of the last decimal, so that both ends are as likely as other
                // values.
                let scale = 10f64.powi(digits.cast_signed());
                let (low, high) = ((min * scale).round() as i64, (max * scale).round() as i64);
                Value::from(rng.random_range(low..=high) as f64 / scale)
            }
            ParamRange::Sample { from, n } => {
                let mut left = from.clone();
                let mut take = |_| {
                    let place = below(rng, left.len());
                    left.remove(place)
                };
                (0..(*n).min(from.len())).map(&mut take).collect()
            }
            ParamRange::ByDifficulty(values) => values.get(&difficulty).cloned().unwrap_or(Value::Null),
            ParamRange::Constant(value) => value.clone(),
        }
    }
}

/// Draws an index into a list of `len` items. It is drawn as `u32`, because ranges of `usize` give
/// other numbers on other platforms.
fn below(rng: &mut ChaCha20Rng, len: usize) -> usize {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    if len == 0 { 0 } else { rng.random_range(0..len) as usize }
}

/// A parameter as written in the file. `type` decides which keys it has.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Param")]
pub(super) struct ParamFile {
    r#type: ParamType,
    /// Whether the instruction states the value. The scripted expert may use only such values.
    #[serde(default)]
    public: bool,
    /// `choice`, `sample`: the list of items.
    #[schemars(with = "Option<Vec<Value>>")]
    from: Option<Vec<toml::Value>>,
    /// `sample`: the number of items.
    n: Option<usize>,
    /// `int`, `float`: the smallest value.
    min: Option<f64>,
    /// `int`, `float`: the largest value.
    max: Option<f64>,
    /// `int`: the difference of neighbouring values. The default is 1.
    step: Option<f64>,
    /// `float`: the number of decimals. The default is 2.
    digits: Option<u32>,
    /// `by_difficulty`: the value for easy tasks.
    #[schemars(with = "Option<Value>")]
    easy: Option<toml::Value>,
    /// `by_difficulty`: the value for medium tasks.
    #[schemars(with = "Option<Value>")]
    medium: Option<toml::Value>,
    /// `by_difficulty`: the value for hard tasks.
    #[schemars(with = "Option<Value>")]
    hard: Option<toml::Value>,
    /// `constant`: the value.
    #[schemars(with = "Option<Value>")]
    value: Option<toml::Value>,
}

/// How the value of a parameter is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ParamType {
    Choice,
    Int,
    Float,
    Sample,
    ByDifficulty,
    Constant,
}

impl ParamType {
    /// The keys of a parameter of this type, in addition to `type` and `public`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Choice => &["from"],
            Self::Int => &["min", "max", "step"],
            Self::Float => &["min", "max", "digits"],
            Self::Sample => &["from", "n"],
            Self::ByDifficulty => &["easy", "medium", "hard"],
            Self::Constant => &["value"],
        }
    }
}

impl ParamFile {
    fn given(&self) -> Vec<&'static str> {
        [
            ("from", self.from.is_some()),
            ("n", self.n.is_some()),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("step", self.step.is_some()),
            ("digits", self.digits.is_some()),
            ("easy", self.easy.is_some()),
            ("medium", self.medium.is_some()),
            ("hard", self.hard.is_some()),
            ("value", self.value.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
        .collect()
    }
}

impl TryFrom<ParamFile> for Param {
    type Error = String;

    fn try_from(file: ParamFile) -> Result<Self, String> {
        let keys = file.r#type.keys();
        if let Some(stray) = file.given().into_iter().find(|key| !keys.contains(key)) {
            return Err(format!(
                "key `{stray}` does not belong to a parameter of this type, which takes {}",
                keys.join(", ")
            ));
        }
        let range = match file.r#type {
            ParamType::Choice => ParamRange::Choice(list(file.from)?),
            ParamType::Int => {
                let (min, max) = (whole("min", file.min)?, whole("max", file.max)?);
                let step = if file.step.is_some() { whole("step", file.step)? } else { 1 };
                if min > max || step < 1 {
                    return Err(format!("min {min} and max {max} with step {step} do not form a range"));
                }
                ParamRange::Int { min, max, step }
            }
            ParamType::Float => {
                let (min, max) = (given("min", file.min)?, given("max", file.max)?);
                let digits = file.digits.unwrap_or(2);
                let fits = |bound: f64| bound.abs() * 10f64.powi(digits.cast_signed()) <= LARGEST_EXACT;
                if !(min <= max && digits <= 15 && fits(min) && fits(max)) {
                    return Err(format!(
                        "min {min} and max {max} with {digits} decimals do not form a range"
                    ));
                }
                ParamRange::Float { min, max, digits }
            }
            ParamType::Sample => {
                let from = list(file.from)?;
                let n = file.n.ok_or("key `n` is missing")?;
                if n == 0 || n > from.len() {
                    return Err(format!("a sample of {n} cannot be taken from a list of {}", from.len()));
                }
                ParamRange::Sample { from, n }
            }
            ParamType::ByDifficulty => {
                let levels = [
                    (Difficulty::Easy, file.easy),
                    (Difficulty::Medium, file.medium),
                    (Difficulty::Hard, file.hard),
                ];
                let given = levels.into_iter().filter_map(|(level, value)| Some((level, value?)));
                let values: BTreeMap<_, _> =
                    given.map(|(level, value)| Ok((level, json(value)?))).collect::<Result<_, String>>()?;
                ParamRange::ByDifficulty(values)
            }
            ParamType::Constant => ParamRange::Constant(json(file.value.ok_or("key `value` is missing")?)?),
        };
        Ok(Self { public: file.public, range })
    }
}

fn list(from: Option<Vec<toml::Value>>) -> Result<Vec<Value>, String> {
    let from = from.ok_or("key `from` is missing")?;
    if from.is_empty() {
        return Err("the list `from` is empty".to_owned());
    }
    from.into_iter().map(json).collect()
}

fn given(key: &str, number: Option<f64>) -> Result<f64, String> {
    number.ok_or_else(|| format!("key `{key}` is missing"))
}

fn whole(key: &str, number: Option<f64>) -> Result<i64, String> {
    let number = given(key, number)?;
    let exact = number.fract() == 0.0 && number.abs() <= LARGEST_EXACT;
    if exact { Ok(number as i64) } else { Err(format!("`{key}` = {number} is not a whole number")) }
}

/// The value as JSON, which templates can use.
fn json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) if number.is_finite() => Value::from(number),
        toml::Value::Float(number) => return Err(format!("{number} is not a number that a task can state")),
        toml::Value::Boolean(yes) => Value::from(yes),
        toml::Value::Datetime(date) => return Err(format!("`{date}` is a bare date; put it in quotes")),
        toml::Value::Array(items) => items.into_iter().map(json).collect::<Result<Vec<_>, _>>()?.into(),
        toml::Value::Table(table) => Value::Object(
            table.into_iter().map(|(key, value)| Ok((key, json(value)?))).collect::<Result<_, String>>()?,
        ),
    })
}
