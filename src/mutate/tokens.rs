//! Token-based mutants: for languages without a bundled grammar, and for lines of values.

use std::sync::LazyLock;

use regex::Regex;

use super::edit::{Edit, quoted};
use super::literal::{decimal_beside, integer_plus, word_beside};
use super::operator::Operator;

/// Approximate maximum number of positions in data that are mutated. Lines of data are alike, so
/// longer data is thinned out.
const MOST_LINES: usize = 60;

/// A number or a comparison outside of words. `=` alone is an assignment in most languages, so it
/// does not count. `<` alone may open a tag or a generic type, so it counts only between blanks.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?P<number>\b[0-9]+(?:\.[0-9]+)?\b)|(?P<operator>[<>=!]=|&&|\|\||(?P<blank> )[<>] )").ok()
});

/// SQL's keywords for the order and the choice of rows.
static SQL_ORDER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:asc|desc|min|max|union all|left join|distinct|and|or)\b").ok());

/// The last flag of a substitution, e.g. `/g` or `/p`.
static SED_FLAG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)(?:^|[;{ ])s([/,|#])[^\n]*?([gpI])(?:$|[;} ])").ok());

/// Edits of the numbers, comparisons, and a few keywords of a program.
pub(super) fn program(text: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    for captures in TOKEN.iter().flat_map(|token| token.captures_iter(text)) {
        if let Some(number) = captures.name("number") {
            if !is_comment(text, number.start()) {
                found.extend(number_edits(text, number.range(), Operator::Constant));
            }
        } else if let Some(operator) = captures.name("operator")
            && !is_comment(text, operator.start())
        {
            found.extend(swapped(text, operator.range()));
        }
    }
    for word in SQL_ORDER.iter().flat_map(|word| word.find_iter(text)) {
        found.extend(sql(text, word.range()));
    }
    for captures in SED_FLAG.iter().flat_map(|flag| flag.captures_iter(text)) {
        if let (Some(delimiter), Some(flag)) = (captures.get(1), captures.get(2))
            && text.get(..flag.start()).is_some_and(|before| before.ends_with(delimiter.as_str()))
        {
            let what = format!("`{}` dropped from a substitution", flag.as_str());
            found.push(Edit::drop(text, flag.range(), "", Operator::Flag).what(what));
        }
    }
    found
}

fn number_edits(text: &str, range: std::ops::Range<usize>, operator: Operator) -> Vec<Edit> {
    let written = text.get(range.clone()).unwrap_or_default();
    let line = line_around(text, range.start);
    let others: Vec<String> = match decimal_beside(written) {
        Some(other) => vec![other],
        None => [1, -1].into_iter().filter_map(|by| integer_plus(written, by)).collect(),
    };
    others
        .into_iter()
        .map(|other| {
            let what = format!("`{written}` became `{other}` in `{}`", quoted(line));
            Edit::replace(text, range.clone(), other, operator).what(what)
        })
        .collect()
}

fn swapped(text: &str, range: std::ops::Range<usize>) -> Option<Edit> {
    let written = text.get(range.clone())?;
    let other = match written {
        "==" => "!=",
        "!=" => "==",
        "<=" => "<",
        ">=" => ">",
        " < " => " <= ",
        " > " => " >= ",
        "&&" => "||",
        "||" => "&&",
        _ => return None,
    };
    let operator = if matches!(written, "&&" | "||") { Operator::Logic } else { Operator::Comparison };
    let what = format!(
        "`{}` became `{}` in `{}`",
        written.trim(),
        other.trim(),
        quoted(line_around(text, range.start))
    );
    Some(Edit::replace(text, range, other, operator).what(what))
}

/// Edits of SQL keywords in upper case. In prose and in other languages, such words in lower case
/// are not SQL.
fn sql(text: &str, range: std::ops::Range<usize>) -> Option<Edit> {
    let (other, operator) = match text.get(range.clone())? {
        "ASC" => ("DESC", Operator::SortOrder),
        "DESC" => ("ASC", Operator::SortOrder),
        "MIN" => ("MAX", Operator::SortOrder),
        "MAX" => ("MIN", Operator::SortOrder),
        "UNION ALL" => {
            let edit = Edit::replace(text, range, "UNION", Operator::Flag);
            return Some(edit.uninformative("a difference only where a row comes twice"));
        }
        "LEFT JOIN" => ("JOIN", Operator::Flag),
        "DISTINCT" => ("", Operator::Flag),
        "AND" => ("OR", Operator::Logic),
        "OR" => ("AND", Operator::Logic),
        _ => return None,
    };
    Some(Edit::replace(text, range, other, operator))
}

/// Edits of a line of data: another value, the line removed, or swapped with the next one.
pub(super) fn data(text: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let lines: Vec<_> = lines(text).filter(|(_, line)| is_value(line)).collect();
    let step = lines.len().div_ceil(MOST_LINES).max(1);
    for (place, (start, line)) in lines.iter().enumerate().step_by(step) {
        let whole = *start..start + line.len();
        let body = line.trim_end_matches('\n');
        let dropped = Edit::drop(text, whole.clone(), "", Operator::Content);
        found.push(dropped.what(format!("the line `{}` dropped", quoted(body))));
        if let Some((next, other)) = lines.get(place + 1)
            && *next == whole.end
            && other.ends_with('\n')
            && line != other
        {
            let swapped = format!("{other}{line}");
            let edit = Edit::replace(text, *start..next + other.len(), swapped, Operator::Content);
            // The order of lines does not matter in most configuration files.
            let edit = edit.what(format!("the line `{}` and the next one swapped", quoted(body)));
            found.push(edit.uninformative_if(body.contains('='), "the order of settings is mostly free"));
        }
        // The value is at the end of a line, after its name.
        let value = body.rfind(['=', ':', ',', ' ', '\t']).map_or(0, |at| at + 1);
        let range = start + value..start + body.len();
        let written = text.get(range.clone()).unwrap_or_default();
        let numbers = number_edits(text, range.clone(), Operator::Content);
        if numbers.is_empty()
            && let Some(other) = word_beside(written)
        {
            found.push(Edit::replace(text, range, other, Operator::Content));
        } else {
            found.extend(numbers);
        }
    }
    found
}

fn is_value(line: &str) -> bool {
    let line = line.trim();
    !(line.len() < 2 || line.starts_with(['#', ';']) || line.starts_with("//"))
}

/// Lines with their terminators, and their start offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let here = start;
        start += line.len();
        (here, line)
    })
}

fn line_around(text: &str, at: usize) -> &str {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default()
}

/// Whether the line begins like a comment in most languages.
fn is_comment(text: &str, at: usize) -> bool {
    let line = line_around(text, at).trim_start();
    line.starts_with('#') || line.starts_with("--") || line.starts_with("//")
}
