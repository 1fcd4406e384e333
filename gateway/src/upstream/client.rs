//! HTTP clients for upstreams, with pooled connections and optional TLS.
//!
//! If an upstream closes a kept connection at the moment when a request is sent on it, the request
//! is sent once more on a new connection.
//!
//! The clients speak HTTP/1.1 only. If all clients shared one HTTP/2 connection, a client that does
//! not read its stream would block the others once the connection's window is full. Streams above
//! the server's limit would also have to wait.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole::config::Address;
use creole::{Config, Failure, Unreachable};
use http_body_util::{Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::PROXY_AUTHORIZATION;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{CertificateError, ClientConfig};

use crate::headers::HTTP1_BYTES_MAX;
use crate::upstream::connection::{Connector, Given};
use crate::upstream::dns::Resolver;
use crate::upstream::paced_body::{Paced, Unpassed};
use crate::upstream::proxy::{Proxies, ProxyFailed};
use crate::upstream::tls_roots;

/// Body of a request to an upstream: a translated request, or a client's body that is passed on.
type RequestBody = Either<Full<Bytes>, Paced>;

type ConnectionPool = legacy::Client<Connector, RequestBody>;

/// Maximum time to connect to an upstream's address. The core's own timeout also covers the time
/// until the model starts to answer, and is much longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which an idle connection to an upstream is closed. Uvicorn (vLLM, SGLang and most
/// Python servers) closes idle connections after five seconds, and a request must not be written to
/// a closing connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Maximum number of idle connections to one server. Further connections are closed after use, so
/// that a burst of streams does not leave hundreds of sockets behind.
const IDLE_CONNECTIONS_MAX: usize = 32;

/// Returns the connector for all connections of a configuration.
///
/// # Errors
/// TLS cannot be set up, there are no more threads, a variable names no proxy that can be used, or
/// a client certificate cannot be used; the error text is for the operator.
pub(crate) fn connector(config: &Config) -> Result<Connector, String> {
    let private = &config.settings.server_tools.private_networks;
    let no_thread = |error| format!("cannot start a thread: {error}");
    let names = Resolver::start().map_err(no_thread)?;
    let public_names = names.only_public(private).map_err(no_thread)?;
    let by = |names| {
        let mut http = HttpConnector::new_with_resolver(names);
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        http
    };
    Connector::new(by(names), by(public_names), tls()?, Proxies::from_env()?)
        .with_certificates(config)
}

/// HTTP client that sends requests to upstreams.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamClient {
    kept: ConnectionPool,
    /// Pool that opens a new connection for each request.
    new: ConnectionPool,
    proxies: Proxies,
}

/// Reason for which no server answered a request.
#[derive(Debug)]
pub(crate) enum Unanswered {
    Failed(legacy::Error),
    /// A proxy on the way does not know the user or the password.
    ProxyLogin,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(out),
            Self::ProxyLogin => out.write_str("407 Proxy Authentication Required"),
        }
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.source(),
            Self::ProxyLogin => None,
        }
    }
}

impl From<legacy::Error> for Unanswered {
    fn from(error: legacy::Error) -> Self {
        Self::Failed(error)
    }
}

impl UpstreamClient {
    /// Returns a client for a command of the command line without a configuration.
    ///
    /// # Errors
    /// The same errors as for [`connector`].
    pub(crate) fn connect() -> Result<Self, String> {
        Ok(Self::new(&connector(&Config::default())?))
    }

    /// Returns a client with its own pool of connections.
    pub(crate) fn new(connector: &Connector) -> Self {
        let pool = |connections| {
            legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_max_idle_per_host(connections)
                .http1_max_buf_size(HTTP1_BYTES_MAX)
                .build(connector.clone())
        };
        let proxies = connector.proxies.clone();
        Self { kept: pool(IDLE_CONNECTIONS_MAX), new: pool(0), proxies }
    }

    /// Sends a request that may be sent twice. If a kept connection closes at once, before any byte
    /// of an answer, the request is sent once more.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let is_forwarded = self.log_in(&mut request);
        let again = request.clone();
        let captured = capture_connection(&mut request);
        let mut sent = self.kept.request(request.map(Either::Left));
        let mut given = None;
        let answered = std::future::poll_fn(|context| {
            let polled = Pin::new(&mut sent).poll(context);
            if given.is_none() && polled.is_pending() {
                given = Given::of(&captured);
            }
            polled
        });
        let answered = match answered.await {
            Err(error) if given.is_some_and(|given| given.was_reused_in_vain(&captured)) => {
                tracing::debug!("sent once more: the upstream closed a kept connection: {error}");
                self.new.request(again.map(Either::Left)).await
            }
            answered => answered,
        };
        of_upstream(answered?, is_forwarded)
    }

    /// Sends a client's request with its body. The request is sent twice only if that is safe.
    pub(crate) async fn pass(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Unanswered> {
        // The method is safe to repeat, and no body would have to be read again.
        if request.method().is_idempotent() && request.body().is_end_stream() {
            return self.send(request.map(|_| Full::default())).await;
        }
        let is_forwarded = self.log_in(&mut request);
        of_upstream(self.kept.request(request).await?, is_forwarded)
    }

    /// Adds user and password for the proxy to a request that a proxy gets itself. Returns true if
    /// one does.
    fn log_in<B>(&self, request: &mut Request<B>) -> bool {
        let Some(login) = self.proxies.login(request.uri()) else { return false };
        if let Some(login) = login {
            request.headers_mut().insert(PROXY_AUTHORIZATION, login);
        }
        true
    }
}

/// Returns the response, unless it is a proxy's own.
fn of_upstream(
    response: Response<Incoming>,
    is_forwarded: bool,
) -> Result<Response<Incoming>, Unanswered> {
    match response.status() {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED if is_forwarded => Err(Unanswered::ProxyLogin),
        _ => Ok(response),
    }
}

/// Returns true if a URL leads to the gateway's own address, as far as that is known without a DNS
/// look-up.
pub(crate) fn is_own(url: &str, own: SocketAddr) -> bool {
    let Ok(Address { authority, .. }) = Address::parse(url) else { return false };
    let everywhere = own.ip().is_unspecified();
    match authority.parse::<SocketAddr>() {
        Ok(found) => {
            let same = found.ip() == own.ip() || (everywhere && found.ip().is_loopback());
            same && found.port() == own.port()
        }
        Err(_) => {
            let port = authority.strip_prefix("localhost:").and_then(|port| port.parse().ok());
            (everywhere || own.ip().is_loopback()) && port == Some(own.port())
        }
    }
}

fn tls() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    Ok(builder.with_root_certificates(tls_roots::trusted()).with_no_client_auth())
}

/// Returns the reason for which an upstream could not be reached, without addresses or names,
/// because clients read the reason.
pub(crate) fn reason(error: &Unanswered) -> Unreachable {
    let Unanswered::Failed(error) = error else { return Unreachable::ProxyLogin };
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut closed = !error.is_connect();
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return tls_reason(tls);
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return Unreachable::NotHttp;
        }
        // The types of these errors are private; their texts are the step that failed.
        if let Some(step) = error.to_string().strip_prefix("tunnel error: ") {
            return tunnel_reason(step);
        }
        if error.is::<ProxyFailed>() {
            return Unreachable::NoProxy;
        }
        if error.to_string().starts_with("dns error") {
            // The resolver denies names without a public address to clients.
            let inner = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            let is_denied = inner.is_some_and(|it| it.kind() == io::ErrorKind::PermissionDenied);
            return if is_denied { Unreachable::NotAllowed } else { Unreachable::NoName };
        }
        cause = error.source();
        let Some(error) = error.downcast_ref::<io::Error>() else { continue };
        match error.kind() {
            io::ErrorKind::ConnectionRefused => return Unreachable::Refused,
            io::ErrorKind::TimedOut => return Unreachable::TimedOut,
            io::ErrorKind::HostUnreachable => return Unreachable::NoHost,
            io::ErrorKind::NetworkUnreachable => return Unreachable::NoNetwork,
            _ if is_out_of_files(error) => return Unreachable::NoFiles,
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => closed = true,
            _ => {}
        }
        // An error inside of an I/O error is not its source: an error of TLS would be skipped.
        if let Some(inner) = error.get_ref() {
            cause = Some(inner);
        }
    }
    if closed { Unreachable::Closed } else { Unreachable::NotConnected }
}

/// Returns true if this process (`EMFILE`) or the system (`ENFILE`) has no free file descriptor.
/// The standard library has no names for these errors.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// Returns the failure if a client's own body, passed on to the upstream, was too slow or broke
/// off.
pub(crate) fn of_client(error: &Unanswered) -> Option<Failure> {
    let mut causes = iter::successors(error.source(), |error| (*error).source());
    Some(match causes.find_map(<dyn Error>::downcast_ref)? {
        Unpassed::TooSlow => Failure::RequestTooSlow,
        Unpassed::BrokenOff(_) => Failure::RequestIncomplete,
    })
}

/// Returns the failure for the client if an upstream could not be reached. The log gets the full
/// reason for the operator.
pub(crate) fn unreachable(upstream: &str, error: &Unanswered) -> Failure {
    let reason = reason(error);
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    tracing::warn!("upstream {upstream} could not be reached: {}: {text}", reason.words());
    Failure::Unreachable(reason)
}

/// Returns the reason for which a proxy made no tunnel.
fn tunnel_reason(step: &str) -> Unreachable {
    match step {
        "proxy authorization required" => Unreachable::ProxyLogin,
        "unsuccessful" | "proxy response headers too long" => Unreachable::ProxyRefused,
        _ => Unreachable::NoProxy,
    }
}

fn tls_reason(error: &rustls::Error) -> Unreachable {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => Unreachable::UnknownIssuer,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Unreachable::Expired
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Unreachable::OtherName
            }
            // The error's type belongs to a crate below rustls; its text is its name.
            CertificateError::Other(error) if error.0.to_string() == "CaUsedAsEndEntity" => {
                Unreachable::AuthorityAsServer
            }
            _ => Unreachable::BadCertificate,
        },
        rustls::Error::InvalidMessage(_) => Unreachable::NotTls,
        _ => Unreachable::Handshake,
    }
}

#[cfg(test)]
mod tests {
    use rustls::OtherError;
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Named(&'static str);

    impl fmt::Display for Named {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.0)
        }
    }

    impl Error for Named {}

    #[test]
    fn only_an_authority_in_the_place_of_a_server_is_told_as_one() {
        let reason = |error| tls_reason(&rustls::Error::InvalidCertificate(error));
        let other = |name| CertificateError::Other(OtherError(Arc::new(Named(name))));
        assert_eq!(reason(other("CaUsedAsEndEntity")), Unreachable::AuthorityAsServer);
        for error in
            [other("EndEntityUsedAsCa"), CertificateError::BadSignature, CertificateError::Revoked]
        {
            assert_eq!(reason(error), Unreachable::BadCertificate);
        }
    }
}
