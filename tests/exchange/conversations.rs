//! Memory of a single conversation, and what one client can do to others by it.

use super::host::{Host, request};
use super::*;

/// Words of which no row knows what they mean.
const NEW_WORDS: &str = "messages[0].content: should be a valid string here";

const TEN_MINUTES: u64 = 600_000;

/// A request whose first content is a list of two texts.
fn lists(said: &str) -> Value {
    let content = json!([{"type": "text", "text": said}, {"type": "text", "text": "here"}]);
    request("m", json!({"messages": [{"role": "user", "content": content}]}))
}

/// Refuses lists of texts.
fn no_lists(sent: &Value) -> Option<&'static str> {
    sent["messages"][0]["content"].is_array().then_some(NEW_WORDS)
}

fn with_key<'h>(
    key: &'h [(&'h str, &'h str)],
    of: &Host<'h, &'static str>,
) -> Host<'h, &'static str> {
    let (config, refusals) = (Arc::clone(&of.config), Arc::clone(&of.refusals));
    Host {
        config,
        refusals,
        headers: key,
        asks_again: of.asks_again,
        ..Host::new(true, of.refuses)
    }
}

#[test]
fn a_change_that_helped_a_conversation_is_made_from_the_start_of_its_next_request() {
    let host = Host::new(true, &no_lists);
    let first = host.ask(&lists("Look"), NOW);
    assert_eq!((first.status(), first.asked.len()), ((200, None), 2));
    let second = host.ask(&lists("Look"), NOW + 1);
    assert_eq!((second.status(), second.asked.len()), ((200, None), 1));
    assert_eq!(second.warnings(), first.warnings());
    // It says nothing of another conversation, or after a while.
    assert_eq!(host.ask(&lists("Read"), NOW + 1).asked.len(), 2);
    assert_eq!(host.ask(&lists("Look"), NOW + 1 + TEN_MINUTES).asked.len(), 2);
}

#[test]
fn a_session_names_a_conversation_whatever_its_first_words_are() {
    let host = Host::new(true, &no_lists);
    for (session, said, asked) in
        [("1", "Look", 2), ("1", "Read", 1), ("2", "Look", 2), ("2", "Read", 1)]
    {
        let headers = [("x-api-key", "k"), ("x-session-id", session)];
        let got = with_key(&headers, &host).ask(&lists(said), NOW);
        assert_eq!(got.asked.len(), asked, "{session} {said}");
    }
    // Claude Code's user id has it, too.
    let of = |said: &str, session: &str| {
        let mut body = lists(said);
        body["metadata"] = json!({"user_id": format!("user_a_account__session_{session}")});
        body
    };
    assert_eq!(host.ask(&of("Look", "3"), NOW).asked.len(), 2);
    assert_eq!(host.ask(&of("Read", "3"), NOW).asked.len(), 1);
    assert_eq!(host.ask(&of("Read", "4"), NOW).asked.len(), 2);
}

#[test]
fn one_client_takes_neither_an_ability_nor_a_retry_from_another() {
    // One client has an upstream refuse its conversation, on purpose, with the same first words as
    // another's.
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]});
    let body = request(
        "m",
        json!({"tools": [{"name": "t", "input_schema": {"type": "object"}}], "messages": [
            {"role": "user", "content": "q"}, {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]}]}),
    );
    let refuses = |sent: &Value| {
        let evil = sent["stop"][0] == "evil" && sent.to_string().contains("image_url");
        evil.then_some("vision is not a thing that this deployment was unsupported for")
    };
    for asks_again in [true, false] {
        let host = Host { asks_again, ..Host::new(true, &refuses) };
        let mut evil = body.clone();
        evil["stop_sequences"] = json!(["evil"]);
        let attacker = [("x-api-key", "attacker")];
        for _ in 0..3 {
            with_key(&attacker, &host).ask(&evil, NOW);
        }
        let got = with_key(&attacker, &host).ask(&evil, NOW);
        assert_eq!((got.status().0, got.asked.len()), (200, 1), "{asks_again}");
        assert!(got.warnings().contains("images_refused"), "{}", got.warnings());
        // The other client's image goes out.
        let got = host.ask(&body, NOW);
        assert_eq!((got.status().0, got.warnings()), (200, ""));
        assert!(got.asked[0].to_string().contains("image_url"));
    }
    // Nor is anything hopeless for another, where it is for one.
    let hopeless = std::cell::Cell::new(true);
    let refuses = |sent: &Value| if hopeless.get() { Some(NEW_WORDS) } else { no_lists(sent) };
    let host = Host::new(true, &refuses);
    let attacker = [("x-api-key", "attacker")];
    assert_eq!(with_key(&attacker, &host).ask(&lists("Look"), NOW).status().0, 400);
    hopeless.set(false);
    let got = with_key(&attacker, &host).ask(&lists("Look"), NOW);
    assert_eq!(got.status().0, 400, "{:?} {}", got.asked, got.warnings());
    assert_eq!(host.ask(&lists("Look"), NOW).status().0, 200);
}

#[test]
fn the_conversations_of_one_client_do_not_push_out_those_of_another() {
    let host = Host::new(true, &no_lists);
    assert_eq!(host.ask(&lists("Look"), NOW).asked.len(), 2);
    let attacker = [("x-api-key", "attacker")];
    for number in 0..600 {
        with_key(&attacker, &host).ask(&lists(&format!("{number}")), NOW);
    }
    assert_eq!(host.ask(&lists("Look"), NOW).asked.len(), 1);
    // Of its own conversations the latest are known.
    assert_eq!(with_key(&attacker, &host).ask(&lists("599"), NOW).asked.len(), 1);
    assert_eq!(with_key(&attacker, &host).ask(&lists("0"), NOW).asked.len(), 2);
}

#[test]
fn a_conversation_that_no_change_helps_costs_one_request_each_turn() {
    let host = Host::new(true, &|_| Some(NEW_WORDS));
    let first = host.ask(&lists("Look"), NOW);
    assert!(first.status().0 == 400 && first.asked.len() > 1, "{}", first.asked.len());
    for _ in 0..2 {
        let got = host.ask(&lists("Look"), NOW);
        assert_eq!((got.status().0, got.asked.len()), (400, 1));
    }
    // A fault of the server that passes says nothing of the conversation.
    let is_down = std::cell::Cell::new(true);
    let refuses = |sent: &Value| if is_down.get() { Some(NEW_WORDS) } else { no_lists(sent) };
    let host = Host { status: 500, ..Host::new(true, &refuses) };
    assert_eq!(host.ask(&lists("Look"), NOW).status().0, 500);
    is_down.set(false);
    assert_eq!(host.ask(&lists("Look"), NOW).status().0, 200);
}

#[test]
fn a_host_that_cannot_ask_again_has_its_client_decide_by_the_next_request() {
    for words in [NEW_WORDS, "body -> messages -> 0 -> content: array not in string"] {
        let refuses = |sent: &Value| sent["messages"][0]["content"].is_array().then_some(words);
        let host = Host::new(false, &refuses);
        let got = host.ask(&lists("Look"), NOW);
        assert_eq!((got.status(), got.asked.len()), ((529, Some("true")), 1), "{words}");
        assert_eq!(error_of(&got.body)["type"], "overloaded_error");
        for _ in 0..2 {
            let got = host.ask(&lists("Look"), NOW);
            assert_eq!((got.status(), got.asked.len()), ((200, None), 1), "{words}");
            assert!(got.warnings().contains("parameter_refused:joined_texts"));
        }
        // Another conversation begins anew.
        assert_eq!(host.ask(&lists("Read"), NOW).status(), (529, Some("true")));
    }
}

#[test]
fn a_client_that_cannot_be_helped_is_told_so_after_a_few_requests() {
    let host = Host::new(false, &|_| {
        Some("this deployment was not enabled for vision, thinking, tool_choice")
    });
    let body = |number: usize| {
        let mut body = lists("Look");
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        body["max_tokens"] = json!(4000 + number);
        body
    };
    let told: Vec<_> = (0..8).map(|number| host.ask(&body(number), NOW).status().0).collect();
    let asked = told.iter().filter(|status| **status == 529).count();
    assert!((1..=4).contains(&asked), "{told:?}");
    assert_eq!(told.last(), Some(&400), "{told:?}");
}

#[test]
fn what_a_later_request_shows_to_be_repeated_out_of_it_changes_nothing() {
    let said = "please say that tool choice is not supported for all of us";
    let mut body = request(
        "m",
        json!({"tools": [{"name": "t", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"},
            "messages": [{"role": "user", "content": said}]}),
    );
    let refusal = format!("Bad input: {said}");
    let refuses = |_: &Value| Some(refusal.clone());
    let host = Host::new(false, &refuses);
    let asked: Vec<_> = (0..6).map(|_| host.ask(&body, NOW)).collect();
    assert!(asked.iter().all(|got| got.asked[0]["tool_choice"] == "required"));
    assert_eq!(asked.last().unwrap().status().0, 400);
    // Where the server says it by itself, the next request is changed.
    body["messages"][0]["content"] = json!("q");
    let refuses = |sent: &Value| (sent["tool_choice"] == "required").then_some(refusal.clone());
    let host = Host::new(false, &refuses);
    assert_eq!(host.ask(&body, NOW).status().0, 529);
    assert_eq!(host.ask(&body, NOW).status().0, 200);
}

#[test]
fn a_session_may_want_whole_answers_and_streams_of_a_server_that_has_one_kind() {
    for (has, refusal) in
        [(false, "streaming is not supported"), (true, "only stream is supported")]
    {
        let refuses = |sent: &Value| {
            (sent["stream"] == true && !has || sent["stream"] != true && has).then_some(refusal)
        };
        let host = Host::new(true, &refuses);
        let of = |stream: bool| {
            let mut body = lists("Look");
            body["stream"] = json!(stream);
            body
        };
        for round in 0..2 {
            for stream in [!has, has] {
                let got = host.ask(&of(stream), NOW);
                let asked = if stream != has && round == 0 { 2 } else { 1 };
                assert_eq!(
                    (got.status().0, got.asked.len()),
                    (200, asked),
                    "{has} {stream} {round}"
                );
            }
        }
    }
}

#[test]
fn an_error_of_something_else_makes_no_change_useless() {
    let is_full = std::cell::Cell::new(true);
    let refuses = |sent: &Value| {
        let full =
            "This model's maximum context length is 10 tokens. However, you requested 20 tokens.";
        no_lists(sent).or_else(|| is_full.get().then_some(full))
    };
    let host = Host::new(true, &refuses);
    let got = host.ask(&lists("Look"), NOW);
    assert_eq!((got.status().0, got.asked.len()), (400, 2));
    assert!(error_of(&got.body)["message"].as_str().unwrap().contains("prompt is too long"));
    // The client compacts.
    is_full.set(false);
    assert_eq!(host.ask(&lists("Look"), NOW).status().0, 200);
}

#[test]
fn a_fault_of_the_server_teaches_nothing_and_nothing_is_made_for_longer_than_ten_minutes() {
    let host = Host { status: 500, ..Host::new(true, &no_lists) };
    for _ in 0..2 {
        assert_eq!(host.ask(&lists("Look"), NOW).asked.len(), 2);
    }
    let host = Host::new(true, &no_lists);
    for (at, asked) in [(0, 2), (6, 1), (9, 1), (10, 2), (12, 1)] {
        assert_eq!(host.ask(&lists("Look"), NOW + at * 60_000).asked.len(), asked, "{at}");
    }
}

#[test]
fn a_file_that_the_user_has_just_given_stays_whatever_is_remembered() {
    let pdf = |data: &str| {
        let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
        json!({"type": "document", "source": source})
    };
    let refuses = |sent: &Value| {
        sent.to_string().contains("QkFE").then_some("The PDF is encrypted and cannot be opened")
    };
    let config =
        drive::config(r#"{"upstreams": {"a": {"profile_overrides": {"file_parts": true}}}}"#);
    let host = Host { config, ..Host::new(true, &refuses) };
    let read = |data: &str, more: &[Value]| {
        let mut messages =
            vec![json!({"role": "user", "content": [{"type": "text", "text": "Read"}, pdf(data)]})];
        messages.extend_from_slice(more);
        request("m", json!({"messages": messages}))
    };
    let got = host.ask(&read("QkFE", &[]), NOW);
    assert_eq!((got.status().0, got.asked.len()), (400, 1), "it is the user's to mend");
    let later =
        [json!({"role": "assistant", "content": "a"}), json!({"role": "user", "content": "Go on"})];
    assert_eq!(host.ask(&read("QkFE", &later), NOW).status().0, 200);
    let mut better = later.to_vec();
    better[1]["content"] = json!([pdf("R09PRA=="), {"type": "text", "text": "Now this"}]);
    let got = host.ask(&read("", &better), NOW);
    assert!(got.asked[0].to_string().contains("R09PRA=="), "{:?}", got.asked);
}

#[test]
fn a_key_counts_as_one_client_whatever_else_it_sends() {
    let config = drive::config(
        r#"{"upstreams": {"a": {"key": {"env": "UP"}}}, "client_keys": [{"env": "ONE"}, {"env": "TWO"}]}"#,
    );
    let headers = &[("x-api-key", "secret-of-ONE")];
    let host = Host { config, headers, ..Host::new(true, &no_lists) };
    assert_eq!(host.ask(&lists("Look"), NOW).asked.len(), 2);
    for number in 0..600 {
        let spare = format!("spare-{number}");
        let headers = [("authorization", "Bearer secret-of-TWO"), ("x-api-key", &*spare)];
        let got = with_key(&headers, &host).ask(&lists(&format!("{number}")), NOW);
        assert_eq!(got.status().0, 200);
    }
    assert_eq!(host.ask(&lists("Look"), NOW).asked.len(), 1);
}

#[test]
fn a_client_is_asked_once_for_the_same_words() {
    let host = Host::new(false, &|_| Some("Request 1234: should be a valid string"));
    let told: Vec<_> = (0..4).map(|_| host.ask(&lists("Look"), NOW).status().0).collect();
    assert_eq!(told, [529, 400, 400, 400]);
}

#[test]
fn what_is_printed_of_refusals_shows_nothing_of_a_request() {
    let host = Host::new(false, &no_lists);
    host.ask(&lists("Look"), NOW);
    assert!(!format!("{:?}", host.refusals).contains("valid string"));
}
