//! Body wrapper that notes which chunks are still in hyper's buffers, to detect clients that stop
//! reading.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::server::connections::Busy;
use crate::server::response_body::Body;

/// Response body that keeps its connection marked as busy until the last chunk has been written.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    body: Body,
    /// Mark that the request is in flight; `None` once the last chunk owns it.
    busy: Option<Busy>,
}

impl WatchedBody {
    pub(crate) fn new(body: Body, busy: Busy) -> Self {
        busy.set_given(true);
        Self { body, busy: Some(busy) }
    }
}

impl hyper::body::Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Some(busy) = &self.busy {
            busy.set_given(polled.is_ready());
        }
        let frame = ready!(polled);
        if !self.body.is_end_stream() {
            return Poll::Ready(frame);
        }
        let Some(busy) = self.busy.take() else { return Poll::Ready(frame) };
        let last = |bytes| Bytes::from_owner(LastChunk { bytes, _busy: busy });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(last))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Last chunk of a response body, until hyper has written it.
struct LastChunk {
    bytes: Bytes,
    _busy: Busy,
}

impl AsRef<[u8]> for LastChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
