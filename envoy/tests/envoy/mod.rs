//! Calls a filter as Envoy would, and reads what it decided.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::arithmetic_side_effects, clippy::panic, clippy::unwrap_used, reason = "tests")]

use creole::Header;
use creole::observe::log::Level;
use creole_envoy::Filter;
use creole_envoy::action::{Action, Decision, HttpCall, LocalResponse, Side};

pub(crate) const MESSAGES: &str = "/v1/messages";
const PLUGIN: u32 = 1;

pub(crate) struct Envoy {
    pub(crate) filter: Filter,
    pub(crate) id: u32,
    pub(crate) now: u64,
    pub(crate) route: String,
    /// The host that the client names.
    pub(crate) host: String,
    /// Number of the client's connection.
    pub(crate) connection: u64,
    /// Envoy gives the metadata of the route.
    pub(crate) gives_route: bool,
    /// Number of calls that Envoy has taken, which is the token of the last one.
    pub(crate) calls: u32,
}

impl Envoy {
    pub(crate) fn new(config: &str) -> Self {
        let mut filter = Filter::default();
        filter.on_context_create(PLUGIN, 0);
        filter.on_configure(PLUGIN, config, |name| Some(format!("secret-{name}"))).unwrap();
        let mut envoy = Self {
            filter,
            id: 1,
            now: 1_000_000,
            route: String::new(),
            host: "gateway".to_owned(),
            connection: 1,
            gives_route: true,
            calls: 0,
        };
        envoy.next_stream();
        envoy
    }

    pub(crate) fn next_stream(&mut self) {
        self.id += 1;
        self.filter.on_context_create(self.id, PLUGIN);
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[Header],
        eos: bool,
    ) -> Decision {
        let mut head = vec![
            header(":authority", &self.host),
            header(":path", path),
            header(":method", method),
            header(":scheme", "http"),
        ];
        head.extend_from_slice(headers);
        let seed = u128::from(self.id);
        let route = self.gives_route.then_some(self.route.as_str());
        let from = (route, Some(self.connection));
        self.filter.on_request_headers(self.id, head, eos, from, seed, self.now)
    }

    pub(crate) fn body(&mut self, piece: &[u8], eos: bool) -> Decision {
        self.filter.on_request_body(self.id, piece.to_vec(), eos, self.now)
    }

    pub(crate) fn head(
        &mut self,
        status: u16,
        headers: &[Header],
        eos: bool,
        details: &str,
    ) -> Decision {
        let mut head = vec![header(":status", &status.to_string())];
        head.extend_from_slice(headers);
        self.filter.on_response_headers(self.id, &head, eos, details, self.now)
    }

    pub(crate) fn answer(&mut self, piece: &[u8], eos: bool) -> Decision {
        self.filter.on_response_body(self.id, piece.to_vec(), eos, self.now)
    }

    pub(crate) fn tick(&mut self, now: u64) -> Vec<(u32, Vec<Action>)> {
        self.now = now;
        self.filter.on_tick(PLUGIN, now)
    }

    /// Takes the calls among these actions, as Envoy does, and returns each with its token.
    pub(crate) fn taken(&mut self, actions: &[Action]) -> Vec<(u32, HttpCall)> {
        let mut taken = Vec::new();
        for action in actions {
            let Action::Call(call) = action else { continue };
            self.calls += 1;
            self.filter.on_call_sent(self.id, call.id, self.calls);
            taken.push((self.calls, call.clone()));
        }
        taken
    }

    /// Answers a call; with status 0 the call fails. Returns what the filter does then, if the
    /// stream is there.
    pub(crate) fn respond(
        &mut self,
        token: u32,
        status: u16,
        kind: &str,
        body: &[u8],
    ) -> Vec<Action> {
        let head = [header(":status", &status.to_string()), header("content-type", kind)];
        let head = if status == 0 { &[][..] } else { &head };
        let Some((id, call, bytes_max)) = self.filter.take_call(token) else { return Vec::new() };
        let cut = body.get(..bytes_max).unwrap_or(body);
        let body = (cut, cut.len() == body.len());
        self.filter.on_call_response(id, call, head, body, self.now)
    }

    pub(crate) fn log(&mut self, details: &str) -> Vec<Action> {
        self.filter.on_log(self.id, details, self.now)
    }

    pub(crate) fn lines(&mut self, details: &str) -> Vec<(Level, String)> {
        let actions = self.log(details);
        let lines = actions.into_iter().filter_map(|action| match action {
            Action::Log(level, line) => Some((level, line)),
            _ => None,
        });
        lines.collect()
    }
}

pub(crate) fn header(name: &str, value: &str) -> Header {
    (name.to_owned(), value.to_owned())
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The answer from here that a decision must end with.
pub(crate) fn local(decision: &Decision) -> LocalResponse {
    match decision.actions.last() {
        Some(Action::SendLocalResponse(response)) => response.clone(),
        other => panic!("expected a local response, but found {other:?}"),
    }
}

/// The head that a decision must have replaced.
pub(crate) fn replaced(decision: &Decision, side: Side) -> Vec<Header> {
    let found = decision.actions.iter().find_map(|action| match action {
        Action::ReplaceHeaders(of, head) if *of == side => Some(head.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("expected a head, but found {decision:?}"))
}

/// The bytes that a body callback let go on: `piece`, or what it was replaced by.
pub(crate) fn written(decision: &Decision, side: Side, piece: &[u8]) -> Vec<u8> {
    let found = decision.actions.iter().find_map(|action| match action {
        Action::ReplaceBody(of, bytes) if *of == side => Some(bytes.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| piece.to_vec())
}
