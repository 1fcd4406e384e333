//! The calls of the model that describes images before the upstream's, over real sockets.

use crate::rig::{
    Gateway, PNG, Upstream, client, failing_vision, request, seen_messages, send, soon, until,
    vision,
};

#[tokio::test]
async fn images_are_described_before_the_upstream_is_called() {
    let (upstream, mut eyes) = Upstream::seeing().await;
    let gateway = Gateway::start_with(&[], &vision(&upstream.url()), &[]);
    tokio::spawn(async move {
        for description in ["a tree", "a dog"].into_iter().cycle() {
            let Some(mut asked) = eyes.recv().await else { return };
            asked.say(description).await;
        }
    });
    for stream in [true, false] {
        let sent = request("POST", &gateway.url("/v1/messages"), seen_messages(stream));
        let got = send(&client(false), sent).await;
        assert!(got.complete && got.status == 200 && got.body.contains("Hi there"), "{got:?}");
        assert_eq!(got.header("x-creole-warnings"), "image_described");
        let told = upstream.last().body;
        assert!(told.contains("a tree") && told.contains("a dog") && !told.contains(PNG), "{told}");
    }
    let line = r#""described":2,"input_tokens":140,"output_tokens":10"#;
    until("the log lines", || gateway.lines(line).len() == 2).await;
    until("all upstreams", || upstream.is_idle()).await;
}

#[tokio::test]
async fn a_model_that_is_down_or_slow_is_done_without() {
    let (upstream, eyes) = Upstream::seeing().await;
    for (config, reason) in failing_vision(&upstream.url()).await {
        let gateway = Gateway::start_with(&[], &config, &[]);
        for stream in [true, false] {
            let sent = request("POST", &gateway.url("/v1/messages"), seen_messages(stream));
            let got = send(&client(false), sent).await;
            assert!(got.complete && got.status == 200 && got.body.contains("Hi there"), "{got:?}");
            assert!(upstream.last().body.contains("[image omitted"));
        }
        until("the log", || gateway.lines(&format!("vision_failed:{reason}")).len() == 2).await;
    }
    drop(eyes);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call() {
    let (upstream, mut eyes) = Upstream::seeing().await;
    let gateway = Gateway::start_with(&[], &vision(&upstream.url()), &[]);
    let sent = request("POST", &gateway.url("/v1/messages"), seen_messages(true));
    let client = client(false);
    let waiting = tokio::spawn(async move { client.request(sent).await });
    let asked = soon("the call", eyes.recv()).await.unwrap();
    waiting.abort();
    until("the connection", || upstream.is_idle()).await;
    until("the log line", || !gateway.lines(r#""outcome":"abandoned""#).is_empty()).await;
    drop(asked);
}
