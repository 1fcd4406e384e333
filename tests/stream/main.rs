//! Answers: what upstreams send, and what a Messages client makes of it.
//!
//! Every case runs whole, cut in two at every byte, and byte by byte; as a stream and as one
//! message. Both must say the same, and every stream must obey the grammar that clients rely on.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, clippy::expect_used)]

mod after_reasoning;
mod blocks;
mod calls;
mod choices;
mod endings;
mod errors;
mod fragment_patterns;
mod fragments;
mod framing;
mod invariants;
mod markup;
mod mended;
mod reasoning_calls;
mod reasoning_only;
mod shapes;
#[path = "../support/mod.rs"]
mod support;
mod text_calls;
mod text_inputs;
mod whole;

use creole::answer::Answer;
use creole::config::{InvalidToolCall, Protocol, Settings, ToolArguments, ToolStream};
use creole::error::Error;
use creole::ids::Ids;
use creole::model::request_context::{Display, RequestContext, ThinkingContext, Tool, Withheld};
use creole::profile::{ResponseModel, TextToolCalls};
use creole::protocols;
use serde_json::{Value, json};
use support::fold::fold;
use support::grammar::{self, Event, Rules};

/// Several cases are about calls whose input makes no sense, and who sees them.
const RULES: Rules =
    Rules { invalid_input_shown: true, foreign_blocks: false, head_sent_early: false };

/// Test case: the context of the request, and the configuration.
#[derive(Clone, Debug)]
struct Case {
    context: RequestContext,
    settings: Settings,
}

fn case() -> Case {
    let mut context = RequestContext {
        model: "claude".to_owned(),
        thinking: ThinkingContext {
            display: Display::Shown,
            returns: true,
            ..ThinkingContext::default()
        },
        input_tokens: 7,
        ..RequestContext::default()
    };
    for name in ["w", "t", "get_weather"] {
        context.tools.push(Tool { outgoing: name.into(), name: name.into(), ..Tool::default() });
    }
    context.tools.push(Tool {
        outgoing: "browser_click".to_owned(),
        name: "click".to_owned(),
        toolset: Some("browser"),
        ..Tool::default()
    });
    Case { context, settings: Settings::default() }
}

/// An answer of an upstream of Chat Completions.
fn answer(context: RequestContext) -> Answer {
    answer_with(context, &Settings::default())
}

fn answer_with(context: RequestContext, settings: &Settings) -> Answer {
    protocols::answer(Protocol::Openai, Box::new(context), settings, Ids::new(7))
}

/// Output of an answer, its error, and the codes of the warnings.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    out: String,
    error: Option<Error>,
    warnings: Vec<String>,
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut RequestContext, &mut Settings)) -> Self {
        change(&mut self.context, &mut self.settings);
        self
    }

    fn run<'a>(&self, stream: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let context = RequestContext { stream, ..self.context.clone() };
        let mut answer = answer_with(context, &self.settings);
        let mut out = Vec::new();
        let mut result = Ok(());
        for piece in pieces {
            if result.is_ok() {
                result = answer.handle_piece(piece, &mut out);
            }
        }
        let result = result.and_then(|()| answer.handle_end(&mut out));
        outcome(&mut answer, out, result)
    }

    fn whole(&self, stream: bool, body: &str) -> Outcome {
        let context = RequestContext { stream, ..self.context.clone() };
        let mut answer = answer_with(context, &self.settings);
        let mut out = Vec::new();
        let result = answer.handle_whole(body.as_bytes(), &mut out);
        outcome(&mut answer, out, result)
    }

    /// The stream's outcome, however it is cut.
    fn stream(&self, sse: &str) -> Outcome {
        let sse = sse.as_bytes();
        let whole = self.run(true, [sse]);
        for cut in 0..=sse.len() {
            let (left, right) = sse.split_at(cut);
            assert_eq!(self.run(true, [left, right]), whole, "cut at {cut}");
        }
        assert_eq!(self.run(true, sse.chunks(1)), whole, "byte by byte");
        whole
    }

    /// Asserts what the client gets, as a stream and as a message: the blocks, and how the answer
    /// ended.
    #[track_caller]
    fn gives(&self, sse: &str, expected: &str) -> Outcome {
        let streamed = self.stream(sse);
        assert_eq!(show(&streamed), expected, "as a stream: {}", streamed.out);
        let message = self.run(false, [sse.as_bytes()]);
        assert_eq!(show(&message), expected, "as a message: {}", message.out);
        streamed
    }

    /// Asserts what the client gets as a stream alone, where a stream and a message differ by
    /// design. See [`Case::gives`].
    #[track_caller]
    fn streams(&self, sse: &str, expected: &str) -> Outcome {
        let streamed = self.stream(sse);
        assert_eq!(show(&streamed), expected, "{}", streamed.out);
        streamed
    }
}

/// Returns the outcome, and asserts that nothing more is written after an error or the end.
fn outcome(answer: &mut Answer, mut out: Vec<u8>, result: Result<(), Error>) -> Outcome {
    let length = out.len();
    assert_eq!(answer.handle_piece(b"data: [DONE]\n\n", &mut out), Ok(()));
    assert_eq!(answer.handle_whole(b"{}", &mut out), Ok(()));
    assert_eq!(answer.handle_end(&mut out), Ok(()));
    answer.write_own("x", creole::StopReason::EndTurn, &mut out);
    assert_eq!(out.len(), length);
    let warnings = answer
        .warnings()
        .iter()
        .map(|warning| warning.code.to_owned())
        .filter(|code| code != "usage_estimated")
        .collect();
    Outcome { out: String::from_utf8(out).unwrap(), error: result.err(), warnings }
}

/// The message that the client has, which must obey the grammar; null where it gets an error.
fn message(outcome: &Outcome) -> Value {
    let out = &outcome.out;
    let Some(error) = &outcome.error else {
        return if out.starts_with("event:") {
            fold(&events(out)).message
        } else {
            let message = serde_json::from_str(out).unwrap();
            grammar::check_message(&message).unwrap_or_else(|wrong| panic!("{wrong}\n{message}"));
            message
        };
    };
    if !out.is_empty() {
        // The host ends the stream with the error.
        let error = json!({"type": "error", "request_id": "req_1",
            "error": {"type": error.kind.word(), "message": error.message}});
        events(&format!("{out}event: error\ndata: {error}\n\n"));
    }
    Value::Null
}

fn events(stream: &str) -> Vec<Event> {
    grammar::check_stream(stream.as_bytes(), RULES)
        .unwrap_or_else(|wrong| panic!("{wrong}\n{stream}"))
}

/// `text "Hi", tool_use a w {}; tool_use`, then warnings.
fn show(outcome: &Outcome) -> String {
    let message = message(outcome);
    let mut shown = match &outcome.error {
        Some(error) => format!("{} {}", error.status, error.kind.word()),
        None => {
            let blocks: Vec<String> =
                message["content"].as_array().unwrap().iter().map(show_block).collect();
            let sequence = message["stop_sequence"].as_str().map(|text| format!(" {text:?}"));
            let reason = message["stop_reason"].as_str().unwrap();
            format!("{}; {reason}{}", blocks.join(", "), sequence.unwrap_or_default())
        }
    };
    // Most cases in here stop as soon as they have shown what they are about.
    let is_short = |code: &str| matches!(code, "answer_empty" | "answer_only_reasoning");
    for code in outcome.warnings.iter().filter(|code| !is_short(code)) {
        shown.push_str(&format!(" !{code}"));
    }
    shown
}

fn show_block(block: &Value) -> String {
    match block["type"].as_str().unwrap() {
        kind @ ("text" | "thinking") => format!("{kind} {}", block[kind]),
        kind => {
            assert_eq!(block["caller"], json!({"type": "direct"}));
            let id = block["id"].as_str().unwrap().strip_prefix("toolu_").unwrap();
            let id = if id.len() == 24 { "minted" } else { id };
            let toolset = block["toolset_name"].as_str().map(|name| format!("{name}."));
            format!(
                "{kind} {id} {}{} {}",
                toolset.unwrap_or_default(),
                block["name"].as_str().unwrap(),
                block["input"].get("partial_json").unwrap_or_else(|| &block["input"])
            )
        }
    }
}

/// A stream of chunks, each given by its delta, or whole where it has `choices` or `usage`.
fn sse(chunks: &[Value], end: &str) -> String {
    let mut text = String::new();
    for chunk in chunks {
        let is_whole = ["choices", "usage", "error"].iter().any(|key| chunk.get(*key).is_some());
        let chunk = if is_whole {
            chunk.clone()
        } else if let Some(finish) = chunk.get("finish") {
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        } else {
            json!({"id": "c1", "choices": [{"index": 0, "delta": chunk, "finish_reason": null}]})
        };
        text.push_str(&format!("data: {chunk}\n\n"));
    }
    text + end
}

fn done(chunks: &[Value]) -> String {
    sse(chunks, "data: [DONE]\n\n")
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    if !name.is_empty() {
        call["function"]["name"] = json!(name);
    }
    json!({"tool_calls": [call]})
}

fn without_index(mut chunk: Value) -> Value {
    chunk["tool_calls"][0].as_object_mut().unwrap().remove("index");
    chunk
}

fn text(text: &str) -> Value {
    json!({"content": text})
}
