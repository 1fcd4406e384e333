//! The call of the judge behind an answer, over real sockets.

use crate::rig::{
    Gateway, JUDGE, LONG, LONG_BYTES, Upstream, client, failing_judges, judged, judged_messages,
    read, read_until, request, send, soon, until,
};
use serde_json::json;

fn flagged() -> serde_json::Value {
    json!({"type": "evaluated", "outcome": "flagged", "explanation": "I say so"})
}

#[tokio::test]
async fn a_stream_flows_and_pings_and_its_end_waits_for_the_judge() {
    let (upstream, mut judges) = Upstream::judged().await;
    let gateway = Gateway::start(&upstream.url(), JUDGE);
    let sent = request("POST", &gateway.url("/v1/messages"), judged_messages(true));
    let mut response = soon("the head", client(false).request(sent)).await.unwrap();
    assert_eq!(response.headers()["x-creole-judge"], "guard");
    let mut seen = String::new();
    read_until(&mut response, &mut seen, "content_block_stop\",\"index\":1").await;
    let mut judge = soon("the judge's call", judges.recv()).await.unwrap();
    for _ in 0..2 {
        let mut more = String::new();
        read_until(&mut response, &mut more, "event: ping").await;
        seen.push_str(&more);
    }
    assert!(!seen.contains("message_delta"), "{seen}");
    judge.say("flagged").await;
    drop(judge);
    let rest = read(response).await;
    assert!(
        rest.complete
            && rest.body.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
    );
    assert_eq!(judged(&(seen + &rest.body)), flagged());
    until("the log line", || !gateway.lines(r#""result":"judged","flagged":1"#).is_empty()).await;
    until("both upstreams", || upstream.is_idle()).await;
}

#[tokio::test]
async fn a_whole_answer_comes_with_its_verdicts() {
    let (upstream, mut judges) = Upstream::judged().await;
    let gateway = Gateway::start(&upstream.url(), JUDGE);
    tokio::spawn(async move {
        while let Some(mut judge) = judges.recv().await {
            judge.say("not_flagged").await;
        }
    });
    let got =
        send(&client(false), request("POST", &gateway.url("/v1/messages"), judged_messages(false)))
            .await;
    assert_eq!((got.status.as_u16(), got.header("content-type")), (200, "application/json"));
    assert_eq!(judged(&got.body), json!({"type": "evaluated", "outcome": "not_flagged"}));
    assert_eq!(got.json()["content"][1]["name"], "Bash");
}

#[tokio::test]
async fn a_judge_that_is_down_or_slow_lets_nothing_pass() {
    let (upstream, judges) = Upstream::judged().await;
    for (config, reason) in failing_judges(&upstream.url()).await {
        let gateway = Gateway::start_with(&[], &config, &[]);
        for stream in [true, false] {
            let sent = request("POST", &gateway.url("/v1/messages"), judged_messages(stream));
            let got = send(&client(false), sent).await;
            assert!(got.complete && got.status == 200, "{got:?}");
            assert_eq!(judged(&got.body), json!({"type": "unavailable", "reason": reason}));
        }
        until("the log", || gateway.lines(&format!("judge_failed:{reason}")).len() == 2).await;
    }
    drop(judges);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_judges_call() {
    let (upstream, mut judges) = Upstream::judged().await;
    let gateway = Gateway::start(&upstream.url(), JUDGE);
    let sent = request("POST", &gateway.url("/v1/messages"), judged_messages(true));
    let mut response = soon("the head", client(false).request(sent)).await.unwrap();
    read_until(&mut response, &mut String::new(), "event: content_block_stop").await;
    let judge = soon("the judge's call", judges.recv()).await.unwrap();
    drop(response);
    until("the judge's connection", || upstream.is_idle()).await;
    until("the log line", || !gateway.lines(r#""outcome":"abandoned""#).is_empty()).await;
    drop(judge);
}

#[tokio::test]
async fn the_judges_request_is_held_within_what_all_exchanges_may_hold() {
    let (upstream, mut judges) = Upstream::judged().await;
    let sent = judged_messages(true).replace("claude-x", LONG);
    // The call is kept until it is judged, and is in the judge's request again.
    for (times, is_asked) in [(3, true), (1, false)] {
        let max = LONG_BYTES * times + LONG_BYTES / 2;
        let config = JUDGE.replacen('{', &format!(r#"{{"buffered_bytes_max": {max}, "#), 1);
        let gateway = Gateway::start(&upstream.url(), &config);
        let client = client(false);
        let asks = send(&client, request("POST", &gateway.url("/v1/messages"), sent.clone()));
        let (got, ()) = tokio::join!(asks, async {
            if is_asked {
                let mut judge = soon("the judge's call", judges.recv()).await.unwrap();
                judge.say("flagged").await;
            }
        });
        assert!(got.complete && got.body.contains(&"x".repeat(LONG_BYTES)), "{}", got.status);
        let unjudged = json!({"type": "unavailable", "reason": "error"});
        assert_eq!(judged(&got.body), if is_asked { flagged() } else { unjudged }, "{max}");
        assert!(judges.try_recv().is_err(), "the judge is asked");
    }
}
