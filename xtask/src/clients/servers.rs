//! `cargo xtask clients --servers`: tests with real model servers behind a host, using a tiny model
//! whose answers are known.
//!
//! A server is a folder of `harness/real-servers` with a `server.json`; [`Server`] says what is in
//! it. Its `serve.py` starts the server; `checks.py` asks the host with an official SDK and
//! compares what comes back.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ClientsOptions, Protocol, install};
use crate::catalog::{self, Entry, Tier};
use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::http::Url;
use crate::workspace::{self, step};
use crate::{run, setup};

/// Model server under test: its folder, and the contents of `server.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    /// Name of the server's folder.
    #[serde(skip)]
    folder: String,
    /// Name of the server as people write it.
    name: String,
    /// Tier that decides when the server is tested.
    tier: Tier,
    /// Name of the server's profile in Creole's configuration.
    profile: String,
    /// Flags that override the flags of the server's profile.
    #[serde(default)]
    overrides: Map<String, Value>,
    /// Name of the model on this server; `FOLDER` stands for the path of the model's folder.
    #[serde(default = "tiny")]
    model: String,
    /// Hosts that are tested in front of this server.
    hosts: Vec<Host>,
    /// Request fields that make the model generate without end.
    endless: Map<String, Value>,
    /// Method of detecting that the server computes. Only `checks.py` reads it.
    #[serde(rename = "occupied")]
    _occupied: String,
    /// Maximum number of tokens of a prompt and its answer together. Only `checks.py` reads it.
    #[serde(rename = "window", default)]
    _window: Option<u64>,
    /// Abilities that the server lacks, by the name of the check that shows the lack. Only
    /// `checks.py` reads them.
    #[serde(rename = "lacks", default)]
    _lacks: Map<String, Value>,
    /// Abilities that cannot be tested with this server, by the name of the skipped check. Only
    /// `checks.py` reads them.
    #[serde(rename = "skips", default)]
    _skips: Map<String, Value>,
    /// Settings that differ when Creole uses the server's Responses API; `None` if the server lacks
    /// this API.
    responses: Option<OverResponses>,
}

/// Settings that differ when Creole uses the server's Responses API.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverResponses {
    /// Profile flags that replace `Server::overrides`.
    #[serde(default)]
    overrides: Map<String, Value>,
    #[serde(rename = "lacks", default)]
    _lacks: Map<String, Value>,
    #[serde(rename = "skips", default)]
    _skips: Map<String, Value>,
}

impl Entry for Server {
    const FOLDER: &'static str = "real-servers";
    const KIND: &'static str = "server";

    fn folder(&mut self) -> &mut String {
        &mut self.folder
    }

    fn tier(&self) -> Tier {
        self.tier
    }
}

fn tiny() -> String {
    "tiny".to_owned()
}

/// Tests the chosen servers, all of them even after a failure. Returns true if all passed.
pub(crate) fn servers(options: &ClientsOptions) -> Result<bool> {
    let mut good = true;
    for server in catalog::chosen::<Server>(&options.names)? {
        if options.protocol == Protocol::Responses && server.responses.is_none() {
            println!("{} does not speak Responses", server.name);
            continue;
        }
        let done = server.check(&options.host, options.protocol, setup::run);
        if let Err(error) = &done {
            println!("{}: {error:#}", server.name);
        }
        good &= done.is_ok();
    }
    Ok(good)
}

/// Tests one server, by the name of its folder. `each` runs a command and counts its tests.
pub(crate) fn test(
    folder: &str,
    protocol: Protocol,
    each: impl FnMut(&mut Command) -> Result<()>,
) -> Result<()> {
    catalog::read::<Server>(folder)?.check(&[], protocol, each)
}

fn sources() -> PathBuf {
    catalog::sources::<Server>()
}

impl Server {
    /// Installs and starts the server, and tests every host in front of it.
    fn check(
        &self,
        hosts: &[Host],
        protocol: Protocol,
        mut each: impl FnMut(&mut Command) -> Result<()>,
    ) -> Result<()> {
        let (sources, own) = (sources(), workspace::own().join("real-servers").join(&self.folder));
        install::locked(&self.name, &sources.join(&self.folder), &own, None)?;
        let sdk = super::python_with_sdk()?;
        let mut children = Children::new(Stop::shared()?);
        // Stages of one server can run in parallel, so each protocol has its own folder.
        let files = own.join("files").join(protocol.word());
        fs::create_dir_all(&files)?;
        let mut serve = Command::new(own.join("python/bin/python"));
        serve.arg("-B").arg(sources.join(&self.folder).join("serve.py"));
        serve.arg(sources.join("model")).arg(&files);
        let address = step(&format!("starting {}", self.name), || {
            children.start_and_read_line("the model server", &mut serve, &files.join("server.log"))
        })?;
        let process = children.newest().context("no server was started")?.to_string();
        let mut failed = Vec::new();
        let hosts = if hosts.is_empty() { &self.hosts } else { hosts };
        for &host in hosts {
            println!("\n== {} behind {} in {protocol:?}", self.name, host.name());
            // The host ends before the next host starts; the model server stays.
            let mut in_front = Children::new(Stop::shared()?);
            let config = self.config(&address, protocol);
            let listen = run::start_complete(host, &Url::parse(&address)?, config, &mut in_front)?;
            let mut checks = Command::new(&sdk);
            checks.arg("-B").arg(sources.join("checks.py")).arg(host.name());
            checks.arg(format!("http://{listen}"));
            checks.arg(&address).arg(sources.join(&self.folder).join("server.json"));
            if let Err(error) = each(checks.arg(&process).arg(protocol.word())) {
                failed.push(format!("{}: {error:#}", host.name()));
            }
        }
        if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
    }

    /// Returns Creole's configuration with the server as two upstreams: a normal one, and one whose
    /// model never ends by itself and gets no stop sequences.
    fn config(&self, address: &str, protocol: Protocol) -> Value {
        let overrides = match (&self.responses, protocol) {
            (Some(responses), Protocol::Responses) => &responses.overrides,
            _ => &self.overrides,
        };
        let mut endless = overrides.clone();
        endless.insert("stop".to_owned(), false.into());
        endless.insert("extra_body".to_owned(), self.endless.clone().into());
        let upstream = |overrides: &Map<String, Value>| {
            json!({
                "url": address, "protocol": protocol.word(), "profile": self.profile,
                "profile_overrides": overrides
            })
        };
        let model = match self.model.as_str() {
            "FOLDER" => sources().join("model").display().to_string(),
            name => name.to_owned(),
        };
        json!({
            "count_tokens": "upstream",
            "upstreams": {"endless": upstream(&endless), "server": upstream(overrides)},
            "models": {
                "endless": {"upstream": "endless", "model": model},
                "*": {"upstream": "server", "model": model},
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_its_files_and_hosts_that_exist() {
        let all = catalog::chosen::<Server>(&["all".to_owned()]).unwrap();
        assert!(all.len() > 1);
        for server in all {
            let folder = sources().join(&server.folder);
            for file in ["serve.py", "requirements.txt"] {
                assert!(folder.join(file).is_file(), "{}: {file}", server.folder);
            }
            assert!(!server.hosts.is_empty(), "{}", server.folder);
        }
    }

    #[test]
    fn a_name_that_is_no_server_is_refused() {
        let error = catalog::chosen::<Server>(&["vlm".to_owned()]).err().unwrap().to_string();
        assert!(error.contains("llama.cpp"), "{error}");
    }
}
