//! Settings of Claude Code: those that the user has chosen, and those for a gateway.

use std::env;
use std::fs;
use std::path::PathBuf;

use creole::config::without_comments;
use serde_json::{Value, json};

use super::resume::quoted;

/// Words between the program and the gateway's address in the command of Creole's status line.
const STATUS_LINE: &str = " status-line --gateway ";

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
        Self(texts.filter_map(|text| serde_json::from_str(&without_comments(&text)).ok()).collect())
    }

    /// Returns true if the user has chosen the setting at a JSON pointer.
    pub(super) fn has(&self, pointer: &str) -> bool {
        self.0.iter().any(|file| file.pointer(pointer).is_some())
    }

    /// Returns true if the user has chosen a status line other than Creole's, which `creole
    /// configure` writes.
    pub(super) fn have_status_line(&self) -> bool {
        let is_creoles = |line: &Value| {
            let command = line.get("command").and_then(Value::as_str);
            command.is_some_and(|command| command.contains(STATUS_LINE))
        };
        self.0.iter().filter_map(|file| file.get("statusLine")).any(|line| !is_creoles(line))
    }
}

/// Returns the contents of a settings file with environment variables, and without the tool
/// `WebSearch` if `denies_search` is true. `mode` is the permission mode of the start.
pub(super) fn contents(
    variables: &[(&str, String)],
    denies_search: bool,
    mode: Option<&str>,
    status_line: Option<Value>,
) -> String {
    let set = variables.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    let permissions = [
        ("deny", denies_search.then(|| json!(["WebSearch"]))),
        ("defaultMode", mode.map(Value::from)),
    ];
    let settings = [
        ("env", Some(Value::Object(set.collect()))),
        ("permissions", Some(object(permissions)).filter(|it| *it != json!({}))),
        ("statusLine", status_line),
    ];
    object(settings).to_string()
}

fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let known = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(known.collect())
}

/// Returns the setting of a status line about a gateway; `None` if the path of this program is not
/// known. The key is in the environment of the command.
pub(super) fn status_line(gateway: &str) -> Option<Value> {
    let own = env::current_exe().ok()?;
    let own = own.to_str()?;
    // Claude Code runs the command with a shell of Unix, in which `\` is no part of a path.
    let own = if cfg!(windows) { own.replace('\\', "/") } else { own.to_owned() };
    let command = format!("{}{STATUS_LINE}{gateway}", quoted(&own));
    Some(json!({"type": "command", "command": command}))
}
