//! Parses YAML with line numbers, shared aliases, and a limit on nesting.

use std::collections::BTreeMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser};

/// Maximum nesting in a text. Real compose files stay far below.
const DEPTH: usize = 64;
/// Maximum nesting of a value, including values behind aliases. Values are dropped by recursion,
/// and any stack has room for this many.
const LEVELS: usize = 512;
/// Maximum number of merge keys (`<<`) inside merge keys that are followed.
const MERGES: usize = 3;

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Line, from 1.
    pub(super) line: u32,
    /// Levels of nested lists and maps, including those behind aliases.
    levels: usize,
    value: Rc<Value>,
}

#[derive(Debug)]
enum Value {
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// The error for a text that is not YAML.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct YamlError {
    pub(super) line: u32,
    pub(super) message: String,
}

/// A list or map whose end has not been reached.
struct Open {
    line: u32,
    anchor: usize,
    items: Vec<Node>,
    map: bool,
}

/// Parses the first document of `text`.
pub(super) fn parse(text: &str) -> Result<Node, YamlError> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, Node> = BTreeMap::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlError {
            line: line(error.marker().line()),
            message: error.info().to_owned(),
        })?;
        let here = line(span.start.line());
        let (node, anchor) = match event {
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) if open.len() < DEPTH => {
                let map = matches!(event, Event::MappingStart(..));
                open.push(Open { line: here, anchor, items: Vec::new(), map });
                continue;
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                return Err(YamlError { line: here, message: format!("nested more than {DEPTH} deep") });
            }
            Event::Scalar(text, _, anchor, _) => (scalar(here, text.into_owned()), anchor),
            // An alias to an anchor that is still open would be a cycle. It counts as null.
            Event::Alias(anchor) => (anchors.get(&anchor).cloned().unwrap_or_else(|| null(here)), 0),
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => {
                    let anchor = done.anchor;
                    (close(done)?, anchor)
                }
                None => continue,
            },
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, node.clone());
        }
        match open.last_mut() {
            Some(outer) => outer.items.push(node),
            None => return Ok(node),
        }
    }
    Ok(null(1))
}

fn close(done: Open) -> Result<Node, YamlError> {
    let levels = 1 + done.items.iter().map(|item| item.levels).max().unwrap_or_default();
    if levels > LEVELS {
        let message = format!("aliases nested more than {LEVELS} deep");
        return Err(YamlError { line: done.line, message });
    }
    let value = if done.map {
        let mut items = done.items.into_iter();
        let mut entries = Vec::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((key, value));
        }
        Value::Map(entries)
    } else {
        Value::List(done.items)
    };
    Ok(Node { line: done.line, levels, value: Rc::new(value) })
}

fn scalar(line: u32, text: String) -> Node {
    Node { line, levels: 0, value: Rc::new(Value::Scalar(text)) }
}

fn null(line: u32) -> Node {
    scalar(line, String::new())
}

/// The number of a line, from 1. Markers count from 1 too.
fn line(marker: usize) -> u32 {
    u32::try_from(marker.max(1)).unwrap_or(u32::MAX)
}

impl Node {
    pub(super) fn text(&self) -> Option<&str> {
        match &*self.value {
            Value::Scalar(text) => Some(text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The items of a list. A scalar that is not empty counts as a list with one item.
    pub(super) fn items(&self) -> Vec<Node> {
        match &*self.value {
            Value::List(items) => items.clone(),
            Value::Scalar(text) if !text.is_empty() => vec![self.clone()],
            Value::Scalar(_) | Value::Map(_) => Vec::new(),
        }
    }

    /// Keys and values of a map, without merge keys.
    pub(super) fn entries(&self) -> Vec<(String, Node)> {
        match &*self.value {
            Value::Map(entries) => entries
                .iter()
                .filter_map(|(key, value)| Some((key.text()?.to_owned(), value.clone())))
                .filter(|(key, _)| key != "<<")
                .collect(),
            Value::Scalar(_) | Value::List(_) => Vec::new(),
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(&*self.value, Value::Map(_))
    }

    /// The value at `key`, also through merge keys.
    pub(super) fn get(&self, key: &str) -> Option<Node> {
        self.get_merged(key, MERGES)
    }

    fn get_merged(&self, key: &str, left: usize) -> Option<Node> {
        let Value::Map(entries) = &*self.value else { return None };
        let named = |wanted: &str| {
            entries.iter().find(|(name, _)| name.text() == Some(wanted)).map(|(_, value)| value.clone())
        };
        named(key).or_else(|| {
            let merged = named("<<").filter(|_| left > 0)?;
            let sources = if merged.is_map() { vec![merged] } else { merged.items() };
            sources.iter().take(MERGES).find_map(|source| source.get_merged(key, left - 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_lines() {
        let root = parse("# c\na: &x\n  b: [1, two]\nc:\n  <<: *x\n  d: yes\ne: *x\n").unwrap();
        assert_eq!(root.get("a").unwrap().get("b").unwrap().items()[1].text(), Some("two"));
        assert_eq!(root.get("c").unwrap().get("b").unwrap().line, 3);
        assert_eq!(root.get("c").unwrap().get("d").unwrap().line, 6);
        assert!(root.get("e").unwrap().is_map());
        assert!(root.get("none").is_none());
    }

    #[test]
    fn hostile_texts_end_soon() {
        let bomb: String = (1..40)
            .map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", ")))
            .collect();
        assert!(parse(&format!("a0: &a0 x\n{bomb}")).unwrap().is_map());
        let merges: String = (1..40)
            .map(|n| format!("m{n}: &m{n}\n  <<: [{}]\n", vec![format!("*m{}", n - 1); 3].join(", ")))
            .collect();
        let merged = parse(&format!("m0: &m0 {{k: v}}\n{merges}")).unwrap().get("m39").unwrap();
        assert!(merged.get("absent").is_none());
        let deep = |depth| parse(&"[".repeat(depth)).unwrap_err();
        assert_eq!(deep(100).message, "nested more than 64 deep");
        assert!(!deep(100_000).message.is_empty());
        // Each anchor contains the one before it.
        let chain = |length: usize, open: &str, close: &str| {
            let links = (1..=length).map(|n| format!("a{n}: &a{n} {open}*a{} {close}\n", n - 1));
            parse(&format!("a0: &a0 x\n{}", links.collect::<String>()))
        };
        for (open, close) in [("[", "]"), ("{k: ", "}")] {
            // The map around the chain is one more level.
            assert!(chain(LEVELS - 1, open, close).is_ok());
            let error = chain(60_000, open, close).unwrap_err();
            assert_eq!((error.line, &*error.message), (514, "aliases nested more than 512 deep"));
        }
        assert_eq!(parse("a: [1\nb: 2").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in r"([a-z<&*]{1,2}: ?|- |\[|\]|\{|\}|\n|  |'|#|\|){0,20}") {
            let _ = parse(&text);
        }
    }
}
