//! XML replies, as Harbor's `terminus_xml_plain_parser.py` reads them. Text between tags is used
//! verbatim: entities are not decoded.

use super::Command;
use super::parsed::{Draft, Parsed};
use super::python::{float, strip};
use super::scan::{
    attributes_of, has_self_closing, is_complete, opening_tags, quoted_value, single_quoted, top_level_tags,
    unquoted,
};

const SECTIONS: [&str; 4] = ["analysis", "plan", "commands", "task_complete"];
/// All sections but the last are required.
const REQUIRED: usize = 3;
const OPEN: &str = "<response>";
const CLOSE: &str = "</response>";

/// Parses a reply. Harbor's automatic correction of XML is left out: the error that starts it never
/// occurs.
pub(super) fn parse(response: &str) -> Parsed {
    let mut draft = Draft::default();
    check_extra_text(response, &mut draft);
    let Some(content) = content(response).filter(|content| !content.is_empty()) else {
        return draft.fail("No <response> tag found".to_owned());
    };
    let complete = is_complete(content);
    let sections = sections(content, &mut draft);
    draft.task_complete = complete;
    draft.analysis = sections[0].unwrap_or_default().to_owned();
    draft.plan = sections[1].unwrap_or_default().to_owned();
    match sections[2] {
        None if complete => draft.succeed(Vec::new()),
        None => draft.fail("Missing <commands> section".to_owned()),
        Some("") => {
            if !complete {
                draft.warn(
                    "Commands section is empty; not taking any action. If you want to wait a specific amount of \
                     time please use `sleep`, but if you're waiting for a command to finish then continue to wait."
                        .to_owned(),
                );
            }
            draft.succeed(Vec::new())
        }
        Some(commands) => {
            let commands = read_commands(commands, &mut draft);
            draft.succeed(commands)
        }
    }
}

/// The response within an output that was cut off at the token limit, if it is complete and usable.
pub(super) fn salvage(truncated: &str) -> Option<&str> {
    let commands = truncated.find("</commands>")?;
    let end = commands + truncated[commands..].find(CLOSE)? + CLOSE.len();
    let response = &truncated[..end];
    let parsed = parse(response);
    let warning = parsed.warning.unwrap_or_default().to_lowercase();
    let several = warning.contains("only issue one") && warning.contains("block at a time");
    (parsed.error.is_none() && !several).then_some(response)
}

fn check_extra_text(response: &str, draft: &mut Draft) {
    let Some(start) = response.find(OPEN) else { return };
    if !strip(&response[..start]).is_empty() {
        draft.warn("Extra text detected before <response> tag".to_owned());
    }
    // As in Harbor, the first closing tag counts, even one before the opening tag.
    if let Some(end) = response.find(CLOSE)
        && !strip(&response[end + CLOSE.len()..]).is_empty()
    {
        draft.warn("Extra text detected after </response> tag".to_owned());
        let count = response.matches(OPEN).count();
        if count > 1 {
            draft.warn(format!(
                "IMPORTANT: Only issue one <response> block at a time. You issued {count} and only the first was \
                 executed."
            ));
        }
    }
}

/// The content of the first `<response>`. It ends at the closing tag or at the end of the text.
fn content(response: &str) -> Option<&str> {
    let (_, inside) = response.split_once(OPEN)?;
    Some(strip(inside.split_once(CLOSE).map_or(inside, |(inside, _)| inside)))
}

/// The contents of [`SECTIONS`].
fn sections<'a>(content: &'a str, draft: &mut Draft) -> [Option<&'a str>; 4] {
    let sections = SECTIONS.map(|name| {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let whole = content.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
        match whole {
            Some((inside, _)) => Some(strip(inside)),
            None => has_self_closing(content, name).then_some(""),
        }
    });
    // Harbor iterates over sets, so the order of its warnings varies. Here it is fixed.
    for (name, _) in SECTIONS.iter().zip(sections).take(REQUIRED).filter(|(_, section)| section.is_none()) {
        draft.warn(format!("Missing <{name}> section"));
    }
    let mut unknown: Vec<&str> = Vec::new();
    for tag in top_level_tags(content) {
        if !SECTIONS.contains(&tag) && !unknown.contains(&tag) {
            unknown.push(tag);
        }
    }
    for tag in unknown {
        draft.warn(format!("Unknown tag found: <{tag}>, expected analysis/plan/commands/task_complete"));
    }
    for name in SECTIONS {
        match opening_tags(content, name).count() {
            0 | 1 => {}
            count if name == "commands" => draft.warn(format!(
                "IMPORTANT: Only issue one <commands> block at a time. You issued {count} and only the first was \
                 executed."
            )),
            _ => draft.warn(format!("Multiple <{name}> sections found")),
        }
    }
    let offsets: Vec<_> = SECTIONS
        .into_iter()
        .take(REQUIRED)
        .filter_map(|name| Some((opening_tags(content, name).next()?, name)))
        .collect();
    draft.check_order("Sections", &offsets);
    sections
}

fn read_commands(content: &str, draft: &mut Draft) -> Vec<Command> {
    let elements = keystrokes(content);
    let mut commands = Vec::new();
    for (index, (attributes, keystrokes)) in elements.iter().enumerate() {
        let number = index + 1;
        check_attributes(attributes, number, draft);
        let duration = match quoted_value(attributes, "duration") {
            None => {
                draft.warn(format!("Command {number}: Missing duration attribute, using default 1.0"));
                Command::DEFAULT_DURATION
            }
            Some(value) => float(value).unwrap_or_else(|| {
                draft.warn(format!("Command {number}: Invalid duration value '{value}', using default 1.0"));
                Command::DEFAULT_DURATION
            }),
        };
        if number < elements.len() && !keystrokes.ends_with('\n') {
            draft.warn_of_missing_newline(number);
        }
        commands.push(Command { keystrokes: (*keystrokes).to_owned(), duration });
    }
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'")];
    for (entity, character) in entities {
        if content.contains(entity) {
            draft.warn(format!(
                "Warning: {entity} is read verbatim and not converted to {character}. NEVER USE {entity}, unless you \
                 want these exact characters to appear directly in the output."
            ));
        }
    }
    // The four characters `\r\n`, and not a line ending.
    if content.contains("\\r\\n") {
        draft.warn(
            "Warning: \\r\\n line endings are not necessary - use \\n instead for simpler output".to_owned(),
        );
    }
    commands
}

/// Attributes and content of every `<keystrokes…>…</keystrokes>`.
fn keystrokes(content: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = content;
    while let Some((_, after)) = rest.split_once("<keystrokes")
        && let Some((attributes, inside)) = after.split_once('>')
        && let Some((keys, after)) = inside.split_once("</keystrokes>")
    {
        found.push((attributes, keys));
        rest = after;
    }
    found
}

fn check_attributes(attributes: &str, number: usize, draft: &mut Draft) {
    for (name, value) in unquoted(attributes) {
        draft
            .warn(format!("Command {number}: Attribute '{name}' value should be quoted: {name}=\"{value}\""));
    }
    for (name, value) in single_quoted(attributes) {
        draft.warn(format!("Command {number}: Use double quotes for attribute '{name}': {name}=\"{value}\""));
    }
    for name in attributes_of(attributes).filter(|name| *name != "duration") {
        draft.warn(format!("Command {number}: Unknown attribute '{name}' - known attributes are: duration"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_off_output_is_salvaged_up_to_its_response() {
        let whole = "<response><analysis>a</analysis><plan>p</plan>\
                     <commands><keystrokes duration=\"1\">x\n</keystrokes></commands></response>";
        let check = |text: &str, expected: Option<&str>| assert_eq!(salvage(text), expected, "{text}");
        check(&format!("{whole} and so o"), Some(whole));
        check(&whole.replace("</response>", ""), None);
        check(&whole.replace("</commands>", ""), None);
        check(&whole.replace("<commands>", "<commands></commands><commands>"), None);
    }
}
