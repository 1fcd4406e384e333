//! Settings of Claude Code: those that the user has chosen, and those that a launch adds.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::resume::quoted;

/// Returns the folder of the user's settings.
pub(crate) fn folder() -> Option<PathBuf> {
    let named = env::var_os("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty());
    named.map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".claude")))
}

/// Settings files of the user for all projects and for the current folder.
#[derive(Debug)]
pub(super) struct UsersSettings(Vec<Value>);

impl UsersSettings {
    /// Reads the files. A file that cannot be read has no settings: Claude Code says what is wrong
    /// with it.
    pub(super) fn read() -> Self {
        let project = [".claude/settings.json", ".claude/settings.local.json"];
        let files = project.map(PathBuf::from).into_iter();
        let files = files.chain(folder().map(|folder| folder.join("settings.json")));
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        Self(texts.filter_map(|text| serde_json::from_str(&text).ok()).collect())
    }

    /// Returns true if the user has chosen the setting at a JSON pointer.
    pub(super) fn has(&self, pointer: &str) -> bool {
        self.0.iter().any(|file| file.pointer(pointer).is_some())
    }
}

/// Settings that a launch adds for Claude Code.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// True if the tool `WebSearch` is not offered to the model, because nothing searches.
    pub(super) denies_search: bool,
    /// True if the session starts in the default permission mode.
    pub(super) starts_in_default_mode: bool,
    /// URL of the gateway that the status line describes.
    pub(super) status_line: Option<String>,
}

impl Added {
    /// Returns the contents of a settings file with these settings and environment variables.
    pub(super) fn with_variables(&self, variables: &[(&str, String)]) -> Value {
        let set = variables.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        let mut settings = Map::from_iter([("env".to_owned(), Value::Object(set.collect()))]);
        let mut permissions = Map::new();
        if self.denies_search {
            permissions.insert("deny".to_owned(), json!(["WebSearch"]));
        }
        if self.starts_in_default_mode {
            permissions.insert("defaultMode".to_owned(), json!("default"));
        }
        if !permissions.is_empty() {
            settings.insert("permissions".to_owned(), Value::Object(permissions));
        }
        if let Some(line) = self.status_line.as_deref().and_then(status_line) {
            settings.insert("statusLine".to_owned(), line);
        }
        Value::Object(settings)
    }
}

/// Returns the setting of a status line about a gateway; `None` if the path of this program is not
/// known. The key is in the environment of the command.
pub(super) fn status_line(gateway: &str) -> Option<Value> {
    let own = env::current_exe().ok()?;
    let own = own.to_str()?;
    // Claude Code runs the command with a shell of Unix, in which `\` is no part of a path.
    let own = if cfg!(windows) { own.replace('\\', "/") } else { own.to_owned() };
    let command = format!("{} status-line --gateway {gateway}", quoted(&own));
    Some(json!({"type": "command", "command": command}))
}
