//! Closed-loop load: a number of clients, each with a connection of its own, and each sending the
//! next request when the last one is answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bodies::{self, FIRST, LAST};
use crate::plan::{Scenario, Target};

/// Maximum time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Times of one answer, measured from the sending of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Time until the first word of the answer.
    pub(crate) first: Duration,
    /// Time until the end of the answer.
    pub(crate) whole: Duration,
}

/// Results of a loop of requests.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    pub(crate) answers: Vec<Sample>,
    pub(crate) failed: usize,
    /// Reason why the first failed request failed.
    pub(crate) reason: Option<String>,
}

/// Runs this many clients until the time is over; each sends at least one request.
pub(crate) async fn run(
    target: &Target,
    scenario: Scenario,
    clients: usize,
    time: Duration,
) -> Loop {
    let body = bodies::request(scenario, target.dialect);
    let until = Instant::now().checked_add(time);
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let (target, body) = (target.clone(), body.clone());
        running.spawn(async move {
            let mut done = Loop::default();
            let mut connection = None;
            loop {
                match timeout(PATIENCE, ask(&mut connection, &target, scenario, &body)).await {
                    Ok(Ok(sample)) => done.answers.push(sample),
                    failed => {
                        connection = None;
                        done.failed = done.failed.saturating_add(1);
                        let reason = match failed {
                            Ok(Err(error)) => format!("{error:#}"),
                            _ => format!("no answer after {} s", PATIENCE.as_secs()),
                        };
                        done.reason.get_or_insert(reason);
                    }
                }
                if until.is_none_or(|until| Instant::now() >= until) {
                    return done;
                }
            }
        });
    }
    let mut all = Loop::default();
    while let Some(done) = running.join_next().await {
        let Ok(done) = done else { continue };
        all.answers.extend(done.answers);
        all.failed = all.failed.saturating_add(done.failed);
        all.reason = all.reason.or(done.reason);
    }
    all
}

type Connection = SendRequest<Full<Bytes>>;

async fn ask(
    connection: &mut Option<Connection>,
    target: &Target,
    scenario: Scenario,
    body: &Bytes,
) -> Result<Sample> {
    if connection.as_ref().is_none_or(Connection::is_closed) {
        *connection = Some(connect(target.address).await?);
    }
    let sender = connection.as_mut().context("no connection")?;
    sender.ready().await?;
    let request = Request::post(target.dialect.path())
        .header("host", target.address.to_string())
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("x-api-key", "sk-load")
        .body(Full::new(body.clone()))?;
    let since = Instant::now();
    let mut answer = sender.send_request(request).await?;
    let status = answer.status();
    let (mut text, mut first, mut seen) = (Vec::new(), None, 0_usize);
    while let Some(frame) = answer.frame().await {
        let frame = frame?;
        let Some(data) = frame.data_ref() else { continue };
        text.extend_from_slice(data);
        if first.is_none() {
            // The first word of the answer may be cut between two frames.
            let from = seen.saturating_sub(FIRST.len());
            if contains(text.get(from..).unwrap_or_default(), FIRST) {
                first = Some(since.elapsed());
            }
            seen = text.len();
        }
    }
    let whole = since.elapsed();
    let complete =
        contains(&text, LAST) && (!scenario.streams() || contains(&text, target.dialect.end()));
    let Some(first) = first.filter(|_| status.is_success() && complete) else {
        let start = text.get(..300).unwrap_or(&text);
        bail!("{status}, {} bytes: {}", text.len(), String::from_utf8_lossy(start));
    };
    Ok(Sample { first, whole })
}

async fn connect(address: SocketAddr) -> Result<Connection> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends the demo model its script of answers.
pub(crate) async fn teach(upstream: SocketAddr) -> Result<()> {
    let mut sender = connect(upstream).await?;
    let request = Request::post("/demo/script")
        .header("host", upstream.to_string())
        .body(Full::new(Bytes::from(bodies::script().to_string())))?;
    let answer = sender.send_request(request).await?;
    if !answer.status().is_success() {
        bail!("the demo model refuses its script: {}", answer.status());
    }
    Ok(())
}

fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|window| window == word.as_bytes())
}
