//! Costs of answers in Chat Completions.

use creole::answer::Answer;
use creole::config::{Protocol, Settings};
use creole::ids::Ids;
use creole::model::request_context::{RequestContext, Tool};
use creole::profile::{Profile, TextToolCalls};
use creole::protocols;

use crate::meter::{BYTES_MIN, assert_ratio, most_held_by, processor_time_of};

fn answer(stream: bool, settings: &Settings) -> Answer {
    let mut asked =
        RequestContext { model: "claude".to_owned(), stream, ..RequestContext::default() };
    asked.tools.push(Tool { outgoing: "w".into(), name: "w".into(), ..Tool::default() });
    protocols::answer(Protocol::Openai, Box::new(asked), settings, Ids::new(7))
}

/// Maximum ratio of the costs of a byte in large and small events: large ones leave the processor's
/// caches. Work that is not linear costs hundreds of times as much.
const RATIO_MAX: f64 = 2.5;

/// Returns the nanoseconds for each byte of a stream in pieces of 64 bytes, over several runs.
fn cost(stream: &str, profile: &Profile) -> f64 {
    let settings = Settings::default();
    let runs = BYTES_MIN.div_ceil(stream.len());
    let mut out = Vec::with_capacity(1 << 16);
    let time = processor_time_of(|| {
        for _ in 0..runs {
            let mut asked = RequestContext {
                model: "claude".to_owned(),
                stream: true,
                ..RequestContext::default()
            };
            asked.profile = profile.clone();
            asked.tools.push(Tool { outgoing: "w".into(), name: "w".into(), ..Tool::default() });
            let mut answer =
                protocols::answer(Protocol::Openai, Box::new(asked), &settings, Ids::new(7));
            for piece in stream.as_bytes().chunks(64) {
                answer.handle_piece(piece, &mut out).expect("it is a right answer");
                out.clear();
            }
            answer.handle_end(&mut out).expect("it is complete");
        }
    });
    time as f64 / (runs * stream.len()) as f64
}

#[track_caller]
fn assert_linear(what: &str, small: &str, large: &str) {
    assert_linear_with(what, |_| {}, small, large);
}

#[track_caller]
fn assert_linear_with(what: &str, change: impl Fn(&mut Profile), small: &str, large: &str) {
    let mut profile = Profile::default();
    change(&mut profile);
    assert_ratio(what, RATIO_MAX, || cost(small, &profile), || cost(large, &profile));
}

const CHUNK_END: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const MESSAGE_START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\
    \"type\":\"message\",\"role\":\"assistant\",\"model\":\"k\",\"content\":[],\"stop_reason\":null,\
    \"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n";
const MESSAGE_END: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\
    \"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn text_block(index: usize) -> String {
    format!(
        "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":{index},\
         \"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n"
    )
}

fn tool_block(index: usize) -> String {
    format!(
        "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":{index},\
         \"content_block\":{{\"type\":\"tool_use\",\"id\":\"id{index}\",\"name\":\"w\",\"input\":{{}}}}}}\n\n"
    )
}

fn delta(index: usize, kind: &str, field: &str, raw: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
         \"delta\":{{\"type\":\"{kind}\",\"{field}\":\"{raw}\"}}}}\n\n"
    )
}

/// Returns a stream of about `total` bytes of text in events of `size` bytes.
fn in_events(total: usize, size: usize, event: impl Fn(&str) -> String) -> String {
    let words = "All work and no play makes \\\"Jack\\\" a dull boy. ".repeat(size / 48 + 1);
    let one = event(&words[..size / 48 * 48]);
    one.repeat(total / size)
}

/// Size, in bytes, of the largest event that the limits allow; smaller in a debug build, which is
/// slow.
const LARGE: usize = if cfg!(debug_assertions) { 1 << 20 } else { 8 << 20 };
/// Number of large events. The first event finds no buffer that is large enough; the later events
/// count.
const EVENTS: usize = 4;
const SMALL: usize = 8 << 10;
/// Size of the text in a large event, which leaves room for the event's other members.
const TEXT: usize = LARGE - (1 << 10);

#[test]
fn a_large_event_in_pieces_of_64_bytes_costs_about_as_much_a_byte_as_a_small_one() {
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let body = |size| in_events(EVENTS * TEXT, size, chunk) + CHUNK_END;
    assert_linear("a text", &body(SMALL), &body(TEXT));

    let call = |text: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":\
             {{\"arguments\":\"{}\"}}}}]}}}}]}}\n\n",
            text.replace("\\\"", "'")
        )
    };
    let frame = |json: &str| {
        let json = json.replace('"', "\\\"");
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"call_1\",\
             \"function\":{{\"name\":\"w\",\"arguments\":\"{json}\"}}}}]}}}}]}}\n\n"
        )
    };
    let body = |size| frame("{\"a\":\"") + &in_events(TEXT, size, call) + &frame("\"}") + CHUNK_END;
    assert_linear("an input", &body(SMALL), &body(TEXT));

    let event = |text: &str| delta(0, "text_delta", "text", text);
    let body = |size| {
        MESSAGE_START.to_owned()
            + &text_block(0)
            + &in_events(EVENTS * TEXT, size, event)
            + MESSAGE_END
    };
    assert_linear("a text in Messages", &body(SMALL), &body(TEXT));

    let event =
        |text: &str| delta(0, "input_json_delta", "partial_json", &text.replace("\\\"", "'"));
    let body = |size| {
        let open = delta(0, "input_json_delta", "partial_json", "{\\\"a\\\":\\\"");
        let close = delta(0, "input_json_delta", "partial_json", "\\\"}");
        MESSAGE_START.to_owned()
            + &tool_block(0)
            + &open
            + &in_events(TEXT, size, event)
            + &close
            + MESSAGE_END
    };
    assert_linear("an input in Messages", &body(SMALL), &body(TEXT));
}

#[test]
fn a_long_answer_costs_as_much_a_byte_as_a_short_one() {
    let event =
        |text: &str| delta(0, "input_json_delta", "partial_json", &text.replace("\\\"", "'"));
    let body = |total| {
        let open = delta(0, "input_json_delta", "partial_json", "{\\\"a\\\":\\\"");
        MESSAGE_START.to_owned()
            + &tool_block(0)
            + &open
            + &in_events(total, 96, event)
            + MESSAGE_END
    };
    assert_linear("an input in small deltas", &body(64 << 10), &body(2 << 20));
    let fragment = |text: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"{}\",\"function\":\
             {{\"name\":\"w\",\"arguments\":\"{}\"}}}}]}}}}]}}\n\n",
            text.len(),
            text.replace("\\\"", "'")
        )
    };
    let quoted = |text: &str| fragment(text).replace('\'', "\\\"");
    let body =
        |total| quoted("{'a':'") + &in_events(total, 96, fragment) + &quoted("'}") + CHUNK_END;
    assert_linear("an input in fragments with names", &body(64 << 10), &body(2 << 20));
    let object = |json: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":\
             {{\"name\":\"w\",\"arguments\":{json}}}}}]}}}}]}}\n\n"
        )
    };
    let deltas = |count| object("{\"a\":\"some words that wait\"}").repeat(count) + CHUNK_END;
    assert_linear("an input in objects", &deltas(400), &deltas(20_000));
    let members = |count| {
        let each = (0..count).map(|key| object(&format!("{{\"{key}\":\"{key}\"}}")));
        each.collect::<String>() + CHUNK_END
    };
    assert_linear("members in objects", &members(400), &members(20_000));
    // Content blocks that wait for a tool call that is never complete, or for a text that never
    // begins.
    let blocks = |first: String, count: usize| {
        let mut body = MESSAGE_START.to_owned() + &first;
        for index in 1..count {
            body += &text_block(index);
            body += &delta(index, "text_delta", "text", "some words that wait");
        }
        body + MESSAGE_END
    };
    for first in [tool_block(0), text_block(0)] {
        assert_linear("blocks that wait", &blocks(first.clone(), 100), &blocks(first, 4000));
    }
}

#[test]
fn what_is_hardly_an_event_costs_as_much_a_byte_in_a_large_one() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}".to_owned();
    let junk = |bytes| said.clone() + &"x{}".repeat(bytes / 3) + "\n\n" + CHUNK_END;
    assert_linear("objects between junk", &junk(SMALL), &junk(256 << 10));
    let empty = |bytes| said.clone() + "\n\n" + &"data:\n".repeat(bytes / 6) + "\n" + CHUNK_END;
    assert_linear("lines without data", &empty(SMALL), &empty(256 << 10));
}

#[test]
fn looking_for_calls_in_text_costs_as_much_a_byte_in_a_long_chunk() {
    let mistral = |profile: &mut Profile| profile.text_tool_calls = TextToolCalls::Mistral;
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n{CHUNK_END}")
    };
    let lines = |bytes| chunk(&"a line of words\\n".repeat(bytes / 17));
    assert_linear_with("lines", mistral, &lines(SMALL), &lines(256 << 10));
    let marks = |bytes| chunk(&("`".to_owned() + &"[TOOL_CALLS] ".repeat(bytes / 13)));
    assert_linear_with("marks in code", mistral, &marks(SMALL), &marks(256 << 10));
}

#[test]
fn reading_calls_in_text_costs_as_much_a_byte_in_a_long_text() {
    use TextToolCalls::{Deepseek, Gemma, Glm, Harmony, Kimi, Minimax, Mistral, Pythonic, QwenXml};
    for (syntax, start, again) in [
        (QwenXml, "<function=w>\n<parameter=a>\n", "<parameter=b\n"),
        (QwenXml, "<function=w>\n<parameter=a>\n", "1\n<parameter=b>\n"),
        (Deepseek, "<|DSML|invoke name=\"w\"><|DSML|parameter name=\"a\">", "</||DSML||  "),
        (Mistral, "[TOOL_CALLS]w[ARGS]{\"a\":[", "\"\n\","),
        (Mistral, "[TOOL_CALLS]w[ARGS]{\"a\":\"", "\n"),
        (Mistral, "[TOOL_CALLS]w[ARGS]", "{\"a\":\"\n\","),
        (Glm, "<tool_call>w", "<arg_key>a</arg_key></arg_key>b</arg_value>"),
        (Harmony, "", "<|channel|>final<|message|>a<|end|>"),
        (Harmony, "", "<|channel|>final to=w<|message|>{"),
        (Harmony, "", "<|message|>{}<|call|> a <|start|>"),
        (Minimax, "<invoke name=\"w\"><parameter name=\"a\">", "</parameter>'<parameter "),
        (Minimax, "<invoke name=\"w\">", "<parameter name=\"a"),
        (Minimax, "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"w\">", "]<]minimax[>[<a>"),
        (Kimi, "<|open|>tools<|sep|><|open|>call tool=\"w\"<|sep|>", "<|open|>argument key=\""),
        (Gemma, "<|tool_call>call:w{a:[", "1,"),
        (Gemma, "<|tool_call>call:w{a:", "<|\"|>"),
        (Kimi, "```\n", "``` ```\n"),
        (Pythonic, "[w(a=[", "'b', "),
        (Pythonic, "[w(a='", "\\x"),
        (Pythonic, "[w(), ", "w(), "),
        (Pythonic, "<function_calls>", "w() "),
    ] {
        let text = |bytes: usize| {
            let text = start.to_owned() + &again.repeat(bytes / again.len());
            let text = serde_json::Value::from(text);
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n{CHUNK_END}")
        };
        let calls = |profile: &mut Profile| profile.text_tool_calls = syntax;
        assert_linear_with(again, calls, &text(SMALL), &text(256 << 10));
    }
    // A line that may still end a code fence, in small pieces.
    let kimi = |profile: &mut Profile| profile.text_tool_calls = Kimi;
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    for again in ["    ", "```` "] {
        let fence = |count| chunk("```\\n```") + &chunk(again).repeat(count) + CHUNK_END;
        assert_linear_with(again, kimi, &fence(200), &fence(20_000));
    }
}

#[test]
fn white_space_that_goes_on_and_on_costs_as_much_a_byte_as_a_little() {
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let blank = |text: &str, count| chunk(text).repeat(count) + &chunk("Hi") + CHUNK_END;
    let think = |profile: &mut Profile| profile.inline_think = true;
    assert_linear_with("before a tag", think, &blank("    ", 200), &blank("    ", 20_000));
    let calls = |profile: &mut Profile| profile.text_tool_calls = TextToolCalls::Hermes;
    assert_linear_with("before a call", calls, &blank("    ", 200), &blank("    ", 20_000));
    assert_linear_with("empty lines", calls, &blank("\\n\\n", 200), &blank("\\n\\n", 20_000));
    let indent = |count| chunk("a\\n") + &blank("  ", count);
    assert_linear_with("an indent", calls, &indent(200), &indent(20_000));
}

#[test]
fn what_is_not_decided_costs_as_much_a_byte_in_many_fragments() {
    let content = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let input = |json: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":\
             {{\"name\":\"w\",\"arguments\":\"{json}\"}}}}]}}}}]}}\n\n"
        )
    };
    let blanks = "    \\n";
    for start in ["{", "null", "[]", "x", " "] {
        let body = |count| input(start) + &input(blanks).repeat(count) + CHUNK_END;
        assert_linear(&format!("an input of {start} and blanks"), &body(200), &body(20_000));
    }
    let partial = |json: &str| delta(0, "input_json_delta", "partial_json", json);
    for start in ["{", "null"] {
        let body = |count| {
            let blanks = partial(blanks).repeat(count);
            MESSAGE_START.to_owned()
                + &tool_block(0)
                + &partial(start)
                + &blanks
                + &partial("}")
                + MESSAGE_END
        };
        assert_linear(&format!("{start} and blanks in Messages"), &body(200), &body(20_000));
    }
    let named = |name: &str| input("").replace("\"w\"", &format!("\"{name}\""));
    let more = named(&"part".repeat(32));
    let name = |count| named("x") + &more.repeat(count) + &input("{}") + CHUNK_END;
    assert_linear("a name without end", &name(200), &name(20_000));
    for syntax in [TextToolCalls::Llama, TextToolCalls::Pythonic] {
        let calls = |profile: &mut Profile| profile.text_tool_calls = syntax;
        for start in ["[", "[w", "\\n["] {
            let list = |count| content(start) + &content(blanks).repeat(count) + CHUNK_END;
            assert_linear_with("a list", calls, &list(200), &list(20_000));
        }
        let late =
            |count| content(&"\\n".repeat(count)) + &content("[w(").repeat(count) + CHUNK_END;
        assert_linear_with("a list behind blanks", calls, &late(200), &late(20_000));
    }
    let message = |text: &str| {
        format!("data: {{\"choices\":[{{\"message\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    for start in ["", "Hi"] {
        let body = |count| message(start) + &message(blanks).repeat(count) + CHUNK_END;
        assert_linear("blanks in messages", &body(200), &body(20_000));
        let body = |count| message(&blanks.repeat(count)) + &message("a").repeat(count) + CHUNK_END;
        assert_linear("messages behind blanks", &body(200), &body(20_000));
    }
}

/// Feeds an answer with the pieces of `next` until the answer fails, or up to 24 MB. Returns the
/// maximum number of bytes held on the way.
fn most_held(stream: bool, limit: usize, next: impl Fn(usize) -> String) -> usize {
    let settings = Settings {
        event_bytes_max: limit,
        waiting_bytes_max: limit,
        response_bytes_max: limit,
        ..Settings::default()
    };
    let mut answer = answer(stream, &settings);
    let mut out = Vec::new();
    let (mut fed, mut number) = (0, 0);
    most_held_by(|| {
        while fed < 24 << 20 {
            let piece = next(number);
            number += 1;
            fed += piece.len();
            let result = answer.handle_piece(piece.as_bytes(), &mut out);
            out.clear();
            if result.is_err() {
                break;
            }
        }
    })
}

#[test]
fn memory_stays_within_the_limits_whatever_comes() {
    const LIMIT: usize = 256 << 10;
    let long = "x".repeat(4000);
    let chunk = |delta: String| format!("data: {{\"choices\":[{{\"delta\":{{{delta}}}}}]}}\n\n");
    let call = |index: usize, text: &str| {
        chunk(format!(
            "\"tool_calls\":[{{\"index\":{index},\"id\":\"c{index}\",\"function\":{{\"name\":\"w\",\
             \"arguments\":\"{text}\"}}}}]"
        ))
    };
    let in_messages = |first: String, rest: &dyn Fn(usize) -> String, number: usize| match number {
        0 => MESSAGE_START.to_owned() + &first,
        number => rest(number),
    };
    type Feed<'a> = Box<dyn Fn(usize) -> String + 'a>;
    let feeds: Vec<(&str, Feed<'_>)> = vec![
        ("a line without end", Box::new(|_| long.clone())),
        ("an event without end", Box::new(|_| format!("data: {long}\n"))),
        ("comments", Box::new(|_| format!(": {long}\n\n"))),
        ("texts", Box::new(|_| chunk(format!("\"content\":\"{long}\"")))),
        ("reasoning", Box::new(|_| chunk(format!("\"reasoning_content\":\"{long}\"")))),
        ("white space", Box::new(|_| chunk(format!("\"content\":\"{}\"", " ".repeat(4000))))),
        ("an input", Box::new(|number| call(0, if number == 0 { "{" } else { &long }))),
        ("calls", Box::new(|number| call(number, ""))),
        ("names", Box::new(|_| call(0, "").replace("\"w\"", &format!("\"{long}\"")))),
        (
            "ids",
            Box::new(|number| call(number, "").replace("\"id\":\"", &format!("\"id\":\"{long}"))),
        ),
        (
            "ids in Messages",
            Box::new(|number| {
                let long_id = |number: usize| {
                    tool_block(number).replace("\"id\":\"", &format!("\"id\":\"{long}"))
                };
                in_messages(long_id(0), &long_id, number)
            }),
        ),
        (
            "signatures that wait",
            Box::new(|number| {
                let rest = |number: usize| {
                    text_block(number).replace(
                        "\"type\":\"text\",\"text\":\"\"",
                        &format!("\"type\":\"thinking\",\"signature\":\"{long}\""),
                    )
                };
                in_messages(tool_block(0), &rest, number)
            }),
        ),
        (
            "a block",
            Box::new(|number| {
                let rest = |_: usize| delta(0, "text_delta", "text", &long);
                in_messages(text_block(0), &rest, number)
            }),
        ),
        (
            "blocks that wait",
            Box::new(|number| {
                let rest = |number: usize| {
                    text_block(number) + &delta(number, "text_delta", "text", "abc")
                };
                in_messages(tool_block(0), &rest, number)
            }),
        ),
        ("blocks", Box::new(|number| in_messages(String::new(), &text_block, number))),
        ("tool blocks", Box::new(|number| in_messages(String::new(), &tool_block, number))),
        (
            "an input in Messages",
            Box::new(|number| {
                let rest = |_: usize| delta(0, "input_json_delta", "partial_json", &long);
                in_messages(tool_block(0), &rest, number)
            }),
        ),
        (
            "empty inputs",
            Box::new(|number| {
                let rest = |_: usize| delta(0, "input_json_delta", "partial_json", "");
                in_messages(tool_block(0), &rest, number)
            }),
        ),
        (
            "ends",
            Box::new(|number| {
                let rest = |number: usize| {
                    format!(
                        "data: {{\"type\":\"message_delta\",\"delta\":{{\"x{number}\":\"{long}\"}},\
                     \"usage\":{{\"y{number}\":1}}}}\n\n"
                    )
                };
                in_messages(String::new(), &rest, number)
            }),
        ),
        (
            "other events",
            Box::new(|number| {
                let rest = |number: usize| {
                    format!("data: {{\"type\":\"x{number}\",\"y\":\"{long}\"}}\n\n")
                };
                in_messages(String::new(), &rest, number)
            }),
        ),
    ];
    for (what, feed) in &feeds {
        for stream in [true, false] {
            let most = most_held(stream, LIMIT, feed);
            // The bound covers three limits of this size, buffers that double, and output written
            // at once.
            assert!(most < 8 * LIMIT, "{what} (stream: {stream}): {most} bytes");
        }
    }
}
