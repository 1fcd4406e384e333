//! Fuzz targets: properties that must hold for any input. Each target is a function for a kind of
//! input from outside.
//!
//! `cargo fuzz` calls the targets with generated inputs (`fuzz/`). Plain `cargo test` replays the
//! stored corpus there, so that a bug found once is never reintroduced. The module is compiled only
//! for these two commands.

#[allow(clippy::arithmetic_side_effects)]
mod answers;
mod evidence;

use crate::config::Config;
use crate::error::{Error, Parameter};
use crate::json::Reader;
use crate::model::Request;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::profile::{Effort, EmptyAssistantContent};
use crate::protocols::chat::wire::Chunk;
use crate::protocols::messages::write_error;
use crate::protocols::{Refused, Translated, WindowSpace};
use crate::{protocols, upstream_error as error};

#[cfg(test)]
pub(crate) use answers::said_in_responses;
pub use answers::{response, responses, sse, stream};
pub use evidence::evidence;

/// Function that panics if a property does not hold for an input.
pub type FuzzTarget = fn(&[u8]);

/// List of all fuzz targets, with the names of their corpora.
pub const TARGETS: [(&str, FuzzTarget); 9] = [
    ("sse", sse),
    ("chunk", chunk),
    ("stream", stream),
    ("request", request),
    ("response", response),
    ("responses", responses),
    ("errors", errors),
    ("evidence", evidence),
    ("config", config),
];

/// Tests that a chunk is accepted if and only if the chunk is a JSON object.
pub fn chunk(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(Chunk::read(text).is_ok(), is_json(text, 128) && begins_object(text), "{text}");
}

/// Tests that a request is translated to valid JSON or refused with an error message. In the
/// client's own protocol, a second translation must change nothing.
pub fn request(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for (name, native) in [("openai", false), ("anthropic", true)] {
        let json = format!(
            r#"{{"upstreams":{{"u":{{"url":"https://u.test","protocol":"{name}","key":"client"}}}}}}"#
        );
        let config = Config::from_json(&json, |_| None).expect("a configuration");
        let mut warnings = Warnings::new(false);
        match protocols::request(text, &config, &[], &mut warnings) {
            Ok(Translated::Send { body, .. }) => {
                let body = String::from_utf8(body).expect("it is text");
                assert!(is_json(&body, 128), "{body}");
                if native {
                    again(&body, &config);
                }
            }
            Ok(Translated::Answer { .. }) => {}
            Err(error) => check_error(&error),
        }
        without(text, &config);
    }
    let mut warnings = Warnings::new(true);
    if let Err(error) = Request::read(text, &mut warnings) {
        check_error(&error);
    }
}

/// Translates a request without each of the features that an upstream may refuse.
fn without(text: &str, config: &Config) {
    for refused in [
        Refused::Calls("call_1".to_owned()),
        Refused::Images,
        Refused::Documents,
        Refused::Reasoning,
        Refused::ResponseFormat,
        Refused::MaxTokens(100),
        Refused::Space(WindowSpace { answer: 100, prompt: 10, estimate: 10 }),
        Refused::Effort(vec![Effort::Low]),
        Refused::Parameter(Parameter::Thinking),
        Refused::Parameter(Parameter::Sampling),
        Refused::StopCount(1),
        Refused::EmptyContent(EmptyAssistantContent::Empty),
    ] {
        let mut warnings = Warnings::new(false);
        match protocols::request_without(&[refused], text, config, &[], &mut warnings) {
            Ok(Translated::Send { body, .. }) => {
                let body = String::from_utf8(body).expect("it is text");
                assert!(is_json(&body, 128), "{body}");
            }
            Ok(Translated::Answer { .. }) => {}
            Err(error) => check_error(&error),
        }
    }
}

fn again(body: &str, config: &Config) {
    match protocols::request(body, config, &[], &mut Warnings::new(false)) {
        Ok(Translated::Send { body: twice, .. }) => {
            assert_eq!(String::from_utf8_lossy(&twice), body);
        }
        other => panic!("{other:?} for {body}"),
    }
}

/// Tests that any upstream error gives the client a message of limited length that is not empty.
/// The first two input bytes are the status.
pub fn errors(data: &[u8]) {
    let Some((status, body)) = data.split_first_chunk::<2>() else { return };
    let status = 400u16.saturating_add(u16::from_le_bytes(*status) % 200);
    for edge_key in [false, true] {
        let context =
            RequestContext { model: "claude".to_owned(), edge_key, ..RequestContext::default() };
        check_error(&error::from_upstream(status, body, &context));
        check_error(&error::from_object(&String::from_utf8_lossy(body), &context));
    }
}

/// Checks the status, message and body of an error.
fn check_error(error: &Error) {
    assert!((400..600).contains(&error.status), "{error}");
    assert!(!error.message.trim().is_empty(), "{error}");
    assert!(error.message.len() < 16 << 10, "{} bytes", error.message.len());
    let mut body = Vec::new();
    write_error::body(error, "req_1", &mut body);
    assert!(is_json(&String::from_utf8_lossy(&body), 8), "{error}");
}

/// Tests that a configuration is accepted or refused with an error message, and that its secrets
/// are never printed.
pub fn config(data: &[u8]) {
    const SECRET: &str = "hunter2 is the secret";
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::from_json(text, |_| Some(SECRET.to_owned())) {
        Ok(config) => {
            assert!(!format!("{config:?}").contains(SECRET));
            let _ = config.route("claude-x");
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.trim().is_empty() && !message.contains(SECRET), "{message}");
        }
    }
}

fn is_json(text: &str, depth_max: u32) -> bool {
    Reader::new(text, depth_max).is_whole()
}

fn begins_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{')
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_the_corpus_holds_was_learnt() {
        for (name, target) in TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
            let inputs: Vec<_> = fs::read_dir(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
                .map(|entry| entry.unwrap().path())
                .collect();
            assert!(inputs.len() > 2, "{name} has no corpus");
            for input in inputs {
                println!("{}", input.display());
                target(&fs::read(&input).unwrap());
            }
        }
    }
}
