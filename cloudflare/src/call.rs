//! Calls of upstreams, and of web servers to fetch images: the first call of a request, and later
//! ones.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use creole::{Call, CallId, Config, Exchange, Failure, To};
use wasm_bindgen::prelude::*;
use worker::js_sys::Uint8Array;
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{ReadableStream, Response};
use worker::{AbortController, AbortSignal};

use crate::environment::now;
use crate::http;
use crate::incoming::Incoming;
use crate::live;

/// Outgoing call whose response head has not arrived yet. Dropping the value aborts the call.
pub(crate) struct Sent {
    pub(crate) id: CallId,
    to: To,
    fetch: JsFuture<Response>,
    aborting: Aborting,
}

/// Guard that aborts a request when dropped, unless the request is over.
pub(crate) struct Aborting(Option<AbortController>);

impl Aborting {
    pub(crate) fn new() -> (Self, AbortSignal) {
        let controller = AbortController::default();
        let signal = controller.signal();
        (Self(Some(controller)), signal)
    }

    pub(crate) fn over(mut self) {
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

/// Body of an upstream's response. Dropping it before its end aborts the request.
pub(crate) struct UpstreamBody(Option<Open>);

/// Response body that has not ended, with the chunk that is being read and the guard that aborts
/// the request.
struct Open {
    body: Incoming,
    read: Option<JsFuture>,
    aborting: Aborting,
}

impl UpstreamBody {
    /// Returns a placeholder for the body of a call whose response head has not arrived.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(crate) fn new(body: Option<ReadableStream>, aborting: Aborting) -> Self {
        match body {
            Some(body) => Self(Some(Open { body: Incoming::new(&body), read: None, aborting })),
            None => {
                aborting.over();
                Self(None)
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Vec<u8>, JsValue>>> {
        let Some(open) = &mut self.0 else { return Poll::Ready(None) };
        let read = open.read.get_or_insert_with(|| JsFuture::from(open.body.read()));
        let piece = ready!(Pin::new(read).poll(context));
        open.read = None;
        match piece {
            Ok(piece) if !piece.is_undefined() => {
                let piece: Uint8Array = piece.unchecked_into();
                Poll::Ready(Some(Ok(piece.to_vec())))
            }
            end => {
                if let Some(open) = self.0.take() {
                    open.aborting.over();
                }
                Poll::Ready(end.err().map(Err))
            }
        }
    }

    pub(crate) fn cut(&mut self) {
        if let Some(open) = self.0.take() {
            open.body.stop();
        }
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Sent {
    /// Sends a call. Returns `None` if no upstream has the call's name, or if the runtime rejects
    /// the URL.
    pub(crate) fn new(config: &Config, call: Call) -> Option<Self> {
        let headers = http::headers(&call.headers);
        let (aborting, signal) = Aborting::new();
        let fetch = match &call.to {
            // A Worker sees no addresses: the platform keeps what it fetches out of private
            // networks.
            To::Web(fetch) => http::read(&fetch.url, &headers, &signal),
            To::Document { .. } => return None,
            To::Upstream(name) => {
                let url = format!("{}{}", config.upstreams.get(name)?.url, call.path);
                let body = match call.body.as_slice() {
                    [] => JsValue::NULL,
                    body => Uint8Array::from(body).into(),
                };
                http::send(call.method(), &url, &headers, &body, &signal)
            }
        };
        Some(Self { id: call.id, to: call.to, fetch: fetch.ok()?, aborting })
    }

    pub(crate) fn poll(
        &mut self,
        config: &Config,
        context: &mut Context<'_>,
    ) -> Poll<Result<Response, Failure>> {
        let answered = ready!(Pin::new(&mut self.fetch).poll(context));
        Poll::Ready(answered.map_err(|error| {
            let reason = http::reason(&error);
            live::warn(config, || match &self.to {
                To::Upstream(name) => format!("upstream {name}: {}", http::describe(&error)),
                // The error text is not the runtime's own, because that text could contain the URL.
                _ => format!("an image could not be fetched: {}", reason.words()),
            });
            Failure::Unreachable(reason)
        }))
    }

    /// Passes the response head to the exchange, and returns the response body.
    pub(crate) fn answered(self, response: &Response, exchange: &mut Exchange) -> UpstreamBody {
        let mut headers = http::list(response.headers());
        // The runtime decompresses the body, but leaves the header `content-encoding` in the
        // response.
        headers.retain(|(name, value)| {
            name != "content-encoding" || !matches!(value.as_str(), "gzip" | "br")
        });
        exchange.handle_call_head(self.id, response.status(), &headers, now());
        UpstreamBody::new(response.body(), self.aborting)
    }
}
