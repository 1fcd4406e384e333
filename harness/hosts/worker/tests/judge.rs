//! Tests of the judge's call after an answer, in workerd.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use creole_rig::{JUDGE, failing_judges, judged, judged_messages};
use creole_worker_tests::client::request;
use creole_worker_tests::{Upstream, Worker, open, post, read, read_until, soon, until};
use serde_json::json;

#[tokio::test]
async fn a_stream_flows_and_pings_and_its_end_waits_for_the_judge() {
    let (upstream, mut judges) = Upstream::judged().await;
    let worker = Worker::start(&upstream.url(), JUDGE);
    let mut got =
        open(&worker, request("POST", "/v1/messages", judged_messages(true))).await.unwrap();
    assert_eq!(got.response.headers()["x-creole-judge"], "guard");
    let mut seen = String::new();
    read_until(&mut got, &mut seen, "content_block_stop\",\"index\":1").await;
    let mut judge = soon("the judge's call", judges.recv()).await.unwrap();
    for _ in 0..2 {
        let mut more = String::new();
        read_until(&mut got, &mut more, "event: ping").await;
        seen.push_str(&more);
    }
    assert!(!seen.contains("message_delta"), "{seen}");
    judge.say("flagged").await;
    drop(judge);
    let rest = read(got).await;
    assert!(rest.complete);
    let told = json!({"type": "evaluated", "outcome": "flagged", "explanation": "I say so"});
    assert_eq!(judged(&(seen + &rest.body)), told);
    until("the log line", || !worker.lines("cause", "tool_use").is_empty()).await;
}

#[tokio::test]
async fn a_whole_answer_comes_with_its_verdicts() {
    let (upstream, mut judges) = Upstream::judged().await;
    let worker = Worker::start(&upstream.url(), JUDGE);
    tokio::spawn(async move {
        while let Some(mut judge) = judges.recv().await {
            judge.say("not_flagged").await;
        }
    });
    let got = post(&worker, "/v1/messages", judged_messages(false)).await;
    assert_eq!(judged(&got.body), json!({"type": "evaluated", "outcome": "not_flagged"}));
}

#[tokio::test]
async fn a_judge_that_is_down_or_slow_lets_nothing_pass() {
    let (upstream, judges) = Upstream::judged().await;
    for (config, reason) in failing_judges(&upstream.url()).await {
        let worker = Worker::start_with(&[("CREOLE_CONFIG", &config)]);
        for stream in [true, false] {
            let got = post(&worker, "/v1/messages", judged_messages(stream)).await;
            assert!(got.complete && got.status == 200, "{got:?}");
            assert_eq!(judged(&got.body), json!({"type": "unavailable", "reason": reason}));
        }
    }
    drop(judges);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_judges_call() {
    let (upstream, mut judges) = Upstream::judged().await;
    let worker = Worker::start(&upstream.url(), JUDGE);
    let mut got =
        open(&worker, request("POST", "/v1/messages", judged_messages(true))).await.unwrap();
    read_until(&mut got, &mut String::new(), "event: content_block_stop").await;
    let judge = soon("the judge's call", judges.recv()).await.unwrap();
    drop(got);
    until("the judge's connection", || upstream.is_idle()).await;
    until("the log line", || !worker.lines("outcome", "abandoned").is_empty()).await;
    drop(judge);
}
