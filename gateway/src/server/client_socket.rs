//! Reading half of a client's socket, which counts the bytes of incomplete request heads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::server::budget::{Budget, Held};
use crate::server::connections::ClientConnection;

/// Reading half of a client's socket. Bytes that belong to no complete head are counted.
#[derive(Debug)]
pub(crate) struct ClientSocket<S> {
    stream: S,
    client: Arc<ClientConnection>,
    budget: Arc<Budget>,
    /// Number of bytes that arrived since the last request, up to the maximum size of a head.
    unanswered: usize,
    /// Number of the connection's requests when `unanswered` was last reset.
    requests: u64,
    head_max: usize,
    /// True if bytes arrived since hyper last had time to begin the requests in them.
    has_come: bool,
    /// Memory of an incomplete head, if the head is larger than the memory of an exchange.
    held: Option<Held>,
}

impl<S> ClientSocket<S> {
    pub(crate) fn new(
        stream: S,
        client: Arc<ClientConnection>,
        budget: Arc<Budget>,
        head_max: usize,
    ) -> Self {
        let (unanswered, requests, has_come, held) = (0, 0, false, None);
        Self { stream, client, budget, unanswered, requests, head_max, has_come, held }
    }

    /// Counts the bytes that arrived and belong to no request. Must be called before each read,
    /// because one read may deliver a whole head.
    fn poll_count(&mut self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let (requests, _) = self.client.requests();
        if requests != self.requests {
            self.requests = requests;
            self.unanswered = 0;
        }
        let bytes = self.unanswered.saturating_sub(self.budget.exchange());
        if bytes == 0 {
            self.held = None;
            return Poll::Ready(Ok(()));
        }
        if std::mem::take(&mut self.has_come) {
            // In HTTP/2, hyper begins no request before it has read all received bytes, so a body
            // would count as a head.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let yields = || Arc::clone(&self.client.yields);
        let begin = || self.budget.begin_stranger(self.client.owner, yields());
        if self.held.get_or_insert_with(begin).set(bytes) {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(io::Error::from(io::ErrorKind::OutOfMemory)))
    }

    /// Notes bytes that arrived. Bytes that arrive during a request are its body, whose memory is
    /// counted elsewhere.
    fn note(&mut self, bytes: &[u8]) {
        if !self.client.requests().1 && !is_kept_nowhere(bytes) {
            self.unanswered = self.unanswered.saturating_add(bytes.len()).min(self.head_max);
            self.has_come = true;
        }
    }
}

/// Returns true if the bytes are whole HTTP/2 frames that belong to no head, such as the answers to
/// pings of an idle client. A head of HTTP/1 cannot be mistaken for a frame, because a frame begins
/// with a zero byte.
fn is_kept_nowhere(mut bytes: &[u8]) -> bool {
    const PRIORITY: u8 = 2;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    while let Some(([0, high, low, kind, _, _, _, _, _], rest)) = bytes.split_first_chunk() {
        let known = matches!(*kind, PRIORITY | RST_STREAM | SETTINGS | PING | WINDOW_UPDATE);
        match rest.get(usize::from(u16::from_be_bytes([*high, *low]))..) {
            Some(next) if known => bytes = next,
            _ => return false,
        }
    }
    bytes.is_empty()
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_count(context))?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.note(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
