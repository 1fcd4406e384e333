//! The most memory that the gateway takes, while clients and upstreams make it hold as much as they
//! can.
// Helpers outside of #[test] functions fail like tests do.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod rig;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use rig::{COMPLETION, EVENT_STREAM, Gateway, Upstream, chunk, client, messages, request, send};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MIB: u64 = 1 << 20;

/// Small, so that a test can fill them.
const REQUEST_MIB: u64 = 2;
const ANSWER_MIB: u64 = 4;
const BUFFERED_MIB: u64 = 24;

/// As docs/gateway.md has it: `buffered_bytes_max` twice, translations, connections, and what there
/// is at rest.
fn documented(connections: u64) -> u64 {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let threads = threads.clamp(2, 8);
    let largest = REQUEST_MIB.max(ANSWER_MIB);
    let translations = threads.div_ceil(4) * 8 * largest + threads * 8 * largest.min(2);
    (32 + 2 * BUFFERED_MIB + translations) * MIB + connections * 384 * 1024
}

/// What the upstream does is in the model's name.
async fn upstream() -> Upstream {
    Upstream::start(|asked, mut out| {
        let does = |what: &str| asked.body.contains(&format!(r#""model":"{what}""#));
        let whole = format!(
            r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":"{}"}}}}]}}"#,
            "z".repeat(3 << 20)
        );
        let (event, unread, silent) = (does("event"), does("unread"), does("silent"));
        tokio::spawn(async move {
            if silent {
                tokio::time::sleep(Duration::from_secs(60)).await;
            } else if unread {
                let _ = out.send_data(Bytes::from(whole)).await;
            } else if event {
                let _ = out.send_data(chunk("a")).await;
                for _ in 0..40 {
                    if out.send_data(Bytes::from(vec![b'x'; 50_000])).await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_secs(60)).await;
            } else {
                let _ = out.send_data(Bytes::from(COMPLETION)).await;
            }
        });
        (200, if event { EVENT_STREAM } else { "application/json" })
    })
    .await
}

fn asking(model: &str, stream: bool) -> String {
    messages(stream).replace("claude-x", model)
}

/// Sends this and keeps the connection, reading all of the answer or none.
async fn keep(gateway: &Gateway, sent: Vec<u8>, reads: bool) -> tokio::task::JoinHandle<()> {
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    tokio::spawn(async move {
        // The gateway may refuse it on the way.
        let _ = client.write_all(&sent).await;
        if reads {
            let _ = client.read_to_end(&mut Vec::new()).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
}

fn post(extra: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\n{extra}content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A body of many small messages, as large as may be.
fn small_messages() -> String {
    let count = (REQUEST_MIB * MIB) as usize / 50 - 40;
    let pair = r#"{"role":"user","content":"x"},{"role":"assistant","content":"y"},"#;
    let many = pair.repeat(count.min(70_000) * 50 / pair.len());
    format!(r#"{{"model":"m","max_tokens":9,"messages":[{many}{{"role":"user","content":"x"}}]}}"#)
}

/// Sends requests in streams of one connection that end in the middle of their bodies, or before
/// their answers.
async fn resets(url: String) {
    let (unfinished, whole) = (rig::without_end(true), client(true));
    loop {
        let mut sent = Vec::new();
        for _ in 0..20 {
            sent.push(tokio::spawn(unfinished(url.clone(), "k", 100_000)));
        }
        let silent = || request("POST", &url, asking("silent", true));
        let asks: Vec<_> = (0..20).map(|_| tokio::spawn(whole.request(silent()))).collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        sent.iter().for_each(tokio::task::JoinHandle::abort);
        asks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Holds hundreds of streams with small bodies that do not end.
async fn streams(url: String) {
    loop {
        let send = rig::without_end(true);
        let sent: Vec<_> = (0..900).map(|_| tokio::spawn(send(url.clone(), "k", 30_000))).collect();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        sent.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Heads that cost nothing on the wire, once they were sent: HTTP/2 repeats them by number.
async fn repeated_heads(url: String) {
    let client = client(true);
    let asks: Vec<_> = (0..400)
        .map(|_| {
            let mut asked: Request<Full<Bytes>> = request("POST", &url, asking("silent", true));
            for _ in 0..14 {
                asked.headers_mut().append("x-a", "b".repeat(3700).parse().unwrap());
            }
            tokio::spawn(client.request(asked))
        })
        .collect();
    for ask in asks {
        let _ = ask.await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_peak_is_what_the_page_says_under_several_attacks_at_once() {
    let upstream = upstream().await;
    let config = format!(
        r#"{{"request_bytes_max": {}, "response_bytes_max": {}, "buffered_bytes_max": {}}}"#,
        REQUEST_MIB * MIB,
        ANSWER_MIB * MIB,
        BUFFERED_MIB * MIB
    );
    let gateway = Gateway::start(&upstream.url(), &config);
    let Some(at_rest) = gateway.peak() else { return };
    let url = gateway.url("/v1/messages");
    let mut kept = Vec::new();
    let at_once = [
        tokio::spawn(repeated_heads(url.clone())),
        tokio::spawn(resets(url.clone())),
        tokio::spawn(streams(url.clone())),
    ];
    let many = small_messages().into_bytes();
    for _ in 0..100 {
        // They claim what does not come.
        kept.push(keep(&gateway, post("", 2_000_000, b"{"), true).await);
    }
    for _ in 0..16 {
        let trickling = vec![b' '; 1_900_000];
        kept.push(keep(&gateway, post("", 2_000_000, &trickling), true).await);
        let unfinished =
            [b"GET / HTTP/1.1\r\nhost: x\r\nx-a: ".as_slice(), &[b'a'; 100_000]].concat();
        kept.push(keep(&gateway, unfinished, true).await);
        let head = format!("x-a: {}\r\n", "a".repeat(100_000));
        let silent = asking("silent", true);
        kept.push(keep(&gateway, post(&head, silent.len(), silent.as_bytes()), true).await);
        let event = asking("event", true);
        kept.push(keep(&gateway, post("", event.len(), event.as_bytes()), true).await);
        let unread = asking("unread", false);
        kept.push(keep(&gateway, post("", unread.len(), unread.as_bytes()), false).await);
        kept.push(keep(&gateway, post("", many.len(), &many), true).await);
    }
    // Small requests are answered meanwhile, or told to come again.
    let (since, small) = (Instant::now(), client(false));
    let (mut answered, mut asked) = (0, 0);
    while since.elapsed() < Duration::from_secs(4) {
        let got = send(&small, request("POST", &url, messages(false))).await;
        assert!([200, 529].contains(&got.status.as_u16()), "{got:?}");
        (asked, answered) = (asked + 1, answered + usize::from(got.status == 200));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let peak = gateway.peak().unwrap();
    let documented = documented(kept.len() as u64 + 6);
    println!(
        "at rest {} MiB, peak {} MiB of {} MiB; {answered} of {asked} small requests were answered",
        at_rest / MIB,
        peak / MIB,
        documented / MIB
    );
    assert!(peak <= documented, "{peak} of {documented} bytes");
    assert!(answered > 0 && answered * 10 >= asked * 9, "{answered} of {asked}");
    at_once.iter().for_each(tokio::task::JoinHandle::abort);
}
