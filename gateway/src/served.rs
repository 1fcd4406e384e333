//! Answers on their way through hyper, whose buffers do not show whether a client takes them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};

use crate::answer::Body;
use crate::connections::Busy;

/// The body of an answer. Its connection is busy until all of it has left.
#[derive(Debug)]
pub(crate) struct Served {
    body: Body,
    busy: Arc<Busy>,
}

impl Served {
    pub(crate) fn new(body: Body, busy: Busy) -> Self {
        Self { body, busy: Arc::new(busy) }
    }
}

impl hyper::body::Body for Served {
    type Data = Piece;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Piece>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map_ok(|frame| frame.map_data(|bytes| Piece::new(bytes, &self.busy)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A piece of an answer, until it has left.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    busy: Arc<Busy>,
}

impl Piece {
    fn new(bytes: Bytes, busy: &Arc<Busy>) -> Self {
        busy.add();
        Self { bytes, busy: Arc::clone(busy) }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.busy.moved();
        self.bytes.advance(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.busy.remove();
    }
}

#[cfg(test)]
mod tests;
