//! `creole envoy-config`: prints a finished configuration for an Envoy, made from the template
//! `envoy/envoy.yaml`.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use creole::Config;
use creole::config::{Key, Upstream, is_variable, without_comments};
use creole::profile::presets::KnownServer;
use hyper::Uri;
use serde_json::{Value, json};

use crate::CommandFailed;
use crate::configure::{self, Chosen, Document, NamedUpstream};
use crate::probe::guess;
use crate::terminal::{self, say};

/// Template of Envoy's configuration. The file is a link, because a package has only its own files.
const TEMPLATE: &str = include_str!("envoy.yaml");

/// First lines of the printed configuration.
const HEAD: &str = "\
# Creole in a stock Envoy (1.35 or later), written by `creole envoy-config`. To check it, and to start:
#   envoy --mode validate -c FILE
#   envoy -c FILE --log-level warning --component-log-level wasm:info
";

// A clone without symbolic links has the path of the template in place of the template.
const _: () = assert!(TEMPLATE.len() > 1000, "clone with `git -c core.symlinks=true`");

#[derive(Debug, Args)]
pub(crate) struct EnvoyConfig {
    /// URL of the model server: http://localhost:8000/v1; without it, the usual address of --profile
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Environment variable of Envoy with the upstream's key; without it, that of a vendor at its
    /// own address, else the client's own key is sent on
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// The model that every name goes to, whatever clients ask for
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Environment variable of Envoy with a key that clients may have; may be repeated
    #[arg(long, value_name = "NAME")]
    client_key_env: Vec<String>,
    /// Address and port where clients connect
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address and port of Envoy's own pages, with the metrics
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9901")]
    admin: SocketAddr,
    /// The filter, where Envoy can read it
    #[arg(long, value_name = "FILE", default_value = "creole.wasm")]
    wasm: PathBuf,
    /// Print only the HTTP filters, for an Envoy that has a cluster of this name with the model
    #[arg(long, value_name = "CLUSTER")]
    filters: Option<String>,
}

pub(crate) fn run(options: &EnvoyConfig) -> Result<(), CommandFailed> {
    let named = options.chosen.named(options.upstream.as_deref());
    let document = document(options, &named)?;
    let text = format!("{document:#}").replace('\n', "\n                    ");
    let config = read(&text)?;
    let mut notes = config.check_clusters().map_err(CommandFailed::Usage)?;
    config.check_client_keys().map_err(CommandFailed::Usage)?;
    let Some(upstream) = config.first_upstream() else { return Ok(()) };
    if named.is_open() && upstream.preset == "default" {
        notes.push("the upstream's profile is default; --profile NAME takes another".to_owned());
    }
    let is_open = config.client_keys.is_empty() && upstream.has_secrets();
    if is_open && !options.listen.ip().to_canonical().is_loopback() {
        return Err(CommandFailed::Usage(format!(
            "--listen {}: whoever reaches it could use the key of upstream {}; give clients keys (client_keys, \
             --client-key-env)",
            options.listen, upstream.name
        )));
    }
    let wasm = std::path::absolute(&options.wasm).unwrap_or_else(|_| options.wasm.clone());
    if !wasm.exists() {
        notes.push(format!("{} is not there yet: Envoy reads the filter there", wasm.display()));
    }
    // JSON's escapes are those of YAML, and the template has the quotes.
    let wasm_path = json!(wasm.display().to_string()).to_string();
    let wasm_path = wasm_path.get(1..wasm_path.len().saturating_sub(1)).unwrap_or_default();
    let server = Server::of(&upstream.url)?;
    let mut secrets = BTreeSet::new();
    add_secrets(&document, &mut secrets);
    if !secrets.iter().all(|name| is_variable(name)) {
        // A name that cannot be a variable may be the key itself, so the error does not repeat it.
        let reason = "expected the names of environment variables, which hold the keys, and found another text";
        return Err(CommandFailed::Usage(reason.to_owned()));
    }
    let mut yaml = with_clusters(&document)?;
    for (name, value) in [
        ("LISTEN_ADDRESS", options.listen.ip().to_string()),
        ("LISTEN_PORT", options.listen.port().to_string()),
        ("ADMIN_ADDRESS", options.admin.ip().to_string()),
        ("ADMIN_PORT", options.admin.port().to_string()),
        ("UPSTREAM_TRANSPORT", server.transport().to_string()),
        ("UPSTREAM_HOST", server.host),
        ("UPSTREAM_PORT", server.port.to_string()),
        ("WASM_PATH", wasm_path.to_owned()),
        ("SECRET_NAMES", json!(secrets).to_string()),
        // The document comes last, because its texts may have braces.
        ("CREOLE_CONFIG", text),
    ] {
        yaml = yaml.replace(&format!("{{{{{name}}}}}"), &value);
    }
    for note in notes {
        say(io::stderr(), &format!("note: {note}"))?;
    }
    terminal::print(&if options.filters.is_some() { only_filters(&yaml) } else { yaml });
    Ok(())
}

/// Reads a document without the values of its secrets: only Envoy has them.
fn read(document: &str) -> Result<Config, CommandFailed> {
    let read = Config::from_json(document, |name| Some(format!("unused-{name}")));
    read.map_err(|error| CommandFailed::Usage(error.to_string()))
}

/// Returns the document of Creole's configuration: the user's own, completed by the flags.
fn document(options: &EnvoyConfig, named: &NamedUpstream) -> Result<Value, CommandFailed> {
    let failed = |reason: String| CommandFailed::Usage(format!("--config: {reason}"));
    let text = match &named.document {
        Some(Document::File(file)) => without_comments(&configure::text_of(file).map_err(failed)?),
        Some(Document::Text(text)) => without_comments(text),
        None => "{}".to_owned(),
    };
    let config = completed(read(&text)?, named)?;
    let upstream = match config.first_upstream() {
        Some(upstream) if config.upstreams.len() == 1 => upstream,
        _ => {
            let reason = "expected one upstream; docs/envoy.md says how Envoy routes to several";
            return Err(failed(reason.to_owned()));
        }
    };
    let mut document: Value =
        serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let upstreams = member(&mut document, "upstreams");
    let described = member(upstreams, &upstream.name);
    for (name, value) in facts(upstream, options) {
        *member(described, name) = value;
    }
    if let Some(model) = &options.model {
        *member(member(&mut document, "models"), "*") = json!({"model": model});
    }
    if !options.client_key_env.is_empty() {
        let keys = options.client_key_env.iter().map(|name| json!({"env": name}));
        let known = member(&mut document, "client_keys");
        let known = known.as_array().into_iter().flatten().cloned();
        let all: Value = known.chain(keys).collect();
        *member(&mut document, "client_keys") = all;
    }
    Ok(document)
}

/// Completes the configuration of the document by the flags about its upstream.
fn completed(mut config: Config, named: &NamedUpstream) -> Result<Config, CommandFailed> {
    if let Some(name) = named.profile(None) {
        config.set_profile(name, "--profile").map_err(CommandFailed::Usage)?;
    }
    if let Some((url, source)) = &named.url {
        config.set_url(url, source).map_err(CommandFailed::Usage)?;
        let guess = guess::by_address(url).or_else(|| {
            let first = config.first_upstream()?;
            guess::by_list_or_port(&first.url, None)
        });
        if let Some(guess) = guess.filter(|_| named.is_open()) {
            configure::take(&mut config, guess, named)?;
        }
    }
    config.fill_urls();
    configure::check_addresses(&config)?;
    Ok(config)
}

/// Returns the members of the document that describe the upstream.
fn facts(upstream: &Upstream, options: &EnvoyConfig) -> Vec<(&'static str, Value)> {
    let mut facts = vec![
        ("profile", json!(upstream.preset)),
        ("url", json!(upstream.url)),
        ("base_path", json!(upstream.base_path)),
    ];
    let vendor = KnownServer::of_vendor(&upstream.url).map(|vendor| vendor.key.to_owned());
    let vendor = vendor.filter(|_| upstream.key == Key::Client);
    match options.key_env.clone().or(vendor) {
        Some(name) => facts.push(("key", json!({"env": name}))),
        // The keys of clients are for Creole, and no upstream gets them.
        None if upstream.key == Key::Client && !options.client_key_env.is_empty() => {
            facts.push(("key", json!("none")));
        }
        None => {}
    }
    facts.extend(options.filters.as_ref().map(|cluster| ("cluster", json!(cluster))));
    facts
}

/// Returns a member of a JSON object, which is added if it is missing.
fn member<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if value.is_null() {
        *value = json!({});
    }
    match value {
        Value::Object(object) => object.entry(name).or_insert(Value::Null),
        // The document was read as a configuration before, whose sections are objects.
        other => other,
    }
}

/// Adds the names of the environment variables that a document names.
fn add_secrets<'d>(value: &'d Value, names: &mut BTreeSet<&'d str>) {
    match value {
        Value::Object(object) => {
            for (name, member) in object {
                match member.as_str() {
                    Some(variable) if matches!(name.as_str(), "env" | "secret") => {
                        names.insert(variable);
                    }
                    _ => add_secrets(member, names),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| add_secrets(value, names)),
        _ => {}
    }
}

/// Server to which a cluster of Envoy leads.
struct Server {
    host: String,
    port: u16,
    is_tls: bool,
}

impl Server {
    fn of(url: &str) -> Result<Self, CommandFailed> {
        // A query is part of no cluster, and may have a key.
        let url = url.split('?').next().unwrap_or(url);
        let uri: Option<Uri> = url.parse().ok();
        let host = uri.as_ref().and_then(|uri| Some((uri.host()?, uri)));
        let (host, uri) = host.ok_or_else(|| CommandFailed::Usage(format!("{url}: not a URL")))?;
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        // `localhost` may mean `::1`, where a server of IPv4 does not listen.
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        Ok(Self { host: host.trim_matches(['[', ']']).to_owned(), port, is_tls })
    }

    /// Returns Envoy's transport socket for the server. JSON is also valid YAML.
    fn transport(&self) -> Value {
        const TYPES: &str = "type.googleapis.com/envoy.extensions.transport_sockets";
        if !self.is_tls {
            return json!({
                "name": "envoy.transport_sockets.raw_buffer",
                "typed_config": {"@type": format!("{TYPES}.raw_buffer.v3.RawBuffer")}
            });
        }
        json!({
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": format!("{TYPES}.tls.v3.UpstreamTlsContext"),
                "sni": self.host,
                // A trusted authority alone does not prove that the certificate is the server's.
                "auto_sni_san_validation": true,
                "common_tls_context":
                    {"validation_context": {"trusted_ca": {"filename": authorities()}}}
            }
        })
    }
}

/// Returns the path of the trusted certificate authorities: `SSL_CERT_FILE` if set, else the
/// system's roots.
fn authorities() -> String {
    const PLACES: [&str; 3] = [
        "/etc/ssl/certs/ca-certificates.crt", // Debian, Ubuntu, Arch
        "/etc/pki/tls/certs/ca-bundle.crt",   // Fedora, Red Hat
        "/etc/ssl/cert.pem",                  // Alpine, macOS
    ];
    std::env::var("SSL_CERT_FILE").unwrap_or_else(|_| {
        let found = PLACES.iter().find(|place| Path::new(place).is_file());
        (*found.unwrap_or(&PLACES[0])).to_owned()
    })
}

/// Returns the template with a cluster for each service that the document names by address.
fn with_clusters(document: &Value) -> Result<String, CommandFailed> {
    const CLUSTERS: &str = "\n  clusters:\n";
    let (_, template) = TEMPLATE.split_once("\nadmin:\n").unwrap_or(("", TEMPLATE));
    let search = document.pointer("/server_tools/web_search");
    let servers = document.pointer("/server_tools/mcp/servers").and_then(Value::as_object);
    let mut lines = CLUSTERS.to_owned();
    let mut names = BTreeSet::new();
    for service in search.into_iter().chain(servers.into_iter().flat_map(|all| all.values())) {
        let text = |key| service.get(key).and_then(Value::as_str);
        let (Some(name), Some(url)) = (text("cluster"), text("url")) else { continue };
        let server = Server::of(url)?;
        if names.insert(name) {
            let address = json!({"address": server.host, "port_value": server.port});
            let endpoint = json!({"endpoint": {"address": {"socket_address": address}}});
            let cluster = json!({
                "name": name, "type": "STRICT_DNS", "dns_lookup_family": "V4_PREFERRED",
                "connect_timeout": "5s", "transport_socket": server.transport(),
                "load_assignment":
                    {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
            });
            lines.push_str(&format!("  - {cluster}\n"));
        }
    }
    let whole = template.replacen(CLUSTERS, &lines, 1);
    Ok(format!("{HEAD}\nadmin:\n{whole}"))
}

/// Returns the HTTP filters of a whole configuration.
fn only_filters(yaml: &str) -> String {
    let (_, rest) = yaml.split_once("          http_filters:\n").unwrap_or_default();
    let (filters, _) =
        rest.split_once("          - name: envoy.filters.http.router\n").unwrap_or_default();
    let lines = filters.lines().map(|line| line.strip_prefix("          ").unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_of_the_template_is_known() {
        let names = TEMPLATE.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
        let source = include_str!("envoy_config.rs");
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 9, "{names:?}");
        for name in names {
            assert!(source.contains(&format!("(\"{name}\", ")), "{name} has no value");
        }
    }

    #[test]
    fn a_local_name_becomes_an_address_and_brackets_go() {
        let of = |url| Server::of(url).map(|server| (server.host, server.port, server.is_tls));
        assert_eq!(
            of("http://localhost:8000/v1").ok(),
            Some(("127.0.0.1".to_owned(), 8000, false))
        );
        assert_eq!(of("https://[::1]?key=x").ok(), Some(("::1".to_owned(), 443, true)));
        assert!(of("/v1").is_err());
    }
}
