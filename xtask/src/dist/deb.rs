//! Packages for Debian and Ubuntu, made by nFPM.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::binaries::{self, Documents, Target};
use crate::setup;
use crate::workspace::{self, step};

/// The targets with a package, and how Debian calls their processors.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64-unknown-linux-musl", "amd64"), ("aarch64-unknown-linux-musl", "arm64")];

/// The time of every file. nFPM takes an earlier one for none.
const TIME: &str = "1980-01-01T00:00:00Z";

/// The name of the file of a package.
fn name(architecture: &str) -> String {
    format!("creole_{}_{architecture}.deb", env!("CARGO_PKG_VERSION"))
}

/// Makes the packages.
pub(super) fn packages(dist: &Path) -> Result<()> {
    let documents = Documents::read()?;
    for (triple, architecture) in ARCHITECTURES {
        let binary = binaries::built(Target::of(triple)?)?;
        let name = name(architecture);
        step(&format!("writing dist/{name}"), || {
            let folder = workspace::root().join("target/deb").join(architecture);
            workspace::emptied(&folder)?;
            fs::write(folder.join("copyright"), documents.copyright())?;
            let unit = fs::read_to_string(workspace::root().join("gateway/deploy/creole.service"))?;
            fs::write(folder.join("creole.service"), unit.replace("/usr/local/bin/", "/usr/bin/"))?;
            let recipe = recipe(architecture, &binary, &folder);
            fs::write(folder.join("nfpm.json"), recipe.to_string())?;
            setup::run(
                Command::new(setup::nfpm()?)
                    .args(["package", "--packager", "deb", "--config"])
                    .arg(folder.join("nfpm.json"))
                    .arg("--target")
                    .arg(dist.join(&name)),
            )
        })?;
    }
    Ok(())
}

/// What nFPM reads; its YAML can be JSON.
fn recipe(architecture: &str, binary: &Path, folder: &Path) -> Value {
    let file = |from: &Path, to: &str, mode: u32| json!({"src": from, "dst": to, "file_info": {"mode": mode, "mtime": TIME}});
    json!({
        "name": "creole", "arch": architecture, "platform": "linux",
        "version": env!("CARGO_PKG_VERSION"), "mtime": TIME,
        "section": "net", "priority": "optional", "license": "Apache-2.0",
        "maintainer": "The authors of Creole",
        "description": "Any client of the Anthropic Messages API on models of other APIs\n\
            One native binary: Claude Code, SDKs and n8n in front of Ollama, vLLM, OpenAI and others.\n\
            creole.service is there for `systemctl enable --now creole`, once /etc/creole.json is.",
        "deb": {"compression": "gzip"},
        "contents": [
            file(binary, "/usr/bin/creole", 0o755),
            file(&folder.join("creole.service"), "/usr/lib/systemd/system/creole.service", 0o644),
            file(&folder.join("copyright"), "/usr/share/doc/creole/copyright", 0o644),
        ],
    })
}
