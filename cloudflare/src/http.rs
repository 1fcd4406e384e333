//! Between the runtime's requests, responses and headers and those of the exchange.

use creole::text::words;
use creole::{Head, Header, Unreachable};
use wasm_bindgen::prelude::*;
use worker::js_sys::{Promise, Uint8Array};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{
    AbortSignal, ReadableStream, Request, RequestCache, RequestInit, RequestRedirect, Response,
    ResponseInit,
};
use worker::{Headers, js_sys};

use crate::incoming::Incoming;

/// Returns the headers as a list. Their names are in lower case: the runtime sees to that.
pub(crate) fn list(headers: worker::web_sys::Headers) -> Vec<Header> {
    Headers(headers).entries().collect()
}

/// Makes the runtime's headers of a list. What the runtime does not take as a header is left out.
pub(crate) fn headers(list: &[Header]) -> Headers {
    let headers = Headers::new();
    for (name, value) in list {
        let _ = headers.append(name, value);
    }
    headers
}

/// Returns the part of a URL behind its authority.
pub(crate) fn path_and_query(url: &str) -> &str {
    let rest = words::split_once(url, "://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
}

/// Sends a request to an upstream. A redirection is an answer: whatever it points to must not get
/// the key.
pub(crate) fn send(
    method: &str,
    url: &str,
    headers: &Headers,
    body: &JsValue,
    signal: &AbortSignal,
) -> Result<JsFuture<Response>, JsValue> {
    let init = request_init(method, headers, signal);
    init.set_body(body);
    start(url, &init, signal)
}

/// Sends a request for what is read of the web. Cloudflare's cache, which fills itself for most
/// images, neither answers nor keeps it: nothing of one request is kept for the next. Redirections
/// are followed by the core.
pub(crate) fn read(
    url: &str,
    headers: &Headers,
    signal: &AbortSignal,
) -> Result<JsFuture<Response>, JsValue> {
    let init = request_init("GET", headers, signal);
    init.set_cache(RequestCache::NoStore);
    start(url, &init, signal)
}

fn request_init(method: &str, headers: &Headers, signal: &AbortSignal) -> RequestInit {
    let init = RequestInit::new();
    init.set_method(method);
    init.set_headers(headers.0.as_ref());
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(signal));
    init
}

fn start(
    url: &str,
    init: &RequestInit,
    signal: &AbortSignal,
) -> Result<JsFuture<Response>, JsValue> {
    let request = Request::new_with_str_and_init(url, init)?;
    let sent: Promise<Response> = call(&request, signal).unchecked_into();
    Ok(JsFuture::from(sent))
}

#[wasm_bindgen(raw_module = "./stream.js")]
extern "C" {
    /// Sends a request, as `fetch` does.
    fn call(request: &Request, signal: &AbortSignal) -> Promise;
}

/// Returns the answer to the client.
pub(crate) fn response(head: &Head, body: &[u8]) -> Response {
    let init = init(head);
    let body = (!body.is_empty()).then(|| Uint8Array::from(body));
    let made = match &body {
        Some(body) => Response::new_with_opt_js_u8_array_and_init(Some(body), &init),
        None => Response::new_with_opt_str_and_init(None, &init),
    };
    made.unwrap_or_else(|_| Response::error())
}

/// Returns the answer to a client whose body is not read, or not to its end.
pub(crate) fn refusal(
    head: &Head,
    body: &[u8],
    unread: Option<&Incoming>,
    most: usize,
) -> Response {
    match unread {
        Some(unread) => stream(head, &unread.refuse(&Uint8Array::from(body), most as f64)),
        None => response(head, body),
    }
}

/// Returns the answer to the client, as a stream.
pub(crate) fn stream(head: &Head, body: &ReadableStream) -> Response {
    let made = Response::new_with_opt_readable_stream_and_init(Some(body), &init(head));
    made.unwrap_or_else(|_| Response::error())
}

fn init(head: &Head) -> ResponseInit {
    let init = ResponseInit::new();
    init.set_status(head.status);
    init.set_headers(headers(&head.headers).0.as_ref());
    init
}

/// Returns the reason why an upstream could not be reached, without addresses or names: clients
/// read this. The runtime has only texts for its errors.
pub(crate) fn reason(error: &JsValue) -> Unreachable {
    let text = describe(error).to_ascii_lowercase();
    for (any, reason) in [
        (&["subrequest"][..], Unreachable::TooManyCalls),
        (&["dns", "resolve"], Unreachable::NoName),
        (&["certificate", "tls", "ssl", "handshake"], Unreachable::NotTrusted),
        (&["refused"], Unreachable::Refused),
        (&["timed out", "timeout"], Unreachable::TimedOut),
        // workerd calls one that was refused lost.
        (&["lost", "disconnect", "reset", "closed"], Unreachable::RefusedOrLost),
    ] {
        if words::has_any(&text, any) {
            return reason;
        }
    }
    Unreachable::NotConnected
}

/// Returns the runtime's text for an error.
pub(crate) fn describe(error: &JsValue) -> String {
    let error = error.dyn_ref::<js_sys::Error>();
    error.map_or_else(String::new, |error| error.message().into())
}
