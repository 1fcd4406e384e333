//! Outgoing requests to upstreams.

use creole::config::{Address, Upstream};
use creole::{Failure, Header, Unreachable};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use crate::live::{Live, Woken};
use crate::streams::PIECE_BYTES_MAX;
use crate::{headers, streams};

/// Maximum time for an address to accept a connection, in nanoseconds. The exchange's own timeout
/// also covers the time until the model starts to answer and is much longer.
const CONNECT_TIMEOUT_NS: u64 = 10_000_000_000;

/// Margin by which the host's timeouts exceed those of the exchange, in milliseconds, so that the
/// exchange's timeouts come first.
const LONGER_MS: u64 = 60_000;

const NANOS: u64 = 1_000_000;

/// Result of a request to an upstream.
#[derive(Debug)]
pub(crate) enum Asked {
    Answered(IncomingResponse),
    /// Failure without a response: the client gets this error.
    Failed(Failure),
    /// Request given up: the exchange has an answer or goes on without one, or the client is gone.
    GivenUp,
}

/// Body of an outgoing request.
pub(crate) enum Body<'a> {
    None,
    Bytes(&'a [u8]),
    /// Body passed through: the bytes already read, and the stream with the rest.
    Stream(&'a [u8], &'a InputStream),
}

/// Sends a request and waits for the head of the response.
pub(crate) fn ask(
    live: &mut Live,
    upstream: &Upstream,
    method: &Method,
    path: &str,
    list: &[Header],
    body: &Body<'_>,
) -> Asked {
    let Ok(address) = Address::parse(&upstream.url) else { return Asked::Failed(Failure::NoRoute) };
    let request = OutgoingRequest::new(headers::fields(list));
    let scheme = if address.tls { Scheme::Https } else { Scheme::Http };
    let addressed = request.set_method(method).is_ok()
        && request.set_scheme(Some(&scheme)).is_ok()
        && request.set_authority(Some(address.authority)).is_ok()
        && request.set_path_with_query(Some(path)).is_ok();
    if !addressed {
        return Asked::Failed(Failure::NoRoute);
    }
    let sent = if matches!(body, Body::None) { Err(()) } else { request.body() };
    let answer = match outgoing_handler::handle(request, Some(options(live))) {
        Ok(answer) => answer,
        Err(error) => return Asked::Failed(failure(&error)),
    };
    if let Ok(sent) = sent {
        let written = match sent.write() {
            Ok(stream) => send(live, &stream, body),
            Err(()) => Err(Unsent::Broken),
        };
        match written {
            Ok(()) => drop(OutgoingBody::finish(sent, None)),
            Err(Unsent::GivenUp) => return Asked::GivenUp,
            Err(Unsent::Incomplete) => return Asked::Failed(Failure::RequestIncomplete),
            Err(Unsent::TooSlow) => return Asked::Failed(Failure::RequestTooSlow),
            // An upstream may refuse a body that it has not read, and its answer says why.
            Err(Unsent::Broken) => drop(sent),
        }
    }
    head(live, &answer)
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
    /// Reason: the exchange gave up the request.
    GivenUp,
}

/// Writes a request body to the upstream.
fn send(live: &mut Live, stream: &OutputStream, body: &Body<'_>) -> Result<(), Unsent> {
    let (mut bytes, rest) = match body {
        Body::None => (&[][..], None),
        Body::Bytes(bytes) => (*bytes, None),
        Body::Stream(first, rest) => (*first, Some(*rest)),
    };
    while !bytes.is_empty() {
        let later = streams::write_some(stream, bytes).map_err(|_| Unsent::Broken)?;
        if later.len() == bytes.len() && live.wait(&stream.subscribe()) == Woken::Timeout {
            live.handle_timeout();
            if live.is_over() || live.exchange.is_call_due() {
                return Err(Unsent::GivenUp);
            }
        }
        bytes = later;
    }
    while let Some(rest) = rest {
        match read(rest) {
            Piece::Bytes(piece) => {
                streams::write_all(stream, &piece).map_err(|_| Unsent::Broken)?;
            }
            Piece::NotYet if live.client_pauses(rest) => return Err(Unsent::TooSlow),
            Piece::NotYet => {}
            Piece::End(creole::End::Complete) => break,
            Piece::End(creole::End::Aborted) => return Err(Unsent::Incomplete),
        }
    }
    stream.flush().map_err(|_| Unsent::Broken)
}

/// Waits for the head of the upstream's response.
fn head(live: &mut Live, answer: &FutureIncomingResponse) -> Asked {
    let ready = answer.subscribe();
    loop {
        match answer.get() {
            Some(Ok(Ok(response))) => return Asked::Answered(response),
            Some(Ok(Err(error))) => return Asked::Failed(failure(&error)),
            Some(Err(())) => return Asked::Failed(Failure::Timeout),
            None => {}
        }
        if live.wait(&ready) == Woken::Timeout {
            live.handle_timeout();
            if live.is_over() || live.exchange.is_call_due() {
                return Asked::GivenUp;
            }
        }
    }
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
