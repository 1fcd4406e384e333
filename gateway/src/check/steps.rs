//! Steps of `creole check` that need a model. Each step sends a request as an agent does, and
//! reports the result.

use std::time::Duration;

use super::ask::{self, Call, ModelReply};
use super::inside::{Inside, ReceivedResponse};
use super::row::{CheckRow, Level};
use crate::probe::model_names::closest;
use crate::probe::problem::Problem;

/// Tags in which some models write their thinking as plain text.
const THINKING_TAGS: [&str; 6] =
    ["<think>", "[THINK]", "<seed:think>", "<thought>", "<thinking>", "<reasoning>"];

/// Runs all steps of the check that need a model. `known` has the names of listed models, which are
/// suggested for a misspelled name. `sets_counts` is true if this check itself made the server
/// count tokens.
pub(super) async fn run(
    inside: &Inside,
    model: &str,
    known: &[String],
    sets_counts: bool,
) -> Vec<CheckRow> {
    let steps = Steps { inside, model };
    let answer = steps.answer(known).await;
    if answer.level == Level::Fails {
        return vec![answer];
    }
    vec![
        answer,
        steps.stream().await,
        steps.tools().await,
        steps.reasoning().await,
        steps.images().await,
        steps.counts(sets_counts).await,
    ]
}

struct Steps<'a> {
    inside: &'a Inside,
    model: &'a str,
}

impl Steps<'_> {
    async fn ask(&self, body: String) -> (ReceivedResponse, ModelReply) {
        let received = self.inside.ask("/v1/messages", body).await;
        let answer = ModelReply::of(&received);
        (received, answer)
    }

    async fn answer(&self, known: &[String]) -> CheckRow {
        const STEP: &str = "answer";
        let (received, answer) = self.ask(ask::answer(self.model)).await;
        let took = seconds(received.whole);
        if let Some(error) = answer.error {
            // Some servers list their models without a key, but require a key for an answer.
            let route = self.inside.config().route(self.model);
            // With the operator's key, the client gets another status than the gateway.
            let status = received.upstream_status();
            if let (401 | 403, Some((upstream, _))) = (status, route) {
                let Problem { code, text, .. } = Problem::key(upstream, status);
                return CheckRow {
                    code,
                    ..CheckRow::new(STEP, Level::Fails, text).with(&received)
                };
            }
            let near = closest(self.model, known);
            let is_of_model = received.status == 404 || error.to_lowercase().contains("model");
            let is_known = known.iter().any(|name| name == self.model);
            if is_of_model && !is_known && !near.is_empty() && received.status < 500 {
                let text = format!("{error}; the nearest that it lists: {}", near.join(", "));
                let row = CheckRow::new(STEP, Level::Fails, text).with(&received);
                return CheckRow { code: "model", ..row };
            }
            return CheckRow::new(STEP, Level::Fails, refused(&received, &error)).with(&received);
        }
        if answer.text.trim().is_empty() {
            let text = match answer.stop_reason.as_str() {
                "max_tokens" => "no text came within 2048 tokens: the model thinks without an end",
                _ => {
                    "no text came: start the server with the parser of this model (vLLM, SGLang: \
                     --reasoning-parser), or without one"
                }
            };
            return CheckRow::new(STEP, Level::Fails, text).with(&received);
        }
        CheckRow::new(STEP, Level::Works, format!("in {took}")).with(&received)
    }

    async fn stream(&self) -> CheckRow {
        const STEP: &str = "stream";
        let (received, answer) = self.ask(ask::stream(self.model)).await;
        if let Some(error) = answer.error {
            return CheckRow::new(STEP, Level::Fails, refused(&received, &error)).with(&received);
        }
        if !received.came("data:") {
            let text =
                "the server answers in one piece: Creole makes a stream of it, and text comes late";
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        let (pieces, first) = (answer.pieces, seconds(received.first));
        if pieces <= 1 {
            let text =
                "all text came in one piece: it streams, and people see nothing until the end";
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        let text = format!("{pieces} pieces, the first after {first}");
        CheckRow::new(STEP, Level::Works, text).with(&received)
    }

    async fn tools(&self) -> CheckRow {
        const STEP: &str = "tools";
        let (mut received, mut answer) = self.ask(ask::call(self.model, false)).await;
        let mut is_forced = false;
        if answer.error.is_none() && answer.calls.is_empty() {
            let said = answer.text;
            (received, answer) = self.ask(ask::call(self.model, true)).await;
            is_forced = true;
            if answer.calls.is_empty() {
                return CheckRow::new(STEP, Level::Fails, without_call(&answer, &said))
                    .with(&received);
            }
        }
        if let Some(error) = answer.error {
            let text = format!("{}: agents need a model with tools", refused(&received, &error));
            return CheckRow::new(STEP, Level::Fails, text).with(&received);
        }
        let call = answer.calls.into_iter().next().unwrap_or_default();
        if !call.is_right() {
            let text = "a call came, and its name or its input is wrong: the model, or the server's parser, is \
                        too weak for agents";
            return CheckRow::new(STEP, Level::Fails, text).with(&received);
        }
        let row = self.result(&call).await;
        if row.level == Level::Works && is_forced {
            let text = "the model calls a tool only where it must: agents will often stop early";
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        row
    }

    /// Checks the second turn, in which an agent sends the tool call and its result.
    async fn result(&self, call: &Call) -> CheckRow {
        const STEP: &str = "tools";
        let (received, answer) = self.ask(ask::result(self.model, call)).await;
        match answer.error {
            Some(error) => {
                let text =
                    format!("the call works, but not its result: {}", refused(&received, &error));
                CheckRow::new(STEP, Level::Fails, text).with(&received)
            }
            None => {
                let text = "a call with a valid input, and its result was taken";
                CheckRow::new(STEP, Level::Works, text).with(&received)
            }
        }
    }

    async fn reasoning(&self) -> CheckRow {
        const STEP: &str = "reasoning";
        let (received, answer) = self.ask(ask::reasoning(self.model)).await;
        if let Some(error) = answer.error {
            // Claude Code requests reasoning with every request.
            return CheckRow::new(STEP, Level::Fails, refused(&received, &error)).with(&received);
        }
        let in_text = |tag: &&&str| answer.text.trim_start().starts_with(**tag);
        if let Some(tag) = THINKING_TAGS.iter().find(in_text) {
            let text = format!(
                "as {tag} in the text, which clients show: \"inline_think\": true in profile_overrides makes thinking \
                 blocks of it"
            );
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        if !answer.has_thinking {
            let text = "the model shows none: clients get answers without thinking blocks";
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        let fields = ["reasoning_content", "reasoning"];
        let field = fields.iter().find(|name| received.came(&format!("\"{name}\":")));
        let tag = THINKING_TAGS.iter().find(|tag| received.came(tag));
        let text = match (field, tag) {
            (Some(name), _) => format!("in the field {name}: becomes thinking blocks"),
            (None, Some(tag)) => format!("as {tag}: becomes thinking blocks"),
            (None, None) => "becomes thinking blocks".to_owned(),
        };
        CheckRow::new(STEP, Level::Works, text).with(&received)
    }

    async fn images(&self) -> CheckRow {
        const STEP: &str = "images";
        let (received, answer) = self.ask(ask::image(self.model)).await;
        if let Some(error) = answer.error {
            let text = format!(
                "{}: clients get this error for an image of a person; one of a tool, or of an earlier turn, becomes \
                 a note",
                refused(&received, &error)
            );
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        let warnings = received.warnings();
        let is_dropped = |code: &String| code == "images_refused" || code == "dropped:image";
        if warnings.iter().any(is_dropped) {
            let text = "the model takes none: an image becomes a note that says so";
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        if !answer.text.to_lowercase().contains("red") {
            let text = "taken, but the model did not see that the picture is red";
            return CheckRow::new(STEP, Level::Limited, text).with(&received);
        }
        CheckRow::new(STEP, Level::Works, "the model sees them").with(&received)
    }

    async fn counts(&self, sets_counts: bool) -> CheckRow {
        const STEP: &str = "counts";
        let received = self.inside.ask("/v1/messages/count_tokens", ask::count(self.model)).await;
        let is_estimate = received.warnings().iter().any(|code| code == "count_estimated");
        let (level, text) = match (received.status, is_estimate) {
            (200, false) if sets_counts => {
                let text = "clients get estimates; the server counts exactly: \"count_tokens\": \"upstream\" in a \
                            configuration";
                (Level::Limited, text.to_owned())
            }
            (200, false) => (Level::Works, "the server counts tokens exactly".to_owned()),
            (200, true) => {
                let text = "clients get estimates, within 10 % for prose and code: the server does not count";
                (Level::Limited, text.to_owned())
            }
            (404, _) => (Level::Limited, "the configuration switches them off".to_owned()),
            _ => {
                let error = ModelReply::of(&received).error.unwrap_or_default();
                (Level::Limited, refused(&received, &error))
            }
        };
        CheckRow::new(STEP, level, text).with(&received)
    }
}

/// Explains why an answer has no tool call although the request required a tool call.
fn without_call(forced: &ModelReply, said: &str) -> String {
    let is_text = |text: &str| text.contains(ask::TOOL) && text.contains('{');
    if is_text(said) || is_text(&forced.text) {
        return "the model writes its calls as text: start the server with the parser of this model (vLLM, SGLang: \
                --tool-call-parser; llama.cpp: --jinja), or set text_tool_calls in the profile"
            .to_owned();
    }
    if let Some(error) = &forced.error {
        return format!(
            "the model answered with text, and the server refuses to force a call ({error}): take a model with tools"
        );
    }
    "the model calls no tool: take a model with tools, and start the server with its parser (vLLM, SGLang: \
     --tool-call-parser; llama.cpp: --jinja)"
        .to_owned()
}

/// Returns the error text of a refused request, with the HTTP status that the client got.
fn refused(received: &ReceivedResponse, error: &str) -> String {
    match received.status {
        0 | 200 => error.to_owned(),
        status => format!("{status}: {error}"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
