//! Health and gauges of a gateway that runs.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::rig::{self, Gateway, Got, Upstream, chunk, client, finish, messages, request, send};

async fn get(gateway: &Gateway, path: &str) -> Got {
    let mut sent = request("GET", &gateway.url(path), "");
    sent.headers_mut().remove("x-api-key");
    send(&client(false), sent).await
}

/// The value of a gauge; `None` if it is absent.
async fn gauge(gateway: &Gateway, name: &str) -> Option<u64> {
    let text = get(gateway, "/metrics").await.body;
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")))?;
    Some(value.parse().unwrap())
}

/// Waits until a gauge has a value.
async fn becomes(gateway: &Gateway, name: &str, value: u64) {
    let all = async {
        while gauge(gateway, name).await != Some(value) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    rig::soon(&format!("{name} {value}"), all).await;
}

#[tokio::test]
async fn gauges_tell_what_runs_and_nothing_when_it_is_over() {
    let (upstream, mut outs) = Upstream::written().await;
    let gateway = Gateway::start(&upstream.url(), "{}");
    let running = ["creole_gateway_requests_running", "creole_gateway_streams_running"];
    for name in running {
        assert_eq!(gauge(&gateway, name).await, Some(0));
    }
    let reachable = r#"creole_gateway_upstream_reachable{upstream="default"}"#;
    assert_eq!(gauge(&gateway, reachable).await, None);
    let http = client(false);
    let mut answers = Vec::new();
    for _ in 0..3 {
        let sent = http.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
        let first = async {
            let mut out = outs.recv().await.unwrap();
            out.send_data(chunk("One")).await.unwrap();
            out
        };
        let (response, out) = rig::soon("the head", async { tokio::join!(sent, first) }).await;
        answers.push((response.unwrap(), out));
    }
    for name in running {
        becomes(&gateway, name, 3).await;
    }
    assert!(gauge(&gateway, "creole_gateway_connections").await.unwrap() >= 3);
    let held = gauge(&gateway, "creole_gateway_held_bytes").await.unwrap();
    let max = gauge(&gateway, "creole_gateway_held_bytes_max").await.unwrap();
    assert!(held > 0 && max == 256 << 20, "{held} of {max}");
    assert_eq!(gauge(&gateway, reachable).await, Some(1));
    assert_eq!(gauge(&gateway, "creole_gateway_shutting_down").await, Some(0));
    for (response, mut out) in answers {
        out.send_data(finish()).await.unwrap();
        drop(out);
        assert!(rig::read(response).await.complete);
    }
    for name in running {
        becomes(&gateway, name, 0).await;
    }
}

#[tokio::test]
async fn a_gateway_is_ready_while_its_upstream_can_be_reached_and_asks_it_again() {
    let gone = rig::nobody().await;
    let config = r#"{"client_keys": [{"env": "TEAM"}], "upstreams": {"default": {"key": "none"}}}"#;
    let args = ["--upstream", &gone, "--metrics", "127.0.0.1:0"];
    let gateway = Gateway::start_with(&args, config, &[("TEAM", "sk-client")]);
    assert_eq!(get(&gateway, "/readyz").await.status, 200);
    let asked = request("POST", &gateway.url("/v1/messages"), messages(false));
    assert_eq!(send(&client(false), asked).await.status, 502);
    let not_ready = get(&gateway, "/readyz").await;
    assert_eq!(not_ready.status, 503, "{not_ready:?}");
    let upstreams = r#""upstreams":{"default":"unreachable"}"#;
    assert!(not_ready.body.contains("no upstream can be reached"), "{not_ready:?}");
    assert!(!not_ready.body.contains("upstreams"), "a stranger reads a name: {not_ready:?}");
    let mut asked = request("GET", &gateway.url("/readyz"), "");
    asked.headers_mut().insert("x-api-key", "sk-client".parse().unwrap());
    let told = send(&client(false), asked).await;
    assert!(told.body.contains(upstreams), "{told:?}");
    assert_eq!(get(&gateway, "/healthz").await.status, 200);
    // The address of the metrics has the same.
    rig::until("the line", || !gateway.lines("metrics on http://").is_empty()).await;
    let line = gateway.lines("metrics on http://").remove(0);
    let (_, rest) = line.split_once("metrics on ").unwrap();
    let url = rest.split("/metrics").next().unwrap();
    for (path, status) in [("/readyz", 503), ("/healthz", 200), ("/metrics", 200), ("/", 404)] {
        let got = send(&client(false), request("GET", &format!("{url}{path}"), "")).await;
        assert_eq!(got.status, status, "{path}");
    }
    let address = gone.trim_start_matches("http://").split('/').next().unwrap();
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let ready = async {
        while get(&gateway, "/readyz").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    rig::soon("readiness", ready).await;
    assert!(!gateway.lines("upstream default answers again").is_empty());
}
