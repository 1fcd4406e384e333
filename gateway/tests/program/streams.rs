//! Translated answers: as they come, at the client's pace, and every way in which they can end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::rig::{
    self, EVENT_STREAM, Gateway, Got, Out, Upstream, chunk, client, finish, messages, request, send,
};
use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use tokio::sync::mpsc::UnboundedReceiver;

/// A stream of which the client has the text `One`.
async fn stream(
    client: &rig::Client,
    gateway: &Gateway,
    outs: &mut UnboundedReceiver<Out>,
) -> (Response<Incoming>, Out, String) {
    let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
    let first = async {
        let mut out = outs.recv().await.unwrap();
        out.send_data(chunk("One")).await.unwrap();
        out
    };
    let (response, out) = rig::soon("the head", async { tokio::join!(sent, first) }).await;
    let mut response = response.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with(EVENT_STREAM));
    let mut seen = String::new();
    rig::read_until(&mut response, &mut seen, "One").await;
    assert!(seen.starts_with("event: message_start\n"), "{seen}");
    (response, out, seen)
}

#[tokio::test]
async fn a_whole_answer_has_a_length_and_one_log_line() {
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let sent = request("POST", &gateway.url("/v1/messages?beta=true"), messages(false));
    let got = send(&client(false), sent).await;
    assert_eq!(got.status, 200, "{got:?}");
    assert_eq!(got.json()["content"][0]["text"], "Hi there");
    assert_eq!(got.header("content-length"), got.body.len().to_string());
    let asked = upstream.last();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(asked.headers["content-length"], asked.body.len().to_string());
    rig::until("the log line", || {
        !gateway.lines(r#""path":"/v1/messages","status":200"#).is_empty()
    })
    .await;
    let lines = gateway.lines("POST");
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [r#""model":"claude-x""#, r#""upstream":"default""#, got.header("request-id")] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
    assert!(!gateway.log().contains("Hello") && !gateway.log().contains("Hi there"));
}

#[tokio::test]
async fn each_piece_reaches_the_client_before_the_next_is_sent() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for http2 in [false, true] {
        let client = client(http2);
        let (mut response, mut out, mut seen) = stream(&client, &gateway, &mut outs).await;
        for text in ["Two", "Three", "Four"] {
            out.send_data(chunk(text)).await.unwrap();
            rig::read_until(&mut response, &mut seen, text).await;
        }
        out.send_data(finish()).await.unwrap();
        drop(out);
        let rest = rig::read(response).await;
        assert!(rest.complete && (seen + &rest.body).contains("event: message_stop"), "{rest:?}");
    }
    rig::until("the upstream", || upstream.is_idle()).await;
}

#[tokio::test]
async fn a_stop_sequence_that_the_upstream_does_not_know_ends_message_and_upstream() {
    let (upstream, mut outs) = Upstream::written().await;
    let config = r#"{"upstreams":{"default":{"profile_overrides":{"stop":false}}}}"#;
    let gateway = Gateway::start(&upstream.url(), config);
    for (http2, goes_on) in [(false, true), (true, true), (false, false)] {
        let client = client(http2);
        let mut body: serde_json::Value = serde_json::from_str(&messages(true)).unwrap();
        body["stop_sequences"] = serde_json::json!(["END"]);
        let sent = client.request(request("POST", &gateway.url("/v1/messages"), body.to_string()));
        let first = async {
            let mut out = outs.recv().await.unwrap();
            out.send_data(chunk("One END")).await.unwrap();
            out
        };
        let (response, mut out) = rig::soon("the head", async { tokio::join!(sent, first) }).await;
        let since = std::time::Instant::now();
        // For as long as it is heard.
        let going = tokio::spawn(async move {
            while goes_on && out.send_data(chunk(" more")).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            out
        });
        let rest = rig::read(response.unwrap()).await;
        assert!(rest.complete && rest.body.contains("event: message_stop"), "{rest:?}");
        assert!(rest.body.contains(r#""stop_sequence":"END""#), "{rest:?}");
        assert!(!rest.body.contains("more"), "{rest:?}");
        rig::until("the upstream", || upstream.is_idle()).await;
        assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
        drop(rig::soon("the upstream's end", going).await);
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstreams_stream() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for http2 in [false, true] {
        let client = client(http2);
        let (response, out, _) = stream(&client, &gateway, &mut outs).await;
        drop(response);
        // Without another byte from the upstream.
        rig::until("the upstream", || upstream.is_idle()).await;
        drop(out);
    }
    rig::until("the log lines", || gateway.lines(r#""status":499"#).len() == 2).await;
    assert_eq!(gateway.lines(r#""outcome":"abandoned""#).len(), 2, "{}", gateway.log());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_first_byte_ends_the_upstreams_stream() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for http2 in [false, true] {
        let client = client(http2);
        let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
        let waiting = tokio::spawn(sent);
        let out = rig::soon("the request", outs.recv()).await;
        waiting.abort();
        rig::until("the upstream", || upstream.is_idle()).await;
        drop((client, out));
    }
    rig::until("the log lines", || gateway.lines(r#""outcome":"abandoned""#).len() == 2).await;
}

#[tokio::test]
async fn an_upstream_that_is_cut_gives_an_error_event() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for http2 in [false, true] {
        let client = client(http2);
        let (response, out, _) = stream(&client, &gateway, &mut outs).await;
        out.abort("cut".into());
        let rest = rig::read(response).await;
        assert!(rest.complete, "the client's stream ends well: the error is in it");
        assert!(rest.body.contains("event: error\ndata: {\"type\":\"error\""), "{rest:?}");
        assert!(!rest.body.contains("message_stop"), "{rest:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_is_cut_before_its_first_byte_is_an_http_error() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    for stream in [true, false] {
        let client = client(false);
        let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(stream)));
        let cut = async {
            let out = outs.recv().await.unwrap();
            // The head is on its way before the body breaks.
            tokio::time::sleep(Duration::from_millis(50)).await;
            out.abort("cut".into());
        };
        let (response, ()) = rig::soon("the head", async { tokio::join!(sent, cut) }).await;
        rig::read(response.unwrap()).await.assert_error(502, "api_error", "");
    }
}

#[tokio::test]
async fn silence_is_filled_with_pings() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"ping_interval_ms": 50}"#);
    let client = client(false);
    let (mut response, mut out, mut seen) = stream(&client, &gateway, &mut outs).await;
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    rig::read_until(&mut response, &mut seen, &ping.repeat(3)).await;
    out.send_data(chunk("Two")).await.unwrap();
    rig::read_until(&mut response, &mut seen, "Two").await;
    out.send_data(finish()).await.unwrap();
    drop(out);
    assert!(rig::read(response).await.body.contains("event: message_stop"));
}

#[tokio::test]
async fn an_upstream_that_stalls_is_given_up() {
    let (upstream, mut outs) = Upstream::written().await;
    let config = r#"{"stall_timeout_ms": 300, "ping_interval_ms": 100}"#;
    let gateway = Gateway::start(&upstream.url(), config);
    let client = client(false);
    let (response, out, _) = stream(&client, &gateway, &mut outs).await;
    let rest = rig::read(response).await;
    assert!(rest.body.contains("event: ping\n"), "{rest:?}");
    assert!(rest.body.contains("\"timeout_error\""), "{rest:?}");
    rig::until("the upstream", || upstream.is_idle()).await;
    drop(out);

    // Only the head comes: an error with its status, unless the client was told before that a
    // message begins.
    let patient = Gateway::start(&upstream.url(), r#"{"stall_timeout_ms": 300}"#);
    let sent = client.request(request("POST", &patient.url("/v1/messages"), messages(true)));
    let got: Got = rig::read(rig::soon("504", sent).await.unwrap()).await;
    got.assert_error(504, "timeout_error", "");
    let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
    let got: Got = rig::read(rig::soon("a message", sent).await.unwrap()).await;
    assert_eq!(got.status, 200);
    assert!(got.body.starts_with("event: message_start\n"), "{got:?}");
    assert!(got.body.contains("\"timeout_error\""), "{got:?}");
    rig::until("the upstream", || upstream.is_idle()).await;
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let gateway = Gateway::start(&url, r#"{"first_byte_timeout_ms": 200}"#);
    let sent = request("POST", &gateway.url("/v1/messages"), messages(true));
    send(&client(false), sent).await.assert_error(504, "timeout_error", "");
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_upstream() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let client = client(false);
    let (response, mut out, _) = stream(&client, &gateway, &mut outs).await;
    let large = chunk(&"x".repeat(64 << 10));
    let mut sent = 0;
    // The sockets between here and there take some megabytes; then the pieces must wait.
    while sent < 1000 {
        let send = out.send_data(large.clone());
        if tokio::time::timeout(Duration::from_millis(500), send).await.is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 600, "{sent} pieces of 64 KiB were taken");
    let (resident, _) = gateway.figures().unwrap_or_default();
    println!("stopped after {sent} x 64 KiB; resident {} KiB", resident / 1024);
    assert!(resident < 100 << 20, "{resident}");
    let rest = tokio::spawn(rig::read(response));
    out.send_data(finish()).await.unwrap();
    drop(out);
    let rest = rest.await.unwrap();
    assert!(rest.body.contains("event: message_stop"), "{} bytes", rest.body.len());
    assert!(rest.body.len() > sent * (64 << 10), "{} bytes of {sent} pieces", rest.body.len());
}

#[tokio::test]
async fn answers_that_are_collected_are_limited_together() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), r#"{"buffered_bytes_max": 100000}"#);
    let client = client(false);
    let sent = client.request(request("POST", &gateway.url("/v1/messages"), messages(false)));
    let write = async {
        let mut out = outs.recv().await.unwrap();
        let _ = out.send_data(Bytes::from("{\"x\":\"")).await;
        while out.send_data(Bytes::from("x".repeat(10_000))).await.is_ok() {}
    };
    let (response, ()) = rig::soon("529", async { tokio::join!(sent, write) }).await;
    rig::read(response.unwrap()).await.assert_error(529, "overloaded_error", "");
}

#[tokio::test]
async fn stopping_waits_for_streams_and_takes_no_new_connections() {
    let (upstream, mut outs) = Upstream::written().await;
    for (signal, http2) in [("-TERM", false), ("-INT", true)] {
        let mut gateway = Gateway::start(&upstream.url(), "{}");
        let client = client(http2);
        let (mut response, mut out, mut seen) = stream(&client, &gateway, &mut outs).await;
        gateway.signal(signal);
        rig::until("the log", || gateway.log().contains("stopping")).await;
        rig::until("the port", || std::net::TcpStream::connect(gateway.address).is_err()).await;
        out.send_data(chunk("Two")).await.unwrap();
        rig::read_until(&mut response, &mut seen, "Two").await;
        out.send_data(finish()).await.unwrap();
        drop(out);
        assert!(rig::read(response).await.body.contains("event: message_stop"));
        let status = tokio::task::spawn_blocking(move || gateway.child.wait()).await.unwrap();
        assert!(status.unwrap().success());
    }
}

#[tokio::test]
async fn stopping_cuts_what_takes_too_long() {
    let (upstream, mut outs) = Upstream::written().await;
    let args = ["--upstream", &upstream.url(), "--shutdown-timeout", "1"];
    let mut gateway = Gateway::start_with(&args, "{}", &[]);
    let client = client(false);
    let (response, out, _) = stream(&client, &gateway, &mut outs).await;
    gateway.signal("-TERM");
    assert!(!rig::read(response).await.complete, "a cut stream must not look complete");
    rig::until("the upstream", || upstream.open.load(Ordering::SeqCst) == 0).await;
    drop(out);
    assert!(gateway.child.wait().unwrap().success());
    // It has its line all the same.
    let line = r#""status":499,"outcome":"abandoned""#;
    rig::until("the log line", || gateway.lines(line).len() == 1).await;
}

#[tokio::test]
async fn a_second_signal_cuts_the_streams_of_all_threads() {
    let (upstream, mut outs) = Upstream::written().await;
    let mut gateway = Gateway::start(&upstream.url(), "{}");
    let mut open = Vec::new();
    for _ in 0..5 {
        let client = client(false);
        let opened = stream(&client, &gateway, &mut outs).await;
        open.push((client, opened));
    }
    gateway.signal("-TERM");
    rig::until("the log", || gateway.log().contains("stopping; 5 connections")).await;
    // What started it may hand on what a terminal has sent it already: that is the same signal.
    gateway.signal("-TERM");
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!gateway.log().contains("stopped"), "{}", gateway.log());
    gateway.signal("-TERM");
    for (_, (response, out, _)) in open {
        assert!(!rig::read(response).await.complete);
        drop(out);
    }
    assert!(gateway.child.wait().unwrap().success());
    rig::until("the log lines", || gateway.lines(r#""outcome":"abandoned""#).len() == 5).await;
    assert!(gateway.log().contains("stopped at once"));
}

#[tokio::test]
async fn one_of_several_upstreams_is_chosen_by_the_model() {
    let first = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let second = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let config = format!(
        r#"{{"upstreams": {{"a": {{"url": "http://{}"}}, "b": {{"url": "http://{}", "base_path": "/b/v2"}}}},
            "models": {{"claude-x": {{"upstream": "b", "model": "qwen"}}, "*": {{"upstream": "a"}}}}}}"#,
        first.address, second.address
    );
    let gateway = Gateway::start_with(&[], &config, &[]);
    let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
    assert_eq!(send(&client(false), sent).await.status, 200);
    assert_eq!(second.last().path, "/b/v2/chat/completions");
    let asked: serde_json::Value = serde_json::from_str(&second.last().body).unwrap();
    assert_eq!(asked["model"], "qwen");
    let other = messages(false).replace("claude-x", "other");
    let sent = request("POST", &gateway.url("/v1/messages"), other);
    assert_eq!(send(&client(false), sent).await.status, 200);
    assert_eq!(first.last().path, "/v1/chat/completions");
}

#[tokio::test]
async fn a_stream_that_ended_well_leaves_its_upstreams_connection() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let client = client(false);
    for _ in 0..6 {
        let (response, mut out, _) = stream(&client, &gateway, &mut outs).await;
        out.send_data(finish()).await.unwrap();
        // The client has its end now; the upstream's last chunk comes in a packet of its own.
        assert!(rig::read(response).await.complete);
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(out);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A machine that is busy may miss some.
    let connections = upstream.connections.load(Ordering::SeqCst);
    assert!(connections < 4, "{connections} connections for 6 streams");
}

#[tokio::test]
async fn a_stream_that_goes_on_after_its_end_is_not_read_for_long() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let (response, mut out, _) = stream(&client(false), &gateway, &mut outs).await;
    out.send_data(finish()).await.unwrap();
    assert!(rig::read(response).await.complete);
    let going_on =
        async { while out.send_data(Bytes::from_static(b": still\n\n")).await.is_ok() {} };
    rig::soon("the upstream's connection is closed", going_on).await;
}
