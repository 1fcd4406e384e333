//! Fuzz targets for arbitrary bytes as an upstream's answer; see [`super`].

use crate::answer::Answer;
use crate::config::{InvalidToolCall, Protocol, Settings, ToolStream};
use crate::error::Error;
use crate::ids::Ids;
use crate::json::{Reader, member};
use crate::model::request_context::{AnswerLimits, Display, RequestContext, ThinkingContext, Tool};
use crate::profile::{Profile, TextToolCalls};
use crate::{protocols, sse};

/// Maximum size of answers and events in bytes, small enough for inputs to reach it.
const BYTES_MAX: usize = 4 << 10;

/// Tests the decoder of server-sent events: the events do not depend on the chunk boundaries, and
/// the decoder's buffers stay within their limit.
pub fn sse(data: &[u8]) {
    let whole = decode(data, data.len().max(1));
    for size in [1, 2, 7] {
        assert_eq!(decode(data, size), whole, "in pieces of {size}");
    }
}

fn decode(data: &[u8], size: usize) -> (Vec<String>, bool) {
    let mut decoder = sse::Decoder::new(BYTES_MAX);
    let mut events = Vec::new();
    let show = |event: sse::SseEvent<'_>| format!("{:?}: {}", event.called, event.data);
    for mut piece in data.chunks(size) {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(event)) => {
                    // An invalid byte becomes three bytes of UTF-8.
                    assert!(event.data.len() <= 3 * BYTES_MAX);
                    events.push(show(event));
                }
                Ok(None) => break,
                Err(_) => return (events, true),
            }
        }
    }
    events.extend(decoder.finish().map(show));
    (events, false)
}

/// Tests a streamed answer of arbitrary bytes in Chat Completions or Messages, after one byte of
/// options. The client's stream must be well-formed, and chunk boundaries must not matter.
pub fn stream(data: &[u8]) {
    stream_of(Protocol::Openai, data);
}

/// Tests an answer of arbitrary bytes in the Responses API, after one byte of options, both
/// streamed and whole.
pub fn responses(data: &[u8]) {
    stream_of(Protocol::Responses, data);
    response_of(Protocol::Responses, data);
}

/// Returns the client's stream for a stream in the Responses API.
#[cfg(test)]
pub(crate) fn said_in_responses(options: u8, body: &[u8]) -> (String, Result<(), Error>) {
    let (out, result) = run(Protocol::Responses, options, body, body.len().max(1));
    (String::from_utf8_lossy(&out).into_owned(), result)
}

fn stream_of(protocol: Protocol, data: &[u8]) {
    let Some((options, body)) = data.split_first() else { return };
    let (whole, result) = run(protocol, *options, body, body.len().max(1));
    check(*options, &whole, result.is_err());
    for size in [1, 3, 61] {
        let (cut, cut_result) = run(protocol, *options, body, size);
        assert_eq!(String::from_utf8_lossy(&cut), String::from_utf8_lossy(&whole), "by {size}");
        assert_eq!(cut_result, result, "by {size}");
    }
}

fn run(protocol: Protocol, options: u8, body: &[u8], size: usize) -> (Vec<u8>, Result<(), Error>) {
    let mut answer = answer(protocol, options);
    let mut out = Vec::new();
    let mut result = Ok(());
    for piece in body.chunks(size) {
        result = answer.handle_piece(piece, &mut out);
        if result.is_err() || answer.is_done() {
            break;
        }
    }
    let result = result.and_then(|()| answer.handle_end(&mut out));
    let length = out.len();
    assert_eq!(answer.handle_piece(b"data: {}\n\n", &mut out), Ok(()));
    assert_eq!(out.len(), length, "something comes after the end");
    (out, result)
}

/// Tests a whole answer of arbitrary bytes in Chat Completions or Messages, after one byte of
/// options.
pub fn response(data: &[u8]) {
    response_of(Protocol::Openai, data);
}

fn response_of(protocol: Protocol, data: &[u8]) {
    let Some((options, body)) = data.split_first() else { return };
    let mut answer = answer(protocol, *options);
    let mut out = Vec::new();
    let result = answer.handle_whole(body, &mut out);
    check(*options, &out, result.is_err());
}

fn answer(protocol: Protocol, options: u8) -> Answer {
    let has = |bit: u8| options & (1 << bit) != 0;
    let written = match (options >> 3 & 7, has(6)) {
        (0, false) => TextToolCalls::Hermes,
        (0, true) => TextToolCalls::Gemma,
        (1, false) => TextToolCalls::QwenXml,
        (1, true) => TextToolCalls::Deepseek,
        (2, false) => TextToolCalls::Mistral,
        (2, true) => TextToolCalls::Pythonic,
        (3, _) => TextToolCalls::Kimi,
        (4, _) => TextToolCalls::Glm,
        (5, _) => TextToolCalls::Llama,
        (6, _) => TextToolCalls::Minimax,
        _ => TextToolCalls::Harmony,
    };
    let mut context = RequestContext {
        model: "claude".to_owned(),
        edge_key: has(6),
        // The digit '0' gives the plain stream, like other even digits.
        stream: !has(0),
        thinking: ThinkingContext {
            display: if has(1) { Display::Shown } else { Display::Hidden },
            returns: has(1),
            ..ThinkingContext::default()
        },
        limits: AnswerLimits {
            stop_sequences: if has(2) { vec!["END".to_owned()] } else { Vec::new() },
            ..AnswerLimits::default()
        },
        model_mapped: has(3),
        searches: has(4),
        calls_mcp: has(4),
        profile: Profile {
            inline_think: has(2),
            text_tool_calls: if has(2) { written } else { TextToolCalls::Off },
            ..Profile::default()
        },
        ..RequestContext::default()
    };
    for name in ["w", "get_weather", "Read"] {
        context.tools.push(Tool { outgoing: name.into(), name: name.into(), ..Tool::default() });
    }
    let settings = Settings {
        event_bytes_max: BYTES_MAX,
        waiting_bytes_max: BYTES_MAX,
        response_bytes_max: 4 * BYTES_MAX,
        tool_stream: if has(6) { ToolStream::Buffered } else { ToolStream::Live },
        invalid_tool_call: if has(7) { InvalidToolCall::Repair } else { InvalidToolCall::Pass },
        ..Settings::default()
    };
    protocols::answer(protocol, Box::new(context), &settings, Ids::new(7))
}

/// Checks the client's output: a whole message is JSON, and a stream begins and ends correctly,
/// like each of its blocks.
fn check(options: u8, out: &[u8], failed: bool) {
    let out = std::str::from_utf8(out).expect("it is text");
    if options & 1 != 0 {
        assert!(failed != Reader::of(out).is_object(), "{out}");
        return;
    }
    let (mut started, mut ended, mut open, mut index) = (false, false, false, 0u64);
    for frame in out.split_terminator("\n\n") {
        let event = frame.strip_prefix("event: ").and_then(|rest| rest.split_once("\ndata: "));
        let (name, data) = event.expect(frame);
        assert!(Reader::of(data).is_object() && !data.contains('\n'), "{frame}");
        assert_eq!(member(data, "type"), Some(format!("\"{name}\"").as_str()), "{frame}");
        assert!(!ended && started != (name == "message_start"), "{frame}");
        if name.starts_with("content_block") {
            let index = index.to_string();
            assert_eq!(member(data, "index"), Some(index.as_str()), "{frame}\nin {out}");
        }
        match name {
            "message_start" => started = true,
            "content_block_start" => assert!(!std::mem::replace(&mut open, true), "{out}"),
            "content_block_delta" => assert!(open, "{out}"),
            "content_block_stop" => {
                assert!(std::mem::take(&mut open), "{out}");
                index += 1;
            }
            "message_delta" => assert!(!open, "{out}"),
            "message_stop" => ended = true,
            "ping" => {}
            _ => panic!("{frame}"),
        }
    }
    assert!(ended != failed, "{out}");
}
