//! `creole status-line`: the line below the prompt of Claude Code, out of what Claude Code and the
//! gateway know.

use std::io::{self, IsTerminal as _, Read as _};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use creole::config::CLAUDE_CODE_ALIAS;
use hyper::header::{ACCEPT, HeaderValue};
use hyper::{HeaderMap, Method};
use serde_json::Value;

use crate::CommandFailed;
use crate::log::figures;
use crate::page::STATUS_TYPE;
use crate::probe::ask;
use crate::terminal;
use crate::upstream::client::UpstreamClient;

/// Environment variables with the address and the key of the session's server: Claude Code gives
/// its own environment to the command.
const ADDRESS: &str = "ANTHROPIC_BASE_URL";
const KEY: &str = "ANTHROPIC_AUTH_TOKEN";

/// Maximum time to wait for the gateway's figures.
const PATIENCE: Duration = Duration::from_millis(150);

/// Maximum number of bytes that are read of what Claude Code knows.
const INPUT_BYTES_MAX: u64 = 1 << 20;

/// Age in seconds from which a failure is not shown any more.
const FAILURE_SECONDS_MAX: u64 = 600;

#[derive(Debug, Args)]
pub(crate) struct StatusLine {
    /// Address of the gateway
    #[arg(long, value_name = "URL")]
    gateway: String,
}

/// Prints the line. What is not known is left out.
pub(crate) fn run(options: &StatusLine) -> Result<(), CommandFailed> {
    let mut input = Vec::new();
    if !io::stdin().is_terminal() {
        // A part is as good as nothing.
        let _ = io::stdin().take(INPUT_BYTES_MAX).read_to_end(&mut input);
    }
    let session = serde_json::from_slice(&input).unwrap_or_default();
    let gateway = figures(&options.gateway);
    terminal::say(io::stdout(), &line(&session, gateway.as_ref(), &options.gateway))
}

/// Requests the gateway's figures; `None` if the gateway is gone.
fn figures(gateway: &str) -> Option<Value> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(STATUS_TYPE));
    // The key of another server is not the gateway's.
    let is_sessions = std::env::var(ADDRESS)
        .is_ok_and(|address| address.trim_end_matches('/') == gateway.trim_end_matches('/'));
    if is_sessions
        && let Ok(key) = std::env::var(KEY)
        && let Ok(mut key) = HeaderValue::from_str(&key)
    {
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
    }
    let runtime = crate::runtime().ok()?;
    let client = UpstreamClient::connect().ok()?;
    let url = format!("{}/", gateway.trim_end_matches('/'));
    let sent = (headers, Bytes::new());
    let got = runtime.block_on(ask::ask(&client, Method::GET, &url, sent, PATIENCE));
    // A DNS look-up may still run.
    runtime.shutdown_background();
    serde_json::from_slice(&got.ok()?.body).ok()
}

/// Returns the line: model, window used, speed, last failure, and address of the page.
fn line(session: &Value, gateway: Option<&Value>, address: &str) -> String {
    let model = session.pointer("/model/id").and_then(Value::as_str);
    let number = |pointer| session.pointer(pointer).and_then(Value::as_f64);
    let mut parts = Vec::new();
    parts.extend(model.map(|id| figures::text(id.trim_start_matches(CLAUDE_CODE_ALIAS))));
    let window = session.pointer("/context_window/context_window_size").and_then(Value::as_u64);
    if let Some(percent) = number("/context_window/used_percentage") {
        let of =
            window.map_or_else(String::new, |window| format!(" of {}", figures::count(window)));
        parts.push(format!("{percent:.0}%{of}"));
    }
    let of_gateway = |pointer| gateway.and_then(|gateway| gateway.pointer(pointer));
    parts.extend(of_gateway("/tokens_per_second").and_then(Value::as_f64).map(figures::speed));
    parts.extend(of_gateway("/failure").and_then(failure));
    parts.push(match gateway {
        Some(_) => format!("{address}/"),
        None => format!("no gateway at {address}"),
    });
    parts.join("  ")
}

/// Returns the words about the last failure, unless it was long ago.
fn failure(failure: &Value) -> Option<String> {
    let seconds = failure.get("seconds")?.as_u64().filter(|age| *age <= FAILURE_SECONDS_MAX)?;
    let cause = figures::text(failure.get("cause")?.as_str()?);
    let age = figures::time(seconds.saturating_mul(1000));
    Some(format!("{} {cause} {age} ago", failure.get("status")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_has_what_is_known() {
        let session = json!({
            "model": {"id": "claude-creole/qwen3"},
            "context_window": {"used_percentage": 41.4, "context_window_size": 65536},
        });
        let gateway = json!({
            "tokens_per_second": 43.2,
            "failure": {"status": 503, "cause": "overloaded", "seconds": 12},
        });
        let at = "http://127.0.0.1:1";
        assert_eq!(
            line(&session, Some(&gateway), at),
            "qwen3  41% of 65.5k  43/s  503 overloaded 12.0 s ago  http://127.0.0.1:1/"
        );
        assert_eq!(
            line(&session, None, at),
            "qwen3  41% of 65.5k  no gateway at http://127.0.0.1:1"
        );
        assert_eq!(line(&Value::Null, Some(&json!({"failure": null})), at), format!("{at}/"));
        let old = json!({"failure": {"status": 503, "cause": "overloaded", "seconds": 601}});
        assert_eq!(line(&Value::Null, Some(&old), at), format!("{at}/"));
        let hostile = json!({"model": {"id": "a\u{1b}[2Jb\nc"}});
        let shown = line(&hostile, None, at);
        assert!(!shown.contains(['\u{1b}', '\n']), "{shown:?}");
    }
}
