//! The walk of decisions for upstreams that speak Responses: every field of a Messages request, every field that a
//! request in Responses can have, and every field, item and event of an answer.

mod answers;
mod host;
mod requests;
mod written;

use serde_json::Value;

use crate::support::{drive, fixture, responses};
use crate::{Run, Way, warnings_of};

/// The profile that understands most.
fn way() -> Way {
    Way::overrides("openai", serde_json::json!({"cache_breakpoints": "prompt_cache_breakpoint"}))
}

/// Sends a request to an upstream that speaks Responses. Whatever is sent on must be a valid request.
fn run(request: &Value, way: &Way) -> Run {
    let config = fixture::config(way.settings.as_object(), way.profile, Some(&way.overrides));
    let config = drive::config(&config.to_string());
    let body = request.to_string();
    match drive::request(&config, way.path, &way.headers, body.as_bytes()) {
        Ok((exchange, upstream)) => {
            let sent: Value = serde_json::from_slice(&upstream.body)
                .unwrap_or_else(|error| panic!("{error} in the body sent for {body}"));
            if let Err(error) = responses::check(&sent) {
                panic!("{error}\n--- sent\n{sent}\n--- for\n{body}");
            }
            Run {
                sent: Some(sent),
                warnings: warnings_of(&exchange.report()),
                headers: upstream.headers,
                ..Run::default()
            }
        }
        Err(answer) => crate::replied(*answer),
    }
}
