//! Outgoing requests to upstreams.

use creole::config::{Address, Upstream};
use creole::{Failure, Header, Unreachable};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use crate::live::Live;
use crate::streams::PIECE_BYTES_MAX;
use crate::{headers, streams};

/// Maximum time for an address to accept a connection, in nanoseconds. The exchange's own timeout
/// also covers the time until the model starts to answer and is much longer.
const CONNECT_TIMEOUT_NS: u64 = 10_000_000_000;

/// Margin by which the host's timeouts exceed those of the exchange, in milliseconds, so that the
/// exchange's timeouts come first.
const LONGER_MS: u64 = 60_000;

const NANOS: u64 = 1_000_000;

/// Body of a request that is passed through: the bytes already read, and the stream with the rest.
pub(crate) struct PassedBody<'a> {
    pub(crate) first: &'a [u8],
    pub(crate) rest: &'a InputStream,
}

/// Result of a wait for a response, as the host gives it.
pub(crate) type Got = Result<Result<IncomingResponse, ErrorCode>, ()>;

/// Opens a request: sends its head, and returns the response that will come, and the body to write
/// if the request has one. `to`: scheme and authority, and the path with the query.
pub(crate) fn open(
    live: &Live,
    to: (&str, &str),
    method: &Method,
    list: &[Header],
    has_body: bool,
) -> Result<(FutureIncomingResponse, Option<OutgoingBody>), Failure> {
    let address = Address::parse(to.0).map_err(|_| Failure::NoRoute)?;
    let request = OutgoingRequest::new(headers::fields(list));
    let scheme = if address.tls { Scheme::Https } else { Scheme::Http };
    let addressed = request.set_method(method).is_ok()
        && request.set_scheme(Some(&scheme)).is_ok()
        && request.set_authority(Some(address.authority)).is_ok()
        && request.set_path_with_query(Some(to.1)).is_ok();
    if !addressed {
        return Err(Failure::NoRoute);
    }
    let body = if has_body { request.body().ok() } else { None };
    let answer = outgoing_handler::handle(request, Some(options(live)));
    Ok((answer.map_err(|error| failure(&error))?, body))
}

/// Passes a request to an upstream, and waits for the head of the response.
pub(crate) fn pass(
    live: &Live,
    upstream: &Upstream,
    path: &str,
    method: &Method,
    list: &[Header],
    body: Option<&PassedBody<'_>>,
) -> Result<IncomingResponse, Failure> {
    let to = (upstream.url.as_str(), path);
    let (answer, sent) = open(live, to, method, list, body.is_some())?;
    if let (Some(sent), Some(body)) = (sent, body) {
        let written = match sent.write() {
            Ok(stream) => send(live, &stream, body),
            Err(()) => Err(Unsent::Broken),
        };
        match written {
            Ok(()) => drop(OutgoingBody::finish(sent, None)),
            Err(Unsent::Incomplete) => return Err(Failure::RequestIncomplete),
            Err(Unsent::TooSlow) => return Err(Failure::RequestTooSlow),
            // An upstream may refuse a body that it has not read, and its answer says why.
            Err(Unsent::Broken) => drop(sent),
        }
    }
    loop {
        if let Some(got) = answer.get() {
            return response(got);
        }
        answer.subscribe().block();
    }
}

/// Returns the response to a request, or the reason for its lack.
pub(crate) fn response(got: Got) -> Result<IncomingResponse, Failure> {
    match got {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(failure(&error)),
        Err(()) => Err(Failure::Timeout),
    }
}

fn options(live: &Live) -> RequestOptions {
    let settings = &live.exchange.config().settings;
    let nanos = |ms: u64| Some(ms.saturating_add(LONGER_MS).saturating_mul(NANOS));
    let first_byte = settings.first_byte_after_ms(true, true);
    // Maximum silence of the upstream after the head: as long as before the head, or longer.
    let silence =
        first_byte.max(settings.stall_after_ms(true)).max(settings.no_progress_timeout_ms);
    let options = RequestOptions::new();
    // A host that does not know an option uses a timeout of its own.
    let _ = options.set_connect_timeout(Some(CONNECT_TIMEOUT_NS));
    // The timeout is that of a stream, which is longer: the exchange itself knows if it waits for a
    // stream.
    let _ = options.set_first_byte_timeout(nanos(first_byte));
    let _ = options.set_between_bytes_timeout(nanos(silence));
    options
}

/// Reason why a request body was not sent to its end.
enum Unsent {
    /// Reason: the client broke off its own body.
    Incomplete,
    /// Reason: the client paused for too long in its own body.
    TooSlow,
    /// Reason: the upstream accepts no more of the body.
    Broken,
}

/// Writes the body of a request to the upstream, as the client sends it.
fn send(live: &Live, stream: &OutputStream, body: &PassedBody<'_>) -> Result<(), Unsent> {
    streams::write_all(stream, body.first).map_err(|_| Unsent::Broken)?;
    loop {
        match read(body.rest) {
            Piece::Bytes(piece) => {
                streams::write_all(stream, &piece).map_err(|_| Unsent::Broken)?;
            }
            Piece::NotYet if live.client_pauses(body.rest) => return Err(Unsent::TooSlow),
            Piece::NotYet => {}
            Piece::End(creole::End::Complete) => break,
            Piece::End(creole::End::Aborted) => return Err(Unsent::Incomplete),
        }
    }
    stream.flush().map_err(|_| Unsent::Broken)
}

/// Result of reading a body that is still arriving.
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    NotYet,
    End(creole::End),
}

pub(crate) fn read(stream: &InputStream) -> Piece {
    match stream.read(PIECE_BYTES_MAX) {
        Ok(bytes) if bytes.is_empty() => Piece::NotYet,
        Ok(bytes) => Piece::Bytes(bytes),
        Err(StreamError::Closed) => Piece::End(creole::End::Complete),
        Err(StreamError::LastOperationFailed(_)) => Piece::End(creole::End::Aborted),
    }
}

/// Returns the failure that corresponds to an error code of the host, without addresses or names,
/// because clients read the failure.
fn failure(error: &ErrorCode) -> Failure {
    let reason = match error {
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) => Unreachable::NoName,
        ErrorCode::ConnectionRefused => Unreachable::Refused,
        ErrorCode::ConnectionTimeout => Unreachable::TimedOut,
        ErrorCode::DestinationNotFound
        | ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpUnroutable => Unreachable::NoHost,
        ErrorCode::DestinationIpProhibited | ErrorCode::HttpRequestDenied => {
            Unreachable::NotAllowed
        }
        ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => return Failure::Timeout,
        ErrorCode::TlsCertificateError => Unreachable::BadCertificate,
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => Unreachable::Handshake,
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => Unreachable::Closed,
        ErrorCode::HttpProtocolError => Unreachable::NotHttpOrClosed,
        _ => Unreachable::NotConnected,
    };
    Failure::Unreachable(reason)
}
