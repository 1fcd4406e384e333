//! `cargo xtask run`: a host in front of the demo model, or of a real upstream.

mod beside;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Map, Value};

use crate::children::{Children, Stop};
use crate::hosts::{Host, Plan, Prepared, Started};
use crate::http::{self, Url};
use crate::workspace::{self, step};
pub(crate) use beside::{Service, configure as configure_services};

/// Options of `cargo xtask run`.
#[derive(Args)]
pub(crate) struct RunOptions {
    /// Host of the translator: by default envoy, or the gateway with `--with`.
    #[arg(long = "on", alias = "host", value_name = "HOST", value_enum)]
    host: Option<Host>,
    /// Services of server tools to install and start beside the host, so that web searches and
    /// tools of MCP servers work without an account.
    #[arg(long = "with", value_name = "SERVICES", value_enum, value_delimiter = ',')]
    services: Vec<Service>,
    /// The base URL of a model server, such as http://localhost:11434/v1; without it the demo model
    /// answers.
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The model behind the host: the demo model, or a real one of 270 million parameters that is
    /// installed and runs on this machine.
    #[arg(long, value_enum, default_value = "demo", conflicts_with = "upstream")]
    model: Model,
    /// Where clients connect; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// The upstream's profile, such as openai, vllm or ollama.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// What the upstream speaks: openai (Chat Completions), responses or anthropic.
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// Creole's configuration, a JSON file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The models that come with the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Model {
    /// No model: answers that follow from the request.
    Demo,
    /// Gemma 3 270M in llama.cpp.
    Local,
}

/// Addresses and logs of the processes that were started.
pub(crate) struct Serving {
    /// Address to which clients connect.
    pub(crate) listen: SocketAddr,
    /// URL of the upstream behind the host.
    pub(crate) upstream: Url,
    /// Paths of the logs: the host's, then the demo model's.
    pub(crate) logs: Vec<PathBuf>,
    /// URL of the host's metrics.
    pub(crate) metrics: Option<String>,
    notes: Vec<String>,
    demo: bool,
    /// API key that clients are told to send.
    key: &'static str,
}

/// Runs the host until a signal stops the command. `local_model` starts a real model on this
/// machine, and returns its URL; `start_services` starts services, and returns their addresses.
pub(crate) fn run(
    options: &RunOptions,
    local_model: impl FnOnce(&mut Children) -> Result<Url>,
    start_services: impl FnOnce(&[Service], &mut Children) -> Result<Vec<(Service, SocketAddr)>>,
) -> Result<()> {
    let stop = Stop::shared()?;
    let usual = if options.services.is_empty() { Host::Envoy } else { Host::Gateway };
    let host = options.host.unwrap_or(usual);
    let mut document = match &options.config {
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            serde_json::from_str(&text).with_context(|| path.display().to_string())?
        }
        None => Map::new(),
    };
    if let Some(protocol) = &options.protocol {
        speak(&mut document, protocol)?;
    }
    let mut children = Children::new(stop);
    let listen = http::with_port(options.listen)?;
    // A bad URL is reported before anything is installed or built.
    let mut given = upstream_url(options.upstream.as_deref(), &document)?;
    let mut profile = options.profile.as_deref();
    if options.model == Model::Local {
        if given.is_some() {
            bail!("the configuration names an upstream, so --model local would be behind nothing");
        }
        given = Some(local_model(&mut children)?);
        profile = profile.or(Some("llama.cpp"));
    }
    let services = start_services(&options.services, &mut children)?;
    beside::configure(&mut document, &services, host)?;
    let serving = start(host, given, document, profile, listen, &mut children)?;
    print(&serving, &options.services);
    children.watch()?;
    eprintln!("stopping");
    Ok(())
}

/// Chooses a free port, and starts a host on that port with [`start`].
pub(crate) fn start_anywhere(
    host: Host,
    given: Option<Url>,
    config: Value,
    profile: Option<&str>,
    children: &mut Children,
) -> Result<Serving> {
    let Value::Object(document) = config else {
        bail!("the configuration is no object: {config}");
    };
    start(host, given, document, profile, http::free_port()?, children)
}

/// Starts a host with a complete configuration that names each upstream. Returns the address for
/// clients. In Envoy, every upstream is at `upstream`.
pub(crate) fn start_complete(
    host: Host,
    upstream: &Url,
    config: Value,
    children: &mut Children,
) -> Result<SocketAddr> {
    let listen = http::free_port()?;
    let folder = folder(listen)?;
    let config = config.to_string();
    let plan = Plan { listen, upstream: upstream.clone(), config, secrets: Vec::new(), folder };
    launch(host.prepare()?.as_ref(), &plan, children)?;
    Ok(listen)
}

/// Returns the path of the demo model's binary: `CREOLE_DEMO` if set, else newly built.
pub(crate) fn demo_model() -> Result<PathBuf> {
    workspace::ready("CREOLE_DEMO", || {
        workspace::build("creole-demo", &["--bin", "creole-demo"], "")
    })
}

/// Starts a host in front of `given`, or of the demo model, and waits until it answers.
fn start(
    host: Host,
    given: Option<Url>,
    mut document: Map<String, Value>,
    profile: Option<&str>,
    listen: SocketAddr,
    children: &mut Children,
) -> Result<Serving> {
    check_profile(&document, profile)?;
    let secrets = secrets(&document);
    for name in &secrets {
        if std::env::var_os(name).is_none() {
            bail!("the configuration names the secret {name}: set this environment variable");
        }
    }
    let folder = folder(listen)?;
    let prepared = host.prepare()?;
    let demo_log = folder.join("demo.log");
    let demo = given.is_none();
    let upstream = match given {
        Some(upstream) => upstream,
        None => {
            let binary = step("building the demo model", demo_model)?;
            let mut command = Command::new(binary);
            let url = children.start_and_read_line("the demo model", &mut command, &demo_log)?;
            Url::parse(&url)?
        }
    };
    configure(&mut document, &upstream, profile)?;
    let key = client_key(demo, &upstream, &secrets);
    let config = Value::Object(document).to_string();
    let plan = Plan { listen, upstream, config, secrets, folder };
    let started = launch(prepared.as_ref(), &plan, children)?;
    let mut logs = vec![started.log];
    if demo {
        logs.push(demo_log);
    }
    Ok(Serving {
        listen,
        upstream: plan.upstream,
        logs,
        metrics: started.metrics,
        notes: started.notes,
        demo,
        key,
    })
}

/// Creates a folder for the files of a host, named by the host's port, so that several hosts can
/// run at the same time.
fn folder(listen: SocketAddr) -> Result<PathBuf> {
    let folder = workspace::own().join("run").join(listen.port().to_string());
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Starts a host and waits until it answers.
fn launch(prepared: &dyn Prepared, plan: &Plan, children: &mut Children) -> Result<Started> {
    eprintln!("· starting");
    let started = prepared.start(plan, children)?;
    // Compiling the filter takes Envoy a second or two, more on a busy machine.
    children.wait_until("the host", Duration::from_secs(60), || {
        http::status(plan.listen, "/").is_ok()
    })?;
    Ok(started)
}

fn print(serving: &Serving, services: &[Service]) {
    let Serving { listen, upstream, logs, metrics, notes, demo, key } = serving;
    let model = if *demo { "demo" } else { "MODEL" };
    // The demo model answers to every name; other models refuse the small model that Claude Code
    // requests.
    let small = if *demo {
        ""
    } else {
        "ANTHROPIC_DEFAULT_HAIKU_MODEL=MODEL ANTHROPIC_DEFAULT_SONNET_MODEL=MODEL "
    };
    let scheme = if upstream.tls { "https" } else { "http" };
    let Url { host, port, path, .. } = upstream;
    let behind = if *demo { "the demo model, " } else { "" };
    println!(
        "\nCreole answers at http://{listen} in front of {behind}{scheme}://{host}:{port}{path}\n"
    );
    let named = if *demo {
        ""
    } else {
        ", in place of MODEL with the name that your server has, or one that your \"models\" cover"
    };
    println!(
        r#"Try it{named}:

  curl -N http://{listen}/v1/messages \
    -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \
    -H "x-api-key: {key}" -d '{{
      "model": "{model}", "max_tokens": 100, "stream": true,
      "messages": [{{"role": "user", "content": "Hi"}}]}}'

Claude Code:

  ANTHROPIC_BASE_URL=http://{listen} ANTHROPIC_AUTH_TOKEN={key} ANTHROPIC_MODEL={model} {small}claude
"#
    );
    print!("{}", beside::commands(services, *listen, key, (model, *demo)));
    if let Some(metrics) = metrics {
        println!("Metrics: {metrics}");
    }
    for log in logs {
        println!("Log: {}", log.display());
    }
    for note in notes {
        println!("{note}");
    }
    println!("Ctrl-C stops everything.");
}

/// Returns the API key that clients are told to send: an environment variable if the upstream may
/// check the key, else a fixed text. An unset variable would send no key, which hosts refuse.
fn client_key(demo: bool, upstream: &Url, secrets: &[String]) -> &'static str {
    match (demo, upstream.tls && secrets.is_empty()) {
        (true, _) => "demo",
        (false, true) => "$OPENAI_API_KEY",
        (false, false) => "local",
    }
}

/// Returns the configuration's only upstream, and adds an empty one if none is configured.
fn own_upstream(document: &mut Map<String, Value>) -> Result<&mut Map<String, Value>> {
    let upstreams = document.entry("upstreams").or_insert_with(|| Map::new().into());
    let upstreams = upstreams.as_object_mut().context("upstreams: expected an object")?;
    if upstreams.len() > 1 {
        bail!(
            "cargo xtask run serves one upstream, and the configuration has {}: start the host with a \
             configuration of your own (for Envoy, made from envoy/envoy.yaml)",
            upstreams.len()
        );
    }
    let name = upstreams.keys().next().cloned().unwrap_or_else(|| "default".to_owned());
    let upstream = upstreams.entry(name).or_insert_with(|| Map::new().into());
    upstream.as_object_mut().context("upstreams: expected an object in it")
}

/// Returns the upstream's members in the configuration.
fn given_upstream(document: &Map<String, Value>) -> Result<Map<String, Value>> {
    own_upstream(&mut document.clone()).cloned()
}

/// Returns the upstream's URL from the option, else from the configuration, else `None`.
fn upstream_url(option: Option<&str>, document: &Map<String, Value>) -> Result<Option<Url>> {
    if let Some(url) = option {
        return Url::parse(url).map(Some);
    }
    let upstream = given_upstream(document)?;
    let Some(url) = upstream.get("url").and_then(Value::as_str).filter(|url| !url.is_empty())
    else {
        return Ok(None);
    };
    Url::parse(url).map(Some)
}

/// Writes the upstream's URL and the profile into the configuration.
fn configure(
    document: &mut Map<String, Value>,
    upstream: &Url,
    profile: Option<&str>,
) -> Result<()> {
    let own = own_upstream(document)?;
    let scheme = if upstream.tls { "https" } else { "http" };
    let host = if upstream.host.contains(':') {
        format!("[{}]", upstream.host)
    } else {
        upstream.host.clone()
    };
    let usual = if upstream.tls { 443 } else { 80 };
    let port = if upstream.port == usual { String::new() } else { format!(":{}", upstream.port) };
    own.insert("url".to_owned(), format!("{scheme}://{host}{port}").into());
    if !upstream.path.is_empty() {
        own.insert("base_path".to_owned(), upstream.path.as_str().into());
    }
    if let Some(profile) = profile {
        // The overrides belong to the profile that is replaced.
        own.remove("profile_overrides");
        own.insert("profile".to_owned(), profile.into());
    }
    Ok(())
}

/// Writes the upstream's protocol into the configuration.
pub(crate) fn speak(document: &mut Map<String, Value>, protocol: &str) -> Result<()> {
    let upstream = own_upstream(document)?;
    upstream.insert("protocol".to_owned(), protocol.into());
    Ok(())
}

/// Checks the profile's name against the published schema, so that a wrong name fails before
/// minutes of building.
fn check_profile(document: &Map<String, Value>, option: Option<&str>) -> Result<()> {
    let own = given_upstream(document)?;
    let Some(profile) = option.or_else(|| own.get("profile")?.as_str()) else {
        return Ok(());
    };
    let path = workspace::root().join("docs/configuration.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    let known =
        schema.pointer("/properties/upstreams/additionalProperties/properties/profile/enum");
    let known: Vec<&str> =
        known.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if !known.contains(&profile) {
        bail!("there is no profile {profile:?}: expected one of {}", known.join(", "));
    }
    Ok(())
}

/// Returns the variable names in `key: {secret: NAME}` of the configuration.
fn secrets(document: &Map<String, Value>) -> Vec<String> {
    let upstreams = document.get("upstreams").and_then(Value::as_object);
    let upstreams = upstreams.into_iter().flat_map(Map::values);
    let names = upstreams.filter_map(|upstream| upstream.pointer("/key/secret")?.as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
