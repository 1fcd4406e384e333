//! Costs of answers in Responses, whatever an upstream sends.

use creole::answer::Answer;
use creole::config::{Protocol, Settings};
use creole::error::Error;
use creole::ids::Ids;
use creole::model::request_context::{Display, RequestContext, ThinkingContext, Tool};
use creole::protocols;

use crate::meter::{BYTES_MIN, assert_ratio, most_held_by, processor_time_of};

/// Maximum ratio of the costs of a byte in large and small events: see `answers::RATIO_MAX`.
const RATIO_MAX: f64 = 2.5;

fn answer(stream: bool, settings: &Settings) -> Answer {
    let mut asked = RequestContext {
        model: "claude".to_owned(),
        stream,
        thinking: ThinkingContext { display: Display::Shown, ..ThinkingContext::default() },
        searches: true,
        ..RequestContext::default()
    };
    asked.tools.push(Tool { outgoing: "w".into(), name: "w".into(), ..Tool::default() });
    protocols::answer(Protocol::Responses, Box::new(asked), settings, Ids::new(7))
}

fn read(stream: &str, piece: usize) -> Result<usize, Error> {
    let mut answer = answer(true, &Settings::default());
    let (mut out, mut written) = (Vec::with_capacity(1 << 16), 0);
    for piece in stream.as_bytes().chunks(piece) {
        answer.handle_piece(piece, &mut out)?;
        written += out.len();
        out.clear();
    }
    answer.handle_end(&mut out)?;
    Ok(written + out.len())
}

/// Returns the nanoseconds for each byte of a stream in pieces of 64 bytes, over several runs.
fn cost(stream: &str) -> f64 {
    let runs = BYTES_MIN.div_ceil(stream.len());
    let time = processor_time_of(|| {
        for _ in 0..runs {
            // A stream above a limit is refused, in as little time.
            drop(read(stream, 64));
        }
    });
    time as f64 / (runs * stream.len()) as f64
}

#[track_caller]
fn assert_linear(what: &str, small: &str, large: &str) {
    assert_ratio(what, RATIO_MAX, || cost(small), || cost(large));
}

fn event(kind: &str, rest: &str) -> String {
    format!("event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",{rest}}}\n\n")
}

fn added(index: usize, item: &str) -> String {
    event("output_item.added", &format!("\"output_index\":{index},\"item\":{{{item}}}"))
}

fn done(index: usize, item: &str) -> String {
    event("output_item.done", &format!("\"output_index\":{index},\"item\":{{{item}}}"))
}

fn message(index: usize) -> String {
    format!("\"id\":\"m{index}\",\"type\":\"message\"")
}

fn call(index: usize, arguments: &str) -> String {
    format!(
        "\"id\":\"f{index}\",\"type\":\"function_call\",\"call_id\":\"c{index}\",\"name\":\"w\",\
         \"arguments\":\"{arguments}\""
    )
}

fn text(index: usize, raw: &str) -> String {
    event(
        "output_text.delta",
        &format!("\"item_id\":\"m{index}\",\"output_index\":{index},\"delta\":\"{raw}\""),
    )
}

fn end(output: &str) -> String {
    event("completed", &format!("\"response\":{{\"status\":\"completed\",\"output\":[{output}]}}"))
}

fn many(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect()
}

#[test]
fn many_items_cost_as_much_a_byte_as_few() {
    let each = |count| {
        many(count, |at| added(at, &message(at)) + &text(at, "Hi") + &done(at, &message(at)))
    };
    assert_linear("messages", &(each(20) + &end("")), &(each(2_000) + &end("")));
    let open = |count| {
        many(count, |at| added(at, &message(at))) + &many(count, |at| text(count - 1 - at, "Hi"))
    };
    assert_linear("open messages", &(open(20) + &end("")), &(open(2_000) + &end("")));
    let calls = |count| {
        many(count, |at| added(at, &call(at, ""))) + &many(count, |at| done(at, &call(at, "{}")))
    };
    assert_linear("open calls", &(calls(10) + &end("")), &(calls(1_000) + &end("")));
    let unknown = |count| many(count, |at| added(at, "\"type\":\"brand_new\""));
    assert_linear(
        "items of unknown types",
        &(unknown(20) + &end("")),
        &(unknown(50_000) + &end("")),
    );
}

/// Size, in bytes, of the largest event that the limits allow; smaller in a debug build, which is
/// slow.
const LARGE: usize = if cfg!(debug_assertions) { 1 << 20 } else { 8 << 20 };
const SMALL: usize = 8 << 10;
/// Size of the text in a large event, which leaves room for the event's other members.
const TEXT: usize = LARGE - (1 << 10);

/// Returns a stream of about `total` bytes of text in events of `size` bytes.
fn in_events(total: usize, size: usize, event: impl Fn(&str) -> String) -> String {
    let words = "All work and no play makes \\\"Jack\\\" a dull boy. ".repeat(size / 48 + 1);
    event(&words[..size / 48 * 48]).repeat(total / size)
}

fn input(raw: &str) -> String {
    let raw = raw.replace("\\\"", "'");
    event(
        "function_call_arguments.delta",
        &format!("\"item_id\":\"f0\",\"output_index\":0,\"delta\":\"{raw}\""),
    )
}

/// Returns a call whose input is the text in these events.
fn input_of(events: &str) -> String {
    let quoted = |raw: &str| input(raw).replace('\'', "\\\"");
    added(0, &call(0, "")) + &quoted("{'a':'") + events + &quoted("'}") + &end("")
}

#[test]
fn a_large_event_in_pieces_of_64_bytes_costs_about_as_much_a_byte_as_a_small_one() {
    let body = |size| in_events(4 * TEXT, size, |raw| text(0, raw)) + &end("");
    assert_linear("a text", &body(SMALL), &body(TEXT));
    let body = |size| input_of(&in_events(TEXT, size, input));
    assert_linear("an input", &body(SMALL), &body(TEXT));
    let thought = |raw: &str| {
        event("reasoning_summary_text.delta", &format!("\"item_id\":\"r\",\"delta\":\"{raw}\""))
    };
    let body = |size| in_events(TEXT, size, thought) + &end("");
    assert_linear("reasoning", &body(SMALL), &body(TEXT));
    // The text comes once more in the complete item, and at the end of the answer.
    let again = |size: usize| {
        let words = "All work and no play. ".repeat(size / 22);
        let item = format!(
            "{},\"content\":[{{\"type\":\"output_text\",\"text\":\"{words}\"}}]",
            message(0)
        );
        let told = event("output_text.done", &format!("\"item_id\":\"m0\",\"text\":\"{words}\""));
        text(0, &words) + &told + &done(0, &item) + &end(&format!("{{{item}}}"))
    };
    assert_linear("a text that comes four times", &again(SMALL), &again(TEXT));
}

#[test]
fn a_long_answer_costs_as_much_a_byte_as_a_short_one() {
    let body = |total| input_of(&in_events(total, 96, input));
    assert_linear("an input in small deltas", &body(64 << 10), &body(2 << 20));
    let body = |total| in_events(total, 96, |raw| text(0, raw)) + &end("");
    assert_linear("a text in small deltas", &body(64 << 10), &body(2 << 20));
    // Output items that wait for a tool call that is never complete.
    let waiting = |count| {
        added(0, &call(0, "{")) + &many(count, |at| text(at + 1, "some words that wait")) + &end("")
    };
    assert_linear("items that wait", &waiting(100), &waiting(1_000));
    let blanks = |count: usize| text(0, "  ").repeat(count) + &text(0, "Hi") + &end("");
    assert_linear("blanks", &blanks(200), &blanks(20_000));
}

#[test]
fn what_is_hardly_an_event_of_responses_costs_as_much_a_byte_in_a_large_one() {
    let junk =
        |bytes| text(0, "a").trim_end().to_owned() + &"x{}".repeat(bytes / 3) + "\n\n" + &end("");
    assert_linear("objects between junk", &junk(SMALL), &junk(256 << 10));
    let unlike =
        |count| many(count, |at| text(0, "a").replacen('{', &format!("{{\"x{at}\":[],"), 1));
    assert_linear(
        "events with members of their own",
        &(unlike(20) + &end("")),
        &(unlike(10_000) + &end("")),
    );
    // An event in an object, in an object, …
    let wrapped = |depth: usize| {
        let open = "{\"data\":".repeat(depth);
        format!("data: {open}{{\"type\":\"x\"}}{}\n\n", "}".repeat(depth)).repeat(100)
            + &text(0, "a")
            + &end("")
    };
    assert_linear("events in objects", &wrapped(2), &wrapped(60));
}

#[test]
fn texts_that_come_again_cost_as_much_a_byte_as_new_ones() {
    let again = |count: usize| {
        let said = event(
            "output_text.done",
            "\"item_id\":\"m0\",\"output_index\":0,\"text\":\"Hi Hi Hi Hi\"",
        );
        text(0, "Hi Hi Hi Hi") + &said.repeat(count) + &end("")
    };
    assert_linear("a text that is done again and again", &again(20), &again(10_000));
    let parts = |count| {
        let delta = |at| {
            event(
                "output_text.delta",
                &format!("\"item_id\":\"m0\",\"content_index\":{at},\"delta\":\"a\""),
            )
        };
        many(count, delta) + &end("")
    };
    assert_linear("parts", &parts(20), &parts(10_000));
    let summary = |count| {
        let delta = |at| {
            event(
                "reasoning_summary_text.delta",
                &format!("\"item_id\":\"r\",\"summary_index\":{at},\"delta\":\"a\""),
            )
        };
        many(count, delta) + &end("")
    };
    assert_linear("parts of a summary", &summary(20), &summary(10_000));
    let sources = |count: usize| {
        let source = event(
            "output_text.annotation.added",
            "\"item_id\":\"m0\",\"annotation\":{\"type\":\"url_citation\",\"url\":\"u\",\"start_index\":900,\"end_index\":990}",
        );
        text(0, &"word ".repeat(200)) + &source.repeat(count) + &end("")
    };
    assert_linear("sources", &sources(20), &sources(10_000));
}

#[test]
fn an_answer_of_a_hundred_thousand_open_items_is_an_error_and_one_of_a_thousand_is_not() {
    let open = |count| many(count, |at| added(at, &message(at)) + &text(at, "Hi")) + &end("");
    assert!(read(&open(1_000), 1 << 16).is_ok());
    let error = read(&open(100_000), 1 << 16).expect_err("too many");
    assert!(error.message.contains("too many output items"), "{error}");
    let calls = many(100_000, |at| added(at, &call(at, ""))) + &end("");
    let error = read(&calls, 1 << 16).expect_err("too many");
    assert!(error.message.contains("too many tool calls"), "{error}");
}

#[test]
fn an_argument_of_50_megabytes_reaches_the_client_or_is_an_error() {
    let part = "All work and no play makes Jack a dull boy. ".repeat(1 << 10);
    let count = (50 << 20) / part.len();
    let delta = |raw: &str| {
        event("function_call_arguments.delta", &format!("\"item_id\":\"f0\",\"delta\":\"{raw}\""))
    };
    let deltas =
        added(0, &call(0, "")) + &delta("{\\\"text\\\":\\\"") + &delta(&part).repeat(count);
    let stream = deltas + &delta("\\\"}") + &end("");
    match read(&stream, 1 << 16) {
        Ok(written) => assert!(written > 50 << 20, "{written}"),
        Err(error) => assert!(error.message.contains("too large"), "{error}"),
    }
    let at_once =
        added(0, &call(0, &format!("{{\\\"text\\\":\\\"{}\\\"}}", part.repeat(count)))) + &end("");
    let error = read(&at_once, 1 << 16).expect_err("no event may be as large");
    assert!(error.message.contains("too large"), "{error}");
}

#[test]
fn memory_stays_within_the_limits_whatever_comes_in_responses() {
    const LIMIT: usize = 256 << 10;
    let long = "x".repeat(4000);
    let thought = |at: usize, of: &str| {
        event(
            &format!("{of}.delta"),
            &format!("\"item_id\":\"r{at}\",\"output_index\":{at},\"delta\":\"{long}\""),
        )
    };
    type Feed<'a> = Box<dyn Fn(usize) -> String + 'a>;
    let feeds: Vec<(&str, Feed<'_>)> = vec![
        ("texts", Box::new(|_| text(0, &long))),
        ("texts of items", Box::new(|at| text(at, &long))),
        ("names", Box::new(|at| added(at, &format!("\"type\":\"message\",\"id\":\"{long}{at}\"")))),
        (
            "names of calls",
            Box::new(|at| added(at, &call(at, "").replace("\"c", &format!("\"{long}")))),
        ),
        (
            "reasoning",
            Box::new(|at| {
                thought(0, if at % 2 == 0 { "reasoning_text" } else { "reasoning_summary_text" })
            }),
        ),
        ("items of reasoning", Box::new(|at| thought(at, "reasoning_text"))),
        (
            "encrypted reasoning behind an open call",
            Box::new(|at| match at {
                0 => added(0, &call(0, "")),
                at => done(
                    at,
                    &format!(
                        "\"id\":\"r{at}\",\"type\":\"reasoning\",\"encrypted_content\":\"{long}\""
                    ),
                ),
            }),
        ),
        (
            "inputs",
            Box::new(|at| {
                if at == 0 {
                    added(0, &call(0, "{"))
                } else {
                    event("function_call_arguments.delta", &format!("\"delta\":\"{long}\""))
                }
            }),
        ),
        (
            "inputs that are done",
            Box::new(|at| {
                event(
                    "function_call_arguments.done",
                    &format!(
                        "\"item_id\":\"f{at}\",\"output_index\":{at},\"arguments\":\"{{\\\"a\\\":\\\"{long}\\\"}}\""
                    ),
                )
            }),
        ),
        (
            "errors",
            Box::new(|_| {
                format!("event: error\ndata: {{\"type\":\"error\",\"message\":\"{long}\"}}\n\n")
            }),
        ),
        (
            "unknown events",
            Box::new(|at| event(&format!("new_{at}"), &format!("\"text\":\"{long}\""))),
        ),
        (
            "searches behind an open call",
            Box::new(|at| match at {
                0 => added(0, &call(0, "")),
                at => done(
                    at,
                    &format!(
                        "\"id\":\"w{at}\",\"type\":\"web_search_call\",\"action\":{{\"type\":\"search\",\"query\":\"{long}\"}}"
                    ),
                ),
            }),
        ),
    ];
    for (what, next) in feeds {
        for stream in [true, false] {
            let settings = Settings {
                event_bytes_max: LIMIT,
                waiting_bytes_max: LIMIT,
                response_bytes_max: LIMIT,
                ..Settings::default()
            };
            let mut answer = answer(stream, &settings);
            let mut out = Vec::new();
            let most = most_held_by(|| {
                let (mut fed, mut at) = (0, 0);
                while fed < 8 << 20 {
                    let piece = next(at);
                    at += 1;
                    fed += piece.len();
                    let result = answer.handle_piece(piece.as_bytes(), &mut out);
                    out.clear();
                    if result.is_err() {
                        break;
                    }
                }
            });
            assert!(most < 8 * LIMIT, "{what}: {most} bytes of memory");
        }
    }
}
