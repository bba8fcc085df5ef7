//! What a Dockerfile needs from its builder: base images, and features that only BuildKit has.

use std::collections::BTreeMap;

use super::dockerfile::{Instruction, instructions};

/// Build arguments that only BuildKit sets.
const PLATFORM_ARGS: [&str; 8] = [
    "TARGETPLATFORM",
    "TARGETOS",
    "TARGETARCH",
    "TARGETVARIANT",
    "BUILDPLATFORM",
    "BUILDOS",
    "BUILDARCH",
    "BUILDVARIANT",
];
/// Flags that only BuildKit knows, by instruction.
const FLAGS: [(&str, &[&str]); 3] = [
    ("RUN", &["--mount", "--network", "--security", "--device"]),
    ("COPY", &["--chmod", "--link", "--parents", "--exclude"]),
    ("ADD", &["--chmod", "--link", "--exclude", "--checksum", "--keep-git-dir", "--unpack"]),
];

/// The line and the text of the first feature that only BuildKit can build, e.g. `COPY --chmod`.
pub(crate) fn needs_buildkit(dockerfile: &str) -> Option<(u32, String)> {
    instructions(dockerfile).iter().find_map(|one| {
        let known = FLAGS.iter().find(|(word, _)| *word == one.word).map_or(&[][..], |(_, flags)| flags);
        let flag = one.flags.iter().map(|flag| flag.split('=').next().unwrap_or(flag));
        let flag = flag.into_iter().find(|flag| known.contains(flag));
        let what = match flag {
            Some(flag) => format!("`{} {flag}`", one.word),
            None if one.heredoc.is_some() => format!("a here document in {}", one.word),
            None => format!("`{}`", platform_arg(one)?),
        };
        Some((one.line, what))
    })
}

/// The platform argument that an instruction takes from the builder, e.g. `TARGETARCH`.
fn platform_arg(one: &Instruction) -> Option<String> {
    match one.word.as_str() {
        "ARG" => {
            let mut names = one.rest.split_whitespace();
            names.find(|name| PLATFORM_ARGS.contains(name)).map(|name| format!("ARG {name}"))
        }
        "FROM" => one
            .flags
            .iter()
            .find(|flag| PLATFORM_ARGS.iter().any(|name| flag.contains(name)))
            .map(|flag| format!("FROM {flag}")),
        _ => None,
    }
}

/// An image that a Dockerfile is based on, or copies from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// An image of the engine or of a registry.
    Image(String),
    /// A name with a variable that has no value there.
    Empty { line: u32, text: String, why: EmptyBase },
}

/// Why the name of a base has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyBase {
    /// The ARG comes after the first FROM, so it belongs to that stage only.
    OutOfScope,
    /// No ARG gives it a value.
    NoValue,
}

/// The images that a Dockerfile is based on, or copies from. Earlier stages and `scratch` are left
/// out.
pub(crate) fn bases(dockerfile: &str) -> Vec<Base> {
    let mut args = BTreeMap::new();
    let mut later_args = Vec::new();
    let mut stages: Vec<String> = Vec::new();
    let mut number = 0;
    let mut found = Vec::new();
    for one in instructions(dockerfile) {
        match one.word.as_str() {
            "ARG" => {
                for arg in one.rest.split_whitespace() {
                    let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
                    if number > 0 {
                        later_args.push(name.to_owned());
                        continue;
                    }
                    let value = expand(value.trim_matches(['"', '\'']), &args);
                    args.insert(name.to_owned(), value);
                }
            }
            "FROM" => {
                number += 1;
                let mut words = one.rest.split_whitespace();
                let text = words.next().unwrap_or_default();
                let name = expand(text, &args);
                if name.is_empty() {
                    let is_later = later_args.iter().any(|arg| text.contains(arg.as_str()));
                    let why = if is_later { EmptyBase::OutOfScope } else { EmptyBase::NoValue };
                    found.push(Base::Empty { line: one.line, text: text.to_owned(), why });
                } else if name != "scratch" && !stages.contains(&name.to_lowercase()) {
                    found.push(Base::Image(name));
                }
                if words.next().is_some_and(|word| word.eq_ignore_ascii_case("as")) {
                    stages.extend(words.next().map(str::to_lowercase));
                }
            }
            "COPY" => {
                let from = one.flags.iter().find_map(|flag| flag.strip_prefix("--from="));
                let is_stage =
                    |name: &str| name.parse::<u32>().is_ok() || stages.contains(&name.to_lowercase());
                found.extend(from.filter(|name| !is_stage(name)).map(|name| Base::Image(name.to_owned())));
            }
            _ => {}
        }
    }
    found.dedup();
    found
}

/// `text` with its variables replaced, as builders do it in FROM: `$A`, `${A}`, `${A:-default}`,
/// `${A:+other}`.
pub(crate) fn expand(text: &str, values: &BTreeMap<String, String>) -> String {
    let value = |name: &str| values.get(name).map(String::as_str).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some((inside, after)) = after.strip_prefix('{').and_then(|after| after.split_once('}')) {
            let (name, modifier) = inside.split_once(':').unwrap_or((inside, ""));
            match (modifier.split_at_checked(1), value(name)) {
                (Some(("-", default)), "") => expanded.push_str(default),
                (Some(("+", _)), "") => {}
                (Some(("+", other)), _) => expanded.push_str(other),
                (_, value) => expanded.push_str(value),
            }
            rest = after;
        } else {
            let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
            expanded.push_str(value(&after[..end]));
            rest = &after[end..];
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buildkit_is_needed_for_what_the_classic_builder_refuses() {
        let check = |text: &str, expect: Option<(u32, &str)>| {
            let found = needs_buildkit(text);
            assert_eq!(found.as_ref().map(|(line, what)| (*line, what.as_str())), expect, "{text}");
        };
        check("FROM a\nRUN b --mount=c\nCOPY --chown=1 --from=x a b", None);
        check("# syntax=docker/dockerfile:1\nFROM a", None);
        check("FROM a\nCOPY --chmod=755 a b", Some((2, "`COPY --chmod`")));
        check("FROM a\nCOPY --link a b", Some((2, "`COPY --link`")));
        check("FROM a\nADD --checksum=sha256:1 a b", Some((2, "`ADD --checksum`")));
        check("FROM a\nRUN \\\n --mount=type=cache,target=/x b", Some((2, "`RUN --mount`")));
        check("FROM a\nRUN --network=none b", Some((2, "`RUN --network`")));
        check("FROM a\nRUN <<EOF\nb\nEOF", Some((2, "a here document in RUN")));
        check("FROM a\nCOPY <<EOF /x\nb\nEOF", Some((2, "a here document in COPY")));
        check("FROM a\nRUN cat <<< b", None);
        check("FROM --platform=$BUILDPLATFORM a", Some((1, "`FROM --platform=$BUILDPLATFORM`")));
        check("FROM --platform=linux/amd64 a", None);
        check("FROM a\nARG TARGETARCH", Some((2, "`ARG TARGETARCH`")));
        check("FROM a\nARG TARGETARCH=amd64", None);
    }

    #[test]
    fn bases_are_named_with_their_arguments() {
        let check = |text: &str, expect: &[&str]| {
            let found = bases(text).into_iter().map(|base| match base {
                Base::Image(name) => name,
                Base::Empty { line, text, why } => format!("{line} {text} {why:?}"),
            });
            assert_eq!(found.collect::<Vec<_>>(), expect, "{text}");
        };
        check("FROM a", &["a"]);
        check("FROM scratch\nCOPY a b", &[]);
        check("FROM --platform=x a AS One\nFROM one\nCOPY --from=0 a b\nCOPY --from=one a b", &["a"]);
        check("FROM a\nCOPY --from=ghcr.io/b/c:1 x y", &["a", "ghcr.io/b/c:1"]);
        check("ARG A=debian\nARG B=$A:12\nFROM ${B}", &["debian:12"]);
        check("ARG A\nFROM ${A:-b}", &["b"]);
        check("ARG A=c\nFROM ${A:-b}-$A.x${A:+d}", &["c-c.xd"]);
        check("FROM a AS one\nARG B=c\nFROM ${B}", &["a", "3 ${B} OutOfScope"]);
        check("FROM $B", &["1 $B NoValue"]);
        check("ARG B\nFROM $B", &["2 $B NoValue"]);
    }
}
