//! A host with an upstream whose model sees nothing, and a model that does what the test says with
//! an image.

use std::sync::Arc;

use creole::observe::report::Report;
use creole::{Call, Config, End, Failure, HostCan, Pings};

use super::support::drive::{self, Decision, Exchange, NOW, SEED, Steps as _, headers};
use super::*;

pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
pub(super) const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD";

/// A model that sees beside the upstream of all models.
pub(super) const CONFIG: &str = r#"{
    "upstreams": {
        "main": {"url": "http://main", "key": "none", "profile_overrides": {"image_parts": "none"}},
        "eyes": {"url": "http://eyes", "key": {"env": "EYES"}}
    },
    "models": {"*": {"upstream": "main"}},
    "vision": {"model": "see-1", "upstream": "eyes"}
}"#;

/// Behaviour of the model that sees, for one image after the other; the last one also holds for
/// further images.
#[derive(Clone, Debug)]
pub(super) enum Eyes {
    /// Model that says this, in an answer of Chat Completions.
    Says(String),
    /// Model that answers with this status and body.
    Answers(u16, String),
    /// Model that cannot be reached.
    Fails(Failure),
    /// Model that breaks off its answer.
    BreaksOff,
    /// Model that is silent.
    Silent,
}

pub(super) fn says(text: &str) -> Vec<Eyes> {
    vec![Eyes::Says(text.to_owned())]
}

pub(super) struct Session {
    pub(super) config: Arc<Config>,
    pub(super) can: HostCan,
    pub(super) body: Value,
}

/// Result of a request: the calls that were made, and the report.
pub(super) struct Got {
    /// The calls of the model that sees.
    pub(super) asked: Vec<Call>,
    /// The call of the upstream.
    pub(super) call: Call,
    pub(super) report: Report,
}

impl Session {
    pub(super) fn new(messages: Value) -> Self {
        Self::with(CONFIG, messages)
    }

    pub(super) fn with(config: &str, messages: Value) -> Self {
        let can = HostCan { ping: Pings::Sent, ask_again: true, ..HostCan::default() };
        let body = json!({"model": "m", "max_tokens": 1000, "system": "CANARY of the system",
            "metadata": {"user_id": "CANARY of the user"},
            "tools": [{"name": "w", "description": "CANARY of a tool", "input_schema": {"type": "object"}}],
            "messages": messages});
        Self { config: drive::config(config), can, body }
    }

    pub(super) fn begin(&self) -> Exchange {
        let sent =
            [("x-api-key", "CANARY-key"), ("anthropic-beta", "b"), ("traceparent", "00-a-b-01")];
        self.begin_with(&sent)
    }

    /// The client sends these headers.
    pub(super) fn begin_with(&self, sent: &[(&str, &str)]) -> Exchange {
        let mut exchange = Exchange::new(Arc::clone(&self.config), SEED, self.can);
        let decision = exchange.decide("POST", "/v1/messages", &headers(sent));
        assert_eq!(decision, Decision::Translate);
        exchange.handle_request_body(self.body.to_string().into_bytes(), NOW);
        exchange
    }

    /// The upstream is called once all images are described.
    pub(super) fn run(&self, eyes: &[Eyes]) -> Got {
        let (got, _) = self.run_to_call(eyes);
        got
    }

    pub(super) fn run_to_call(&self, eyes: &[Eyes]) -> (Got, Exchange) {
        let mut exchange = self.begin();
        let mut asked = Vec::new();
        loop {
            let call = exchange.poll_call(NOW).unwrap();
            if call.upstream() == Some("main") {
                let report = exchange.report();
                return (Got { asked, call, report }, exchange);
            }
            let eyes = eyes.get(asked.len()).or_else(|| eyes.last());
            asked.push(call);
            assert_eq!(exchange.poll_cancel(), None);
            answer(&mut exchange, eyes.unwrap_or_else(|| panic!("the model is asked")));
            assert_eq!((exchange.poll_head(), exchange.is_ended()), (None, false));
        }
    }
}

/// An answer of Chat Completions with this text.
pub(super) fn said(text: &str, reason: &str) -> String {
    json!({"choices": [{"message": {"content": text}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 70, "completion_tokens": 5}})
    .to_string()
}

pub(super) fn answer(exchange: &mut Exchange, eyes: &Eyes) {
    let (status, answer, end) = match eyes {
        Eyes::Says(text) => (200, said(text, "stop"), End::Complete),
        Eyes::Answers(status, answer) => (*status, answer.clone(), End::Complete),
        Eyes::BreaksOff => (200, said("half", "stop"), End::Aborted),
        Eyes::Fails(failure) => return exchange.handle_failure(failure.clone(), NOW),
        Eyes::Silent => {
            let at = exchange.poll_timeout().unwrap();
            return exchange.handle_timeout(at);
        }
    };
    exchange.handle_call_head(status, &[], NOW);
    exchange.handle_call_body(answer.as_bytes(), NOW);
    exchange.handle_call_end(end, NOW);
    assert_eq!(exchange.poll_cancel(), None, "the host has ended the call");
}

impl Got {
    pub(super) fn warnings(&self) -> String {
        self.report.warnings.header().unwrap_or_default()
    }

    /// The messages for the upstream.
    pub(super) fn messages(&self) -> Value {
        let mut body: Value = serde_json::from_slice(&self.call.body).unwrap();
        let mut messages = body["messages"].take();
        messages.as_array_mut().unwrap().retain(|message| message["role"] != "system");
        messages
    }

    /// The bodies for the model that sees.
    pub(super) fn questions(&self) -> Vec<Value> {
        self.asked.iter().map(|call| serde_json::from_slice(&call.body).unwrap()).collect()
    }

    /// The images that it was shown.
    pub(super) fn shown(&self) -> Vec<String> {
        let url = |question: Value| {
            question["messages"][1]["content"][0]["image_url"]["url"].as_str().unwrap().to_owned()
        };
        self.questions().into_iter().map(url).collect()
    }
}

pub(super) fn image(data: &str) -> Value {
    let media_type = if data == JPEG { "image/jpeg" } else { "image/png" };
    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
}

/// A history in which a tool gave this.
pub(super) fn history(result: Value) -> Value {
    json!([
        {"role": "user", "content": "CANARY of a question"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "CANARY of an answer"},
            {"type": "tool_use", "id": "t", "name": "w", "input": {"a": "CANARY of a call"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": result}]}
    ])
}
