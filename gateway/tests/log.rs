//! A log that takes no lines, and the requests that must not care.
// Helpers outside of #[test] functions fail like tests do.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![cfg(unix)]

mod rig;

use std::io::{BufRead as _, BufReader};
use std::process::ExitStatus;

use rig::{COMPLETION, Gateway, Upstream, client, messages, request, send};

async fn ended(gateway: &mut Gateway) -> ExitStatus {
    let ended = async {
        loop {
            if let Some(status) = gateway.child.try_wait().unwrap() {
                break status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    rig::soon("the end of the process", ended).await
}

#[tokio::test]
async fn a_log_that_cannot_be_written_costs_no_request() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let (reader, writer) = std::io::pipe().unwrap();
    let args = ["--upstream", &upstream.url()];
    let mut gateway = Gateway::start_logging_to(writer.into(), &args, "{}", &[]);
    // As a collector of logs that died.
    drop(reader);
    for _ in 0..3 {
        let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        assert_eq!(send(&client(false), sent).await.status, 200);
    }
    gateway.signal("-TERM");
    assert!(ended(&mut gateway).await.success());
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_no_request_and_counts_what_it_lost() {
    let upstream = Upstream::answering(200, "application/json", COMPLETION).await;
    let (reader, writer) = std::io::pipe().unwrap();
    let args = ["--upstream", &upstream.url()];
    let mut gateway = Gateway::start_logging_to(writer.into(), &args, "{}", &[]);
    // More than a pipe and the queue before it have room for.
    const SENT: u64 = 2000;
    let client = client(false);
    for _ in 0..SENT {
        assert_eq!(send(&client, request("GET", &gateway.url("/"), "")).await.status, 200);
    }
    // While there is a reader, lines find room again.
    let read = tokio::task::spawn_blocking(|| {
        let (mut shown, mut lost) = (0, 0);
        for line in BufReader::new(reader).lines() {
            let json: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            if json["path"] == "/" {
                shown += 1;
            }
            if let Some((count, _)) = json["message"]
                .as_str()
                .and_then(|told| told.split_once(" lines of the log were lost"))
            {
                assert_eq!(json["level"], "warn", "{json}");
                lost += count.parse::<u64>().unwrap();
            }
            if lost > 0 && shown + lost == SENT {
                break;
            }
        }
        (shown, lost)
    });
    let (shown, lost) = rig::soon("the count of lost lines", read).await.unwrap();
    assert!(lost > 0 && shown + lost == SENT, "{shown} lines, {lost} lost");
    gateway.signal("-TERM");
    assert!(ended(&mut gateway).await.success());
}
