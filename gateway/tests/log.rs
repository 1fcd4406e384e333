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
    let client = client(false);
    for _ in 0..2000 {
        assert_eq!(send(&client, request("GET", &gateway.url("/"), "")).await.status, 200);
    }
    let lost = tokio::task::spawn_blocking(|| {
        let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
        lines.find(|line| line.contains("lines of the log were lost")).unwrap()
    });
    // Its last lines find room again.
    gateway.signal("-TERM");
    let line = rig::soon("the count of lost lines", lost).await.unwrap();
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["level"], "warn", "{line}");
    assert!(ended(&mut gateway).await.success());
}
