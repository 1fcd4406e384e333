//! Connections to upstreams that count the bytes received on them.
//!
//! A server may close a kept connection at the moment when a request is written to it. In that case
//! no byte of an answer arrives, and the request can be sent again on a new connection. A server
//! that closes later may have worked on the request, which is then not sent again.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use creole::Config;
use creole::config::ClientCertificate;
use hyper::Uri;
use hyper::http::Extensions;
use hyper::http::uri::Scheme;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{
    CaptureConnection, Connected, Connection, HttpConnector,
};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tower_service::Service;

use crate::upstream::dns::Resolver;
use crate::upstream::proxy::{self, Proxies};
use crate::upstream::tls_identity::Identity;
use crate::upstream::wire::{ConnectError, Wire};

/// Maximum time from sending a request on a kept connection to the connection's end, for which the
/// server may have closed the connection without seeing the request.
const RACE_MAX: Duration = Duration::from_secs(2);

/// Number of bytes received on one connection.
#[derive(Clone, Debug, Default)]
struct ReceivedBytes(Arc<AtomicU64>);

/// A connection, and the number of bytes received on it before a request was sent.
#[derive(Debug)]
pub(crate) struct Given {
    received: ReceivedBytes,
    before: u64,
    began: Instant,
}

impl Given {
    /// Returns the connection that was chosen for a request, once there is one. Must be called
    /// before the request is written.
    pub(crate) fn of(captured: &CaptureConnection) -> Option<Self> {
        let received = ReceivedBytes::of(captured)?;
        let before = received.0.load(Ordering::Relaxed);
        Some(Self { received, before, began: Instant::now() })
    }

    /// Returns true if the connection served an earlier request, received no byte since, and closed
    /// so soon that the server cannot have worked on this request. A request that could not be
    /// written was moved to another connection, about which nothing is known.
    pub(crate) fn was_reused_in_vain(&self, captured: &CaptureConnection) -> bool {
        let is_last =
            |last: ReceivedBytes| Arc::ptr_eq(&last.0, &self.received.0) && self.before > 0;
        ReceivedBytes::of(captured).is_some_and(is_last)
            && self.received.0.load(Ordering::Relaxed) == self.before
            && self.began.elapsed() < RACE_MAX
    }
}

impl ReceivedBytes {
    fn of(captured: &CaptureConnection) -> Option<Self> {
        let mut found = Extensions::new();
        captured.connection_metadata().as_ref()?.get_extras(&mut found);
        found.remove()
    }
}

/// Connector that opens connections to upstreams.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    http: HttpConnector<Resolver>,
    /// Connector that connects to names only at their public addresses.
    public: HttpConnector<Resolver>,
    /// Connector to proxies, at any address.
    to_proxy: HttpConnector<Resolver>,
    tls: Arc<ClientConfig>,
    /// TLS with a client certificate, by the authority of the upstream's URL.
    identified: Arc<HashMap<String, Arc<ClientConfig>>>,
    pub(crate) proxies: Proxies,
    /// Proxies for what clients name, which resolve the names.
    proxies_of_clients: Proxies,
    tap: Option<Tap>,
}

/// Copy of the bytes received on connections, unchanged, for `creole check`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap(Arc<Mutex<Vec<u8>>>);

/// Maximum number of received bytes that a `Tap` keeps.
const TAP_BYTES_MAX: usize = 1 << 20;

impl Tap {
    /// Returns the bytes that connections received since the last call of this function.
    pub(crate) fn take(&self) -> Vec<u8> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = TAP_BYTES_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

type Connecting =
    Pin<Box<dyn Future<Output = Result<TokioIo<CountedStream>, ConnectError>> + Send>>;

impl Connector {
    /// Returns a connector. `public` connects to names only at public addresses.
    pub(crate) fn new(
        http: HttpConnector<Resolver>,
        public: HttpConnector<Resolver>,
        tls: ClientConfig,
        proxies: Proxies,
    ) -> Self {
        Self {
            to_proxy: http.clone(),
            http,
            public,
            tls: Arc::new(tls),
            identified: Arc::default(),
            proxies,
            proxies_of_clients: Proxies::default(),
            tap: None,
        }
    }

    /// Returns a connector that connects to names only at public addresses. Numeric addresses in a
    /// URL are not checked.
    pub(crate) fn to_public_names(&self) -> Self {
        Self {
            http: self.public.clone(),
            identified: Arc::default(),
            proxies: self.proxies_of_clients.clone(),
            ..self.clone()
        }
    }

    /// Returns a connector that uses the proxies also for what clients name on the web.
    pub(crate) fn with_proxies_for_clients(self) -> Self {
        Self { proxies_of_clients: self.proxies.clone(), ..self }
    }

    /// Returns true if the connector uses proxies also for what clients name.
    pub(crate) fn has_proxies_for_clients(&self) -> bool {
        self.proxies_of_clients.is_any()
    }

    /// Returns a connector that sends the certificates which the upstreams of a configuration want.
    ///
    /// # Errors
    /// A file cannot be used, or two upstreams of one server want different certificates.
    pub(crate) fn with_certificates(self, config: &Config) -> Result<Self, String> {
        let (mut identified, mut chosen) = (HashMap::new(), HashMap::new());
        for upstream in config.upstreams.values() {
            let (name, wanted) = (&upstream.name, &upstream.client_certificate);
            let Ok(uri) = upstream.url.parse::<Uri>() else { continue };
            let authority = authority(&uri);
            if *chosen.entry(authority.clone()).or_insert(wanted) != wanted {
                return Err(format!(
                    "upstreams.{name}.client_certificate: another upstream has another one for {authority}"
                ));
            }
            if *wanted == ClientCertificate::default() {
                continue;
            }
            let files = (Path::new(&wanted.certificate), Path::new(&wanted.key));
            let identity = Identity::load(files.0, files.1)
                .map_err(|reason| format!("upstreams.{name}.client_certificate: {reason}"))?;
            let mut tls = ClientConfig::clone(&self.tls);
            tls.client_auth_cert_resolver = identity;
            identified.insert(authority, Arc::new(tls));
        }
        Ok(Self { identified: Arc::new(identified), ..self })
    }

    /// Returns a connector for servers that are no upstreams, which sends no certificate.
    pub(crate) fn without_certificates(&self) -> Self {
        Self { identified: Arc::default(), ..self.clone() }
    }

    pub(crate) fn with_tap(self, tap: Tap) -> Self {
        Self { tap: Some(tap), ..self }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<CountedStream>;
    type Error = ConnectError;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let known = (!self.identified.is_empty()).then(|| self.identified.get(&authority(&uri)));
        let tls = Arc::clone(known.flatten().unwrap_or(&self.tls));
        let (http, tap, proxy) = (self.http.clone(), self.tap.clone(), self.proxies.of(&uri));
        let to_proxy = (self.to_proxy.clone(), Arc::clone(&self.tls));
        Box::pin(async move {
            let is_forwarded = proxy.is_some() && uri.scheme() == Some(&Scheme::HTTP);
            let stream = match proxy {
                Some(proxy) => proxy::connect(proxy, to_proxy.into(), tls, uri).await?,
                None => Box::new(HttpsConnector::from((http, tls)).call(uri).await?),
            };
            let received = ReceivedBytes::default();
            let stream = TokioIo::new(stream);
            Ok(TokioIo::new(CountedStream { stream, received, is_forwarded, tap }))
        })
    }
}

/// Returns host and port of a URL.
fn authority(uri: &Uri) -> String {
    let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    format!("{host}:{}", uri.port_u16().unwrap_or(usual))
}

/// Connection to an upstream that counts the received bytes.
#[derive(Debug)]
pub(crate) struct CountedStream {
    stream: TokioIo<Box<dyn Wire>>,
    received: ReceivedBytes,
    /// True if a proxy gets the requests themselves, without a tunnel.
    is_forwarded: bool,
    tap: Option<Tap>,
}

impl Connection for CountedStream {
    fn connected(&self) -> Connected {
        let connected = self.stream.inner().connected().extra(self.received.clone());
        connected.proxy(self.is_forwarded)
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        if let Some(tap) = &self.tap {
            tap.add(buffer.filled().get(before..).unwrap_or_default());
        }
        self.received.0.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }
}
