//! Open calls of one exchange: requests to upstreams, to web servers for images, and to services,
//! with their answers.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use creole::{Call, CallId, Config, Failure, Header, To};
use wasm_bindgen::prelude::*;
use worker::js_sys::Uint8Array;
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::Response;
use worker::{AbortController, AbortSignal};

use crate::http;
use crate::incoming::Incoming;
use crate::live;

/// Guard that aborts a request when dropped, unless the request is over.
pub(crate) struct Aborting(Option<AbortController>);

impl Aborting {
    pub(crate) fn new() -> (Self, AbortSignal) {
        let controller = AbortController::default();
        let signal = controller.signal();
        (Self(Some(controller)), signal)
    }

    pub(crate) fn over(&mut self) {
        self.0 = None;
    }
}

impl Drop for Aborting {
    fn drop(&mut self) {
        if let Some(controller) = self.0.take() {
            controller.abort();
        }
    }
}

/// Calls of one exchange that have not ended, in the order in which they are polled.
#[derive(Default)]
pub(crate) struct OpenCalls(Vec<OpenCall>);

/// Call that has not ended. Dropping the value aborts the call.
struct OpenCall {
    id: CallId,
    to: To,
    /// Size, in bytes, of the request's body; 0 once the answer has begun.
    bytes: usize,
    progress: Progress,
    aborting: Aborting,
}

enum Progress {
    /// Wait for the head of the answer.
    Sent(JsFuture<Response>),
    /// Body of the answer, with the chunk that is being read.
    Receiving(Incoming, Option<JsFuture>),
    /// End of the answer.
    Over,
}

/// Event of a call, which the exchange handles.
pub(crate) enum CallEvent {
    Head(u16, Vec<Header>),
    Piece(Vec<u8>),
    /// End of the body, with the runtime's error if the body broke off.
    End(Result<(), JsValue>),
    Failed(Failure),
}

impl OpenCalls {
    /// Sends a call. Fails if no upstream has the call's name, or if the runtime rejects the URL.
    pub(crate) fn open(&mut self, config: &Config, call: Call) -> Result<(), Failure> {
        let headers = http::headers(&call.headers);
        let (aborting, signal) = Aborting::new();
        let (method, body) = (call.method(), body_of(&call));
        let fetch = match &call.to {
            // A Worker sees no addresses: the platform keeps what it fetches out of private
            // networks.
            To::Web(fetch) => http::read(method, &fetch.url, &headers, &body, &signal),
            To::Service(service) => http::read(method, &service.url, &headers, &body, &signal),
            To::Document { .. } => return Err(Failure::NoRoute),
            To::Upstream(name) => {
                let upstream = config.upstreams.get(name).ok_or(Failure::NoRoute)?;
                let url = format!("{}{}", upstream.url, call.path);
                http::send(method, &url, &headers, &body, &signal)
            }
        };
        let progress = Progress::Sent(fetch.map_err(|_| Failure::NoRoute)?);
        let Call { id, to, body, .. } = call;
        self.0.push(OpenCall { id, to, bytes: body.len(), progress, aborting });
        Ok(())
    }

    /// Returns the next event of any call. A call that has ended is removed.
    pub(crate) fn poll_event(
        &mut self,
        config: &Config,
        context: &mut Context<'_>,
    ) -> Poll<(CallId, CallEvent)> {
        let event =
            self.0.iter_mut().enumerate().find_map(|(at, call)| match call.poll(config, context) {
                Poll::Ready(event) => Some((at, event)),
                Poll::Pending => None,
            });
        let Some((at, event)) = event else { return Poll::Pending };
        let call = self.0.remove(at);
        let id = call.id;
        if matches!(event, CallEvent::Head(..) | CallEvent::Piece(_)) {
            // The other calls are polled first the next time, so that none waits for this one.
            self.0.push(call);
        }
        Poll::Ready((id, event))
    }

    /// Aborts a call.
    pub(crate) fn cut(&mut self, id: CallId) {
        self.0.retain(|call| call.id != id);
    }

    /// Aborts a call whose answer has not begun. The body of an answer may end by itself.
    pub(crate) fn end(&mut self, id: CallId) {
        self.0.retain(|call| call.id != id || !matches!(call.progress, Progress::Sent(_)));
    }

    /// Aborts all calls.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes of requests whose answers have not begun.
    pub(crate) fn sent_bytes(&self) -> usize {
        self.0.iter().map(|call| call.bytes).fold(0, usize::saturating_add)
    }
}

impl OpenCall {
    fn poll(&mut self, config: &Config, context: &mut Context<'_>) -> Poll<CallEvent> {
        match &mut self.progress {
            Progress::Sent(fetch) => {
                let answered = ready!(Pin::new(fetch).poll(context));
                Poll::Ready(match answered {
                    Ok(response) => self.begin(&response),
                    Err(error) => CallEvent::Failed(self.unreachable(config, &error)),
                })
            }
            Progress::Receiving(body, read) => {
                let piece = read.get_or_insert_with(|| JsFuture::from(body.read()));
                let piece = ready!(Pin::new(piece).poll(context));
                *read = None;
                Poll::Ready(match piece {
                    Ok(piece) if !piece.is_undefined() => {
                        let piece: Uint8Array = piece.unchecked_into();
                        CallEvent::Piece(piece.to_vec())
                    }
                    end => {
                        self.over();
                        CallEvent::End(end.map(drop))
                    }
                })
            }
            Progress::Over => Poll::Ready(CallEvent::End(Ok(()))),
        }
    }

    /// Continues with the body of an answer whose head has arrived.
    fn begin(&mut self, response: &Response) -> CallEvent {
        let mut headers = http::list(response.headers());
        // The runtime decompresses the body, but leaves the header `content-encoding` in the
        // response.
        headers.retain(|(name, value)| {
            name != "content-encoding" || !matches!(value.as_str(), "gzip" | "br")
        });
        self.bytes = 0;
        match response.body() {
            Some(body) => self.progress = Progress::Receiving(Incoming::new(&body), None),
            None => self.over(),
        }
        CallEvent::Head(response.status(), headers)
    }

    fn over(&mut self) {
        self.progress = Progress::Over;
        self.aborting.over();
    }

    fn unreachable(&self, config: &Config, error: &JsValue) -> Failure {
        let reason = http::reason(error);
        live::warn(config, || match &self.to {
            To::Upstream(name) => format!("upstream {name}: {}", http::describe(error)),
            // The error text is not the runtime's own, because that text could contain the URL.
            To::Service(service) => format!("service {}: {}", service.name, reason.words()),
            _ => format!("an image could not be fetched: {}", reason.words()),
        });
        Failure::Unreachable(reason)
    }
}

/// Returns the body of a call's request, as the runtime takes it.
fn body_of(call: &Call) -> JsValue {
    match call.body.as_slice() {
        [] => JsValue::NULL,
        body => Uint8Array::from(body).into(),
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Progress::Receiving(body, _) = &self.progress {
            body.stop();
        }
    }
}
