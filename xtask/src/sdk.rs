//! The official SDKs in front of a host, with the demo model behind it.
//!
//! Each release is installed into a folder of its own below `.creole/sdk`, and runs the scripts in
//! `tests/clients/sdk`: the newest of each language, which sends `authorization`, and an older one, which
//! sends `x-api-key`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use clap::ValueEnum as _;
use serde_json::{Map, Value, json};

use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::run::{self, Serving};
use crate::setup::{self, NODE, PYTHON};
use crate::workspace::{self, own, step};

enum Language {
    Python,
    TypeScript,
}

struct Sdk {
    language: Language,
    version: &'static str,
}

const SDKS: [Sdk; 4] = [
    Sdk { language: Language::Python, version: "2.12.0" },
    Sdk { language: Language::Python, version: "1.17.0" },
    Sdk { language: Language::TypeScript, version: "1.12.0" },
    Sdk { language: Language::TypeScript, version: "0.137.0" },
];

/// Runs every SDK against a host, and gives the commands' counts one by one.
pub(crate) fn test(host: Host, mut each: impl FnMut(&mut Command) -> Result<()>) -> Result<()> {
    let mut children = Children::new(Stop::shared()?);
    let serving = serve(host, Map::new(), &mut children)?;
    let mut failed = Vec::new();
    for sdk in &SDKS {
        println!("\n{} SDK {}", sdk.language.name(), sdk.version);
        if let Err(error) = sdk.command(&serving).and_then(|mut command| each(&mut command)) {
            println!("{error:#}");
            failed.push(format!("{} {}", sdk.language.name(), sdk.version));
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Configurations without guards, and with them; for Envoy, also one that writes from a timer. A
/// client's own patience outlasts these times.
fn guards(host: Host) -> Vec<Value> {
    let on = json!({
        "guards": {"tool_turns_max": 9}, "first_byte_timeout_ms": 500, "stall_timeout_ms": 500
    });
    let mut deferred = on.clone();
    if let Some(document) = deferred.as_object_mut() {
        document.insert("deferred_flush".to_owned(), true.into());
    }
    let off = json!({
        "guards": {"pairing": "off", "breaker": {"failures_max": 0, "withhold_after": 0}}
    });
    if matches!(host, Host::Envoy) { vec![off, on, deferred] } else { vec![off, on] }
}

/// Runs the newest SDK of Python against a host without guards, where failures must happen, and
/// against one with guards, where they must not.
pub(crate) fn test_guards(
    host: Host,
    mut each: impl FnMut(&mut Command) -> Result<()>,
) -> Result<()> {
    let [sdk, ..] = &SDKS;
    let mut children = Children::new(Stop::shared()?);
    let name = host.to_possible_value().map(|value| value.get_name().to_owned());
    let mut command = sdk.script("guards.py")?;
    command.arg(name.unwrap_or_default());
    for document in guards(host) {
        let document = document.as_object().cloned().unwrap_or_default();
        command.args(addresses(&serve(host, document, &mut children)?));
    }
    each(&mut command)
}

fn serve(host: Host, document: Map<String, Value>, children: &mut Children) -> Result<Serving> {
    let listen = crate::http::with_port(([127, 0, 0, 1], 0).into())?;
    run::start(host, None, document, None, listen, children)
}

/// Of the host, and of the demo model behind it.
fn addresses(serving: &Serving) -> [String; 2] {
    let demo = &serving.upstream;
    [format!("http://{}", serving.listen), format!("http://{}:{}", demo.host, demo.port)]
}

impl Language {
    fn name(&self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::TypeScript => "typescript",
        }
    }
}

impl Sdk {
    fn command(&self, serving: &Serving) -> Result<Command> {
        let mut command = self.script(match self.language {
            Language::Python => "python_sdk.py",
            Language::TypeScript => "typescript_sdk.mjs",
        })?;
        command.args(addresses(serving));
        Ok(command)
    }

    fn script(&self, name: &str) -> Result<Command> {
        let folder = own().join("sdk").join(format!("{}-{}", self.language.name(), self.version));
        let program =
            step(&format!("installing into {}", folder.display()), || self.install(&folder))?;
        let mut command = Command::new(program);
        command.current_dir(&folder).arg(workspace::root().join("tests/clients/sdk").join(name));
        Ok(command)
    }

    /// Gives the program that runs the scripts. A file says that an installation is complete.
    fn install(&self, folder: &Path) -> Result<PathBuf> {
        let complete = folder.join("complete");
        let program = match self.language {
            Language::Python => folder.join("bin/python"),
            Language::TypeScript => "node".into(),
        };
        if complete.is_file() {
            return Ok(program);
        }
        match self.language {
            Language::Python => {
                setup::need(&PYTHON)?;
                setup::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
                setup::run(
                    Command::new(&program)
                        .args(["-m", "pip", "install", "--quiet", "--no-input"])
                        .args(["--disable-pip-version-check"])
                        .arg(format!("anthropic=={}", self.version)),
                )?;
            }
            Language::TypeScript => {
                setup::need(&NODE)?;
                fs::create_dir_all(folder)?;
                fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
                setup::run(
                    Command::new("npm")
                        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
                        .args(["--loglevel", "error", "zod@4.6.7"])
                        .arg(format!("@anthropic-ai/sdk@{}", self.version))
                        .current_dir(folder)
                        .stdout(Stdio::null()),
                )?;
            }
        }
        fs::write(&complete, "")?;
        Ok(program)
    }
}
