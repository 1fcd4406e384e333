//! Costs of requests: a client that means harm gets no more time and memory than its bytes are
//! worth.

use std::sync::Arc;

use creole::{Config, Exchange, HostCan, RequestHead};

use crate::hostile::{BODIES, choices_around_a_long_list};
use crate::meter::{BYTES_MIN, assert_ratio, most_held_by, processor_time_of};

/// Number of repeated parts, such as messages or tools, in a request with few and in one with many.
const FEW: usize = 120;
const MANY: usize = 4_800; // two calls each are within the limits

/// Maximum ratio of the costs of a byte in requests with many and with few parts. Work that is not
/// linear costs up to fifty times as much.
const RATIO_MAX: f64 = 4.0;

/// Maximum number of bytes held for each byte of a request: all its parts are small, and buffers
/// double.
const HELD_MAX: usize = 32;

/// Maximum number of bytes sent for each byte of a request. Results need the most: the circuit
/// breaker adds its words to each.
const SENT_MAX: usize = 8;

const CONFIGS: &[(&str, &str)] = &[
    ("default", r#"{"upstreams":{"u":{"url":"http://u"}}}"#),
    ("Responses", r#"{"upstreams":{"u":{"url":"http://u","protocol":"responses"}}}"#),
    ("Messages", r#"{"upstreams":{"u":{"url":"http://u","protocol":"anthropic"}}}"#),
    (
        "Kimi",
        r#"{"upstreams":{"u":{"url":"http://u","profile_overrides":{"id_style":"kimi","tool_schema":"kimi",
            "reasoning_history":"required","max_tool_name":32}}}}"#,
    ),
    (
        "Mistral",
        r#"{"upstreams":{"u":{"url":"http://u","profile_overrides":{"id_style":"mistral9","tool_schema":"mistral",
            "mid_system":"in_place","alternating_roles":true,"text_after_tool_results":"merge_into_last_tool"}}}}"#,
    ),
    (
        "Gemini",
        r#"{"upstreams":{"u":{"url":"http://u","profile_overrides":{"single_tool_call":true,
            "tool_schema":"gemini","system_role":"user","tool_result_name":true,"tool_content_parts":"images"}}}}"#,
    ),
    (
        "OpenAI",
        r#"{"upstreams":{"u":{"url":"http://u","profile":"openai-chat","profile_overrides":{"max_tools":0,
            "cache_breakpoints":"prompt_cache_breakpoint","mid_system":"merge_to_top","tool_schema":"llama.cpp"}}}}"#,
    ),
    ("Ollama", r#"{"upstreams":{"u":{"url":"http://u","profile":"ollama"}}}"#),
    ("strict", r#"{"strict":true,"upstreams":{"u":{"url":"http://u"}}}"#),
];

fn configs() -> Vec<(&'static str, Arc<Config>)> {
    let read = |json| Arc::new(Config::from_json(json, |_| None).expect("it is a configuration"));
    CONFIGS.iter().map(|(name, json)| (*name, read(json))).collect()
}

/// Returns the size of the upstream's request; `None` if the client's request is refused.
fn translate(config: &Arc<Config>, body: &[u8]) -> Option<usize> {
    let mut exchange = Exchange::new(Arc::clone(config), 7, HostCan::default());
    let headers = [("x-api-key".to_owned(), "k".to_owned())];
    let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
    assert!(matches!(head, RequestHead::Translate));
    exchange.handle_request_body(body.to_vec(), 0);
    exchange.poll_call(0).map(|call| call.body.len())
}

/// Returns the nanoseconds for each byte of a request.
fn cost(config: &Arc<Config>, body: &[u8]) -> f64 {
    let runs = BYTES_MIN.div_ceil(body.len());
    let time = processor_time_of(|| {
        for _ in 0..runs {
            translate(config, body);
        }
    });
    time as f64 / (runs * body.len()) as f64
}

#[test]
fn a_request_of_many_costs_about_as_much_a_byte_as_one_of_few() {
    let configs = configs();
    for (what, body) in BODIES {
        let (few, many) = (body(FEW).to_string(), body(MANY).to_string());
        for (name, config) in &configs {
            let of = |body: &str| cost(config, body.as_bytes());
            assert_ratio(&format!("{what} ({name})"), RATIO_MAX, || of(&few), || of(&many));
        }
    }
}

#[test]
fn a_long_list_below_many_choices_costs_no_square_of_their_depth() {
    // A level of a schema may look at everything below, so a byte that stands six times as deep
    // costs six times as much.
    let (flat, deep) = (choices_around_a_long_list(8), choices_around_a_long_list(48));
    let (flat, deep) = (flat.to_string(), deep.to_string());
    for (name, config) in &configs() {
        let of = |body: &str| {
            let time = processor_time_of(|| {
                let _ = translate(config, body.as_bytes());
            });
            time as f64 / body.len() as f64
        };
        assert_ratio(&format!("choices ({name})"), 9.0, || of(&flat), || of(&deep));
    }
}

#[test]
fn what_is_held_and_sent_is_not_many_times_a_request() {
    let configs = configs();
    for (what, body) in BODIES {
        let body = body(MANY).to_string();
        for (name, config) in &configs {
            let mut sent = None;
            let held = most_held_by(|| sent = translate(config, body.as_bytes()));
            // A refusal is cheap, and would hide the cost of requests that are not refused.
            assert!(sent.is_some() || *name != "default", "{what} ({name}): refused");
            let sent = sent.unwrap_or_default();
            println!(
                "{what} ({name}): {:.1} held, {:.1} sent",
                held as f64 / body.len() as f64,
                sent as f64 / body.len() as f64
            );
            assert!(
                held < HELD_MAX * body.len(),
                "{what} ({name}): {held} bytes of {}",
                body.len()
            );
            assert!(
                sent < SENT_MAX * body.len(),
                "{what} ({name}): {sent} bytes of {}",
                body.len()
            );
        }
    }
}
