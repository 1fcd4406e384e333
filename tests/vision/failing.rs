//! A model that sees, and fails: the request goes on as if there were none.

use creole::{Cancel, End, Failure, HostCan, Unreachable};

use super::session::{answer, said};
use super::support::drive::NOW;
use super::*;

const NOTE: &str = "[image omitted: this model does not take images]";

fn one() -> Value {
    json!([{"role": "user", "content": [image(PNG), {"type": "text", "text": "?"}]}])
}

fn refused_images() -> String {
    json!({"error": {"message": "This model does not support image input", "type": "invalid_request_error"}})
        .to_string()
}

#[test]
fn each_failure_leaves_todays_note_and_is_named() {
    for (eyes, reason) in [
        (Eyes::Answers(500, String::new()), "error"),
        (Eyes::Answers(200, "{}".to_owned()), "error"),
        (Eyes::Answers(200, "no JSON".to_owned()), "error"),
        // Without the image there is nothing to ask.
        (Eyes::Answers(400, refused_images()), "error"),
        (Eyes::Answers(429, String::new()), "rate_limited"),
        (Eyes::Answers(200, said("I cannot", "content_filter")), "refused"),
        (Eyes::Says("  \n".to_owned()), "empty"),
        (Eyes::BreaksOff, "error"),
        (Eyes::Fails(Failure::Unreachable(Unreachable::Closed)), "error"),
        (Eyes::Fails(Failure::Timeout), "timeout"),
        (Eyes::Silent, "timeout"),
    ] {
        let got = Session::new(one()).run(std::slice::from_ref(&eyes));
        let content = got.messages()[0]["content"].to_string();
        assert!(content.contains(NOTE), "{eyes:?}: {content}");
        assert_eq!(got.warnings(), format!("vision_failed:{reason},dropped:image"), "{eyes:?}");
        assert_eq!(
            (got.report.vision.as_ref().unwrap().failed, got.asked.len()),
            (1, 1),
            "{eyes:?}"
        );
    }
}

#[test]
fn one_that_fails_does_not_take_the_others_with_it() {
    let content = json!([image(PNG), image(JPEG)]);
    let eyes = [vec![Eyes::Answers(500, String::new())], says("a tree")].concat();
    let got = Session::new(json!([{"role": "user", "content": content}])).run(&eyes);
    let content = got.messages()[0]["content"].to_string();
    assert!(content.find("a tree").unwrap() < content.find(NOTE).unwrap(), "{content}");
}

#[test]
fn a_description_that_is_cut_off_says_so() {
    let cut = Eyes::Answers(200, said("a tree with", "length"));
    let got = Session::new(one()).run(&[cut]);
    let content = got.messages()[0]["content"].to_string();
    assert!(content.contains("another model: a tree with … (cut off)]"), "{content}");
    let got = Session::new(one()).run(&says(&"é".repeat(1_000_000)));
    let sent = String::from_utf8(got.call.body.clone()).unwrap();
    assert!(sent.contains("éé … (cut off)]") && sent.len() < 10_000, "{}", sent.len());
}

#[test]
fn its_time_is_one_for_all_images() {
    let content = json!([image(PNG), image(JPEG)]);
    let session = Session::new(json!([{"role": "user", "content": content}]));
    let mut exchange = session.begin();
    assert_eq!(exchange.poll_call(NOW).unwrap().upstream(), Some("eyes"));
    assert_eq!(exchange.poll_timeout(), Some(NOW + 60_000));
    exchange.handle_call_head(200, &[], NOW + 50_000);
    exchange.handle_call_body(said("a tree", "stop").as_bytes(), NOW + 50_000);
    exchange.handle_call_end(End::Complete, NOW + 50_000);
    assert_eq!(exchange.poll_call(NOW + 50_000).unwrap().upstream(), Some("eyes"));
    assert_eq!(exchange.poll_timeout(), Some(NOW + 60_000));
    exchange.handle_timeout(NOW + 60_000);
    let call = exchange.poll_call(NOW + 60_000).unwrap();
    assert_eq!(call.upstream(), Some("main"));
    let sent = String::from_utf8(call.body).unwrap();
    assert!(sent.contains("a tree") && sent.contains(NOTE), "{sent}");
    assert_eq!(exchange.report().vision.unwrap().duration_ms, 60_000);
}

#[test]
fn a_client_that_leaves_ends_it() {
    let session = Session::new(one());
    let mut exchange = session.begin();
    exchange.poll_call(NOW).unwrap();
    exchange.handle_client_gone(NOW);
    assert!(exchange.is_ended());
    assert_eq!(exchange.poll_cancel(), Some(Cancel::ReadOut));
    assert_eq!(exchange.poll_call(NOW), None);
}

#[test]
fn a_retry_has_the_descriptions_and_asks_for_none() {
    let mut session = Session::new(one());
    session.body["temperature"] = json!(0.5);
    let (got, mut exchange) = session.run_to_call(&says("a tree"));
    assert_eq!(got.asked.len(), 1);
    let refusal = json!({"error": {"message": "Unsupported parameter: 'temperature' is not supported with this model.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_parameter"}});
    exchange.handle_call_head(400, &[], NOW);
    exchange.handle_call_body(refusal.to_string().as_bytes(), NOW);
    exchange.handle_call_end(End::Complete, NOW);
    let again = exchange.poll_call(NOW).unwrap();
    assert_eq!(again.upstream(), Some("main"));
    let sent = String::from_utf8(again.body).unwrap();
    assert!(sent.contains("a tree") && !sent.contains("temperature"), "{sent}");
    answer(&mut exchange, &Eyes::Says("done".to_owned()));
}

#[test]
fn a_host_that_cannot_ask_again_says_so() {
    let mut session = Session::new(one());
    session.can = HostCan::default();
    let got = session.run(&[]);
    assert_eq!(got.warnings(), "vision_failed:unsupported,dropped:image");
    let mut session = Session::new(json!([{"role": "user", "content": "an image"}]));
    session.can = HostCan::default();
    assert_eq!(session.run(&[]).warnings(), "");
}

#[test]
fn a_request_that_is_refused_or_answered_here_describes_nothing() {
    let mut session = Session::new(one());
    session.body.as_object_mut().unwrap().remove("max_tokens");
    let mut exchange = session.begin();
    assert_eq!(exchange.poll_call(NOW), None);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 400);
    assert_eq!(exchange.report().vision, None);
}

#[test]
fn a_client_without_a_credential_has_nothing_described() {
    let config = CONFIG.replacen(r#""key": "none""#, r#""key": "client""#, 1);
    let session = Session::with(&config, one());
    assert_eq!(session.begin_with(&[]).poll_call(NOW), None);
    let mut exchange = session.begin_with(&[("x-api-key", "k")]);
    assert_eq!(exchange.poll_call(NOW).unwrap().upstream(), Some("eyes"));
}

#[test]
fn strict_mode_describes_only_what_it_does_not_refuse_for_something_else() {
    let config = CONFIG.replacen('{', r#"{"strict": true, "#, 1);
    let mut session = Session::with(&config, one());
    session.body.as_object_mut().unwrap().remove("metadata");
    assert_eq!(session.run(&says("a tree")).asked.len(), 1);
    session.body["top_k"] = json!(3);
    let mut exchange = session.begin();
    assert_eq!(exchange.poll_call(NOW), None);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 400);
}
