//! Tests of the vision model's calls before the call of the upstream, in workerd.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use creole_rig::{PNG, failing_vision, seen_messages, vision};
use creole_worker_tests::{Upstream, Worker, post};

#[tokio::test]
async fn images_are_described_before_the_upstream_is_called() {
    let (upstream, mut eyes) = Upstream::seeing().await;
    let worker = Worker::start_with(&[("CREOLE_CONFIG", &vision(&upstream.url()))]);
    tokio::spawn(async move {
        for description in ["a tree", "a dog"].into_iter().cycle() {
            let Some(mut asked) = eyes.recv().await else { return };
            asked.say(description).await;
        }
    });
    for stream in [true, false] {
        let got = post(&worker, "/v1/messages", seen_messages(stream)).await;
        assert!(got.complete && got.status == 200 && got.body.contains("Hi there"), "{got:?}");
        assert_eq!(got.header("x-creole-warnings"), "image_described");
        let told = upstream.last().body;
        assert!(told.contains("a tree") && told.contains("a dog") && !told.contains(PNG), "{told}");
    }
}

#[tokio::test]
async fn a_model_that_is_down_or_slow_is_done_without() {
    let (upstream, eyes) = Upstream::seeing().await;
    for (config, reason) in failing_vision(&upstream.url()).await {
        let worker = Worker::start_with(&[("CREOLE_CONFIG", &config)]);
        for stream in [true, false] {
            let got = post(&worker, "/v1/messages", seen_messages(stream)).await;
            assert!(got.complete && got.status == 200 && got.body.contains("Hi there"), "{got:?}");
            assert!(
                got.header("x-creole-warnings").contains(&format!("vision_failed:{reason}")),
                "{got:?} {reason}"
            );
            assert!(upstream.last().body.contains("[image omitted"));
        }
    }
    drop(eyes);
}
