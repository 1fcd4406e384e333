//! HTTP body that is written while it is read.
//!
//! This type replaces `Channel` of `http-body-util`, which loses the last frame once in a million
//! bodies (0.1.5): its reader looks for a frame, finds none, and then finds that the writer is
//! dropped, although the writer sent a frame in between. Here the end travels in the same queue as
//! the frames, so it always comes after them.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::HeaderMap;
use tokio::sync::mpsc;

/// Reason why a body breaks off.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Reason that a writer gives for breaking off a body. Set before the writer is dropped, and read
/// after the last frame.
type Reason = Arc<Mutex<Option<Failure>>>;

/// Reading side of a body that is written while it is read.
#[derive(Debug)]
pub struct Written {
    frames: mpsc::Receiver<Frame<Bytes>>,
    reason: Reason,
}

/// Writing side of the body. Dropping the writer ends the body normally.
#[derive(Debug)]
pub struct Writer {
    frames: mpsc::Sender<Frame<Bytes>>,
    reason: Reason,
}

/// Error: the reader of the body was dropped.
#[derive(Debug)]
pub struct Gone;

/// Returns the two sides of a body. At most `frames` frames may wait for the reader.
#[must_use]
pub fn written(frames: usize) -> (Writer, Written) {
    let (sender, receiver) = mpsc::channel(frames);
    let reason = Reason::default();
    let writer = Writer { frames: sender, reason: Arc::clone(&reason) };
    (writer, Written { frames: receiver, reason })
}

impl Writer {
    pub async fn send(&mut self, frame: Frame<Bytes>) -> Result<(), Gone> {
        self.frames.send(frame).await.map_err(|_| Gone)
    }

    pub async fn send_data(&mut self, data: Bytes) -> Result<(), Gone> {
        self.send(Frame::data(data)).await
    }

    pub async fn send_trailers(&mut self, trailers: HeaderMap) -> Result<(), Gone> {
        self.send(Frame::trailers(trailers)).await
    }

    /// Breaks the body off after the frames that were sent.
    pub fn abort(self, reason: Failure) {
        *self.reason.lock().unwrap() = Some(reason);
    }
}

impl Body for Written {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let frame = ready!(self.frames.poll_recv(context));
        Poll::Ready(match frame {
            Some(frame) => Some(Ok(frame)),
            None => self.reason.lock().unwrap().take().map(Err),
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_body_ends_behind_all_that_was_sent() {
        let (mut writer, mut body) = written(2);
        writer.send_data("One".into()).await.unwrap();
        writer.send_data("Two".into()).await.unwrap();
        drop(writer);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "One");
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "Two");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_body_breaks_off_behind_all_that_was_sent() {
        let (mut writer, mut body) = written(1);
        writer.send_data("One".into()).await.unwrap();
        writer.abort("cut".into());
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "One");
        assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "cut");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_writer_learns_that_nobody_reads() {
        let (mut writer, body) = written(1);
        drop(body);
        assert!(writer.send_data("One".into()).await.is_err());
    }
}
