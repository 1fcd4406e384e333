//! Configuration of a plugin, with the rules that hold in Envoy alone.

use creole::config::Config;
use creole::headers::is_value;
use creole::json;

use crate::heads;

/// Reads the configuration of a plugin. Returns it with notes for the operator.
///
/// # Errors
/// The configuration is refused; the text gives the reason.
pub(crate) fn read(
    text: &str,
    secret: impl Fn(&str) -> Option<String>,
) -> Result<(Config, Vec<String>), String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let config = Config::from_json(text, secret).map_err(|error| error.to_string())?;
    config.check_client_keys()?;
    let mut notes = config.check_clusters()?;
    check_heads(&config)?;
    if !config.settings.pause_headers && config.cluster_calls().models {
        // A head that has left cannot wait for calls.
        notes.push(
            "configuration: pause_headers: is false, so no model of safeguards and of vision is asked"
                .to_owned(),
        );
    }
    if let Some(upstream) =
        config.upstreams.values().find(|upstream| !is_value(heads::routing_value(upstream)))
    {
        return Err(format!(
            "configuration: upstreams.{}.cluster: expected one, because the name cannot be the \
             value of {}",
            json::quoted(&upstream.name),
            heads::ROUTING_HEADER
        ));
    }
    Ok((config, notes))
}

/// Checks that heads are paused where that is needed.
fn check_heads(config: &Config) -> Result<(), String> {
    if config.settings.pause_headers {
        return Ok(());
    }
    if config.upstreams.len() != 1 {
        // The head leaves with a credential before the model is known.
        return Err(format!(
            "configuration: upstreams: expected one, because pause_headers is false, but found {}",
            config.upstreams.len()
        ));
    }
    if config.settings.deferred_flush {
        return Err(
            "configuration: deferred_flush: expected pause_headers to be true with it, because a \
             head that has left cannot be held"
                .to_owned(),
        );
    }
    let key = if config.check_no_services().is_err() {
        "server_tools"
    } else if config.cluster_calls().fetches {
        "fetch_images.cluster"
    } else {
        return Ok(());
    };
    Err(format!(
        "configuration: {key}: expected pause_headers to be true with it, because a head that has \
         left cannot wait for calls"
    ))
}
