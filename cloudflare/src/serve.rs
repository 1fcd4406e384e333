//! One request: collected, translated, sent on, and its answer translated on the way back.

use std::future::poll_fn;
use std::task::Poll;

use creole::{Call, Failure, Reply, RequestHead};
use futures_util::StreamExt as _;
use wasm_bindgen::prelude::*;
use worker::ByteStream;
use worker::js_sys::{ArrayBuffer, Promise, Uint8Array};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{Request, Response};

use crate::answer::{Answered, Answering};
use crate::budget::Held;
use crate::call::Sent;
use crate::environment::{Isolate, now, seed};
use crate::http;
use crate::live::Live;
use crate::pass;
use crate::timer::Timer;

/// A body that says to be this long or shorter is read in one go.
const AT_ONCE_BYTES: usize = 256 << 10;

/// Called by `shim.js` for every request.
#[wasm_bindgen(
    wasm_bindgen_futures = worker::wasm_bindgen_futures,
    js_sys = worker::js_sys
)]
pub async fn fetch(request: Request, env: JsValue) -> Response {
    #[cfg(feature = "test-hooks")]
    if let Some(response) = crate::hooks::answer(&request) {
        return response;
    }
    match Isolate::of(&env) {
        Some(isolate) => answer(&isolate, request).await,
        // A Worker cannot refuse to start, so it refuses every request.
        None => {
            let reply = Reply::not_configured(seed());
            http::response(&reply.head, &reply.body)
        }
    }
}

async fn answer(isolate: &Isolate, request: Request) -> Response {
    let (method, url) = (request.method(), request.url());
    let path = http::path_and_query(&url);
    let mut live = Live::new(isolate, &method, path);
    let (head, path) = (http::list(request.headers()), creole::with_version(path));
    match live.exchange.handle_request_head(&method, &path, &head) {
        RequestHead::PassThrough => pass::pass(isolate, live, &request).await,
        RequestHead::Answered => {
            discard(isolate, &request).await;
            live.reply()
        }
        RequestHead::Translate => translate(isolate, live, &request).await,
    }
}

async fn translate(isolate: &Isolate, mut live: Live, request: &Request) -> Response {
    let mut held = isolate.budget.hold();
    let body = match collect(isolate, request, &held).await {
        Ok(body) => body,
        Err(failure) => return live.fail(failure),
    };
    live.exchange.handle_request_body(body, now());
    loop {
        let Some(call) = live.exchange.poll_call(now()) else { return live.reply() };
        live.hold(&held);
        match answer_of(isolate, live, call, held).await {
            Answered::Response(response) => return response,
            Answered::Due(due, kept) => (live, held) = (*due, kept),
        }
    }
}

/// One call of an upstream, up to the head for the client.
async fn answer_of(isolate: &Isolate, mut live: Live, call: Call, held: Held) -> Answered {
    let Some(mut sent) = Sent::new(&isolate.config, call) else {
        return failed(live, Failure::NoRoute, held);
    };
    let mut timer = Timer::default();
    let answered = loop {
        let next = poll_fn(|context| match sent.poll(&isolate.config, context) {
            Poll::Ready(answered) => Poll::Ready(Some(answered)),
            Poll::Pending => timer.poll(live.exchange.poll_timeout(), context).map(|()| None),
        });
        if let Some(answered) = next.await {
            break answered;
        }
        live.exchange.handle_timeout(now());
        if live.exchange.is_ended() || live.exchange.is_call_due() {
            return without_answer(live, held);
        }
    };
    let response = match answered {
        Ok(response) => response,
        Err(failure) => return failed(live, failure, held),
    };
    let upstream = sent.answered(&response, &mut live.exchange);
    // The request is sent; what may be needed again is held on.
    live.hold(&held);
    Answering::new(live, upstream, held).respond().await
}

/// A call failed.
fn failed(mut live: Live, failure: Failure, held: Held) -> Answered {
    live.exchange.handle_failure(failure, now());
    without_answer(live, held)
}

/// A call whose answer is not the client's: another one is due, for which an image that cannot be fetched makes no
/// difference, or the exchange has ended.
fn without_answer(mut live: Live, held: Held) -> Answered {
    if live.exchange.is_call_due() {
        return Answered::Due(Box::new(live), held);
    }
    Answered::Response(live.reply())
}

async fn collect(isolate: &Isolate, request: &Request, held: &Held) -> Result<Vec<u8>, Failure> {
    let settings = &isolate.config.settings;
    let max = settings.buffered_bytes_max;
    let length = request.headers().get("content-length").ok().flatten();
    let length = length.and_then(|length| length.parse::<usize>().ok());
    // A longer one counts as it comes: others need not wait for what a client only claims to send.
    if let Some(length) = length.filter(|length| *length <= AT_ONCE_BYTES) {
        // The runtime sees that it is true.
        if !held.grow(length, max, now()) {
            discard(isolate, request).await;
            return Err(Failure::Overloaded);
        }
        let whole = request.array_buffer().map_err(|_| Failure::RequestIncomplete)?;
        let whole: Promise<ArrayBuffer> = whole.unchecked_into();
        let whole = JsFuture::from(whole).await.map_err(|_| Failure::RequestIncomplete)?;
        return Ok(Uint8Array::new(&whole).to_vec());
    }
    let mut collected = Vec::new();
    let Some(body) = request.body() else { return Ok(collected) };
    let mut body = ByteStream::from(body);
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else { return Err(Failure::RequestIncomplete) };
        let refused = if collected.len().saturating_add(piece.len()) > settings.request_bytes_max {
            Failure::RequestTooLarge
        } else if held.grow(piece.len(), max, now()) {
            collected.extend_from_slice(&piece);
            continue;
        } else {
            Failure::Overloaded
        };
        // What came is gone; what still comes is not kept.
        drop(collected);
        held.release();
        read_out(isolate, body).await;
        return Err(refused);
    }
    Ok(collected)
}

/// Reads a refused body, up to a limit. A server that closes while the client writes can destroy the
/// very answer that says why.
pub(crate) async fn discard(isolate: &Isolate, request: &Request) {
    if let Some(body) = request.body() {
        read_out(isolate, ByteStream::from(body)).await;
    }
}

async fn read_out(isolate: &Isolate, mut body: ByteStream) {
    let most = isolate.config.settings.discarded_bytes_max();
    let mut read = 0_usize;
    while let Some(Ok(piece)) = body.next().await {
        read = read.saturating_add(piece.len());
        if read > most {
            break;
        }
    }
}
