//! Host: Envoy with the filter, configured by the template `envoy/envoy.yaml`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Plan, Prepared, Started};
use crate::children::Children;
use crate::http::{self, Url};
use crate::{build, setup, workspace};

/// Paths of the files that Envoy with the filter needs.
pub(crate) struct Envoy {
    binary: PathBuf,
    filter: Option<PathBuf>,
}

pub(super) fn prepare() -> Result<Envoy> {
    let binary = setup::envoy()?;
    let filter = build::ready(&build::FILTER)?;
    Ok(Envoy { binary, filter: Some(filter) })
}

/// Returns Envoy with another filter in place of Creole's, or without a filter.
pub(crate) fn instead(filter: Option<PathBuf>) -> Result<Envoy> {
    Ok(Envoy { binary: setup::envoy()?, filter })
}

impl Prepared for Envoy {
    fn start(&self, plan: &Plan, children: &mut Children) -> Result<Started> {
        let admin = http::free_port()?;
        let template = workspace::root().join("envoy/envoy.yaml");
        let template =
            fs::read_to_string(&template).with_context(|| template.display().to_string())?;
        let (template, filter) = match &self.filter {
            Some(filter) => (template, filter.as_path()),
            None => (without_filter(&template)?, Path::new("")),
        };
        let template = with_clusters(&template, &clusters(&plan.config, &authorities())?)?;
        let values = values(plan, admin, filter);
        let rendered = plan.folder.join("envoy.yaml");
        fs::write(&rendered, render(&template, &values)?)?;
        let log = plan.folder.join("envoy.log");
        let mut command = Command::new(&self.binary);
        command.arg("--config-path").arg(&rendered);
        // Several runs on one machine must not share Envoy's hot restart area. Two workers, each
        // with its own VM, are enough to show shared state, and start quickly.
        command.args(["--disable-hot-restart", "--concurrency", "2"]);
        command.args(["--log-level", "warning", "--component-log-level", "wasm:info,config:info"]);
        children.start("Envoy", &mut command, &log)?;
        let notes = vec![
            format!("Envoy's own pages: http://{admin}"),
            format!("Envoy's configuration: {}", rendered.display()),
        ];
        Ok(Started { log, metrics: Some(format!("http://{admin}/stats/prometheus")), notes })
    }
}

fn values(plan: &Plan, admin: SocketAddr, filter: &Path) -> Vec<(&'static str, String)> {
    let Url { host, port, .. } = &plan.upstream;
    vec![
        ("LISTEN_ADDRESS", plan.listen.ip().to_string()),
        ("LISTEN_PORT", plan.listen.port().to_string()),
        ("ADMIN_ADDRESS", admin.ip().to_string()),
        ("ADMIN_PORT", admin.port().to_string()),
        ("UPSTREAM_HOST", host.clone()),
        ("UPSTREAM_PORT", port.to_string()),
        ("UPSTREAM_TRANSPORT", transport(&plan.upstream, &authorities())),
        ("WASM_PATH", filter.display().to_string()),
        ("SECRET_NAMES", json!(plan.secrets).to_string()),
        ("CREOLE_CONFIG", plan.config.clone()),
    ]
}

/// Returns the path of the trusted certificate authorities: `SSL_CERT_FILE` if set (for a private
/// authority, such as a company's proxy), else the system's roots. Envoy's `system_root_certs`
/// cannot be combined with `auto_sni_san_validation`.
pub(crate) fn authorities() -> String {
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

/// Returns Envoy's transport socket for an upstream, as JSON, which is also valid YAML.
pub(crate) fn transport(upstream: &Url, authorities: &str) -> String {
    const TYPES: &str = "type.googleapis.com/envoy.extensions.transport_sockets";
    if !upstream.tls {
        let config = json!({"@type": format!("{TYPES}.raw_buffer.v3.RawBuffer")});
        let socket = json!({
            "name": "envoy.transport_sockets.raw_buffer", "typed_config": config
        });
        return socket.to_string();
    }
    let trusted = json!({"trusted_ca": {"filename": authorities}});
    json!({
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": format!("{TYPES}.tls.v3.UpstreamTlsContext"),
            "sni": upstream.host,
            // A trusted authority alone does not prove that the certificate is the upstream's.
            "auto_sni_san_validation": true,
            "common_tls_context": {"validation_context": trusted}
        }
    })
    .to_string()
}

/// Returns the clusters of the services that a configuration of Creole names with their addresses,
/// each as JSON in one line. A forward proxy for pages has no address there, and is left out.
fn clusters(config: &str, authorities: &str) -> Result<Vec<String>> {
    let config: Value = serde_json::from_str(config)?;
    let tools = config.get("server_tools");
    let search = tools.and_then(|tools| tools.get("web_search"));
    let servers = tools.and_then(|tools| tools.pointer("/mcp/servers")?.as_object());
    let mut known: Vec<(&str, Url)> = Vec::new();
    for service in search.into_iter().chain(servers.into_iter().flat_map(|all| all.values())) {
        let text = |key| service.get(key).and_then(Value::as_str);
        let (Some(name), Some(url)) = (text("cluster"), text("url")) else { continue };
        // A query is part of no cluster, and may have a key.
        let url = Url::parse(url.split('?').next().unwrap_or(url))?;
        match known.iter().find(|(other, _)| *other == name) {
            Some((_, other)) => ensure!(
                (&other.host, other.port, other.tls) == (&url.host, url.port, url.tls),
                "the cluster {name} cannot be at two addresses: name another for one of them"
            ),
            None => known.push((name, url)),
        }
    }
    known.iter().map(|(name, url)| cluster(name, url, authorities)).collect()
}

/// Returns a cluster of Envoy with the server of a URL, as JSON in one line.
fn cluster(name: &str, url: &Url, authorities: &str) -> Result<String> {
    let transport: Value = serde_json::from_str(&transport(url, authorities))?;
    let address = json!({"socket_address": {"address": url.host, "port_value": url.port}});
    let endpoints = json!([{"lb_endpoints": [{"endpoint": {"address": address}}]}]);
    let cluster = json!({
        "name": name, "type": "STRICT_DNS", "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": "5s", "transport_socket": transport,
        "load_assignment": {"cluster_name": name, "endpoints": endpoints}
    });
    Ok(cluster.to_string())
}

/// Returns the template of Envoy's configuration with further clusters.
fn with_clusters(template: &str, clusters: &[String]) -> Result<String> {
    const CLUSTERS: &str = "\n  clusters:\n";
    let lines: String = clusters.iter().map(|cluster| format!("  - {cluster}\n")).collect();
    let parts = template.split_once(CLUSTERS).context("envoy/envoy.yaml has no clusters")?;
    Ok(format!("{}{CLUSTERS}{lines}{}", parts.0, parts.1))
}

/// Returns the template of Envoy's configuration without Creole's filter.
fn without_filter(template: &str) -> Result<String> {
    let parts = template.split_once("          - name: creole\n").and_then(|(before, rest)| {
        let router = rest.find("          - name: envoy.filters.http.router\n")?;
        Some((before, rest.get(router..)?))
    });
    let (before, after) = parts.context("envoy/envoy.yaml has no filter before the router")?;
    Ok(format!("{before}{after}"))
}

/// Returns a template with each `{{NAME}}` replaced by its value.
fn render(template: &str, values: &[(&str, String)]) -> Result<String> {
    let mut rendered = template.to_owned();
    for (name, value) in values {
        rendered = rendered.replace(&format!("{{{{{name}}}}}"), value);
    }
    // Placeholders that are left over are errors; a value may have double braces of its own (nested
    // JSON).
    let named = |rest: &str| {
        let name: String =
            rest.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
        (!name.is_empty() && rest.get(name.len()..)?.starts_with("}}")).then_some(name)
    };
    match rendered.split("{{").skip(1).find_map(named) {
        Some(name) => bail!("envoy/envoy.yaml has a placeholder {name} that has no value"),
        None => Ok(rendered),
    }
}

#[cfg(test)]
mod tests;
