//! `creole configure` and `creole unconfigure`: write the variables for a running gateway into the
//! settings of Claude Code, and take them back.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use creole::config::without_comments;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Value, json};

use super::clients::{self, Session};
use super::find::{self, GATEWAY};
use super::menu::Menu;
use super::{claude_settings, say};
use crate::CommandFailed;
use crate::private_files;
use crate::probe::owner::ServerOwner;
use crate::upstream::client::UpstreamClient;

/// Client whose settings can be written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ConfiguredClient {
    Claude,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigureClient {
    /// The client
    client: ConfiguredClient,
    /// Address of the gateway, which has to run; without it, http://127.0.0.1:8787, if that is a
    /// gateway that no other user of this machine runs
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Environment variable with the gateway's key for this client, which is written into the
    /// settings
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// The model; without it, the only one that the gateway lists
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Tokens of the model's context window; without it, what the gateway says
    #[arg(long, value_name = "TOKENS")]
    context_window: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct UnconfigureClient {
    /// The client
    client: ConfiguredClient,
}

/// Writes the variables and a status line into the user's settings. Everything else in the file
/// stays as it is, byte for byte.
pub(crate) fn configure(options: &ConfigureClient) -> Result<(), CommandFailed> {
    let ConfiguredClient::Claude = options.client;
    let gateway = options.gateway.as_deref().unwrap_or(GATEWAY).trim_end_matches('/');
    let key = match &options.key_env {
        Some(name) => std::env::var(name).ok().filter(|key| !key.is_empty()).ok_or_else(|| {
            CommandFailed::Usage(format!("--key-env {name}: the variable is not set"))
        })?,
        None => "local".to_owned(),
    };
    let runtime = crate::runtime()?;
    let menu = Menu::on_terminal(false, false);
    let wanted = options.model.as_deref();
    let model = runtime.block_on(async {
        let http = UpstreamClient::connect().map_err(CommandFailed::Run)?;
        if options.gateway.is_none() {
            check_usual(&http, &key).await?;
        }
        find::model_of_gateway(&http, (gateway, &key), wanted, menu.as_ref()).await
    })?;
    let window = options.context_window.or_else(|| model.as_ref()?.window);
    let model = model.as_ref();
    let session = Session { gateway, key: &key, model, small: None, window, judge: None };
    let variables = clients::claude(&session);
    variables.notes.iter().for_each(|note| say(note));
    let record = Record::file()?;
    if record.exists() {
        take_back(&record)?;
    }
    let path = settings_file()?;
    let before = contents(&path)?;
    let root = parsed(before.as_deref().unwrap_or("{}\n"), &path)?;
    let object = root.object_value_or_create().ok_or_else(|| not_object(&path))?;
    let env = object.object_value_or_create("env").ok_or_else(|| not_object(&path))?;
    let usual = variables.usual.into_iter().filter(|(name, _)| env.get(name).is_none());
    let usual: Vec<_> = usual.collect();
    for (name, value) in variables.set.into_iter().chain(usual) {
        set(&env, name, json!(value));
    }
    for name in variables.unset {
        if std::env::var_os(name).is_some() || env.get(name).is_some() {
            say(&format!("{name} is set, and leads Claude Code elsewhere: unset it"));
        }
    }
    if let (None, Some(line)) = (object.get("statusLine"), claude_settings::status_line(gateway)) {
        set(&object, "statusLine", line);
    }
    let record_of = Record { path, before, after: root.to_string() };
    record_of.write(&record)?;
    write(&record_of.path, &record_of.after, options.key_env.is_some())?;
    let path = record_of.path.display();
    say(&format!("written into {path}; `creole unconfigure claude` takes it back"));
    Ok(())
}

/// Checks that a gateway at the usual address, which nobody named, may get the key and the prompts.
async fn check_usual(http: &UpstreamClient, key: &str) -> Result<(), CommandFailed> {
    match find::is_gateway(http, Some(key)).await {
        Ok(ServerOwner::Unknown) => {
            let reason = "this system does not tell which user runs it";
            say(&format!("{GATEWAY}: {reason}; --gateway names another"));
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(reason) => {
            let cure = "creole serve starts a gateway, --gateway names one, and --key-env its key";
            Err(CommandFailed::Run(format!("{GATEWAY}: {reason}: {cure}")))
        }
    }
}

/// Takes back what [`configure`] wrote.
pub(crate) fn unconfigure(options: &UnconfigureClient) -> Result<(), CommandFailed> {
    let ConfiguredClient::Claude = options.client;
    let record = Record::file()?;
    if !record.exists() {
        let reason =
            "nothing to take back: `creole configure claude` was not run, or is taken back";
        return Err(CommandFailed::Run(reason.to_owned()));
    }
    let path = take_back(&record)?;
    say(&format!("{} is as it was, but for your own changes", path.display()));
    Ok(())
}

/// Settings file before and after it was written.
struct Record {
    path: PathBuf,
    /// Contents before; `None` if there was no file.
    before: Option<String>,
    after: String,
}

impl Record {
    /// Returns the path of the record, which is also the backup of the settings.
    fn file() -> Result<PathBuf, CommandFailed> {
        let state = private_files::state_folder().map_err(CommandFailed::Run)?;
        Ok(state.join("configured-claude.json"))
    }

    fn read(file: &Path) -> Result<Self, CommandFailed> {
        let text = fs::read_to_string(file).map_err(|error| failed(file, &error))?;
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let damaged = || CommandFailed::Run(format!("{}: damaged", file.display()));
        let path = text("path").ok_or_else(damaged)?.into();
        Ok(Self { path, before: text("before"), after: text("after").ok_or_else(damaged)? })
    }

    fn write(&self, file: &Path) -> Result<(), CommandFailed> {
        let Self { path, before, after } = self;
        let not_text = || CommandFailed::Run(format!("{}: not UTF-8", path.display()));
        let path = path.to_str().ok_or_else(not_text)?;
        let text = json!({"path": path, "before": before, "after": after}).to_string();
        private_files::replace(file, &text).map_err(|error| failed(file, &error))
    }
}

/// Restores the settings of a record, and deletes the record. Returns the settings file. Changes
/// that the user made meanwhile stay; a file that is gone or empty gets its earlier contents.
fn take_back(file: &Path) -> Result<PathBuf, CommandFailed> {
    let Record { path, before, after } = Record::read(file)?;
    let now = contents(&path)?.unwrap_or_default();
    let is_empty = now.trim().is_empty();
    match before {
        Some(before) if now == after || is_empty => write(&path, &before, false)?,
        None if now == after => fs::remove_file(&path).map_err(|error| failed(&path, &error))?,
        None if is_empty => {}
        before => {
            let root = parsed(&now, &path)?;
            let object = root.object_value().ok_or_else(|| not_object(&path))?;
            let before = value(before.as_deref().unwrap_or_default(), file)?;
            restore(&object, &before, &value(&after, file)?, &value(&now, &path)?);
            write(&path, &root.to_string(), false)?;
        }
    }
    fs::remove_file(file).map_err(|error| failed(file, &error))?;
    Ok(path)
}

/// Gives each member that was changed from `before` to `after`, and not since, its earlier value:
/// each variable of `env`, and the status line if its command is still the same.
fn restore(object: &CstObject, before: &Value, after: &Value, now: &Value) {
    for (name, after) in after.as_object().into_iter().flatten() {
        let (before, now) = (before.get(name), now.get(name));
        let command = |of: &Value| of.get("command").filter(|_| name == "statusLine").cloned();
        let is_ours = now == Some(after)
            || command(after).is_some_and(|it| now.and_then(command) == Some(it));
        match (object.object_value(name), object.get(name)) {
            (Some(inner), Some(member)) if name == "env" => {
                let (was, is) = (before.unwrap_or(&Value::Null), now.unwrap_or(&Value::Null));
                restore(&inner, was, after, is);
                if before.is_none() && inner.properties().is_empty() {
                    member.remove();
                }
            }
            (_, Some(member)) if is_ours && before != Some(after) => match before {
                Some(before) => member.set_value(input(before)),
                None => member.remove(),
            },
            _ => {}
        }
    }
}

fn set(object: &CstObject, name: &str, value: Value) {
    match object.get(name) {
        Some(member) => member.set_value(input(&value)),
        None => {
            object.append(name, input(&value));
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

fn parsed(text: &str, path: &Path) -> Result<CstRootNode, CommandFailed> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| CommandFailed::Usage(format!("{}: {error}", path.display())))
}

/// Returns the value of settings, which may have comments. `file` has the text.
fn value(text: &str, file: &Path) -> Result<Value, CommandFailed> {
    let text = without_comments(text);
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_str(&text)
        .map_err(|error| CommandFailed::Run(format!("{}: {error}", file.display())))
}

fn not_object(path: &Path) -> CommandFailed {
    CommandFailed::Usage(format!("{}: not an object of JSON", path.display()))
}

/// Returns the user's settings file, whose folder exists.
fn settings_file() -> Result<PathBuf, CommandFailed> {
    let no_home = || CommandFailed::Run("no home folder is known".to_owned());
    let folder = claude_settings::folder().ok_or_else(no_home)?;
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    Ok(folder.join("settings.json"))
}

/// Returns the contents of a settings file; `None` if there is no file.
fn contents(path: &Path) -> Result<Option<String>, CommandFailed> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Writes a settings file in one step. A link stays a link. An existing file keeps its mode, unless
/// the text has a secret; a new file is private.
fn write(path: &Path, text: &str, has_secret: bool) -> Result<(), CommandFailed> {
    let written = match fs::canonicalize(path) {
        // A file that this user must not write is not replaced either.
        Ok(real) => File::options().write(true).open(&real).and_then(|file| {
            let permissions = file.metadata()?.permissions();
            private_files::replace_with(&real, text, Some(permissions).filter(|_| !has_secret))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            private_files::replace(path, text)
        }
        Err(error) => Err(error),
    };
    written.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> CommandFailed {
    CommandFailed::Run(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
