//! Tools of the Responses API as functions, and calls of these functions as the API's calls.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::llm::protocol::responses::{LOCAL_SHELL, write_call};
use crate::llm::{Tool, ToolCall};

/// A tool of a request.
#[derive(Debug, Deserialize)]
pub(super) struct SentTool {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
    /// The grammar of a `custom` tool's input.
    #[serde(default)]
    format: Option<Format>,
    /// The tools of a `namespace`.
    #[serde(default)]
    tools: Option<Vec<SentTool>>,
}

#[derive(Debug, Deserialize)]
struct Format {
    #[serde(default)]
    syntax: Option<String>,
    #[serde(default)]
    definition: Option<String>,
}

/// The tools of one request, by the names that the model knows.
#[derive(Debug, Default)]
pub(super) struct Tools {
    tools: BTreeMap<String, Known>,
    /// In the order of the request.
    definitions: Vec<Tool>,
}

/// A tool as the client knows it.
#[derive(Debug)]
struct Known {
    namespace: Option<String>,
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    /// Its input is a text.
    Custom,
    /// Its input is a command.
    LocalShell,
}

impl Tools {
    /// Tools that run on a server, e.g. `web_search`, are left out: there is none.
    pub(super) fn of(sent: Vec<SentTool>) -> Self {
        let mut tools = Self::default();
        for tool in sent {
            tools.add(None, tool);
        }
        tools
    }

    fn add(&mut self, namespace: Option<&str>, sent: SentTool) {
        let SentTool { kind, name, description, parameters, format, tools } = sent;
        let description = description.unwrap_or_default();
        match (kind.as_str(), name) {
            ("function", Some(name)) => {
                let parameters = parameters.unwrap_or_else(|| json!({}));
                self.insert(namespace, name, Kind::Function, (description, parameters));
            }
            ("namespace", Some(name)) => {
                for tool in tools.unwrap_or_default() {
                    self.add(Some(&name), tool);
                }
            }
            ("custom", Some(name)) => {
                let input = json!({ "input": { "type": "string" } });
                let parameters = json!({ "type": "object", "properties": input, "required": ["input"] });
                let description = description + &format.map(Format::in_words).unwrap_or_default();
                self.insert(namespace, name, Kind::Custom, (description, parameters));
            }
            (LOCAL_SHELL, _) => {
                let command = json!({ "type": "array", "items": { "type": "string" } });
                let properties = json!({
                    "command": command, "working_directory": { "type": "string" },
                    "timeout_ms": { "type": "integer" },
                });
                let parameters =
                    json!({ "type": "object", "properties": properties, "required": ["command"] });
                let description = "Runs a command and returns its output.".to_owned();
                self.insert(None, LOCAL_SHELL.to_owned(), Kind::LocalShell, (description, parameters));
            }
            _ => {}
        }
    }

    fn insert(&mut self, namespace: Option<&str>, name: String, kind: Kind, shown: (String, Value)) {
        let (description, parameters) = shown;
        // Two namespaces may have tools of one name.
        let flat = match namespace {
            Some(namespace) if self.tools.contains_key(&name) => format!("{namespace}__{name}"),
            Some(_) | None => name.clone(),
        };
        self.definitions.push(Tool { name: flat.clone(), description, parameters });
        let namespace = namespace.map(str::to_owned);
        self.tools.insert(flat, Known { namespace, name, kind });
    }

    /// The functions that the model is shown.
    pub(super) fn definitions(&self) -> Vec<Tool> {
        self.definitions.clone()
    }

    /// The model's name for a tool of the client. E.g. it is `ns__run` for the `run` of the namespace
    /// `ns`, if another namespace has a `run` too.
    pub(super) fn flat(&self, namespace: Option<&str>, name: &str) -> String {
        let found = self
            .tools
            .iter()
            .find(|(_, known)| known.name == name && known.namespace.as_deref() == namespace);
        found.map_or(name, |(flat, _)| flat).to_owned()
    }

    /// The item of a call.
    pub(super) fn call(&self, call: &ToolCall) -> Value {
        let Some(known) = self.tools.get(&call.name) else { return write_call(call) };
        match known.kind {
            Kind::Function => {
                let mut item = write_call(call);
                item["name"] = json!(known.name);
                if let Some(namespace) = &known.namespace {
                    item["namespace"] = json!(namespace);
                }
                item
            }
            Kind::Custom => {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                // A model may write the text itself.
                let input = arguments["input"].as_str().unwrap_or(&call.arguments);
                json!({ "type": "custom_tool_call", "call_id": call.id, "name": known.name, "input": input })
            }
            Kind::LocalShell => {
                let mut action: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                if !action.is_object() {
                    action = json!({ "command": [] });
                }
                action["type"] = json!("exec");
                action["env"] = action.get("env").cloned().unwrap_or_else(|| json!({}));
                json!({ "type": "local_shell_call", "call_id": call.id, "action": action })
            }
        }
    }
}

impl Format {
    fn in_words(self) -> String {
        match (self.syntax, self.definition) {
            (Some(syntax), Some(definition)) => {
                format!("\n\nThe input must fit this {syntax} grammar:\n{definition}")
            }
            _ => String::new(),
        }
    }
}
