//! A host whose upstream refuses requests.

use creole::Refusals;
use creole::observe::report::Report;

use super::*;

/// Answer that a client got, and the bodies that its upstream was sent, request by request.
pub(super) struct Got {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    pub(super) asked: Vec<Value>,
    pub(super) report: Report,
}

/// A host, and an upstream that refuses requests with words of its own.
pub(super) struct Host<'h, M> {
    pub(super) config: Arc<Config>,
    pub(super) refusals: Arc<Refusals>,
    /// True if the host keeps the client's body for a second request.
    pub(super) asks_again: bool,
    /// The client's headers.
    pub(super) headers: &'h [(&'h str, &'h str)],
    /// The status with which the upstream refuses.
    pub(super) status: u16,
    pub(super) refuses: &'h dyn Fn(&Value) -> Option<M>,
}

impl<'h, M: AsRef<str>> Host<'h, M> {
    pub(super) fn new(asks_again: bool, refuses: &'h dyn Fn(&Value) -> Option<M>) -> Self {
        let config = drive::config("{}");
        let headers = &[("x-api-key", "k")];
        Self { config, refusals: Arc::default(), asks_again, headers, status: 400, refuses }
    }

    pub(super) fn ask(&self, body: &Value, now: u64) -> Got {
        let body = body.to_string().into_bytes();
        let mut exchange = Exchange::new(
            Arc::clone(&self.config),
            SEED,
            HostCan { ask_again: self.asks_again, ..HostCan::default() },
        );
        exchange.remember(Arc::clone(&self.refusals));
        exchange.decide("POST", "/v1/messages", &headers(self.headers));
        let mut request = exchange.request(&body, now).unwrap();
        let (mut asked, mut out) = (Vec::new(), Vec::new());
        loop {
            let sent = serde_json::from_slice(&request.body).unwrap();
            let refusal = (self.refuses)(&sent);
            asked.push(sent);
            let (status, answer) = match refusal {
                // A whole body, or the words of one.
                Some(message) => match serde_json::from_str(message.as_ref()) {
                    Ok(body @ Value::Object(_) | body @ Value::Array(_)) => (self.status, body),
                    _ => (self.status, json!({"error": {"message": message.as_ref()}})),
                },
                None => (
                    200,
                    json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
                ),
            };
            exchange.handle_call_head(status, &[], now);
            let early = exchange.piece(answer.to_string().as_bytes(), now, &mut out);
            let mut head = exchange.end(End::Complete, now, &mut out).or(early);
            if let Some(again) = exchange.poll_call(now) {
                request = again;
                continue;
            }
            head = head.or_else(|| exchange.poll_head());
            exchange.poll_body(&mut out);
            let report = exchange.report();
            return Got { head: head.unwrap(), body: out, asked, report };
        }
    }
}

impl Got {
    pub(super) fn warnings(&self) -> &str {
        header(&self.head, "x-creole-warnings").unwrap_or_default()
    }

    pub(super) fn status(&self) -> (u16, Option<&str>) {
        (self.head.status, header(&self.head, "x-should-retry"))
    }
}

pub(super) fn request(model: &str, more: Value) -> Value {
    let mut body = json!({"model": model, "max_tokens": 9, "temperature": 0.5,
        "messages": [{"role": "user", "content": "q"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}
