//! Line numbers of keys in a TOML text.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::pattern::line_of;

/// The line of the key at `path`, e.g. `environment.cpus` or `steps[1].name`. If the key is
/// missing, the line of its nearest parent.
pub(super) fn line_of_key(text: &str, path: &str) -> Option<u32> {
    let root = DeTable::parse(text).ok()?.into_inner();
    let mut offset = None;
    let mut table = Some(&root);
    for step in path.split('.') {
        let (key, index) = match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
            Some((key, index)) => (key, index.parse::<usize>().ok()),
            None => (step, None),
        };
        let Some((name, value)) = table.and_then(|table| table.get_key_value(key)) else { break };
        let value = match (value.get_ref(), index) {
            (DeValue::Array(items), Some(index)) => {
                let Some(item) = items.get(index) else { break };
                offset = Some(item.span().start);
                item
            }
            _ => {
                offset = Some(name.span().start);
                value
            }
        };
        table = as_table(value);
    }
    offset.map(|offset| line_of(text, offset))
}

fn as_table<'t, 'a>(value: &'t Spanned<DeValue<'a>>) -> Option<&'t DeTable<'a>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_lines() {
        let text = "a = 1\n[e]\nx = 1\n[e.f]\ny = 2\n[[s]]\nn = 'p'\n[[s]]\nn = 'q'\nv.w = 1\n";
        for (path, line) in [
            ("a", Some(1)),
            ("e.x", Some(3)),
            ("e.f.y", Some(5)),
            ("s[1].n", Some(9)),
            ("s[1].v.w", Some(10)),
            ("e.z", Some(2)),
            ("none", None),
        ] {
            assert_eq!(line_of_key(text, path), line, "{path}");
        }
    }
}
