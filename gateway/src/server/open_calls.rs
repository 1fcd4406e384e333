//! Open calls of one exchange: requests to upstreams, web servers and services with their answers,
//! and documents that are read.
//!
//! A call makes progress only when it is polled. So a client that reads slowly slows the answers,
//! and dropping a call closes its connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use creole::{Call, CallId, Cancel, DocumentText, End, Failure, Header, Owner, To, Unread};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::documents::{Documents, WantedText};
use crate::headers;
use crate::server::offload::Translations;
use crate::upstream::call::Caller;
use crate::upstream::decompress::{Broken, DecompressedBody};
use crate::upstream::fetch_limits::{DownloadPermits, FetchLimits};

/// Time to wait for the end of an answer that is not needed any more. Most servers send the end in
/// a separate packet after `[DONE]`, and a connection can be reused only if its body was read to
/// the end.
const ENDING: Duration = Duration::from_millis(100);

/// Services for the exchanges of one thread, which translate and make calls.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) caller: Caller,
    pub(crate) translations: Translations,
    pub(crate) documents: Arc<Documents>,
    pub(crate) fetches: Arc<FetchLimits>,
}

/// Calls of one exchange that have not ended.
#[derive(Default)]
pub(crate) struct OpenCalls {
    /// Calls in the order in which they are polled.
    all: Vec<OpenCall>,
    /// Time that the documents of the exchange have used so far. The lock is held while a document
    /// is read, because the documents share this time.
    reading: Arc<Mutex<Duration>>,
}

struct OpenCall {
    id: CallId,
    /// Size, in bytes, of the request or the document; 0 once the answer has begun.
    bytes: usize,
    progress: Progress,
}

enum Progress {
    /// Wait for the head of an answer, or for the text of a document.
    Waiting(Pin<Box<dyn Future<Output = Waited> + Send>>),
    /// Body of an answer, with the permits of a download.
    Receiving { body: Box<DecompressedBody>, _permits: Option<DownloadPermits> },
}

/// Result of the first part of a call.
enum Waited {
    Answered(Response<Incoming>, Option<DownloadPermits>),
    Over(CallEvent),
}

/// Event of a call, which the exchange handles.
#[derive(Debug)]
pub(crate) enum CallEvent {
    Head(u16, Vec<Header>),
    Piece(Bytes),
    End(End),
    Failed(Failure),
    Document(Result<DocumentText, Unread>),
}

impl OpenCalls {
    /// Opens a call to a server. `bytes` is the size of the call's body.
    pub(crate) fn send(&mut self, call: Call, owner: Owner, means: &Arc<Means>) {
        let (id, bytes, means) = (call.id, call.body.len(), Arc::clone(means));
        let answered = async move {
            let permits = match &call.to {
                To::Web(fetch) => means.fetches.begin(owner, &fetch.url).await,
                To::Upstream(_) | To::Service(_) | To::Document { .. } => None,
            };
            match means.caller.send(call).await {
                Ok(response) => Waited::Answered(response, permits),
                Err(failure) => Waited::Over(CallEvent::Failed(failure)),
            }
        };
        self.all.push(OpenCall { id, bytes, progress: Progress::Waiting(Box::pin(answered)) });
    }

    /// Opens a call that reads a document until a deadline.
    pub(crate) fn read(
        &mut self,
        (id, wanted): (CallId, WantedText),
        until: Instant,
        owner: Owner,
        means: &Arc<Means>,
    ) {
        let (bytes, means) = (wanted.bytes(), Arc::clone(means));
        let reading = Arc::clone(&self.reading);
        let read = async move {
            let limits = &means.caller.config.settings.read_documents;
            let mut spent = reading.lock().await;
            let text = means.documents.read(wanted, limits, until, (owner, &mut spent)).await;
            Waited::Over(CallEvent::Document(text))
        };
        self.all.push(OpenCall { id, bytes, progress: Progress::Waiting(Box::pin(read)) });
    }

    /// Returns the next event of any call. A call that has ended is removed.
    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<(CallId, CallEvent)> {
        let event =
            self.all.iter_mut().enumerate().find_map(|(at, call)| match call.poll(context) {
                Poll::Ready(event) => Some((at, event)),
                Poll::Pending => None,
            });
        let Some((at, event)) = event else { return Poll::Pending };
        let call = self.all.remove(at);
        let id = call.id;
        if matches!(event, CallEvent::Head(..) | CallEvent::Piece(_)) {
            // The other calls are polled first the next time, so that none waits for this one.
            self.all.push(call);
        }
        Poll::Ready((id, event))
    }

    /// Ends a call whose answer is not needed any more.
    pub(crate) fn cancel(&mut self, id: CallId, cancel: Cancel) {
        let Some(at) = self.all.iter().position(|call| call.id == id) else { return };
        let call = self.all.remove(at);
        if let (Cancel::ReadOut, Progress::Receiving { body, .. }) = (cancel, call.progress) {
            // The client does not wait for the end of the body.
            let mut body = body.into_body();
            tokio::spawn(tokio::time::timeout(ENDING, async move {
                while let Some(Ok(_)) = body.frame().await {}
            }));
        }
    }

    /// Drops all calls, which closes their connections.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns the number of bytes of requests and documents that are still needed.
    pub(crate) fn sent_bytes(&self) -> usize {
        self.all.iter().map(|call| call.bytes).fold(0, usize::saturating_add)
    }
}

impl OpenCall {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<CallEvent> {
        match &mut self.progress {
            Progress::Waiting(waiting) => {
                let waited = ready!(waiting.as_mut().poll(context));
                Poll::Ready(self.begin(waited))
            }
            Progress::Receiving { body, .. } => body.poll_piece(context).map(piece_event),
        }
    }

    /// Continues with the body of an answer whose head has arrived.
    fn begin(&mut self, waited: Waited) -> CallEvent {
        let (response, permits) = match waited {
            Waited::Answered(response, permits) => (response, permits),
            Waited::Over(event) => return event,
        };
        let (head, body) = response.into_parts();
        let mut list = headers::list(&head.headers);
        self.bytes = 0;
        let body = Box::new(DecompressedBody::new(body, &mut list));
        self.progress = Progress::Receiving { body, _permits: permits };
        CallEvent::Head(head.status.as_u16(), list)
    }
}

fn piece_event(piece: Option<Result<Bytes, Broken>>) -> CallEvent {
    match piece {
        Some(Ok(piece)) => CallEvent::Piece(piece),
        None => CallEvent::End(End::Complete),
        Some(Err(Broken::Connection(error))) => {
            tracing::debug!("upstream's body broke off: {error}");
            CallEvent::End(End::Aborted)
        }
        Some(Err(Broken::Cut)) => CallEvent::End(End::Aborted),
        Some(Err(Broken::Coding(error))) => {
            tracing::debug!("upstream's body cannot be unpacked: {error}");
            CallEvent::Failed(Failure::Undecodable)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
