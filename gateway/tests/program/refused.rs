//! An upstream that refuses a conversation's tool calls, or parameters, is asked once more without
//! them.

use crate::rig::{self, COMPLETION, Gateway, Upstream, client, request, send};
use bytes::Bytes;

const REFUSAL: &str = r#"{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}"#;

const BODY: &str = r#"{"model":"m","max_tokens":100,"messages":[
    {"role":"user","content":"Look"},
    {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a.txt"}]},
    {"role":"user","content":"What is it?"}]}"#;

/// Refuses bodies that have `word` in them.
async fn refusing(word: &'static str) -> Upstream {
    Upstream::start(move |asked, mut out| {
        let refused = asked.body.contains(word);
        tokio::spawn(async move {
            out.send_data(Bytes::from(if refused { REFUSAL } else { COMPLETION })).await
        });
        (if refused { 400 } else { 200 }, "application/json")
    })
    .await
}

#[tokio::test]
async fn a_refused_conversation_is_sent_again_without_its_calls() {
    let upstream = refusing("tool_call_id").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), BODY)).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.json()["content"][0]["text"], "Hi there");
    assert_eq!(got.header("x-creole-guard"), "pairing");
    assert_eq!(got.header("x-creole-warnings"), "pairing_refused");
    assert_eq!(upstream.asked.lock().unwrap().len(), 2);
    let last = upstream.last();
    assert!(last.body.contains("[Tool call look {} gave: a.txt]"), "{}", last.body);
    assert_eq!(last.headers["authorization"], "Bearer sk-client");
    rig::until("the log line", || !gateway.lines(r#""guards":"pairing""#).is_empty()).await;
}

#[tokio::test]
async fn an_upstream_that_refuses_twice_is_not_asked_a_third_time() {
    let upstream = refusing("model").await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), BODY)).await;
    got.assert_error(529, "overloaded_error", "Unexpected role");
    assert_eq!(got.header("x-should-retry"), "true");
    assert_eq!(upstream.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_stream_that_begins_with_a_refusal_is_asked_for_again_at_once() {
    let upstream = Upstream::start(|asked, mut out| {
        let refused = asked.body.contains("tool_call_id");
        tokio::spawn(async move {
            if !refused {
                return out.send_data(Bytes::from(COMPLETION)).await;
            }
            let event = format!("data: {{\"error\":{REFUSAL}}}\n\n");
            out.send_data(Bytes::from(event)).await?;
            // The upstream leaves the connection open.
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            Ok(())
        });
        (200, if refused { "text/event-stream" } else { "application/json" })
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let body = BODY.replacen('{', r#"{"stream":true,"#, 1);
    let sent = request("POST", &gateway.url("/v1/messages"), body);
    let client = client(false);
    let answer = send(&client, sent);
    let got = tokio::time::timeout(std::time::Duration::from_secs(5), answer).await.unwrap();
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.header("x-creole-warnings"), "pairing_refused");
    let asked = upstream.asked.lock().unwrap();
    assert!(asked.len() == 2 && asked[1].body.contains("[Tool call look {} gave: a.txt]"));
}

#[tokio::test]
async fn a_refusal_whose_connection_breaks_is_sent_again_too() {
    let upstream = Upstream::start(|asked, mut out| {
        let refused = asked.body.contains("tool_call_id");
        tokio::spawn(async move {
            let sent = out.send_data(Bytes::from(if refused { REFUSAL } else { COMPLETION })).await;
            if refused {
                // The server sends what it has before it can break off.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                out.abort("cut".into());
            }
            sent
        });
        (if refused { 400 } else { 200 }, "application/json")
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), BODY)).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.header("x-creole-warnings"), "pairing_refused");
    assert_eq!(upstream.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_refused_one_after_the_other_is_left_out_one_after_the_other() {
    let upstream = Upstream::refusing(&["max_tokens", "temperature", "stop"]).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let body = r#"{"model":"m","max_tokens":100,"temperature":0.5,"stop_sequences":["END"],
        "messages":[{"role":"user","content":"q"}]}"#;
    let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), body)).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(upstream.asked.lock().unwrap().len(), 4);
    assert!(upstream.last().body.contains(r#""max_completion_tokens":100"#));
    let warnings = got.header("x-creole-warnings");
    assert!(warnings.contains("parameter_refused:max_tokens_field"), "{warnings}");
    // And what was left out once is left out from then on.
    let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), body)).await;
    assert_eq!((got.status, got.header("x-creole-warnings")), (200.try_into().unwrap(), warnings));
    assert_eq!(upstream.asked.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn a_refusal_behind_pings_is_asked_again_in_the_same_stream() {
    let upstream = Upstream::start(|asked, mut out| {
        let refused = asked.body.contains("tool_call_id");
        tokio::spawn(async move {
            if !refused {
                return out.send_data(Bytes::from(COMPLETION)).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            out.send_data(Bytes::from(format!("data: {{\"error\":{REFUSAL}}}\n\n"))).await
        });
        (200, if refused { "text/event-stream" } else { "application/json" })
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), r#"{"ping_interval_ms": 50}"#);
    // The larger one is translated on another thread.
    for text in ["Look".to_owned(), "Look ".repeat(100_000)] {
        let body = BODY.replacen('{', r#"{"stream":true,"#, 1).replace("Look", &text);
        let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), body)).await;
        assert_eq!(got.status, 200, "{got:?}");
        let events = got.body.trim_start_matches(": ping\n\n");
        assert!(events.len() < got.body.len(), "{got:?}");
        assert!(events.starts_with("event: message_start\n"), "{got:?}");
        assert!(got.complete && events.contains("event: message_stop\n"), "{got:?}");
        assert!(upstream.last().body.contains("[Tool call look {} gave: a.txt]"));
    }
    assert_eq!(upstream.asked.lock().unwrap().len(), 4);
    rig::until("the log lines", || gateway.lines(r#""guards":"pairing""#).len() == 2).await;
}

#[tokio::test]
async fn pings_come_before_the_head_of_a_whole_answer_for_a_stream() {
    let upstream = Upstream::start(|asked, mut out| {
        if asked.body.contains(r#""stream":true"#) {
            let refusal = r#"{"error":{"message":"This model doesn't support streaming."}}"#;
            tokio::spawn(async move { out.send_data(Bytes::from(refusal)).await });
            return (400, "application/json");
        }
        // Nothing but the gateway's own process goes on meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let fails = asked.body.contains("Fail");
        let answer = if fails { r#"{"error":{"message":"slow down"}}"# } else { COMPLETION };
        tokio::spawn(async move { out.send_data(Bytes::from(answer)).await });
        (if fails { 429 } else { 200 }, "application/json")
    })
    .await;
    let gateway = Gateway::start(&upstream.url(), r#"{"ping_interval_ms": 50}"#);
    for (text, last) in [("Look", "event: message_stop\n"), ("Fail", "event: error\n")] {
        let body = BODY.replacen('{', r#"{"stream":true,"#, 1).replace("Look", text);
        let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), body)).await;
        assert!(got.status == 200 && got.complete, "{got:?}");
        assert!(got.header("x-creole-warnings").contains("stream_refused"), "{got:?}");
        assert!(got.body.starts_with(": ping\n\n") && got.body.contains(last), "{got:?}");
    }
    let impatient = r#"{"ping_interval_ms": 50, "first_byte_timeout_ms": 100}"#;
    let gateway = Gateway::start(&upstream.url(), impatient);
    let body = BODY.replacen('{', r#"{"stream":true,"#, 1);
    let got = send(&client(false), request("POST", &gateway.url("/v1/messages"), body)).await;
    assert!(got.body.starts_with(": ping\n\nevent: error\n"), "{got:?}");
    assert!(got.body.contains("timeout_error"), "{got:?}");
}
