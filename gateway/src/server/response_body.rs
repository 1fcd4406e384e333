//! Bodies of responses to clients: translated, passed on, or whole.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::Response;
use hyper::body::Incoming;

use crate::headers;
use crate::page::Events;
use crate::server::driver::Driver;
use crate::server::exchange::LiveExchange;

/// Maximum size, in bytes, of a chunk of a whole answer. Several chunks are needed, because hyper
/// asks for the next chunk only if the client reads.
const PIECE_BYTES: usize = 64 << 10;

/// Body of a response to a client.
#[derive(Debug)]
pub(crate) enum Body {
    /// Body that is completely known before the head is sent.
    Whole(Bytes),
    /// Body that is translated while the upstream sends it.
    Translated(Box<Driver>),
    /// Body of the upstream, passed on unchanged.
    Passed { upstream: Incoming, live: Box<LiveExchange> },
    /// Server-sent events that update the gateway's web page.
    Events(Box<Events>),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(bytes.into())
    }

    /// Returns the response of an exchange, once its head is known.
    pub(crate) async fn translated(mut driver: Box<Driver>) -> Response<Self> {
        let head = driver.head().await;
        if let Some(bytes) = driver.whole() {
            return headers::response(head, Self::whole(bytes));
        }
        driver.begin_stream();
        headers::response(head, Self::Translated(driver))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Self::Passed { upstream, live } => {
                let polled = Pin::new(upstream).poll_frame(context);
                if let Poll::Ready(Some(Err(error))) = &polled {
                    tracing::debug!("upstream's body broke off: {error}");
                    "the upstream's body broke off".clone_into(&mut live.request.details);
                }
                polled
            }
            Self::Events(events) => {
                events.poll_next(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
            Self::Translated(driver) => {
                driver.poll_chunk(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Passed { upstream, .. } => upstream.is_end_stream(),
            Self::Events(_) => false,
            Self::Translated(driver) => driver.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Passed { upstream, .. } => upstream.size_hint(),
            Self::Translated(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}
