//! Renders templates to files.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::AuthorError;
use super::seeded::{Vocabulary, add_functions};
use crate::model::{File, FileTree, RelPath, Seed};
use crate::syntax::shell_word;

/// Extension of templates. A rendered file's name does not have it.
const TEMPLATE_SUFFIX: &str = ".j2";

/// Renders the templates of one recipe for one task.
pub(super) struct Renderer<'a> {
    /// The recipe's name, for messages.
    pub(super) recipe: &'a str,
    /// All files of the recipe, so that templates can include each other.
    pub(super) files: &'a FileTree,
    pub(super) seed: Seed,
    pub(super) words: &'a Vocabulary,
}

impl Renderer<'_> {
    /// Renders one text. `name` is for messages, and seeds the text's random numbers.
    pub(super) fn text(&self, name: &str, source: &str, context: &Value) -> Result<String, AuthorError> {
        self.texts(name)?.text(name, source, context)
    }

    /// Renders several texts of the file `name`. They share their templates and one sequence of
    /// random numbers.
    pub(super) fn texts(&self, name: &str) -> Result<Texts<'_>, AuthorError> {
        let failed = |error: &minijinja::Error| template_error(self.recipe, name, error);
        let mut env = environment().map_err(|error| failed(&error))?;
        add_functions(&mut env, self.seed.derive(&["template", name]), self.words);
        for (path, file) in self.files.iter() {
            let Some(text) = file.as_text() else { continue };
            let added = env.add_template(path.as_str(), text);
            // A file that is not a template may be included too, but need not parse as a template.
            if path.as_str().ends_with(TEMPLATE_SUFFIX) {
                added.map_err(|error| failed(&error))?;
            }
        }
        Ok(Texts { recipe: self.recipe, env })
    }

    /// Every file below `folder/`, rendered. Paths are without this prefix and without `.j2`.
    pub(super) fn folder(&self, folder: &str, context: &Value) -> Result<FileTree, AuthorError> {
        let mut out = FileTree::default();
        for (path, file) in self.files.iter() {
            let Some(rest) = path.as_str().strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'))
            else {
                continue;
            };
            let (name, file) = self.file(path, rest, file, context)?;
            out.insert(name, file);
        }
        Ok(out)
    }

    /// The file `name` or `name.j2`, rendered. `None` if neither exists.
    pub(super) fn one(&self, name: &str, context: &Value) -> Result<Option<File>, AuthorError> {
        for candidate in [name.to_owned(), format!("{name}{TEMPLATE_SUFFIX}")] {
            let found = self.files.iter().find(|(path, _)| path.as_str() == candidate);
            if let Some((path, file)) = found {
                return Ok(Some(self.file(path, path.as_str(), file, context)?.1));
            }
        }
        Ok(None)
    }

    fn file(
        &self,
        path: &RelPath,
        name: &str,
        file: &File,
        context: &Value,
    ) -> Result<(RelPath, File), AuthorError> {
        let (name, bytes) = match name.strip_suffix(TEMPLATE_SUFFIX) {
            None => (name, file.bytes.clone()),
            Some(name) => {
                let not_text =
                    || AuthorError::NotText { recipe: self.recipe.to_owned(), file: path.to_string() };
                let source = file.as_text().ok_or_else(not_text)?;
                (name, self.text(path.as_str(), source, context)?.into_bytes())
            }
        };
        let bad = |source| AuthorError::Path { recipe: self.recipe.to_owned(), source };
        Ok((RelPath::new(name).map_err(bad)?, File { bytes, executable: is_executable(name, file) }))
    }
}

/// Whether a recipe's file is executable in the task. For a script the name decides: a folder that
/// was unpacked without modes must give the same task.
pub(super) fn is_executable(name: &str, file: &File) -> bool {
    let name = name.strip_suffix(TEMPLATE_SUFFIX).unwrap_or(name);
    file.executable || name.ends_with(".sh") || name.ends_with(".py")
}

/// Renders texts of one file.
pub(super) struct Texts<'a> {
    recipe: &'a str,
    env: Environment<'a>,
}

impl Texts<'_> {
    /// Renders one text. `name` is for messages.
    pub(super) fn text(&self, name: &str, source: &str, context: &Value) -> Result<String, AuthorError> {
        let rendered = self.env.render_named_str(name, source, context.clone());
        rendered.map_err(|error| template_error(self.recipe, name, &error))
    }
}

fn template_error(recipe: &str, file: &str, error: &minijinja::Error) -> AuthorError {
    // The debug form contains the offending lines. The display form omits them.
    AuthorError::Template { recipe: recipe.to_owned(), file: file.to_owned(), message: format!("{error:#}") }
}

fn environment<'a>() -> Result<Environment<'a>, minijinja::Error> {
    let mut env = Environment::new();
    env.set_syntax(
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?,
    );
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    // Nothing is escaped, although names of fixtures may end in .json or .html.
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_debug(true);
    env.add_filter("shquote", |text: String| shell_word(&text).into_owned());
    env.add_filter("pyrepr", |value: Serde<serde_json::Value>| python_literal(&value));
    Ok(env)
}

/// A value as a Python literal. JSON differs from Python only in `true`, `false` and `null`.
fn python_literal(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python_literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entry =
                |(name, item)| format!("{}: {}", Value::String(String::clone(name)), python_literal(item));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}
