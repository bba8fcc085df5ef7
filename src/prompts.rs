//! Prompts for models, e.g. of a scaffold, an arm or the judge. A set is a folder below
//! `templates/prompts/`.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::assets::Assets;

/// The texts of a folder, by file name.
#[derive(Clone, Debug, Default)]
pub struct PromptSet {
    folder: String,
    texts: BTreeMap<String, String>,
}

/// A prompt that is missing or cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum PromptsError {
    #[error(
        "`templates/prompts/{folder}/{name}` is missing\nhint: an overriding templates folder must be complete"
    )]
    Missing { folder: String, name: String },
    #[error("`templates/prompts/{folder}/{name}`: {source}")]
    Template {
        folder: String,
        name: String,
        #[source]
        source: minijinja::Error,
    },
}

impl PromptSet {
    /// Reads all texts of `templates/prompts/<folder>/`. Fails if one in `needed` is missing.
    pub fn load(assets: &Assets, folder: &str, needed: &[&str]) -> Result<Self, PromptsError> {
        let texts = assets
            .files_under(&format!("templates/prompts/{folder}"))
            .filter_map(|(name, bytes, _)| {
                Some((name.to_string(), std::str::from_utf8(bytes).ok()?.to_owned()))
            })
            .collect();
        let set = Self { folder: folder.to_owned(), texts };
        for name in needed {
            set.text(name)?;
        }
        Ok(set)
    }

    /// The text of the file `name`, without blanks at its end.
    pub fn text(&self, name: &str) -> Result<&str, PromptsError> {
        let text = self.texts.get(name).map(|text| text.trim_end());
        text.ok_or_else(|| PromptsError::Missing { folder: self.folder.clone(), name: name.to_owned() })
    }

    /// The lines of the file `name` that are not blank.
    pub fn lines(&self, name: &str) -> Result<Vec<String>, PromptsError> {
        Ok(self.text(name)?.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
    }

    /// Renders the template `name`. A name that the template uses and `context` lacks is an error.
    pub fn render(&self, name: &str, context: Value) -> Result<String, PromptsError> {
        let source = self.text(name)?;
        let failed =
            |source| PromptsError::Template { folder: self.folder.clone(), name: name.to_owned(), source };
        let mut env = Environment::new();
        env.set_syntax(
            SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?,
        );
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.render_named_str(name, source, context).map(|text| text.trim_end().to_owned()).map_err(failed)
    }

    /// Hash over all texts. It is part of the key of results that depend on them, e.g. rollouts.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in self.texts.iter().flat_map(|(name, text)| [name, text]) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}
