//! `cargo xtask load`: starts each compared proxy in front of one demo model. The generator
//! (`harness/load`) then measures the proxies and writes the last part of docs/speed.md.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use rustix::process::{Resource, Rlimit};
use serde_json::{Value, json};

use crate::children::{Children, Stop};
use crate::clients::install;
use crate::hosts::worker;
use crate::hosts::{Host, Plan, Prepared as _, envoy, gateway};
use crate::http::{self, Url};
use crate::setup;
use crate::workspace::{self, step};

/// Options of `cargo xtask load`.
#[derive(Args)]
pub(crate) struct LoadOptions {
    /// Only the proxies with one of these words in their name.
    #[arg(value_name = "WORD")]
    only: Vec<String>,
    /// One short round with few streams, and no page.
    #[arg(long)]
    quick: bool,
    /// Make the page and the plots from the results of the last run.
    #[arg(long, conflicts_with = "quick")]
    page: bool,
}

/// Function that starts one proxy and returns its address. The proxy's process is the newest child.
type Start = fn(&Setting, &mut Children) -> Result<SocketAddr>;

/// Table of the proxies: name, dialect of the requests, and start function.
/// `harness/load/src/page.rs` uses the same names.
const PROXIES: &[(&str, &str, Start)] = &[
    ("Envoy", "chat", plain_envoy),
    ("Envoy, drain and emit", "chat", draining_envoy),
    ("Envoy, Creole", "messages", |setting, children| hosted(Host::Envoy, setting, children)),
    ("gateway, Creole", "messages", released_gateway),
    ("workerd, pass-through", "chat", passing_worker),
    ("workerd, Creole", "messages", |setting, children| hosted(Host::Worker, setting, children)),
    ("LiteLLM", "messages", litellm),
    ("claude-code-router", "messages", router),
];

/// Values that every function that starts a proxy receives.
struct Setting {
    upstream: Url,
    folder: PathBuf,
}

/// Runs the measurements and writes the results.
pub(crate) fn load(options: &LoadOptions) -> Result<()> {
    let folder = workspace::own().join("load");
    fs::create_dir_all(&folder)?;
    let generator = step("building the generator", || {
        workspace::build("creole-load", &["--profile", "tool"], "")
    })?;
    let mut generator = Command::new(generator);
    // Partial results must not look like complete ones.
    let partial = options.quick || !options.only.is_empty();
    let kept = if partial { "partial.json" } else { "results.json" };
    generator.arg("--results").arg(folder.join(kept));
    if !partial {
        generator.arg("--docs").arg(workspace::root().join("docs"));
    }
    if options.page {
        return setup::run(&mut generator);
    }
    if options.quick {
        generator.args(["--rounds", "1", "--seconds", "2", "--streams", "1,50"]);
    }
    known(&options.only)?;
    many_connections()?;
    let mut children = Children::new(Stop::shared()?);
    let plan = start(&folder, &options.only, &mut children)?;
    let path = folder.join("plan.json");
    fs::write(&path, plan.to_string())?;
    setup::run(generator.arg("--plan").arg(&path))
}

/// Checks that each word matches a proxy's name, since a misspelt word would silently select
/// nothing.
fn known(words: &[String]) -> Result<()> {
    let names: Vec<&str> = PROXIES.iter().map(|(name, ..)| *name).collect();
    match words.iter().find(|word| !names.iter().any(|name| name.contains(word.as_str()))) {
        Some(word) => bail!("no proxy has {word} in its name; there are: {}", names.join("; ")),
        None => Ok(()),
    }
}

/// Raises the limit on open files for this process and its children, because each stream needs a
/// connection on both sides of a proxy.
fn many_connections() -> Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    Ok(rustix::process::setrlimit(Resource::Nofile, raised)?)
}

/// Starts the demo model and the chosen proxies. Returns the generator's plan.
fn start(folder: &Path, only: &[String], children: &mut Children) -> Result<Value> {
    let binary = step("building the demo model", || {
        workspace::build("creole-demo", &["--bin", "creole-demo", "--profile", "tool"], "")
    })?;
    let log = folder.join("demo.log");
    let mut command = Command::new(binary);
    let url = Url::parse(&children.start_and_read_line("the demo model", &mut command, &log)?)?;
    let address: SocketAddr = format!("{}:{}", url.host, url.port).parse()?;
    let setting = Setting { upstream: url, folder: folder.to_owned() };
    let alone = json!({"name": "upstream alone", "address": address, "dialect": "chat"});
    let mut targets = vec![alone];
    for (name, dialect, start) in PROXIES {
        if !only.is_empty() && !only.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        eprintln!("· starting {name}");
        let address = start(&setting, children)?;
        let pid = children.newest();
        children
            .wait_until(name, Duration::from_secs(180), || http::status(address, "/").is_ok())?;
        let target = json!({"name": name, "address": address, "pid": pid, "dialect": dialect});
        targets.push(target);
    }
    Ok(json!({"upstream": address, "targets": targets}))
}

impl Setting {
    /// Returns the settings for one of the hosts that `run` can start.
    fn plan(&self, name: &str) -> Result<Plan> {
        let Url { host, port, .. } = &self.upstream;
        let config = json!({"upstreams": {"default": {"url": format!("http://{host}:{port}")}}});
        Ok(Plan {
            listen: http::free_port()?,
            upstream: self.upstream.clone(),
            config: config.to_string(),
            secrets: Vec::new(),
            folder: self.folder(name)?,
        })
    }

    /// Creates a folder for the files of one proxy.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    fn base(&self) -> String {
        format!("http://{}:{}/v1", self.upstream.host, self.upstream.port)
    }
}

fn hosted(host: Host, setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    let plan = setting.plan(host.name())?;
    host.prepare()?.start(&plan, children)?;
    Ok(plan.listen)
}

fn released_gateway(setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    let plan = setting.plan("gateway")?;
    gateway::released()?.start(&plan, children)?;
    Ok(plan.listen)
}

fn plain_envoy(setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    let plan = setting.plan("envoy-plain")?;
    envoy::instead(None)?.start(&plan, children)?;
    Ok(plan.listen)
}

fn draining_envoy(setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    setup::target(setup::WASI)?;
    let sources = sources().join("drain");
    let target = workspace::root().join("target/load-drain");
    step("building the filter that drains and emits", || {
        let mut cargo = workspace::cargo(["build", "--release", "--locked", "--quiet"]);
        cargo.args(["--target", setup::WASI]).current_dir(&sources);
        setup::run(cargo.env("CARGO_TARGET_DIR", &target))
    })?;
    let filter = target.join("wasm32-wasip1/release/creole_load_drain.wasm");
    let plan = setting.plan("envoy-drain")?;
    envoy::instead(Some(filter))?.start(&plan, children)?;
    Ok(plan.listen)
}

/// Starts a Worker in JavaScript that passes requests through unchanged.
fn passing_worker(setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    let folder = setting.folder("worker-pass")?;
    let listen = http::free_port()?;
    let Url { host, port, .. } = &setting.upstream;
    fs::copy(sources().join("pass.js"), folder.join("pass.js"))?;
    let config = folder.join("workerd.capnp");
    fs::write(
        &config,
        format!(
            r#"using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "pass", worker = .pass),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "{listen}", http = (), service = "pass")],
);

const pass :Workerd.Worker = (
  modules = [(name = "pass.js", esModule = embed "pass.js")],
  {compatibility}
  bindings = [(name = "UPSTREAM", text = "http://{host}:{port}")],
);
"#,
            compatibility = worker::compatibility()?,
        ),
    )?;
    let mut command = Command::new(setup::workerd()?);
    command.arg("serve").arg(&config);
    children.start("workerd, passing through", &mut command, &folder.join("workerd.log"))?;
    Ok(listen)
}

fn litellm(setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    let installed = setting.folder("litellm")?;
    install::locked("LiteLLM", &sources().join("litellm"), &installed, None)?;
    let listen = http::free_port()?;
    let config = installed.join("config.json");
    let parameters =
        json!({"model": "openai/demo", "api_base": setting.base(), "api_key": "sk-load"});
    // Without this setting, LiteLLM turns a Messages request into one of the Responses API.
    let settings = json!({"use_chat_completions_url_for_anthropic_messages": true});
    let models = json!([{"model_name": "demo", "litellm_params": parameters}]);
    // JSON is YAML too.
    fs::write(&config, json!({"model_list": models, "litellm_settings": settings}).to_string())?;
    let mut command = Command::new(installed.join("python/bin/litellm"));
    command.arg("--config").arg(&config).args(["--num_workers", "1", "--host", "127.0.0.1"]);
    command.args(["--port", &listen.port().to_string()]);
    // LiteLLM must neither fetch its table of prices nor send telemetry.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_TELEMETRY", "False");
    command.env("LITELLM_LOG", "ERROR");
    children.start("LiteLLM", &mut command, &installed.join("litellm.log"))?;
    Ok(listen)
}

fn router(setting: &Setting, children: &mut Children) -> Result<SocketAddr> {
    let installed = setting.folder("claude-code-router")?;
    let locks = sources().join("claude-code-router");
    install::locked("claude-code-router", &locks, &installed, None)?;
    let listen = http::free_port()?;
    let home = installed.join("home");
    fs::create_dir_all(home.join(".claude-code-router"))?;
    let url = format!("{}/chat/completions", setting.base());
    let config = json!({
        "LOG": false, "HOST": "127.0.0.1", "PORT": listen.port(), "NON_INTERACTIVE_MODE": true,
        "Providers": [{"name": "demo", "api_base_url": url, "api_key": "sk-load", "models": ["demo"]}],
        "Router": {"default": "demo,demo"}
    });
    fs::write(home.join(".claude-code-router/config.json"), config.to_string())?;
    let script = "node_modules/@musistudio/claude-code-router/dist/cli.js";
    let mut command = Command::new("node");
    command.arg(installed.join(script)).arg("start").env("HOME", &home);
    children.start("claude-code-router", &mut command, &installed.join("router.log"))?;
    Ok(listen)
}

fn sources() -> PathBuf {
    workspace::root().join("harness/load")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_in_no_name_of_a_proxy_is_refused() {
        known(&["Envoy".to_owned(), "LiteLLM".to_owned()]).unwrap();
        let error = known(&["Envoy".to_owned(), "litelm".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("litelm") && error.contains("LiteLLM"), "{error}");
    }

    #[test]
    fn the_page_knows_the_proxies_by_these_names() {
        let page = fs::read_to_string(sources().join("src/page.rs")).unwrap();
        for (name, ..) in PROXIES {
            assert!(page.contains(&format!("\"{name}\"")), "{name}");
        }
        // The page may name no other proxies, because its text about them would vanish.
        let constants =
            page.lines().filter_map(|line| line.split_once(": &str = \"")?.1.strip_suffix("\";"));
        let constants: Vec<&str> = constants.collect();
        assert!(constants.len() > 5, "the names are written in another way: {constants:?}");
        for name in constants {
            assert!(PROXIES.iter().any(|(known, ..)| *known == name), "{name}");
        }
    }
}
