//! The gateway's own service, run in this process and called over an in-memory pipe, so that the
//! check tests exactly what is served.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use creole::Config;
use creole::config::Log;
use creole::json;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tracing::{Event, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::documents::Documents;
use crate::log::{EXCHANGE, Format, Message};
use crate::probe::look::PLACEHOLDER;
use crate::server::budget::Budget;
use crate::server::connections::Connections;
use crate::server::load::Load;
use crate::server::offload::{Offload, Translations};
use crate::server::open_calls::Means;
use crate::server::origin::Callers;
use crate::server::records::Records;
use crate::server::service::{Gateway, Seeds};
use crate::server::workers;
use crate::upstream::call::Caller;
use crate::upstream::client;
use crate::upstream::connection::Tap;
use crate::upstream::fetch::UNCALLED;
use crate::upstream::fetch_limits::FetchLimits;

/// Capacity of the in-memory pipe, in bytes.
const PIPE_BYTES: usize = 64 << 10;

/// Maximum time to wait for the log line of an exchange after its response has ended.
const LINE_TIME: Duration = Duration::from_secs(1);

/// The gateway's service in this process, with the log lines of its exchanges.
#[derive(Debug)]
pub(super) struct Inside {
    gateway: Arc<Gateway>,
    pub(super) client: client::UpstreamClient,
    lines: KeptLines,
    tap: Tap,
    patience: Duration,
}

/// A response as the client gets it, with the exchange's log line.
#[derive(Debug, Default)]
pub(super) struct ReceivedResponse {
    /// HTTP status of the response; 0 if no response came in time.
    pub(super) status: u16,
    pub(super) body: String,
    /// Time from the request until the first bytes of the response's body, and until the last
    /// bytes.
    pub(super) first: Duration,
    pub(super) whole: Duration,
    /// Log line of the exchange, as JSON.
    pub(super) line: String,
    /// Reason why a service of the server tools could not be called; empty if all could.
    pub(super) uncalled: String,
    /// Bytes that the upstream sent, as they were on the wire.
    pub(super) raw: Vec<u8>,
}

impl Inside {
    /// Starts the gateway's service in this process.
    ///
    /// # Errors
    /// The system gives no more threads, or TLS cannot be set up.
    pub(super) fn start(
        mut config: Config,
        lines: KeptLines,
        patience: Duration,
    ) -> Result<Self, String> {
        // Only this process sends requests to the service, so no client keys are needed. Upstreams
        // get the same requests.
        config.client_keys = creole::config::ClientKeys::default();
        config.settings.log = Log::Info;
        let tap = Tap::default();
        let connector = client::connector(&config)?.with_tap(tap.clone());
        let apart = Offload::start(NonZero::<usize>::MIN)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(|error| format!("cannot get random bytes: {error}"))?;
        let config = Arc::new(config);
        let means = Means {
            caller: Caller::new(&config, &connector, &Arc::default()),
            translations: Translations::new(apart),
            documents: Arc::new(Documents::new()),
            fetches: Arc::new(FetchLimits::new()),
        };
        let client = means.caller.client.clone();
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let gateway = Gateway {
            budget: Budget::new(config.settings.buffered_bytes_max),
            means: Arc::new(means),
            config,
            seeds: Arc::new(Seeds::Fresh(u128::from_ne_bytes(seed), AtomicU64::new(0))),
            records: Arc::new(Records::new(Format::Json, None)),
            refusals: Arc::default(),
            health: Arc::default(),
            callers: Arc::new(Callers::new(own, &[], false)),
            is_local: true,
            shows_metrics: false,
            tls: None,
            telemetry: None,
            load: Load::default(),
        };
        Ok(Self { gateway: Arc::new(gateway), client, lines, tap, patience })
    }

    pub(super) fn config(&self) -> &Config {
        &self.gateway.config
    }

    /// Returns the names of the models that the gateway lists.
    pub(super) async fn models(&self) -> Vec<String> {
        let received = self.ask("/v1/models", String::new()).await;
        let list = json::member(&received.body, "data").unwrap_or("[]");
        let id = |model| json::member(model, "id").and_then(json::string);
        json::elements(list).filter_map(id).map(|id| id.decode().into_owned()).collect()
    }

    /// Sends a request as a client of the Messages API does. Without a body, the method is `GET`.
    pub(super) async fn ask(&self, path: &str, body: String) -> ReceivedResponse {
        self.lines.clear();
        self.tap.take();
        let began = Instant::now();
        let mut received = ReceivedResponse::default();
        let asked =
            tokio::time::timeout(self.patience, self.send(path, body, began, &mut received));
        if asked.await.is_err() {
            received.status = 0;
            received.body = String::new();
        }
        received.whole = began.elapsed();
        received.line = self.lines.last().await;
        received.uncalled = self.lines.with(|kept| kept.uncalled.clone());
        received.raw = self.tap.take();
        received
    }

    async fn send(
        &self,
        path: &str,
        body: String,
        began: Instant,
        received: &mut ReceivedResponse,
    ) {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let gateway = Arc::clone(&self.gateway);
        let Some(client) = Connections::new(1).client() else { return };
        let service = service_fn(move |request| gateway.answer(request, client.begin()));
        let serving = workers::builder().serve_connection(TokioIo::new(far), service).into_owned();
        tokio::spawn(serving);
        let Ok((mut sender, connection)) = http1::handshake(TokioIo::new(near)).await else {
            return;
        };
        tokio::spawn(connection);
        let method = if body.is_empty() { "GET" } else { "POST" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", PLACEHOLDER)
            .body(Full::new(Bytes::from(body)));
        let Ok(request) = request else { return };
        let Ok(response) = sender.send_request(request).await else { return };
        read(response, began, received).await;
    }
}

async fn read(response: Response<Incoming>, began: Instant, received: &mut ReceivedResponse) {
    let (head, mut body) = response.into_parts();
    received.status = head.status.as_u16();
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(piece) = frame.data_ref() else { continue };
        if bytes.is_empty() {
            received.first = began.elapsed();
        }
        bytes.extend_from_slice(piece);
    }
    received.body = String::from_utf8_lossy(&bytes).into_owned();
}

impl ReceivedResponse {
    /// Returns the HTTP status of the upstream's response; 0 if the upstream sent no response.
    pub(super) fn upstream_status(&self) -> u16 {
        let status = json::member(&self.line, "upstream_status");
        status.and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// Returns the warning codes of the exchange.
    pub(super) fn warnings(&self) -> Vec<String> {
        let codes = json::member(&self.line, "warnings").and_then(json::string);
        let codes = codes.map(|codes| codes.decode().into_owned()).unwrap_or_default();
        codes
            .split(',')
            .map(|code| code.trim().to_owned())
            .filter(|code| !code.is_empty())
            .collect()
    }

    /// Returns the HTTP status at the beginning of the received bytes; 0 if there is none, as with
    /// HTTP/2.
    pub(super) fn first_status(&self) -> u16 {
        let raw = self.raw.get(..16).unwrap_or(&self.raw);
        let head = String::from_utf8_lossy(raw).into_owned();
        let mut words = head.strip_prefix("HTTP/1.").unwrap_or_default().split(' ').skip(1);
        words.next().and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// Returns true if the upstream's bytes contain this text.
    pub(super) fn came(&self, text: &str) -> bool {
        let raw = self.raw.as_slice();
        raw.windows(text.len().max(1)).any(|piece| piece == text.as_bytes())
    }
}

/// Log lines of exchanges, kept here instead of being written to standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptLines(Arc<Mutex<Kept>>);

/// Log lines of one request that are kept.
#[derive(Debug, Default)]
struct Kept {
    exchanges: Vec<String>,
    /// Reason of the last line about a service that could not be called.
    uncalled: String,
}

impl KeptLines {
    /// Makes this process collect its log lines in a list, instead of writing them to standard
    /// error.
    pub(super) fn listen() -> Self {
        let lines = Self::default();
        // If another `tracing` subscriber is set already, the check only lacks the exchanges' log
        // lines.
        let _ = Registry::default().with(lines.clone()).try_init();
        lines
    }

    fn with<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn clear(&self) {
        self.with(|kept| *kept = Kept::default());
    }

    /// Waits for the last log line, which is written when the service has dropped its exchange.
    async fn last(&self) -> String {
        let began = Instant::now();
        loop {
            let line = self.with(|kept| kept.exchanges.pop());
            if line.is_some() || began.elapsed() >= LINE_TIME {
                return line.unwrap_or_default();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl<S: Subscriber> Layer<S> for KeptLines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        let Message(message) = message;
        if event.metadata().target() == EXCHANGE {
            self.with(|kept| kept.exchanges.push(message));
        } else if let Some((_, reason)) = message.split_once(UNCALLED) {
            self.with(|kept| reason.clone_into(&mut kept.uncalled));
        }
    }
}
