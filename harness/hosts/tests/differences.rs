//! Tests of the differences between the hosts, which are exactly those in the table of
//! `docs/dev/hosts.md`.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use creole_hosts::process::root;
use creole_hosts::suite::{FINISH, chunk, messages};
use creole_hosts::upstream::Upstream;
use creole_hosts::{Answer, End, Got, Host, Request, Trial, cases, hosts};
use serde_json::json;

/// Row of the table of differences: a situation, and a trial of the situation.
type Situation = (&'static str, fn() -> Trial);

const SITUATIONS: &[Situation] = &[
    ("the upstream breaks in the middle of a stream", || {
        let mut answer = Answer::events([chunk("Hello")]);
        answer.end = End::Aborted;
        trial(messages("v1", true, "hi"), answer)
    }),
    ("the upstream breaks between its head and its body", || {
        let mut answer = Answer::json("");
        answer.headers.push(("content-length".to_owned(), "100".to_owned()));
        answer.end = End::Aborted;
        trial(messages("v1", false, "hi"), answer)
    }),
    ("the upstream is silent before its head", || {
        let answer = Answer::events([chunk("Hello")]);
        trial(messages("v1", true, "hi"), Answer { delay: Duration::from_secs(6), ..answer })
    }),
    ("the upstream is silent after its head", || {
        let mut answer = Answer::events([""]);
        answer.end = End::Silent;
        trial(messages("v1", true, "hi"), answer)
    }),
    ("the upstream is silent in the middle of a stream", || {
        let mut answer = Answer::events([chunk("Hello")]);
        answer.end = End::Silent;
        trial(messages("v1", true, "hi"), answer)
    }),
    ("the upstream keeps the connection open after `[DONE]`", || {
        let mut answer = Answer::events([chunk("Hello"), FINISH.to_owned()]);
        answer.end = End::Silent;
        // The pause makes the head leave first, because an answer that is complete at once is sent
        // whole.
        answer.pause = Duration::from_millis(200);
        trial(messages("v1", true, "hi"), answer)
    }),
    ("a path below `/v1` that is not ours", || {
        let request = Request::plain("GET", "/v1/files");
        trial(request, Answer::whole(200, "text/plain", "passed"))
    }),
    ("a path outside of `/v1`", || {
        let answer = Answer::whole(200, "text/plain", "passed");
        Trial { key: "other".to_owned(), ..trial(Request::plain("GET", "/other"), answer) }
    }),
];

fn trial(request: Request, answer: Answer) -> Trial {
    Trial { key: "v1".to_owned(), request, answer }
}

fn main() -> ExitCode {
    let address = Upstream::shared().address();
    let config = json!({
        "upstreams": {"default": {
            "url": format!("http://{address}"), "profile_overrides": {"tokenizer": "messages"}
        }},
        "count_tokens": "upstream", "stall_timeout_ms": 2000, "first_byte_timeout_ms": 2000, "ping_interval_ms": 500
    });
    let started = hosts::all(&config);
    cases::run(
        "differences",
        &started,
        &[
            ("hosts_differ_as_the_table_says", table),
            ("every_host_asks_the_upstreams_tokenizer", counts),
            ("every_host_leaves_out_what_was_refused_once", refusals),
        ],
    )
}

/// Tests `count_tokens`, which is an exchange like any other: no host has to do anything for it, so
/// none may differ.
fn counts(started: &Vec<hosts::Started>) {
    for (name, host) in started {
        let host = host.as_ref().unwrap_or_else(|reason| panic!("{name}: {reason}"));
        for (status, body, tokens, warning) in [
            (200, r#"{"count": 42, "max_model_len": 8192, "tokens": [1, 2]}"#, 42, None),
            (404, r#"{"detail": "Not Found"}"#, 5, Some("count_estimated")),
        ] {
            let mut request = messages("v1", false, "hi");
            "/v1/messages/count_tokens?beta=true".clone_into(&mut request.path);
            let answer = Answer::whole(status, "application/json", body);
            let got = host.send(&Trial { key: "tokenize".to_owned(), request, answer });
            assert_eq!(got.status, 200, "{name}: {}", got.text());
            assert_eq!(got.text(), format!("{{\"input_tokens\":{tokens}}}"), "{name}");
            assert_eq!(got.header("x-creole-warnings"), warning, "{name}");
            let [seen] = &got.upstream[..] else { panic!("{name}: {:?}", got.upstream) };
            assert_eq!(seen.path, "/tokenize", "{name}");
            let asked: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
            let keys: Vec<&String> = asked.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["messages", "model"], "{name}");
        }
    }
}

/// Tests refused parameters: a host that cannot repeat a request makes its client do so.
fn refusals(started: &Vec<hosts::Started>) {
    let mut request = messages("v1", false, "hi");
    let body = r#"{"model":"m","max_tokens":9,"temperature":0.5,"messages":[{"role":"user","content":"q"}]}"#;
    request.body = body.into();
    let refusal =
        r#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported"}}"#;
    let answer = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    for (name, host) in started {
        let host = host.as_ref().unwrap_or_else(|reason| panic!("{name}: {reason}"));
        let send = |status, body| {
            let answer = Answer::whole(status, "application/json", body);
            let got = host.send(&trial(request.clone(), answer));
            let sent = got.upstream.iter().map(|seen| {
                let sent: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
                sent.get("temperature").is_some()
            });
            let sent: Vec<bool> = sent.collect();
            (got, sent)
        };
        let asks_again = ["gateway", "worker"].contains(name);
        let (got, sent) = send(400, refusal);
        if asks_again {
            // The repeated request is refused, too.
            assert_eq!((got.status, &sent[..]), (400, &[true, false][..]), "{name}");
        } else {
            got.assert_error(529, "overloaded_error", "Unsupported parameter: 'temperature'");
            assert_eq!(got.header("x-should-retry"), Some("true"), "{name}");
            assert_eq!(sent, [true], "{name}");
        }
        let (got, sent) = send(200, answer);
        assert_eq!((got.status, &sent[..]), (200, &[false][..]), "{name}: {}", got.text());
        let warnings = got.header("x-creole-warnings").unwrap_or_default();
        assert!(warnings.contains("parameter_refused:sampling"), "{name}: {warnings}");
    }
}

fn table(started: &Vec<hosts::Started>) {
    let expected = documented();
    let mut wrong = Vec::new();
    let mut found: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = started
            .iter()
            .map(|(name, host)| {
                let host = host.as_ref().unwrap_or_else(|reason| panic!("{name}: {reason}"));
                (*name, scope.spawn(move || outcomes(&**host)))
            })
            .collect();
        // Hosts run one after the other, because they share an upstream and its key.
        for (name, thread) in threads {
            found.insert(name, thread.join().unwrap());
        }
    });
    for (name, outcomes) in &found {
        for (situation, outcome) in outcomes {
            let row = expected.get(*situation);
            let said = row.and_then(|row| row.get(*name)).map_or("(no cell)", String::as_str);
            if said != outcome {
                wrong.push(format!(
                    "{situation}, {name}: the table says {said:?}, found {outcome:?}"
                ));
            }
        }
    }
    let known: Vec<&str> = SITUATIONS.iter().map(|(situation, _)| *situation).collect();
    for situation in expected.keys().filter(|situation| !known.contains(&situation.as_str())) {
        wrong.push(format!("the table has a row that nothing tests: {situation}"));
    }
    assert!(wrong.is_empty(), "docs/dev/hosts.md:\n{}", wrong.join("\n"));
}

fn outcomes(host: &dyn Host) -> Vec<(&'static str, String)> {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap();
    SITUATIONS
        .iter()
        .map(|(situation, trial)| (*situation, describe(&host.send(&trial()))))
        .collect()
}

/// Describes an answer in the words of the table in `docs/dev/hosts.md`.
fn describe(got: &Got) -> String {
    let text = got.text();
    let mut words =
        vec![if got.status == 0 { "no answer".to_owned() } else { got.status.to_string() }];
    if text == "passed" {
        words.push("passed on".to_owned());
    }
    if text.contains("event: ping") && text.contains("Hello") && pinged_after_start(&text) {
        words.push("pings".to_owned());
    }
    if text.contains("\"type\":\"error\"") || text.contains("\"type\": \"error\"") {
        let kind = text
            .split("\"type\":\"")
            .find_map(|part| part.split('"').next().filter(|kind| kind.ends_with("_error")));
        words.push(format!("`{}`", kind.unwrap_or("error")));
    }
    if text.contains("message_stop") {
        words.push("whole message".to_owned());
    }
    match got.end {
        End::Complete => {}
        End::Aborted => words.push("broken off".to_owned()),
        End::Silent => words.push("open for ever".to_owned()),
    }
    words.join(", ")
}

/// Returns true if a ping follows the first delta: an earlier ping may belong to the start of the
/// message.
fn pinged_after_start(text: &str) -> bool {
    text.split("content_block_delta").skip(1).any(|rest| rest.contains("event: ping"))
}

/// Returns the documented differences, by situation and host.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("docs/dev/hosts.md")).unwrap();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("| situation"))
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let heads = &lines[0];
    let mut table = BTreeMap::new();
    for line in lines.iter().skip(2) {
        let mut row = BTreeMap::new();
        for (head, cell) in heads.iter().zip(line).skip(1) {
            for host in head.split(", ") {
                row.insert(host.to_owned(), (*cell).to_owned());
            }
        }
        table.insert(line[0].to_owned(), row);
    }
    table
}
