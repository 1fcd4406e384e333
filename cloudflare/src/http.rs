//! Conversion of requests, responses and headers between the Workers runtime and the exchange.

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

/// Returns the runtime's headers as a list. The runtime gives header names in lower case.
pub(crate) fn list(headers: worker::web_sys::Headers) -> Vec<Header> {
    Headers(headers).entries().collect()
}

/// Converts a list to the runtime's headers. Headers that the runtime rejects are left out.
pub(crate) fn headers(list: &[Header]) -> Headers {
    let headers = Headers::new();
    for (name, value) in list {
        let _ = headers.append(name, value);
    }
    headers
}

/// Returns the part of a URL after its authority: path and query.
pub(crate) fn path_and_query(url: &str) -> &str {
    let rest = words::split_once(url, "://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
}

/// Sends a request to an upstream. Redirects are not followed, because the redirect's target must
/// not get the key.
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

/// Sends a request that fetches a resource from the web, such as an image, or that asks a service,
/// such as a web search. Cloudflare's cache is bypassed, so that nothing of one request is kept for
/// the next. Redirects are not followed here: the core follows the redirects of resources, and a
/// service's key must not get to a redirect's target.
pub(crate) fn read(
    method: &str,
    url: &str,
    headers: &Headers,
    body: &JsValue,
    signal: &AbortSignal,
) -> Result<JsFuture<Response>, JsValue> {
    let init = request_init(method, headers, signal);
    init.set_body(body);
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
    /// Sends a request with the runtime's global function `fetch`.
    fn call(request: &Request, signal: &AbortSignal) -> Promise;
}

/// Returns a response to the client with a complete body.
pub(crate) fn response(head: &Head, body: &[u8]) -> Response {
    let init = init(head);
    let body = (!body.is_empty()).then(|| Uint8Array::from(body));
    let made = match &body {
        Some(body) => Response::new_with_opt_js_u8_array_and_init(Some(body), &init),
        None => Response::new_with_opt_str_and_init(None, &init),
    };
    made.unwrap_or_else(|_| Response::error())
}

/// Returns a response to a client whose request body is not read, or not read to its end.
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

/// Returns a response to the client with a streamed body.
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

/// Returns the reason why an upstream could not be reached, without addresses or names, because
/// clients read the reason. The runtime describes errors only by text.
pub(crate) fn reason(error: &JsValue) -> Unreachable {
    let text = describe(error).to_ascii_lowercase();
    for (any, reason) in [
        (&["subrequest"][..], Unreachable::TooManyCalls),
        (&["dns", "resolve"], Unreachable::NoName),
        (&["certificate", "tls", "ssl", "handshake"], Unreachable::NotTrusted),
        (&["refused"], Unreachable::Refused),
        (&["timed out", "timeout"], Unreachable::TimedOut),
        // workerd reports a refused connection as lost.
        (&["lost", "disconnect", "reset", "closed"], Unreachable::RefusedOrLost),
    ] {
        if words::has_any(&text, any) {
            return reason;
        }
    }
    Unreachable::NotConnected
}

/// Returns the runtime's message for an error.
pub(crate) fn describe(error: &JsValue) -> String {
    let error = error.dyn_ref::<js_sys::Error>();
    error.map_or_else(String::new, |error| error.message().into())
}
