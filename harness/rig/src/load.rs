//! Load test with many concurrent streams, some cut by the upstream and some by the client at
//! various moments. No stream may hang.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;

use crate::{EVENT_STREAM, Upstream, chunk, finish, soon};

/// Number of concurrent streams in one wave.
pub const STREAMS: usize = 500;
const PIECES: u64 = 40;
/// Time that each stream waits before its first chunk, so that all streams run at the same time.
const GATHERING: Duration = Duration::from_millis(1500);

/// Returns a pseudo-random number, different for each stream, but the same in each run.
fn scattered(index: usize, salt: u64) -> u64 {
    let mut number = (index as u64 ^ (salt << 32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        number = (number ^ (number >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    number >> 8
}

/// Starts an upstream that cuts every third stream at some chunk.
pub async fn upstream() -> Upstream {
    let count = AtomicUsize::new(0);
    Upstream::start(move |_, mut out| {
        let index = count.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            tokio::time::sleep(GATHERING).await;
            let cut_after = if index % 3 == 2 { scattered(index, 2) % PIECES } else { PIECES };
            for piece in 0..cut_after {
                let pause = scattered(index, piece + 3) % 60;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                if out.send_data(chunk("some text")).await.is_err() {
                    return;
                }
            }
            if cut_after == PIECES {
                let _ = out.send_data(finish()).await;
            } else {
                out.abort("cut".into());
            }
        });
        (200, EVENT_STREAM)
    })
    .await
}

/// Numbers of streams in one wave, by how the streams ended for their clients.
#[derive(Debug, Default)]
pub struct Ends {
    complete: AtomicUsize,
    error_event: AtomicUsize,
    http_error: AtomicUsize,
    left: AtomicUsize,
}

impl Ends {
    /// Counts how a stream ends, as `read` reports. Every third client disconnects early: while it
    /// connects, or within `leaves_within_ms` after all streams run.
    pub async fn count<'e>(
        &'e self,
        index: usize,
        leaves_within_ms: u64,
        read: impl Future<Output = &'e AtomicUsize>,
    ) {
        let end = if index % 3 == 1 {
            // Some clients leave while they connect, the others when all streams run.
            let least = if index % 15 == 1 { 0 } else { GATHERING.as_millis() as u64 };
            let moment = Duration::from_millis(least + scattered(index, 1) % leaves_within_ms);
            tokio::time::timeout(moment, read).await.unwrap_or(&self.left)
        } else {
            soon("a stream", read).await
        };
        end.fetch_add(1, Ordering::SeqCst);
    }

    /// Reads an answer to its end, and returns the counter for this kind of end. Panics if the
    /// client is not told how the answer ended.
    pub async fn read(&self, response: &mut Response<Incoming>) -> &AtomicUsize {
        if response.status() != 200 {
            assert_eq!(response.status(), 502);
            return &self.http_error;
        }
        let mut seen = String::new();
        while let Some(frame) = response.body_mut().frame().await {
            let frame = frame.expect("a host must not cut a stream");
            seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        if seen.ends_with("data: {\"type\":\"message_stop\"}\n\n") {
            return &self.complete;
        }
        assert!(seen.contains("event: error\n"), "a stream just ended: {seen}");
        &self.error_event
    }

    /// Checks that every stream has ended, with many streams in each expected kind of end.
    pub fn check(&self) {
        let count = |end: &AtomicUsize| end.load(Ordering::SeqCst);
        let many = [&self.complete, &self.error_event, &self.left].map(count);
        assert_eq!(many.iter().sum::<usize>() + count(&self.http_error), STREAMS);
        assert!(many.iter().all(|many| *many > 50), "{self:?}");
    }
}
