//! Reads legal variants: one file each, `templates/variants/<name>.toml`, and the scripts that they
//! share, `templates/variants/lib/*.sh`.

use serde::Deserialize;

use crate::assets::Assets;
use crate::model::{Applies, Variant};

const FOLDER: &str = "templates/variants";

/// The error for an invalid declaration of a variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`: {message}\nhint: {hint}")]
pub struct VariantError {
    pub file: String,
    pub message: String,
    pub hint: String,
}

/// A [`Variant`] as written in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantFile {
    name: String,
    title: String,
    applies: Applies,
    /// Names of files in `lib/` whose text is put before the script.
    #[serde(default)]
    uses: Vec<String>,
    script: String,
    legal: String,
    #[serde(default)]
    conditional: bool,
}

/// Every variant of the templates folder, by name. Empty if the folder has none.
pub fn variants(assets: &Assets) -> Result<Vec<Variant>, VariantError> {
    let library = |name: &str| assets.text(&format!("{FOLDER}/lib/{name}")).map(str::to_owned);
    let mut found = Vec::new();
    for (path, bytes, _) in assets.files_under(FOLDER) {
        if path.as_str().contains('/') || !path.as_str().ends_with(".toml") {
            continue;
        }
        let file = assets.display_path(&format!("{FOLDER}/{path}"));
        let text = std::str::from_utf8(bytes).map_err(|_| VariantError {
            file: file.clone(),
            message: "the file is not UTF-8".to_owned(),
            hint: "save it as UTF-8".to_owned(),
        })?;
        found.push(parse_variant(&file, text, library)?);
    }
    Ok(found)
}

/// Parses the variant in `text`. `file` is its path, and must have the variant's name. `library`
/// returns the text of a script in `lib/`.
pub fn parse_variant(
    file: &str,
    text: &str,
    library: impl Fn(&str) -> Option<String>,
) -> Result<Variant, VariantError> {
    let wrong =
        |message: String, hint: &str| VariantError { file: file.to_owned(), message, hint: hint.to_owned() };
    let declared: VariantFile = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        let message = format!("line {line}: {}", error.message());
        wrong(message, "a variant has `name`, `title`, `applies`, `script` and `legal`")
    })?;
    let stem = file.rsplit('/').next().and_then(|name| name.strip_suffix(".toml")).unwrap_or_default();
    if declared.name != stem {
        return Err(wrong(
            format!("it is called `{}`", declared.name),
            "`name` is the name of the file without `.toml`",
        ));
    }
    for (key, value) in [("title", &declared.title), ("script", &declared.script), ("legal", &declared.legal)]
    {
        if value.trim().is_empty() {
            return Err(wrong(format!("`{key}` is empty"), "write one sentence for readers of certificates"));
        }
    }
    let mut script = String::new();
    for name in &declared.uses {
        let text = library(name).ok_or_else(|| {
            wrong(format!("no `lib/{name}`"), "`uses` names files of `templates/variants/lib/`")
        })?;
        script.push_str(&text);
        script.push('\n');
    }
    script.push_str(&declared.script);
    let VariantFile { name, title, applies, legal, conditional, .. } = declared;
    Ok(Variant { name, title, applies, script, legal, conditional })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::language::Language;

    const GOOD: &str = "name = 'a'\ntitle = 't'\napplies = 'json'\nscript = 'true'\nlegal = 'it is'\n";

    fn check(file: &str, text: &str, expect: Result<&str, &str>) {
        let library = |name: &str| (name == "x.sh").then(|| "x() { :; }".to_owned());
        let got = parse_variant(file, text, library)
            .map(|variant| variant.script)
            .map_err(|error| error.to_string());
        match expect {
            Ok(script) => assert_eq!(got.as_deref(), Ok(script), "{text}"),
            Err(part) => {
                assert!(got.as_ref().is_err_and(|message| message.contains(part)), "{text}: {got:?}");
            }
        }
    }

    #[test]
    fn declarations() {
        check("v/a.toml", GOOD, Ok("true"));
        check("v/a.toml", &format!("{GOOD}uses = ['x.sh']\n"), Ok("x() { :; }\ntrue"));
        check("v/a.toml", &format!("{GOOD}uses = ['y.sh']\n"), Err("no `lib/y.sh`"));
        check("v/b.toml", GOOD, Err("`v/b.toml`: it is called `a`"));
        check("v/a.toml", &format!("{GOOD}mode = 1\n"), Err("line 6: unknown field `mode`"));
        check("v/a.toml", &GOOD.replace("json", "jsn"), Err("unknown variant `jsn`"));
        check("v/a.toml", &GOOD.replace("it is", " "), Err("`legal` is empty"));
        check("v/a.toml", "name = 'a'\n", Err("missing field `title`"));
    }

    #[test]
    fn the_shipped_ones_are_shell_scripts() {
        let all = variants(&Assets::embedded()).unwrap();
        let legal_anywhere = all.iter().filter(|variant| !variant.conditional).count();
        assert!(legal_anywhere >= 14, "{legal_anywhere} of {}", all.len());
        for variant in all {
            assert_eq!(Language::Bash.faults(&variant.script), 0, "{}", variant.name);
            assert!(variant.legal.ends_with('.'), "{}", variant.name);
        }
    }
}
