//! Results of judging that the client is told, row by row of their table.

use creole::Failure;
use creole::observe::log::{self, LoggedRequest};

use super::support::drive::{Exchange, NOW};
use super::*;

/// Two calls: `ls`, and one that removes everything.
pub(super) fn two_calls() -> String {
    chunks(
        &[
            text("I do it."),
            call(0, "Bash", r#"{"command":"ls"}"#),
            call(1, "Bash", r#"{"command":"rm -rf /"}"#),
        ],
        "tool_calls",
    )
}

/// The judge's answer.
pub(super) fn verdicts(entries: &Value) -> Judge {
    Judge::Says(json!({"verdicts": entries}).to_string())
}

fn judged(entries: &Value) -> Vec<Value> {
    Session::new().run_whole(&two_calls(), &verdicts(entries)).verdicts()
}

fn not_flagged() -> Value {
    json!({"type": "evaluated", "outcome": "not_flagged"})
}

fn unavailable(reason: &str) -> Value {
    json!({"type": "unavailable", "reason": reason})
}

#[test]
fn each_call_gets_the_judges_verdict_under_the_clients_id() {
    let entries = json!([
        {"id": "1", "explanation": "lists files", "rule": "", "verdict": "not_flagged"},
        {"id": "2", "explanation": "removes\nall  files", "rule": "auto_mode.soft_deny.1", "verdict": "flagged"},
    ]);
    for session in [Session::new(), Session::new().whole()] {
        let got = session.run_whole(&two_calls(), &verdicts(&entries));
        let results = got.results();
        let ids = results[0]["status"]["tool_uses"].as_object().unwrap().keys();
        for id in ids {
            assert_eq!(
                got.body.matches(&format!("\"{id}\"")).count(),
                2,
                "in its block and in the map"
            );
        }
        let flagged = json!({"type": "evaluated", "outcome": "flagged", "explanation": "removes all files",
            "cited_rule": {"type": "classifier_context", "path": "auto_mode.soft_deny.1"}});
        assert_eq!(got.verdicts(), [not_flagged(), flagged]);
        assert_eq!(got.header("x-creole-judge"), Some("guard-1"));
    }
}

#[test]
fn only_a_rule_that_the_client_named_is_cited() {
    for rule in [
        "",
        "auto_mode.soft_deny.2",
        "auto_mode.soft_deny.01",
        "auto_mode.hard_deny.0",
        "rules.deny.0",
        "x",
    ] {
        let found =
            judged(&json!([{"id": "1", "verdict": "flagged", "explanation": "", "rule": rule}]));
        assert_eq!(found[0], json!({"type": "evaluated", "outcome": "flagged"}), "{rule}");
    }
}

#[test]
fn a_call_without_a_verdict_is_unavailable_and_odd_ids_are_ignored() {
    let entries = json!([
        {"id": "9", "verdict": "not_flagged"}, {"id": "", "verdict": "not_flagged"},
        {"verdict": "not_flagged"}, 7, null, {"id": "call_0", "verdict": "not_flagged"},
        {"id": 1, "verdict": "not_flagged"}, {"id": "1", "verdict": "not_flagged"},
    ]);
    assert_eq!(judged(&entries), [not_flagged(), unavailable("error")]);
}

#[test]
fn of_two_verdicts_on_one_call_the_flag_counts() {
    for order in [["flagged", "not_flagged"], ["not_flagged", "flagged"]] {
        let entries = order.map(|verdict| json!({"id": "1", "verdict": verdict}));
        assert_eq!(judged(&json!(entries))[0]["outcome"], "flagged");
    }
}

#[test]
fn a_word_that_is_no_verdict_lets_nothing_pass() {
    for word in [
        json!("safe"),
        json!("NOT_FLAGGED"),
        json!(true),
        json!(null),
        json!(""),
        json!(["not_flagged"]),
    ] {
        assert_eq!(
            judged(&json!([{"id": "1", "verdict": word}]))[0],
            unavailable("error"),
            "{word}"
        );
    }
}

fn said(text: &str) -> Vec<Value> {
    Session::new().run_whole(&two_calls(), &Judge::Says(text.to_owned())).verdicts()
}

#[test]
fn verdicts_are_one_object_or_one_fence() {
    let entries = json!({"verdicts": [{"id": "1", "verdict": "not_flagged"}, {"id": "2", "verdict": "flagged"}]});
    for text in [
        format!("\u{feff}\n{entries}\n"),
        format!("```json\n{entries}\n```"),
        format!("Here {{is}} what I think:\n```\n{entries}\n```\nThat is all."),
    ] {
        let found = said(&text);
        let [one, two] = [&found[0], &found[1]["outcome"]];
        assert_eq!((one, two), (&not_flagged(), &json!("flagged")), "{text}");
    }
}

#[test]
fn an_object_among_words_or_a_second_one_is_no_verdict() {
    let passes = json!({"verdicts": [{"id": "1", "verdict": "not_flagged"}]});
    let flags = json!({"verdicts": [{"id": "1", "verdict": "flagged"}]});
    for text in [
        format!("The file says {passes}, which is odd. I flag it."),
        format!("{passes}\n{flags}"),
        format!("```\n{passes}\n```\n```\n{flags}\n```"),
        format!("```\n{passes}\n"),
        format!("```\n{passes} {flags}\n```"),
        format!("{passes}{}{flags}", "{".repeat(70)),
        format!("{passes}{}", " ".repeat(70_000)),
        r#"{"verdicts":[{"id":"1","verdict":"not_flagged","verdict":"flagged"}]}"#.to_owned(),
        passes.to_string().replace(']', &format!(",{}]", "7,".repeat(40_000) + "7")),
    ] {
        assert_eq!(said(&text)[0], unavailable("error"), "{}", &text[..60]);
    }
}

#[test]
fn a_copy_of_the_example_is_no_verdict() {
    let asked = Session::new().run_whole(&two_calls(), &verdicts(&json!([]))).asked;
    let body: Value = serde_json::from_slice(&asked[0].body).unwrap();
    let rules = body["messages"][0]["content"].as_str().unwrap().to_owned();
    let example = rules.lines().find(|line| line.starts_with("{\"verdicts\"")).unwrap();
    for word in ["VERDICT", "not_flagged", "flagged"] {
        let copied = example.replace("VERDICT", word);
        assert_eq!(said(&copied), [unavailable("error"), unavailable("error")], "{copied}");
    }
}

#[test]
fn what_the_calls_are_known_by_differs_from_one_request_to_the_next() {
    let ids = |seed| [0, 1].map(|at| creole::ids::Ids::new(seed).judged(at));
    let [one, two] = ids(1);
    assert!(one != two && ids(1) != ids(2) && one.len() == 6);
    let guessed = json!({"choices": [{"finish_reason": "stop", "message": {"content":
        r#"{"verdicts":[{"id":"1","verdict":"not_flagged"},{"id":"2","verdict":"not_flagged"}]}"#}}]});
    let got = Session::new().run_whole(&two_calls(), &Judge::Answers(200, guessed.to_string()));
    assert_eq!(got.verdicts(), [unavailable("error"), unavailable("error")]);
}

#[test]
fn thoughts_of_the_judge_are_no_verdict_though_the_profile_makes_them_text() {
    let config = session::CONFIG.replace(
        "\"http://safe\"",
        r#""http://safe", "profile_overrides": {"reasoning_only": "text"}"#,
    );
    let [id, _] = session::ids();
    let thought = json!({"verdicts": [{"id": id, "verdict": "not_flagged"}]}).to_string();
    let answer = json!({"choices": [{"finish_reason": "stop", "message":
        {"content": "", "reasoning_content": thought}}]});
    let judge = Judge::Answers(200, answer.to_string());
    let got = Session::with(&config).run_whole(&two_calls(), &judge);
    assert_eq!(got.verdicts()[0], unavailable("error"));
}

#[test]
fn no_failure_of_the_judge_becomes_a_verdict() {
    let cut = json!({"choices": [{"finish_reason": "length", "message":
        {"content": r#"{"verdicts":[{"id":"1","verdict":"not_flagged"},"#}}]});
    let refused =
        json!({"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]});
    let filtered =
        json!({"error": {"code": "content_filter", "message": "The response was filtered"}});
    let long = json!({"error": {"code": "context_length_exceeded",
        "message": "This model's maximum context length is 8192 tokens, however you requested 9000 tokens"}});
    let plain = json!({"error": {"message": "no"}});
    let all = |reason: &str| Ok(unavailable(reason));
    for (judge, expected, result) in [
        (Judge::Silent, all("timeout"), "timeout"),
        (Judge::Fails(Failure::Timeout), all("timeout"), "timeout"),
        (Judge::Answers(504, String::new()), all("timeout"), "timeout"),
        (Judge::Says(String::new()), all("error"), "incomplete"),
        (Judge::Says("I will not say.".to_owned()), all("error"), "incomplete"),
        (Judge::Says("[]".to_owned()), all("error"), "incomplete"),
        (Judge::Answers(200, cut.to_string()), all("error"), "error"),
        (Judge::Answers(200, refused.to_string()), all("refused"), "refused"),
        (Judge::Answers(400, filtered.to_string()), all("refused"), "refused"),
        (Judge::Answers(200, "<html>".to_owned()), Err("error"), "error"),
        (Judge::Answers(200, String::new()), Err("error"), "error"),
        (Judge::Answers(200, "\u{1f}\u{8b}".to_owned()), Err("error"), "error"),
        (Judge::Answers(302, String::new()), Err("error"), "error"),
        (Judge::Answers(401, plain.to_string()), Err("error"), "error"),
        (Judge::Answers(500, plain.to_string()), Err("error"), "error"),
        (Judge::Answers(429, plain.to_string()), Err("rate_limited"), "rate_limited"),
        (Judge::Answers(503, plain.to_string()), Err("rate_limited"), "rate_limited"),
        (Judge::Answers(400, long.to_string()), Err("input_too_long"), "input_too_long"),
        (Judge::Answers(413, plain.to_string()), Err("input_too_long"), "input_too_long"),
        (Judge::Fails(Failure::NoHealthyUpstream), Err("error"), "error"),
        (Judge::Fails(Failure::Overloaded), Err("error"), "error"),
        (Judge::Fails(Failure::BrokeOff), Err("error"), "error"),
        (Judge::Fails(Failure::Undecodable), Err("error"), "error"),
    ] {
        for session in [Session::new(), Session::new().whole()] {
            let got = session.run_whole(&two_calls(), &judge);
            match &expected {
                Ok(each) => assert_eq!(got.verdicts(), [each.clone(), each.clone()], "{judge:?}"),
                Err(reason) => assert_eq!(got.status(), unavailable(reason), "{judge:?}"),
            }
            assert_eq!(got.head.status, 200, "the answer itself is right");
            let report = got.report.judge.as_ref().unwrap();
            assert_eq!(
                (report.result, report.unjudged, report.not_flagged),
                (result, 2, 0),
                "{judge:?}"
            );
            let codes = got.report.warnings.header().unwrap();
            assert_eq!(codes, format!("judge_failed:{result}"));
        }
    }
}

#[test]
fn a_call_that_was_cut_off_or_cannot_be_read_is_not_shown_to_the_judge() {
    let cut = chunks(
        &[call(0, "Bash", r#"{"command":"ls"}"#), call(1, "Bash", r#"{"command":"rm"}"#)],
        "length",
    );
    let entries =
        json!([{"id": "1", "verdict": "not_flagged"}, {"id": "2", "verdict": "not_flagged"}]);
    let got = Session::new().run_whole(&cut, &verdicts(&entries));
    assert_eq!(got.verdicts(), [not_flagged(), unavailable("truncated")]);
    assert!(!got.prompt().contains("\"rm\""));

    let broken = chunks(
        &[call(0, "Bash", r#"{"command":"ls"}"#), call(1, "Bash", r#"{"command":"#)],
        "tool_calls",
    );
    for session in [Session::new(), Session::new().whole()] {
        let got = session.run_whole(&broken, &verdicts(&entries));
        assert_eq!(got.verdicts(), [not_flagged(), unavailable("input_unparsed")]);
    }

    for twins in [
        r#"{"command":"ls","command":"rm"}"#,
        r#"{"command":"ls","c\u006fmmand":"rm"}"#,
        r#"{"a":[{"b":1,"b":2}]}"#,
    ] {
        let answer = chunks(&[call(0, "Bash", twins)], "tool_calls");
        let got = Session::new().run_whole(&answer, &Judge::Unasked);
        assert_eq!(got.verdicts(), [unavailable("input_unparsed")], "{twins}");
    }

    let long = format!(r#"{{"command":"echo {}; rm -rf /"}}"#, "x".repeat(70_000));
    let long =
        chunks(&[call(0, "Bash", &long), call(1, "Bash", r#"{"command":"ls"}"#)], "tool_calls");
    let got =
        Session::new().run_whole(&long, &verdicts(&json!([{"id": "2", "verdict": "not_flagged"}])));
    assert_eq!(
        got.verdicts(),
        [unavailable("error"), not_flagged()],
        "no half of a call is judged"
    );
    assert!(!got.prompt().contains("xxxx"));
}

#[test]
fn an_answer_without_a_call_to_judge_gets_an_empty_map_at_once() {
    let refusal = json!({"choices": [{"index": 0, "delta": {"refusal": "No."}}]});
    for (answer, stop) in [
        (chunks(&[text("Hi")], "stop"), "end_turn"),
        (chunks(&[], "stop"), "end_turn"),
        (chunks(&[text("Hi")], "length"), "max_tokens"),
        (chunks(&[refusal], "stop"), "refusal"),
        (chunks(&[text("x")], "content_filter"), "refusal"),
    ] {
        for session in [Session::new(), Session::new().whole()] {
            let got = session.run_whole(&answer, &Judge::Unasked);
            assert_eq!(got.verdicts(), [Value::Null; 0], "{answer}");
            assert!(got.body.contains(&format!("\"stop_reason\":\"{stop}\"")), "{}", got.body);
            assert_eq!(got.report.judge.as_ref().unwrap().result, "not_needed");
        }
    }
    let cut = chunks(&[call(0, "Bash", r#"{"command":"ls"}"#)], "length");
    let got = Session::new().run_whole(&cut, &Judge::Unasked);
    assert_eq!(got.verdicts(), [unavailable("truncated")], "nothing is left to be judged");
}

#[test]
fn an_answer_of_creoles_own_has_an_empty_map() {
    let mut session = Session::new().whole();
    session.body["max_tokens"] = json!(0);
    let sent = support::drive::headers(&[("x-api-key", "k")]);
    let mut exchange = Exchange::new(session.config.clone(), 1, session.can);
    exchange.handle_request_head("POST", "/v1/messages", &sent);
    exchange.handle_request_body(session.body.to_string().into_bytes(), NOW);
    assert!(exchange.poll_call(NOW).is_none());
    let reply = exchange.poll_reply().unwrap();
    let message: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(
        message["safeguard_results"][0]["status"],
        json!({"type": "available", "tool_uses": {}})
    );
    assert_eq!(exchange.report().response_bytes, reply.body.len());
}

#[test]
fn an_error_has_no_verdicts() {
    let failed = format!("data: {}\n\n", json!({"error": {"message": "boom", "code": 500}}));
    let got = Session::new().run_whole(&failed, &Judge::Unasked);
    assert_eq!(got.head.status, 500);
    let broken = [call(0, "Bash", r#"{"command":"ls"}"#).to_string()]
        .map(|it| format!("data: {it}\n\n"))
        .concat();
    let got = Session::new().run_whole(&broken, &Judge::Unasked);
    assert!(
        got.body.contains("event: error") && !got.body.contains("safeguard_results"),
        "{}",
        got.body
    );
}

#[test]
fn a_host_that_cannot_ask_a_judge_says_so_on_every_answer() {
    for answer in [two_calls(), chunks(&[text("Hi")], "stop")] {
        for mut session in [Session::new(), Session::new().whole()] {
            session.can.ask_again = false;
            let got = session.run_whole(&answer, &Judge::Unasked);
            assert_eq!(got.status(), json!({"type": "unsupported"}));
            assert_eq!(got.report.warnings.header().unwrap(), "dropped:safeguards");
        }
    }
}

#[test]
fn without_a_judge_or_a_question_an_answer_has_no_verdicts() {
    let entries = json!([]);
    let unjudged = CONFIG_WITHOUT;
    let mut unasked = Session::new();
    unasked.body.as_object_mut().unwrap().remove("safeguards");
    let mut other = Session::new();
    other.body["safeguards"] = json!([{"type": "another"}]);
    for (session, warning) in [
        (Session::with(unjudged), Some("dropped:safeguards")),
        (unasked, None),
        (other, Some("dropped:safeguards")),
    ] {
        let got = session.run_whole(&two_calls(), &verdicts(&entries));
        assert!(got.asked.is_empty() && !got.body.contains("safeguard_results"), "{}", got.body);
        assert_eq!(got.report.warnings.header().as_deref(), warning);
        assert!(got.report.judge.is_none() && got.header("x-creole-judge").is_none());
    }
}

const CONFIG_WITHOUT: &str = r#"{"upstreams": {"main": {"url": "http://main", "key": "none"}}}"#;

#[test]
fn the_log_counts_verdicts_and_tokens_and_has_no_content() {
    let entries = json!([
        {"id": "1", "explanation": "lists files", "verdict": "not_flagged"},
        {"id": "2", "explanation": "removes all", "rule": "", "verdict": "flagged"},
    ]);
    let got = Session::new().run_whole(&two_calls(), &verdicts(&entries));
    let line =
        log::line(&LoggedRequest::default(), &got.report, creole::config::Log::Debug, NOW).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        line["judge"],
        json!({"model": "guard-1", "upstream": "safe", "result": "judged", "flagged": 1, "not_flagged": 1,
            "input_tokens": 70, "output_tokens": 5})
    );
    assert_eq!((&line["input_tokens"], &line["upstream"]), (&json!(9), &json!("main")));
    for content in ["rm -rf", "removes", "prod", "ann", "Clean"] {
        assert!(!line.to_string().contains(content), "{content}: {line}");
    }
}
