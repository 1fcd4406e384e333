//! PDFs, of which the upstream takes the text alone, and which the host reads.

use std::sync::Arc;

use creole::{Call, DocumentText, End, Failure, HostCan, Refusals, Unread};

use super::support::drive::{self, Exchange, NOW, SEED, Steps as _, headers};
use super::*;

/// `%PDF-1`
const DATA: &str = "JVBERi0x";

fn can() -> HostCan {
    HostCan { read_documents: true, ..HostCan::default() }
}

fn document(data: &str) -> Value {
    json!({
        "type": "document", "title": "a.pdf", "context": "from b", "citations": {"enabled": true},
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    })
}

fn given(content: &[Value]) -> Value {
    json!([{"role": "user", "content": content}])
}

fn begin(settings: &str, can: HostCan, messages: &Value) -> Exchange {
    let mut exchange = Exchange::new(drive::config(settings), SEED, can);
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
    exchange.handle_request_body(body.to_string().into_bytes(), NOW);
    exchange
}

/// Takes the document that is due, with its time.
fn due(exchange: &mut Exchange, now: u64) -> (Vec<u8>, u64) {
    let call = exchange.poll_call(now).unwrap();
    let To::Document { until } = call.to else { panic!("{call:?}") };
    assert_eq!(exchange.poll_timeout(), None, "the host keeps the time");
    assert!(!exchange.is_ended() && exchange.poll_reply().is_none());
    assert_eq!(exchange.poll_call(now), None, "one after another");
    (call.body, until)
}

/// The request for the upstream, once each document has what stands here, the newest first.
fn read(settings: &str, messages: &Value, texts: &[Result<&str, Unread>]) -> (String, Vec<String>) {
    let mut exchange = begin(settings, can(), messages);
    for text in texts {
        assert_eq!(due(&mut exchange, NOW).0, b"%PDF-1");
        exchange.handle_document(text.map(|text| DocumentText::whole(text.to_owned())));
    }
    let call = exchange.poll_call(NOW).unwrap();
    assert!(call.upstream().is_some());
    let warnings = exchange.report().warnings.iter().map(|warning| warning.text()).collect();
    (String::from_utf8(call.body).unwrap(), warnings)
}

#[test]
fn the_text_stands_where_the_document_was_with_its_title_and_context() {
    for protocol in ["openai", "responses"] {
        let settings = format!(
            r#"{{"upstreams": {{"a": {{"protocol": "{protocol}", "profile_overrides": {{"file_parts": false}}}}}}}}"#
        );
        let (sent, warnings) =
            read(&settings, &given(&[document(DATA)]), &[Ok("[page 1 of 1]\nA \"b\"")]);
        for text in ["a.pdf", "from b", r#"[page 1 of 1]\nA \"b\""#] {
            assert!(sent.contains(text), "{sent}");
        }
        assert!(!sent.contains(DATA), "{sent}");
        assert_eq!(warnings, ["document_read"]);
    }
}

#[test]
fn each_document_gets_its_own_text_in_results_too() {
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": [document(DATA)]});
    let messages = json!([
        {"role": "user", "content": [document(DATA)]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [result]},
    ]);
    let (sent, warnings) = read("{}", &messages, &[Ok("beta"), Ok("alpha")]);
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let at = |at: usize| sent["messages"][at].to_string();
    assert!(at(0).contains("alpha") && !at(0).contains("beta"), "{sent}");
    assert!(at(2).contains("beta") && sent["messages"][2]["role"] == "tool", "{sent}");
    assert_eq!(warnings, ["document_read"]);
}

#[test]
fn the_model_is_told_why_there_is_no_text() {
    for (why, words, name) in [
        (Unread::Encrypted, "encrypted with a password", "encrypted"),
        (Unread::Malformed, "damaged, or no PDF", "malformed"),
        (Unread::NoText, "no text, only images", "no_text"),
        (Unread::NoLetters, "do not say which letters", "no_letters"),
        (Unread::TooSlow, "took too long", "too_slow"),
        (Unread::NoTime, "had no time", "no_time"),
        (Unread::Failed, "could not read the PDF", "failed"),
    ] {
        let (sent, warnings) = read("{}", &given(&[document(DATA)]), &[Err(why)]);
        assert!(sent.contains("[document omitted: ") && sent.contains(words), "{sent}");
        assert!(sent.contains("a.pdf"), "{sent}");
        assert_eq!(warnings, [format!("document_not_read:{name}")]);
    }
}

#[test]
fn escapes_and_line_breaks_in_base64_are_none_of_the_documents() {
    let messages = given(&[document("JVBE\r\nRi0x")]);
    read("{}", &messages, &[Ok("text")]);
    let mut exchange = begin("{}", can(), &given(&[document("*")]));
    assert_eq!(due(&mut exchange, NOW).0, b"");
}

#[test]
fn of_more_documents_than_are_read_the_newest_are() {
    let titled = |title: &str| {
        let mut document = document(DATA);
        document["title"] = json!(title);
        document
    };
    let mut documents = vec![titled("old"), titled("new")];
    documents.resize(100, document(DATA));
    documents.push(titled("newest"));
    let mut came = vec![Ok("text"); 100];
    (came[0], came[99]) = (Ok("alpha"), Ok("beta"));
    let (sent, warnings) = read("{}", &given(&documents), &came);
    let parts = ["old", "more PDFs than this gateway reads", "new", "beta", "newest", "alpha"];
    let places = parts.map(|part| sent.find(part).unwrap_or_else(|| panic!("{part}: {sent}")));
    assert!(places.is_sorted(), "{sent}");
    assert_eq!(warnings, ["document_not_read:too_many", "document_read"]);
}

#[test]
fn a_host_without_time_gives_what_it_has() {
    let settings = r#"{"read_documents": {"timeout_ms": 1000}}"#;
    let mut exchange = begin(settings, can(), &given(&[document(DATA), document(DATA)]));
    assert_eq!(due(&mut exchange, NOW).1, NOW + 1000);
    exchange.handle_document(Ok(DocumentText::whole("alpha".to_owned())));
    // The host may have the other one already: it is asked, and must know at once.
    assert_eq!(due(&mut exchange, NOW + 1000).1, NOW + 1000);
    exchange.handle_document(Err(Unread::NoTime));
    let call = exchange.poll_call(NOW + 1000).unwrap();
    let sent = String::from_utf8(call.body).unwrap();
    assert!(sent.contains("alpha") && sent.contains("had no time"), "{sent}");
}

#[test]
fn a_request_without_what_was_refused_has_the_text_and_the_warnings() {
    let can = HostCan { ask_again: true, ..can() };
    let refusals = Arc::<Refusals>::default();
    let messages = given(&[document(DATA)]);
    let body = json!({"model": "m", "max_tokens": 9, "temperature": 0.5, "messages": messages});
    let first_call = || {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can);
        exchange.remember(Arc::clone(&refusals));
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        exchange.handle_request_body(body.to_string().into_bytes(), NOW);
        due(&mut exchange, NOW);
        exchange.handle_document(Ok(DocumentText::whole("alpha".to_owned())));
        let call = exchange.poll_call(NOW).unwrap();
        (exchange, call)
    };
    let check = |exchange: &Exchange, call: Call| {
        let sent = String::from_utf8(call.body).unwrap();
        assert!(sent.contains("alpha") && !sent.contains("temperature"), "{sent}");
        let report = exchange.report();
        let warnings: Vec<_> = report.warnings.iter().map(|warning| warning.text()).collect();
        assert!(warnings.iter().any(|warning| warning == "document_read"), "{warnings:?}");
    };
    let (mut exchange, _) = first_call();
    let error = json!({"error": {
        "message": "Unsupported parameter: 'temperature' is not supported with this model.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_parameter",
    }});
    exchange.handle_call_head(400, &headers(&[("content-type", "application/json")]), NOW);
    exchange.handle_call_body(error.to_string().as_bytes(), NOW);
    exchange.handle_call_end(End::Complete, NOW);
    let again = exchange.poll_call(NOW).unwrap();
    check(&exchange, again);
    // The next request knows it before.
    let (exchange, call) = first_call();
    check(&exchange, call);
}

#[test]
fn a_text_that_was_cut_off_is_told_to_the_operator() {
    let mut exchange = begin("{}", can(), &given(&[document(DATA)]));
    due(&mut exchange, NOW);
    let text = "[page 1 of 9]\nalpha\n".to_owned();
    exchange.handle_document(Ok(DocumentText { text, is_cut: true }));
    exchange.poll_call(NOW).unwrap();
    let report = exchange.report();
    let warnings: Vec<_> = report.warnings.iter().map(|warning| warning.text()).collect();
    assert_eq!(warnings, ["document_cut"]);
    let documents = report.documents.unwrap();
    assert_eq!((documents.read, documents.unread), (1, 0));
}

#[test]
fn nothing_is_read_for_a_count_that_is_not_made_or_has_no_key() {
    for (settings, key, status) in
        [(r#"{"count_tokens": "off"}"#, "x-api-key", 404), ("{}", "x-other", 200)]
    {
        let mut exchange = Exchange::new(drive::config(settings), SEED, can());
        exchange.decide("POST", "/v1/messages/count_tokens", &headers(&[(key, "k")]));
        let body = json!({"model": "m", "messages": given(&[document(DATA)])});
        exchange.handle_request_body(body.to_string().into_bytes(), NOW);
        assert!(exchange.poll_call(NOW).is_none());
        assert_eq!(exchange.poll_reply().unwrap().head.status, status);
    }
}

#[test]
fn a_count_is_of_the_text() {
    let mut exchange = Exchange::new(drive::config("{}"), SEED, can());
    exchange.decide("POST", "/v1/messages/count_tokens", &headers(&[("x-api-key", "k")]));
    let body = json!({"model": "m", "messages": given(&[document(DATA)])});
    exchange.handle_request_body(body.to_string().into_bytes(), NOW);
    due(&mut exchange, NOW);
    exchange.handle_document(Ok(DocumentText::whole("word ".repeat(1000))));
    assert!(exchange.poll_call(NOW).is_none());
    let reply = exchange.poll_reply().unwrap();
    let count: Value = serde_json::from_slice(&reply.body).unwrap();
    assert!(count["input_tokens"].as_u64().unwrap() > 900, "{count}");
}

#[test]
fn a_text_for_which_the_request_has_no_room_is_left_out() {
    let settings = r#"{"request_bytes_max": 2000}"#;
    let text = "x".repeat(2000);
    let (sent, warnings) = read(settings, &given(&[document(DATA)]), &[Ok(&text)]);
    assert!(sent.contains("could not read the PDF") && !sent.contains("xxx"), "{sent}");
    assert_eq!(warnings, ["document_not_read:failed"]);
}

#[test]
fn a_host_that_fails_meanwhile_answers_so() {
    let mut exchange = begin("{}", can(), &given(&[document(DATA)]));
    due(&mut exchange, NOW);
    assert!(exchange.held_bytes() > DATA.len());
    exchange.handle_failure(Failure::Overloaded, NOW);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 529);
    // Too late.
    exchange.handle_document(Ok(DocumentText::whole("text".to_owned())));
    assert!(exchange.poll_call(NOW).is_none());
}

#[test]
fn nothing_is_read_where_it_is_not_needed_or_not_possible() {
    let upstream = |flags: &str| format!(r#"{{"upstreams": {{"a": {{{flags}}}}}}}"#);
    for (settings, can, status) in [
        ("{}".to_owned(), HostCan::default(), 400),
        (r#"{"read_documents": {"pages_max": 0}}"#.to_owned(), can(), 400),
        (r#"{"strict": true}"#.to_owned(), can(), 400),
        (upstream(r#""profile_overrides": {"file_parts": true}"#), can(), 200),
        (upstream(r#""protocol": "anthropic""#), can(), 200),
    ] {
        let mut exchange = begin(&settings, can, &given(&[document(DATA)]));
        let call = exchange.poll_call(NOW);
        assert!(call.as_ref().is_none_or(|call| call.upstream().is_some()), "{settings}");
        assert_eq!(call.is_some(), status == 200, "{settings}");
        if let Some(call) = call {
            assert!(String::from_utf8(call.body).unwrap().contains(DATA), "{settings}");
        }
    }
}

#[test]
fn documents_that_are_text_or_elsewhere_stay() {
    let text = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}});
    let mut exchange = begin("{}", can(), &given(&[text]));
    assert!(exchange.poll_call(NOW).is_some());
    let other = json!({"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": DATA}});
    let mut exchange = begin("{}", can(), &given(&[other]));
    assert!(exchange.poll_call(NOW).is_none());
    assert_eq!(exchange.poll_reply().unwrap().head.status, 400);
}
