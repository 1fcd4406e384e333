//! `creole check-config`: checks a configuration file, or prints the JSON Schema of configurations.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use creole::config::{Secrets, is_variable};

use crate::CommandFailed;
use crate::configure::{Document, Wrong, read, text_of};
use crate::terminal::say;

#[derive(Debug, Args)]
pub(crate) struct CheckConfig {
    /// The configuration, one JSON document
    #[arg(required_unless_present = "schema")]
    pub(crate) file: Option<PathBuf>,
    /// Print the JSON Schema of the configuration instead
    #[arg(long, conflicts_with = "file")]
    pub(crate) schema: bool,
}

pub(crate) fn run(options: &CheckConfig) -> Result<bool, CommandFailed> {
    match &options.file {
        Some(file) => check(file),
        None => print_schema(),
    }
}

/// Checks a configuration document. The document may be for another host, so a missing value that
/// only `serve` needs is just a note.
fn check(file: &Path) -> Result<bool, CommandFailed> {
    let notes = std::cell::RefCell::new(Vec::new());
    // Client keys must differ from one another.
    let unused = |name: &str| format!("unused-{name}");
    let in_file = |path: &str| {
        text_of(Path::new(path)).or_else(|reason| {
            notes.borrow_mut().push(format!("cannot read {path}: {reason}"));
            Ok(unused(path))
        })
    };
    let variable = |name: &str| {
        let value = std::env::var(name).unwrap_or_default();
        if value.is_empty() && is_variable(name) {
            notes.borrow_mut().push(format!("the environment variable {name} is not set"));
            return Some(unused(name));
        }
        // A secret's name that cannot be a variable may be the key itself, so the error for the
        // document does not repeat the name.
        Some(value).filter(|value| !value.is_empty())
    };
    let document = Document::File(file.to_owned());
    let checked = read(Some(&document), &Secrets { variable: &variable, file: &in_file });
    match checked {
        Ok(config) => {
            let mut notes = notes.into_inner();
            for upstream in config.upstreams.values().filter(|upstream| upstream.url.is_empty()) {
                notes.push(format!("upstreams.{}.url is not set", upstream.name));
            }
            // `--key-env` may still give the upstream a key.
            if let Err(reason) = config.check_client_keys() {
                notes.push(reason.trim_start_matches("configuration: ").to_owned());
            }
            for note in notes {
                say(io::stderr(), &format!("note: {note}; `creole serve` needs it"))?;
            }
            for note in config.notes() {
                say(io::stderr(), &format!("note: {note}"))?;
            }
            say(io::stdout(), "ok")?;
            Ok(true)
        }
        Err(Wrong::Unreadable(failed)) => Err(failed),
        Err(Wrong::Document(reason)) => {
            say(io::stderr(), &format!("{}: {reason}", file.display()))?;
            Ok(false)
        }
    }
}

/// Prints the JSON Schema of the configuration.
fn print_schema() -> Result<bool, CommandFailed> {
    say(io::stdout(), &creole::config::schema::schema())?;
    Ok(true)
}
