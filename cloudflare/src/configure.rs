//! Configuration of the Worker, read from its variables and secrets.
//!
//! An isolate has 128 MB for everything. Limits that are too large for an isolate are lowered here,
//! not refused, so that the same configuration works on all hosts.

use std::cell::RefCell;

use creole::Config;
use creole::config::{ServerTools, Settings};

/// Name of the variable that may hold the configuration as a JSON object instead of a text.
const DOCUMENT: &str = "CREOLE_CONFIG";

/// Upper limits on request and response bodies. An isolate may briefly hold a body five times: as
/// JavaScript bytes, as Rust bytes, parsed, translated, and as JavaScript bytes again.
const REQUEST_BYTES_MAX: usize = 8 << 20;
const RESPONSE_BYTES_MAX: usize = 8 << 20;
const WAITING_BYTES_MAX: usize = 8 << 20;
const EVENT_BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes that all requests of the isolate hold together.
const BUFFERED_BYTES_MAX: usize = 16 << 20;

/// Maximum number of calls of server tools for one answer, in place of the default for all hosts. A
/// request of a Worker on the free plan may make 50 subrequests, with those to upstreams.
const TOOL_CALLS_MAX: u32 = 30;

/// Value of a variable, a secret or another binding.
pub(crate) enum Variable {
    Text(String),
    /// Value that is not a text, as JSON. A secret of the Secrets Store reads as `{}`.
    Json(String),
}

/// Reads the configuration. `variable` returns the value of a binding by its name.
///
/// # Errors
/// The configuration is invalid; the error text says what is wrong, and where.
pub(crate) fn read(variable: impl Fn(&str) -> Option<Variable>) -> Result<Config, String> {
    let no_text = RefCell::new(None);
    let config = Config::from_variables(|name| match variable(name)? {
        Variable::Text(text) => Some(text),
        Variable::Json(json) if name == DOCUMENT => Some(json),
        Variable::Json(_) => {
            no_text.replace(Some(name.to_owned()));
            None
        }
    });
    if let Some(name) = no_text.into_inner() {
        let message = format!("{name}: expected a text; the Secrets Store is not read");
        return Err(message);
    }
    let mut config = config?;
    lower(&mut config.settings);
    Ok(config)
}

fn lower(settings: &mut Settings) {
    for (setting, max) in [
        (&mut settings.request_bytes_max, REQUEST_BYTES_MAX),
        (&mut settings.response_bytes_max, RESPONSE_BYTES_MAX),
        (&mut settings.waiting_bytes_max, WAITING_BYTES_MAX),
        (&mut settings.event_bytes_max, EVENT_BYTES_MAX),
        (&mut settings.buffered_bytes_max, BUFFERED_BYTES_MAX),
    ] {
        *setting = (*setting).min(max);
    }
    // The default is lowered. Another number is the operator's choice, because paid plans allow
    // more subrequests.
    let tools = &mut settings.server_tools;
    if tools.calls_max == ServerTools::default().calls_max {
        tools.calls_max = TOOL_CALLS_MAX;
    }
}

#[cfg(test)]
mod tests;
