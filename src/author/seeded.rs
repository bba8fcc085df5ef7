//! Random functions for templates. Their results depend only on the task's seed and the file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind};
use rand::rngs::ChaCha20Rng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

use crate::model::Seed;

/// Every number with so many decimal digits fits into 64 bits.
const MOST_DIGITS: u32 = 15;

/// Words for `word()` and names for `person()`.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    pub(super) nouns: Vec<String>,
    pub(super) people: Vec<String>,
}

#[derive(Clone)]
struct Source(Arc<Mutex<ChaCha20Rng>>);

impl Source {
    fn rng(&self) -> MutexGuard<'_, ChaCha20Rng> {
        // The generator stays usable after a panic in another thread. That thread reports the
        // panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds `rand_int`, `rand_float`, `choice`, `sample`, `shuffle`, `chance`, `hex`, `word`, `person`
/// and `weighted`. All draw from one generator with the seed `seed`.
pub(super) fn add_functions(env: &mut Environment<'_>, seed: Seed, words: &Vocabulary) {
    let source = Source(Arc::new(Mutex::new(ChaCha20Rng::seed_from_u64(seed.0))));
    let from = source.clone();
    env.add_function("rand_int", move |low: i64, high: i64| {
        if low > high {
            return Err(bad(format!("rand_int({low}, {high}): the first number must not be larger")));
        }
        Ok(from.rng().random_range(low..=high))
    });
    let from = source.clone();
    env.add_function("rand_float", move |low: f64, high: f64, digits: u32| {
        if digits > MOST_DIGITS {
            return Err(bad(format!("rand_float(…, {digits}): at most {MOST_DIGITS} digits are possible")));
        }
        let scale = 10f64.powi(digits.cast_signed());
        // Rounding multiplies the bounds, and the generator uses their distance. Both must be
        // finite.
        if ![low * scale, high * scale, high - low].iter().all(|number| number.is_finite()) {
            return Err(bad(format!(
                "rand_float({low}, {high}, {digits}): these bounds are too large, or no numbers"
            )));
        }
        if low > high {
            return Err(bad(format!(
                "rand_float({low}, {high}, {digits}): the first number must not be larger"
            )));
        }
        let drawn: f64 = from.rng().random_range(low..=high);
        Ok((drawn * scale).round() / scale)
    });
    let from = source.clone();
    env.add_function("choice", move |list: Vec<Value>| {
        list.choose(&mut *from.rng()).cloned().ok_or_else(|| bad("choice() of an empty list"))
    });
    let from = source.clone();
    env.add_function("sample", move |list: Vec<Value>, count: u32| {
        if list.len() < count as usize {
            return Err(bad(format!("sample of {count} from a list of {}", list.len())));
        }
        Ok(list.sample(&mut *from.rng(), count as usize).cloned().collect::<Vec<_>>())
    });
    let from = source.clone();
    env.add_function("shuffle", move |mut list: Vec<Value>| {
        list.shuffle(&mut *from.rng());
        list
    });
    let from = source.clone();
    env.add_function("chance", move |probability: f64| {
        if (0.0..=1.0).contains(&probability) {
            Ok(from.rng().random_bool(probability))
        } else {
            Err(bad(format!("chance({probability}): a probability lies between 0 and 1")))
        }
    });
    let from = source.clone();
    env.add_function("hex", move |digits: u32| {
        let mut rng = from.rng();
        (0..digits)
            .map(|_| char::from_digit(rng.random_range(0..16u32), 16).unwrap_or('0'))
            .collect::<String>()
    });
    for (name, list) in [("word", &words.nouns), ("person", &words.people)] {
        let (from, list) = (source.clone(), list.clone());
        env.add_function(name, move || {
            list.choose(&mut *from.rng()).cloned().ok_or_else(|| bad("the word list is empty"))
        });
    }
    env.add_function("weighted", move |weights: Value| {
        let mut pairs = Vec::new();
        for name in weights.try_iter()? {
            let weight = f64::try_from(weights.get_item(&name)?)?;
            pairs.push((name, weight));
        }
        let drawn = pairs.choose_weighted(&mut *source.rng(), |(_, weight)| *weight);
        drawn.map(|(name, _)| name.clone()).map_err(|error| bad(format!("weighted(): {error}")))
    });
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A template's request is drawn or an error. None panics.
    #[test]
    fn bounds_of_numbers_are_checked() {
        let check = |call: &str, expect: Result<&str, &str>| {
            let mut env = Environment::new();
            add_functions(&mut env, Seed(1), &Vocabulary::default());
            match (env.render_str(&format!("{{{{ {call} }}}}"), ()), expect) {
                (Ok(text), Ok(wanted)) => assert_eq!(text, wanted, "{call}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{call}: {error}"),
                (found, _) => panic!("{call}: {found:?}"),
            }
        };
        check("rand_int(5, 5)", Ok("5"));
        check("rand_int(5, 1)", Err("must not be larger"));
        check("rand_float(2, 2, 1)", Ok("2.0"));
        check("rand_float(0.25, 0.25, 15)", Ok("0.25"));
        check("rand_float(5, 1, 2)", Err("must not be larger"));
        check("rand_float(0, 1, 16)", Err("at most 15 digits"));
        check("rand_float(0, 1, 4000000000)", Err("at most 15 digits"));
        check("rand_float(0, 1e999, 2)", Err("too large, or no numbers"));
        check("rand_float(1e999 - 1e999, 1, 2)", Err("too large, or no numbers"));
        check("rand_float(0, 1e300, 15)", Err("too large, or no numbers"));
        check("rand_float(-1e308, 1e308, 0)", Err("too large, or no numbers"));
        check("chance(2)", Err("between 0 and 1"));
    }
}
