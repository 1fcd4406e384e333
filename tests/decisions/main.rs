//! Every field of the wire formats, sent, with its fate asserted.
//!
//! For each field of each type of a Messages request, a valid request is generated that contains
//! it, with a value that stands nowhere else, and goes through the core. What the decision says
//! must happen: the value arrives at its place upstream, or the outgoing body is the one without
//! the field, or a warning names it and `strict` rejects it, or the request is refused with its
//! path. Answers likewise: what an upstream can say is visible at the client or changes nothing,
//! and what the core says is what the decisions list, nothing else.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
// Modules of one test, not an interface.
#![allow(missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod blocks;
mod place;
mod responses;
mod rules;
mod spec;
mod tools;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use creole::config::Protocol;
use serde_json::{Value, json};

use rules::Case;
use spec::{Field, MARK, Spec, Step};
use support::{chat, drive, fixture, fold, grammar};

/// Result of a request that was sent through Creole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The body for the upstream.
    pub sent: Option<Value>,
    /// Status and body of the answer, where there was no need of an upstream.
    pub replied: Option<(u16, Value)>,
    /// `code` or `code:name`.
    pub warnings: Vec<String>,
    /// The headers for the upstream.
    pub headers: Vec<(String, String)>,
}

/// Way of sending a request: configuration, path and headers.
#[derive(Clone, Debug)]
pub struct Way {
    pub profile: &'static str,
    pub overrides: Value,
    pub settings: Value,
    pub path: &'static str,
    pub headers: Vec<(&'static str, &'static str)>,
}

impl Default for Way {
    /// The profile that understands most.
    fn default() -> Self {
        Self {
            profile: "openai-chat",
            overrides: Value::Null,
            settings: json!({}),
            path: "/v1/messages",
            headers: Vec::new(),
        }
    }
}

impl Way {
    pub fn profile(profile: &'static str) -> Self {
        Self { profile, ..Self::default() }
    }

    pub fn overrides(profile: &'static str, overrides: Value) -> Self {
        Self { profile, overrides, ..Self::default() }
    }

    fn strict() -> Self {
        Self { settings: json!({"strict": true}), ..Self::default() }
    }
}

/// Sends a request. Whatever is sent on must be a valid request in what the upstream speaks, and
/// whatever is refused a valid error.
pub fn run(request: &Value, way: &Way) -> Run {
    let config = fixture::config(way.settings.as_object(), way.profile, Some(&way.overrides));
    let config = drive::config(&config.to_string());
    let body = request.to_string();
    match drive::request(&config, way.path, &way.headers, body.as_bytes()) {
        Ok((exchange, upstream)) => {
            let sent: Value = serde_json::from_slice(&upstream.body)
                .unwrap_or_else(|error| panic!("{error} in the body sent for {body}"));
            let target = config.upstreams.get("default").unwrap();
            let name_chars_max = target.profile.max_tool_name;
            let checked = match target.protocol {
                Protocol::Responses => support::responses::check(&sent),
                _ => chat::check(&sent, chat::Rules { name_chars_max, ..chat::Rules::default() }),
            };
            if let Err(error) = checked {
                panic!("{error}\n--- sent\n{sent}\n--- for\n{body}");
            }
            Run {
                sent: Some(sent),
                warnings: warnings_of(&exchange.report()),
                headers: upstream.headers,
                ..Run::default()
            }
        }
        Err(answer) => replied(*answer),
    }
}

fn warnings_of(report: &creole::observe::report::Report) -> Vec<String> {
    report.warnings.iter().map(creole::observe::warning::Warning::text).collect()
}

/// Reads an answer that Creole gave by itself.
fn replied(answer: drive::Answer) -> Run {
    let value = if answer.body.starts_with(b"event: ") {
        let rules = grammar::Rules::default();
        let events = grammar::check_stream(&answer.body, rules)
            .unwrap_or_else(|error| panic!("{error} in the answer"));
        fold::fold(&events).message
    } else {
        serde_json::from_slice(&answer.body).unwrap_or_else(|error| {
            panic!("{error} in {:?}", String::from_utf8_lossy(&answer.body))
        })
    };
    if answer.head.status >= 400
        && let Err(error) = grammar::error_body(&value)
    {
        panic!("{error} in the answer {value}");
    }
    Run {
        replied: Some((answer.head.status, value)),
        warnings: warnings_of(&answer.report),
        ..Run::default()
    }
}

impl Run {
    /// The body for the upstream.
    pub fn body(&self) -> Result<&Value, String> {
        self.sent.as_ref().ok_or_else(|| match &self.replied {
            Some((status, body)) => format!("refused: {status} {}", body["error"]["message"]),
            None => "nothing happened".into(),
        })
    }

    /// Whether something was said to be left out.
    fn dropped(&self) -> Vec<&String> {
        let names_a_loss =
            |code: &&String| code.starts_with("dropped") || code.starts_with("unknown_");
        self.warnings.iter().filter(names_a_loss).collect()
    }
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<String, usize>,
    sent: usize,
    failures: Vec<String>,
}

impl Tally {
    /// Runs one check. A panic, of the core or of a checker, is a failure of this check alone.
    fn check(&mut self, what: &str, check: impl FnOnce(&mut usize) -> Result<(), String>) {
        let sent = &mut self.sent;
        let result = catch_unwind(AssertUnwindSafe(|| check(sent))).unwrap_or_else(|panic| {
            Err(format!(
                "panicked: {}",
                panic.downcast_ref::<String>().cloned().unwrap_or_default()
            ))
        });
        if let Err(error) = result {
            self.failures.push(format!("{what}: {error}"));
        }
    }

    fn finish(self, section: &str) {
        let fields: usize = self.counts.values().sum();
        println!("{section}: {fields} fields, {} bodies sent", self.sent);
        for (fate, count) in &self.counts {
            println!("  {fate:<22}{count:>5}");
        }
        assert!(
            self.failures.is_empty(),
            "{} of {fields} fields fail:\n{}",
            self.failures.len(),
            self.failures.join("\n")
        );
    }
}

const REQUEST: &str = include_str!("../spec/request.json");
const ROOTS: [&str; 3] =
    ["MessageCreateParamsNonStreaming", "MessageCreateParamsStreaming", "MessageCountTokensParams"];

#[test]
fn every_field_of_a_request_has_its_decided_fate() {
    let spec = Spec::read(REQUEST);
    let mut tally = Tally::default();
    each_field(&spec, &mut tally, &mut |walk, tally| {
        let fate = &walk.facts.fate;
        *tally.counts.entry(fate.clone()).or_default() += 1;
        tally.check(&format!("{} ({fate})", walk.text()), |sent| walk.check(sent));
    });
    tally.finish("requests");
}

/// Walks every field of a request.
fn each_field(spec: &Spec, tally: &mut Tally, take: &mut dyn FnMut(&Walk<'_>, &mut Tally)) {
    let none = Vec::new();
    let inside = spec.paths(ROOTS[0], &place::allowed);
    for (name, fields) in spec.types() {
        let steps = if ROOTS.contains(&name.as_str()) { Some(&none) } else { inside.get(name) };
        let Some(steps) = steps else {
            tally.failures.push(format!("{name}: no request can contain it"));
            continue;
        };
        for (field, facts) in fields {
            take(&Walk { spec, name, field, facts, steps }, tally);
        }
    }
}

/// Field under test, with the steps that lead to it from a root.
struct Walk<'a> {
    spec: &'a Spec,
    name: &'a str,
    field: &'a str,
    facts: &'a Field,
    steps: &'a [Step],
}

impl Walk<'_> {
    fn text(&self) -> String {
        format!("{}.{}", self.name, self.field)
    }

    /// The values with which the field is sent.
    fn values(&self) -> Vec<Value> {
        rules::values(self.name, self.field)
            .unwrap_or_else(|| self.spec.values(self.name, self.field, &self.facts.tree, true))
    }

    /// A request in which the field has `value`, or is absent.
    fn request(&self, value: Option<&Value>) -> Value {
        let mut instance = self.spec.instance(self.name, false);
        rules::prepare(self.name, self.field, &mut instance);
        match value {
            Some(value) => {
                instance[self.field] = value.clone();
                rules::sign(self.field, &mut instance);
            }
            None if !self.facts.required => {
                instance.as_object_mut().unwrap().remove(self.field);
            }
            None => {}
        }
        place::settle(self.spec.wrap(self.steps, instance))
    }

    fn check(&self, sent: &mut usize) -> Result<(), String> {
        // A type that stands only in a compaction block has the fate of the type that clients send.
        let twin = rules::twin(self.name, &self.facts.note);
        let name = twin.as_deref().unwrap_or(self.name);
        let facts = match &twin {
            Some(twin) => self
                .spec
                .field(twin, self.field)
                .ok_or_else(|| format!("its twin {twin} has no such field"))?,
            None => self.facts,
        };
        let counting = self.name == ROOTS[2];
        for value in self.values() {
            *sent += 1;
            let (fate, exception) = rules::exception(self.name, self.field, &value, &facts.fate);
            let request = self.request(Some(&value));
            let result = if counting {
                self.counted(fate, &request)
            } else {
                match fate {
                    "dropped_silently" => self.silent(&request),
                    "dropped_with_warning" => self.warned(&request),
                    "rejected" => self.refused(&request),
                    _ => rules::mapped(&Case {
                        name,
                        field: self.field,
                        facts,
                        member: self.steps.last().map_or("", |step| &step.field),
                        value: &value,
                        request: &request,
                        with: &|value| self.request(Some(value)),
                        without: &|| self.request(None),
                    }),
                }
            };
            result.map_err(|error| {
                let why = exception.map(|why| format!(" [{why}]")).unwrap_or_default();
                format!("{error}{why}\n    value {value}\n    request {request}")
            })?;
        }
        Ok(())
    }

    /// The outgoing body is as without the field, and nobody is warned.
    fn silent(&self, request: &Value) -> Result<(), String> {
        let run = run(request, &Way::default());
        let body = run.body()?;
        if !run.dropped().is_empty() {
            return Err(format!("warned of: {:?}", run.dropped()));
        }
        let base = crate::run(&self.request(None), &Way::default());
        let same = body == base.body().map_err(|error| format!("without the field: {error}"))?;
        if !self.facts.required && !same {
            return Err(format!("the body changes: {body}"));
        }
        if body.to_string().contains(MARK) {
            return Err(format!("the value arrives: {body}"));
        }
        Ok(())
    }

    /// The value is left out, a warning says so, and `strict` refuses.
    fn warned(&self, request: &Value) -> Result<(), String> {
        let run = run(request, &Way::default());
        let body = run.body()?;
        if body.to_string().contains(MARK) {
            return Err(format!("the value arrives: {body}"));
        }
        if run.dropped().is_empty() {
            return Err(format!("no warning of a loss, only {:?}", run.warnings));
        }
        self.refusal(&crate::run(request, &Way::strict()))
            .map_err(|error| format!("strict: {error}"))
    }

    fn refused(&self, request: &Value) -> Result<(), String> {
        self.refusal(&run(request, &Way::default()))
    }

    /// An error 400 that names where the field is, from the outside.
    fn refusal(&self, run: &Run) -> Result<(), String> {
        let Some((status, body)) = &run.replied else {
            return Err(format!("expected a refusal, but sent {}", run.sent.as_ref().unwrap()));
        };
        let message = body["error"]["message"].as_str().unwrap_or_default();
        let outermost = self.steps.first().map_or(self.field, |step| &step.field);
        if *status != 400 || body["error"]["type"] != "invalid_request_error" {
            return Err(format!("expected 400, but found {status}: {message}"));
        }
        let path = message.split(':').next().unwrap_or_default();
        if !path.split(['.', '[']).any(|step| step == outermost) {
            return Err(format!("expected {outermost:?} in the path: {message}"));
        }
        Ok(())
    }

    /// Counting is an estimate from texts: what holds text raises it, what could not be served is
    /// refused, and the rest changes nothing.
    fn counted(&self, fate: &str, request: &Value) -> Result<(), String> {
        let way = Way { path: "/v1/messages/count_tokens", ..Way::default() };
        let run = run(request, &way);
        if fate == "rejected" {
            return self.refusal(&run);
        }
        let count = |run: &Run| match &run.replied {
            Some((200, body)) => Ok(body["input_tokens"].as_u64().unwrap()),
            replied => Err(format!("expected a count, but found {replied:?}")),
        };
        let counted = count(&run)?;
        let mut less = self.request(None);
        if matches!(self.field, "messages") {
            less["messages"] = json!([{"role": "user", "content": "q"}]);
        }
        let base = count(&crate::run(&less, &way))?;
        let holds_text = matches!(self.field, "messages" | "system" | "tools");
        if holds_text && counted <= base {
            return Err(format!("{counted} tokens with it, and {base} without"));
        }
        // A choice of tools or a format needs more around it; the rest must cost nothing.
        if !holds_text
            && self.field != "tool_choice"
            && self.field != "output_config"
            && counted != base
        {
            return Err(format!("{counted} tokens with it, and {base} without"));
        }
        Ok(())
    }
}
