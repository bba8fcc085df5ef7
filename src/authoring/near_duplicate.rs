//! Recognises requests that ask for the same thing in other words.

use std::collections::BTreeSet;

/// From this share of common words on (Jaccard), two requests are near-duplicates. Different
/// requests of one domain reach 0.3, because they share its vocabulary. The same request with other
/// numbers, names and greetings stays above 0.6 (`tests::planted_near_duplicates_are_dropped`).
const SAME_FROM: f64 = 0.45;
/// Characters of a word that counts. Shorter words are mostly articles and prepositions.
const LEAST: usize = 4;
/// Characters of a word that are compared. So endings, e.g. of plurals, make no difference.
const STEM: usize = 6;

/// The words of a request that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(BTreeSet<String>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let words = text.split(|letter: char| !letter.is_alphabetic()).map(str::to_lowercase);
        let long = words.filter(|word| word.chars().count() >= LEAST);
        Self(long.map(|word| word.chars().take(STEM).collect()).collect())
    }

    /// The share of words that both requests have, among all words of the two.
    fn similarity(&self, other: &Self) -> f64 {
        let common = self.0.intersection(&other.0).count();
        let all = self.0.len() + other.0.len() - common;
        if all == 0 { 1.0 } else { common as f64 / all as f64 }
    }

    pub(super) fn is_near(&self, other: &Self) -> bool {
        self.similarity(other) >= SAME_FROM
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha20Rng;
    use rand::seq::IndexedRandom as _;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    #[test]
    fn near_duplicates_are_found() {
        let check = |one: &str, other: &str, expect: bool| {
            let similarity = Words::of(one).similarity(&Words::of(other));
            assert_eq!(Words::of(one).is_near(&Words::of(other)), expect, "{similarity}: {one} / {other}");
        };
        let orders = "The export orders.csv of our shop has duplicate rows since Tuesday. Please write clean.csv with each order once, sorted by date.";
        check(orders, orders, true);
        check(
            orders,
            "Hello! Since Monday the export orders.csv of our shop has had duplicated rows. Please write clean.csv: each order once, sorted by its date.",
            true,
        );
        check(
            orders,
            "The export orders.csv of our shop lists prices in three currencies. Write a report per customer with the totals in euro, and reject rows with an unknown currency.",
            false,
        );
        check("", "Sort it.", false);
    }

    /// Words that requests use whatever they ask for.
    const COMMON: [&str; 20] = [
        "please", "should", "there", "output", "column", "header", "report", "every", "write", "sorted",
        "values", "missing", "script", "folder", "result", "without", "number", "format", "files", "lines",
    ];

    /// Prints precision and recall with `--nocapture`.
    ///
    /// There are 200 requests, each once as it is and four times in other words. Near-duplicates
    /// are dropped as among a sampler's candidates.
    #[test]
    #[expect(clippy::print_stdout, reason = "the rates are a result")]
    fn planted_near_duplicates_are_dropped() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let syllables: Vec<String> = "bdfgklmnprstvz"
            .chars()
            .flat_map(|one| "aeiou".chars().map(move |two| format!("{one}{two}")))
            .collect();
        let syllable = |rng: &mut ChaCha20Rng| syllables.choose(rng).unwrap().clone();
        let word = |rng: &mut ChaCha20Rng| (0..3).map(|_| syllable(rng)).collect::<String>();
        let mut candidates: Vec<(usize, String)> = Vec::new();
        for base in 0..200 {
            let sentences: Vec<Vec<String>> = (0..8)
                .map(|_| {
                    let common =
                        (0..3).map(|_| (*COMMON.choose(&mut rng).unwrap()).to_owned()).collect::<Vec<_>>();
                    common.into_iter().chain((0..5).map(|_| word(&mut rng)).collect::<Vec<_>>()).collect()
                })
                .collect();
            for copy in 0..5 {
                let mut said = sentences.clone();
                if copy > 0 {
                    // The copy has another order, a greeting, other numbers, and one word in seven
                    // replaced.
                    said.rotate_left(copy);
                    for replaced in said.iter_mut().flatten() {
                        if rng.random_ratio(1, 7) {
                            *replaced = word(&mut rng);
                        }
                    }
                    said.insert(
                        0,
                        ["hello", "colleagues", "another", "question"].map(str::to_owned).to_vec(),
                    );
                }
                let text = said.iter().map(|words| words.join(" ")).collect::<Vec<_>>();
                candidates.push((base, text.join(&format!(" {}. ", rng.random::<u16>()))));
            }
        }
        let mut kept: Vec<(usize, Words)> = Vec::new();
        let (mut right, mut wrong, mut missed) = (0, 0, 0);
        for (base, text) in candidates {
            let words = Words::of(&text);
            let known = kept.iter().any(|(other, _)| *other == base);
            match (known, kept.iter().any(|(_, other)| other.is_near(&words))) {
                (true, true) => right += 1,
                (false, true) => wrong += 1,
                (true, false) => missed += 1,
                (false, false) => kept.push((base, words)),
            }
        }
        let share = |good: i32, all: i32| f64::from(good) / f64::from(all);
        let (precision, recall) = (share(right, right + wrong), share(right, right + missed));
        println!("1,000 candidates: {} kept, precision {precision:.3}, recall {recall:.3}", kept.len());
        assert!(precision >= 0.99 && recall >= 0.99, "precision {precision}, recall {recall}");
    }
}
