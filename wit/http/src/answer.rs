//! Answer to the client, written through `wasi:http`.

use creole::Head;
use wasip2::http::types::{OutgoingBody, OutgoingResponse, ResponseOutparam};
use wasip2::io::streams::OutputStream;

use crate::{headers, streams};

/// Error: the client has disconnected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

/// Answer whose head was sent. Dropping it before [`Answer::finish`] breaks the body off, which the
/// client sees.
#[derive(Debug)]
pub(crate) struct Answer {
    // The fields are dropped in this order: the host requires a body's stream to be dropped before
    // the body.
    stream: OutputStream,
    body: OutgoingBody,
}

impl Answer {
    /// Sends the head of the answer.
    pub(crate) fn start(out: ResponseOutparam, head: &Head) -> Result<Self, Gone> {
        let response = OutgoingResponse::new(headers::fields(&head.headers));
        let _ = response.set_status_code(head.status);
        let body = response.body();
        ResponseOutparam::set(out, Ok(response));
        let body = body.map_err(|()| Gone)?;
        let stream = body.write().map_err(|()| Gone)?;
        Ok(Self { stream, body })
    }

    /// Sends bytes, as fast as the client reads them.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Gone> {
        streams::write_all(&self.stream, bytes).map_err(|_| Gone)
    }

    /// Returns the output stream, for bytes that pass through unchanged.
    pub(crate) fn stream(&self) -> &OutputStream {
        &self.stream
    }

    /// Ends an answer that is complete.
    pub(crate) fn finish(self) {
        let Self { stream, body } = self;
        let _ = stream.flush();
        drop(stream);
        let _ = OutgoingBody::finish(body, None);
    }
}

/// Sends a whole answer: head and complete body.
pub(crate) fn whole(out: ResponseOutparam, head: &Head, body: &[u8]) {
    let mut head = head.clone();
    head.headers.push(("content-length".to_owned(), body.len().to_string()));
    if let Ok(answer) = Answer::start(out, &head)
        && answer.write(body).is_ok()
    {
        answer.finish();
    }
}
