//! Files and hosts in a Python module: the files that it reads, its downloads, and the rewards that
//! it writes.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::python::{called, field};
use crate::syntax::{Grammar, descendants, line, named_children, parse, text_of};

/// A call that downloads something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch<'a> {
    pub(super) line: u32,
    /// The called function, e.g. `requests.get`.
    pub(super) call: &'a str,
    /// The URL, if the call contains one.
    pub(super) url: Option<&'a str>,
}

/// A file that is read or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read<'a> {
    pub(super) line: u32,
    pub(super) path: &'a str,
}

/// What a call downloads. `constants` are the module's string constants.
pub(super) fn fetch<'a>(
    call: Node<'_>,
    name: &'a str,
    text: &'a str,
    constants: &BTreeMap<&'a str, &'a str>,
) -> Option<Fetch<'a>> {
    const BY_URL: [&str; 11] = [
        "urlopen",
        "urlretrieve",
        "requests.get",
        "requests.post",
        "requests.head",
        "requests.request",
        "httpx.get",
        "httpx.post",
        "httpx.stream",
        "wget.download",
        "gdown.download",
    ];
    const BY_NAME: [&str; 5] =
        ["hf_hub_download", "snapshot_download", "nltk.download", "torch.hub.load", "fetch_openml"];
    let line = line(call);
    if BY_NAME.iter().any(|end| is_called(name, end)) {
        return Some(Fetch { line, call: name, url: None });
    }
    if !BY_URL.iter().any(|end| is_called(name, end)) {
        return None;
    }
    let arguments = call.child_by_field_name("arguments")?;
    let written = descendants(arguments)
        .filter(|part| part.kind() == "string_content")
        .map(|part| text_of(part, text))
        .find(|content| content.contains("://"));
    let named = || descendants(arguments).find_map(|part| constants.get(text_of(part, text)).copied());
    Some(Fetch { line, call: name, url: Some(written.or_else(named)?) })
}

/// Whether a called name is `end`, or ends with `.` and `end`.
fn is_called(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// String constants by name.
pub(super) fn constants<'a>(root: Node<'_>, text: &'a str) -> BTreeMap<&'a str, &'a str> {
    let assigned = descendants(root).filter(|node| node.kind() == "assignment").filter_map(|node| {
        let value = node.child_by_field_name("right")?;
        Some((field(node, "left", text)?, literal(value, text)?))
    });
    assigned.collect()
}

/// The content of a string literal, without computed parts.
fn literal<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    let parts = named_children(node);
    let contents: Vec<_> = parts.iter().filter(|part| part.kind() == "string_content").collect();
    let plain = node.kind() == "string" && !parts.iter().any(|part| part.kind() == "interpolation");
    match contents[..] {
        [content] if plain => Some(text_of(*content, text)),
        _ => None,
    }
}

/// The strings of a module, with their lines.
pub(super) fn strings(text: &str) -> Vec<(u32, &str)> {
    let Some(tree) = parse(Grammar::Python, text) else { return Vec::new() };
    let strings = descendants(tree.root_node()).filter_map(|node| Some((line(node), literal(node, text)?)));
    strings.collect()
}

/// The files that a call reads or runs, taken from the strings in its arguments.
pub(super) fn reads<'a>(call: Node<'_>, name: &'a str, text: &'a str) -> Vec<Read<'a>> {
    const READERS: [&str; 8] = [
        "read_csv",
        "read_json",
        "read_parquet",
        "read_excel",
        "np.load",
        "loadtxt",
        "genfromtxt",
        "runpy.run_path",
    ];
    const PROGRAMS: [&str; 5] = ["subprocess.run", "check_output", "check_call", "subprocess.call", "Popen"];
    let Some(arguments) = call.child_by_field_name("arguments") else { return Vec::new() };
    let arguments = named_children(arguments);
    let first = arguments.first().and_then(|first| literal(*first, text));
    let read = |path: &'a str| Read { line: line(call), path };
    if matches!(name, "open" | "io.open") {
        let mode = arguments.iter().skip(1).find_map(|argument| match argument.kind() {
            "keyword_argument" if field(*argument, "name", text) == Some("mode") => {
                argument.child_by_field_name("value").and_then(|value| literal(value, text))
            }
            _ => literal(*argument, text),
        });
        let writes = mode.is_some_and(|mode| mode.contains(['w', 'a', 'x']));
        return first.filter(|_| !writes).map(read).into_iter().collect();
    }
    if READERS.iter().any(|end| is_called(name, end)) {
        return first.map(read).into_iter().collect();
    }
    // `Path("/tests/x").read_text()`.
    let function = call.child_by_field_name("function");
    let of_path = function
        .and_then(|function| function.child_by_field_name("object"))
        .filter(|object| object.kind() == "call" && matches!(called(*object, text), "Path" | "pathlib.Path"));
    if let Some(object) = of_path {
        let attribute = function.and_then(|function| field(function, "attribute", text));
        let reading = matches!(attribute, Some("read_text" | "read_bytes"))
            || (attribute == Some("open") && arguments.is_empty());
        let arguments = object.child_by_field_name("arguments").map(named_children).unwrap_or_default();
        let path = arguments.first().and_then(|first| literal(*first, text));
        return path.filter(|_| reading && arguments.len() == 1).map(read).into_iter().collect();
    }
    if PROGRAMS.iter().any(|end| is_called(name, end)) {
        let listed = arguments.first().filter(|first| first.kind() == "list");
        let words = listed.map(|list| named_children(*list)).unwrap_or_default();
        return words.into_iter().take(2).filter_map(|word| literal(word, text)).map(read).collect();
    }
    Vec::new()
}

/// Values that a module writes to `reward.json` and that are no numbers, with their lines.
pub(super) fn rewards(root: Node<'_>, text: &str) -> Vec<(u32, String)> {
    const FILE: &str = "reward.json";
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut dictionaries: BTreeMap<&str, Node<'_>> = BTreeMap::new();
    let leads_there = |node: Node<'_>, names: &BTreeSet<&str>| {
        text_of(node, text).contains(FILE)
            || descendants(node)
                .any(|part| part.kind() == "identifier" && names.contains(text_of(part, text)))
    };
    let mut found = Vec::new();
    for node in descendants(root) {
        match node.kind() {
            "assignment" => {
                let (Some(left), Some(right)) =
                    (field(node, "left", text), node.child_by_field_name("right"))
                else {
                    continue;
                };
                if right.kind() == "dictionary" {
                    dictionaries.insert(left, right);
                } else if matches!(right.kind(), "string" | "call" | "binary_operator")
                    && leads_there(right, &names)
                {
                    names.insert(left);
                }
            }
            // `with open(REWARD) as file`.
            "as_pattern" => {
                if let [value, target] = named_children(node)[..]
                    && leads_there(value, &names)
                {
                    names.insert(text_of(target, text));
                }
            }
            "call" => {
                let arguments = node.child_by_field_name("arguments").map(named_children).unwrap_or_default();
                let name = called(node, text);
                let value = match (name, &arguments[..]) {
                    (_, [value, file, ..]) if is_called(name, "json.dump") && leads_there(*file, &names) => {
                        Some(*value)
                    }
                    (_, [written, ..]) if name.ends_with(".write_text") || name.ends_with(".write") => {
                        let function = node.child_by_field_name("function");
                        let object = function.and_then(|function| function.child_by_field_name("object"));
                        let there = object.is_some_and(|object| leads_there(object, &names));
                        let mut calls = descendants(*written).filter(|call| call.kind() == "call");
                        let dumps =
                            calls.find(|call| is_called(called(*call, text), "json.dumps")).filter(|_| there);
                        let arguments = dumps.and_then(|dumps| dumps.child_by_field_name("arguments"));
                        arguments.and_then(|arguments| named_children(arguments).first().copied())
                    }
                    _ => None,
                };
                let dictionary = value.and_then(|value| match value.kind() {
                    "dictionary" => Some(value),
                    _ => dictionaries.get(text_of(value, text)).copied(),
                });
                found.extend(
                    dictionary.and_then(|dictionary| refused(dictionary, text)).map(|why| (line(node), why)),
                );
            }
            _ => {}
        }
    }
    found
}

/// The first value of a dictionary that is no number.
fn refused(dictionary: Node<'_>, text: &str) -> Option<String> {
    named_children(dictionary).into_iter().filter(|part| part.kind() == "pair").find_map(|pair| {
        let what = match pair.child_by_field_name("value")?.kind() {
            "string" | "concatenated_string" => "a text",
            "list" | "list_comprehension" | "tuple" => "a list",
            "dictionary" | "dictionary_comprehension" => "an object",
            "none" => "null",
            _ => return None,
        };
        let key = pair.child_by_field_name("key").and_then(|key| literal(key, text)).unwrap_or("a key");
        Some(format!("{what} at `{key}`"))
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::python::module;

    #[test]
    fn rewards_that_harbor_refuses() {
        let check = |text: &str, expect: &[(u32, &str)]| {
            let got = module(text).rewards;
            let got: Vec<_> = got.iter().map(|(line, why)| (*line, why.as_str())).collect();
            assert_eq!(got, expect, "{text}");
        };
        check("json.dump({'reward': score, 'n': 1}, open('/logs/verifier/reward.json', 'w'))", &[]);
        check("json.dump({'state': 'x'}, open('/logs/verifier/report.json', 'w'))", &[]);
        check(
            "R = Path('/logs/verifier') / 'reward.json'\nresult = {'reward': 1, 'failures': []}\nR.write_text(json.dumps(result))",
            &[(3, "a list at `failures`")],
        );
        check(
            "OUT = '/logs/verifier/reward.json'\nwith open(OUT, 'w') as f:\n    json.dump({'state': f'{x}'}, f)",
            &[(3, "a text at `state`")],
        );
        check(
            "with open('/logs/verifier/reward.json', 'w') as f:\n    f.write(json.dumps({'a': None}))",
            &[(2, "null at `a`")],
        );
    }

    #[test]
    fn files_that_are_read() {
        let check = |text: &str, expect: &[(u32, &str)]| {
            let got: Vec<_> = module(text).reads.iter().map(|read| (read.line, read.path)).collect();
            assert_eq!(got, expect, "{text}");
        };
        check(
            "open('/a')\nopen('/b', 'w')\nopen('/c', mode='a')\nopen(f'/{d}')\nopen('/e', 'rb')",
            &[(1, "/a"), (5, "/e")],
        );
        check("Path('/a').read_text()\nPath('/b').write_text('')\nPath('/c').exists()", &[(1, "/a")]);
        check(
            "pd.read_csv('/a', sep=';')\nsubprocess.run([sys.executable, '/b', '/c'])",
            &[(1, "/a"), (2, "/b")],
        );
    }

    #[test]
    fn downloads_are_found() {
        let check = |text: &str, expect: &[(&str, Option<&str>)]| {
            let got: Vec<_> = module(text).fetches.iter().map(|fetch| (fetch.call, fetch.url)).collect();
            assert_eq!(got, expect, "{text}");
        };
        check(
            "urllib.request.urlopen('https://a.org/x', timeout=3)",
            &[("urllib.request.urlopen", Some("https://a.org/x"))],
        );
        check("U = 'https://a.org'\nrequests.get(U)", &[("requests.get", Some("https://a.org"))]);
        check("urlopen(Request('https://a.org'))", &[("urlopen", Some("https://a.org"))]);
        check("requests.get(url)\nresults.get('https://a.org')", &[]);
        check("nltk.download('punkt')", &[("nltk.download", None)]);
    }
}
