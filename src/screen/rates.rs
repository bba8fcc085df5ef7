//! Rates computed from the rows.

use crate::model::{Outcome, Rates, Row, RowKind, Tally};

/// Confidence of the interval, two-sided.
const CONFIDENCE: f64 = 0.95;

/// Rates over `rows`.
pub(super) fn rates(rows: &[Row]) -> Rates {
    let mut rates = Rates::default();
    for row in rows.iter().filter(|row| row.counts) {
        let good = |tally: &mut Tally, good: bool| {
            tally.counted += 1;
            tally.good += u32::from(good);
        };
        let passed = row.outcome == Some(Outcome::Pass);
        match row.kind {
            RowKind::Mutant => {
                good(&mut rates.killed, !passed);
                let operator = row.name.split(' ').next().unwrap_or_default().to_owned();
                good(rates.killed_by_operator.entry(operator).or_default(), !passed);
            }
            RowKind::Clause => good(&mut rates.clauses, !passed),
            RowKind::Variant => good(&mut rates.accepted, passed),
            RowKind::Attack => good(&mut rates.repelled, !passed),
            // Rows whose names are numbers are ordinary repetitions.
            RowKind::Reference if row.name.parse::<u32>().is_ok() => good(&mut rates.steady, passed),
            RowKind::Lint
            | RowKind::Build
            | RowKind::Untouched
            | RowKind::Reference
            | RowKind::SecondSolution
            | RowKind::WrongSolution
            | RowKind::TruncatedSolution
            | RowKind::AblatedSolution
            | RowKind::Inputs
            | RowKind::Leak
            | RowKind::Blind => {}
        }
    }
    rates.flake_upper = upper(rates.steady.counted - rates.steady.good, rates.steady.counted);
    rates
}

/// Upper end of the Clopper-Pearson interval for `hits` of `trials` (Clopper & Pearson 1934),
/// rounded to four digits.
fn upper(hits: u32, trials: u32) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (mut low, mut high) = (0.0, 1.0);
    // Each iteration halves an interval of length 1. 40 of them are more than enough for four
    // digits.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if at_most(hits, trials, middle) > tail { low = middle } else { high = middle }
    }
    (high * 1e4).round() / 1e4
}

/// Probability of at most `hits` successes in `trials` of probability `p`.
fn at_most(hits: u32, trials: u32, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(trials.cast_signed());
    let mut sum = term;
    for hit in 1..=hits {
        term *= f64::from(trials - hit + 1) / f64::from(hit) * p / (1.0 - p);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        let check = |hits, trials, expect: f64| {
            assert!((upper(hits, trials) - expect).abs() < 6e-4, "{hits}/{trials}: {}", upper(hits, trials));
        };
        // Reference values from R's binom.test.
        check(0, 3, 0.7076);
        check(0, 10, 0.3085);
        check(0, 20, 0.1684);
        check(1, 10, 0.4450);
        check(5, 20, 0.4910);
        check(0, 0, 1.0);
        check(3, 3, 1.0);
    }
}
