//! Costs of upstream bodies that are no stream: whole answers and errors.

use std::sync::Arc;

use creole::{Config, End, Exchange, HostCan, RequestHead};

use crate::meter::{BYTES_MIN, assert_ratio, processor_time_of};

/// Maximum ratio of the costs of a byte in a large and a small body: large ones leave the
/// processor's caches, but stay linear.
const RATIO_MAX: f64 = 4.0;

const REQUEST: &[u8] =
    br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#;

/// Returns the nanoseconds for each byte of a response in pieces of 64 bytes, over several runs.
fn cost(config: &Arc<Config>, status: u16, body: &str) -> f64 {
    let runs = BYTES_MIN.div_ceil(body.len());
    let headers = [("x-api-key".to_owned(), "k".to_owned())];
    let mut out = Vec::new();
    let time = processor_time_of(|| {
        for _ in 0..runs {
            let mut exchange = Exchange::new(Arc::clone(config), 7, HostCan::default());
            let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
            assert!(matches!(head, RequestHead::Translate));
            exchange.handle_request_body(REQUEST.to_vec(), 0);
            let call = exchange.poll_call(0).expect("it is a right request");
            exchange.handle_call_head(call.id, status, &[], 1);
            for piece in body.as_bytes().chunks(64) {
                exchange.handle_call_body(call.id, piece, 2);
                exchange.poll_body(&mut out);
            }
            exchange.handle_call_end(call.id, End::Complete, 3);
            exchange.poll_body(&mut out);
            assert!(!out.is_empty());
            out.clear();
        }
    });
    time as f64 / (runs * body.len()) as f64
}

fn assert_linear(what: &str, status: u16, small: &str, large: &str) {
    let json = r#"{"upstreams":{"u":{"url":"http://u"}}}"#;
    let config = Arc::new(Config::from_json(json, |_| None).expect("it is a configuration"));
    let of = |body: &str| cost(&config, status, body);
    assert_ratio(what, RATIO_MAX, || of(small), || of(large));
}

#[test]
fn a_whole_answer_costs_as_much_a_byte_if_it_is_large() {
    let body = |bytes: usize| {
        let blanks = " ".repeat(bytes);
        format!("{{{blanks}\"choices\":[{{\"message\":{{\"content\":\"a\"}}}}]}}")
    };
    assert_linear("blanks within", 200, &body(8 << 10), &body(512 << 10));
    let body = |bytes: usize| {
        format!("{{\"choices\":[{{\"message\":{{\"content\":\"a\"}}}}]}}{}", "\n".repeat(bytes))
    };
    assert_linear("blanks behind", 200, &body(8 << 10), &body(512 << 10));
}

#[test]
fn an_error_costs_as_much_a_byte_if_it_is_large() {
    for piece in
        ["<script></script>", "first ", "1 in the messages, ", "key a-b-c-d ", "<", "&amp;", "a"]
    {
        let text = |bytes: usize| piece.repeat(bytes / piece.len());
        assert_linear(piece, 400, &text(8 << 10), &text(128 << 10));
        let json = |bytes| serde_json::json!({"error": text(bytes)}).to_string();
        assert_linear(piece, 400, &json(8 << 10), &json(128 << 10));
        let twice = |bytes: usize| {
            let within =
                serde_json::json!({"error": {"message": text(bytes / 4) + "b"}}).to_string();
            let error =
                serde_json::json!({"message": text(bytes / 2), "metadata": {"raw": within}});
            serde_json::json!({"error": error}).to_string()
        };
        assert_linear(piece, 400, &twice(8 << 10), &twice(128 << 10));
    }
}
