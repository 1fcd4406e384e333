//! Web page at `/`, which shows what the gateway does now and has done recently.
//!
//! The page has names and numbers, never a prompt, an answer, a tool's input or a key: all of it
//! comes from reports, like the log lines. The page is one response that contains its style and
//! script. So nothing else has to be served, and the page may load nothing else.

pub(crate) mod board;
mod escape;
mod events;
mod html;
mod meanings;
mod plots;
mod probe;
mod row;
mod status;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use creole::{Config, Header};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};

use crate::clock::Clock;
pub(crate) use board::Board;
pub(crate) use events::{Events, Source};
pub(crate) use status::MEDIA_TYPE as STATUS_TYPE;

/// Text that the browser shows if the password for the page is missing or wrong.
const NEEDS_KEY: &str = "This page needs one of the keys of clients: write it as the password.";

/// Headers that proxies set. A request with such a header does not count as a request of this
/// machine, whatever its address is.
const FORWARDED: [&str; 7] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "via",
    "cf-connecting-ip",
];

/// Resource of the web page that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageResource {
    Page,
    Events,
    /// Figures for the status line of a client.
    Status,
}

/// Permission of a sender to read the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Let,
    /// The sender may read the page with a client key, but sent none.
    WithoutKey,
    /// The sender is treated like any other client, and gets no page.
    Nobody,
}

/// Body of a response to a request for the web page.
#[derive(Debug)]
pub(crate) enum Content {
    Whole(String),
    /// Server-sent events that update the page.
    Events(Box<Events>),
}

/// Returns the response to a request for the page; `None` if its sender is treated as an API
/// client. `let_in` is called if the sender may read the page.
pub(crate) fn respond(
    wanted: PageResource,
    source: Source,
    is_local: bool,
    (headers, list): (&HeaderMap, &[Header]),
    let_in: impl FnOnce(),
) -> Option<Response<Content>> {
    match reader(&source.config, is_local, headers, list) {
        Reader::Let => let_in(),
        Reader::WithoutKey if is_navigation(headers) => return Some(unauthorized()),
        Reader::WithoutKey | Reader::Nobody => return None,
    }
    if wanted == PageResource::Status {
        return Some(figures(&source));
    }
    source.look();
    if wanted == PageResource::Events {
        return Some(match source.board.watch() {
            Some(watching) => event_stream(Events::new(source, watching)),
            None => too_many(),
        });
    }
    let mut nonce = [0; 16];
    // If randomness fails, the page is served with a nonce of zeros.
    let _ = getrandom::fill(&mut nonce);
    let nonce = STANDARD.encode(nonce);
    let text = source.board.with(|state| html::page(&source.config, state, &nonce));
    let mut response = Response::new(Content::Whole(text));
    let headers = response.headers_mut();
    harden(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    Some(response)
}

/// Returns the page's resource that a browser asks for, or `None` for a request of an API client.
/// Clients that probe a base URL accept any content type, or JSON.
pub(crate) fn wanted(head: &Parts) -> Option<PageResource> {
    if head.uri.path() != "/" || ![Method::GET, Method::HEAD].contains(&head.method) {
        return None;
    }
    let accepts = |kind: &str| {
        let values = head.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut ranges = values.flat_map(|value| value.split(','));
        ranges.any(|range| {
            let range = range.split(';').next().unwrap_or_default();
            range.trim().eq_ignore_ascii_case(kind)
        })
    };
    if accepts("text/event-stream") && head.method == Method::GET {
        return Some(PageResource::Events);
    }
    if accepts(STATUS_TYPE) {
        return Some(PageResource::Status);
    }
    accepts("text/html").then_some(PageResource::Page)
}

/// Returns true if a proxy has passed the request on.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDED.iter().any(|name| headers.contains_key(*name))
}

fn reader(config: &Config, is_local: bool, headers: &HeaderMap, list: &[Header]) -> Reader {
    if config.client_keys.is_empty() {
        return if is_local && !is_forwarded(headers) { Reader::Let } else { Reader::Nobody };
    }
    let has_key = config.lets_in(list)
        || password(headers)
            .is_some_and(|password| config.lets_in(&[("x-api-key".to_owned(), password)]));
    if has_key { Reader::Let } else { Reader::WithoutKey }
}

/// Returns the password from the browser's login dialog (HTTP Basic authentication).
fn password(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}

/// Returns true if a person opens the page in a browser. Monitors, and clients that accept HTML
/// among other types, send neither of these headers.
fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    is("sec-fetch-mode", "navigate") || is("upgrade-insecure-requests", "1")
}

fn unauthorized() -> Response<Content> {
    let mut response = Response::new(Content::Whole(NEEDS_KEY.to_owned()));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    harden(headers);
    let asks = HeaderValue::from_static("Basic realm=\"Creole\", charset=\"UTF-8\"");
    headers.insert(WWW_AUTHENTICATE, asks);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn event_stream(events: Events) -> Response<Content> {
    let mut response = Response::new(Content::Events(Box::new(events)));
    let headers = response.headers_mut();
    harden(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns the response with figures for a status line.
fn figures(source: &Source) -> Response<Content> {
    let now = Clock::start().now();
    let text = source.board.with(|state| status::json(state, now));
    let mut response = Response::new(Content::Whole(text));
    harden(response.headers_mut());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(STATUS_TYPE));
    response
}

/// Returns the error response to a request for live updates if too many pages are open.
fn too_many() -> Response<Content> {
    let mut response = Response::new(Content::Whole(String::new()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    harden(response.headers_mut());
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("30"));
    response
}

fn harden(headers: &mut HeaderMap) {
    for (name, value) in [
        (CACHE_CONTROL.as_str(), "no-store"),
        (VARY.as_str(), "accept"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
