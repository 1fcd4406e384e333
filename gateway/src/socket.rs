//! The socket of a client: it counts what waits for the rest of a head, and gives a client up that takes no answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::budget::Held;
use crate::connections::Client;

/// How long a client may take no byte of what is there for it. A laptop that sleeps longer has lost its stream anyway.
pub(crate) const UNREAD_MAX: Duration = Duration::from_secs(300);

/// A client's socket.
#[derive(Debug)]
pub(crate) struct Socket<S = TcpStream> {
    stream: S,
    client: Arc<Client>,
    /// Bytes that came since the last request, up to what a head may have.
    unanswered: usize,
    /// The requests until then.
    requests: u64,
    head_max: usize,
    held: Held,
    /// Since nothing more can be written.
    unread: Option<Pin<Box<Sleep>>>,
}

impl<S> Socket<S> {
    pub(crate) fn new(stream: S, client: Arc<Client>, held: Held, head_max: usize) -> Self {
        Self { stream, client, unanswered: 0, requests: 0, head_max, held, unread: None }
    }

    /// Counts what came and belongs to no request. To be called before more is read: one read may bring a whole head.
    fn count(&mut self) -> io::Result<()> {
        let requests = self.client.requests();
        if requests != self.requests {
            self.requests = requests;
            self.unanswered = 0;
        }
        if self.held.set(self.unanswered.saturating_sub(self.held.free())) {
            return Ok(());
        }
        Err(io::Error::from(io::ErrorKind::OutOfMemory))
    }

    /// These bytes came. What comes while a request is answered is its body, which counts there.
    fn note(&mut self, bytes: &[u8]) {
        if !self.client.is_busy() && !is_kept_nowhere(bytes) {
            self.unanswered = self.unanswered.saturating_add(bytes.len()).min(self.head_max);
        }
    }

    /// What comes of writing: a client that reads nothing for too long is given up.
    fn written<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.unread.take().is_some() {
                self.client.set_unwritten(false);
            }
            return written;
        }
        if self.unread.is_none() {
            self.client.set_unwritten(true);
        }
        let unread = self.unread.get_or_insert_with(|| {
            let now = Instant::now();
            Box::pin(tokio::time::sleep_until(now.checked_add(UNREAD_MAX).unwrap_or(now)))
        });
        ready!(unread.as_mut().poll(context));
        Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)))
    }
}

/// Whether all of it are whole frames of HTTP/2 that belong to no head: an idle client answers pings for hours. In a
/// head of HTTP/1 no byte is 0, as the first of such a frame is.
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

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.count()?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.note(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.written(written, context)
    }
}

#[cfg(test)]
mod tests;
