//! The official SDKs in front of a host, with the demo model behind it.
//!
//! Each release is installed into a folder of its own below `.creole/sdk`, and runs the scripts in
//! `tests/clients/sdk`: the newest of each language, which sends `authorization`, and an older one, which
//! sends `x-api-key`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use serde_json::Map;

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
    let stop = Stop::shared()?;
    let mut children = Children::new(stop);
    let listen = crate::http::with_port(([127, 0, 0, 1], 0).into())?;
    let serving = run::start(host, None, Map::new(), None, listen, &mut children)?;
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
        let folder = own().join("sdk").join(format!("{}-{}", self.language.name(), self.version));
        let scripts = workspace::root().join("tests/clients/sdk");
        let program =
            step(&format!("installing into {}", folder.display()), || self.install(&folder))?;
        let mut command = Command::new(program);
        command.current_dir(&folder).arg(scripts.join(match self.language {
            Language::Python => "python_sdk.py",
            Language::TypeScript => "typescript_sdk.mjs",
        }));
        let demo = &serving.upstream;
        command.arg(format!("http://{}", serving.listen));
        command.arg(format!("http://{}:{}", demo.host, demo.port));
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
