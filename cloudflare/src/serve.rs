//! Handling of one request: the body is collected, translated and sent on, and the answer is
//! translated on the way back.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use creole::{Call, CallId, Failure, Reply, RequestHead};
use wasm_bindgen::prelude::*;
use worker::web_sys::{Request, Response};

use crate::answer::{Answered, Answering};
use crate::body;
use crate::call::Sent;
use crate::environment::{Isolate, now, seed};
use crate::gone::Client;
use crate::http;
use crate::incoming::Incoming;
use crate::live::Live;
use crate::pass;
use crate::timer::Timer;

/// Handles a request. `shim.js` calls this function for every request.
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
        Some(isolate) => {
            let client = Rc::new(Client::of(&request));
            let answered = client.wait(answer(&isolate, &client, &request)).await;
            // Nobody gets the answer to a client that has gone.
            answered.unwrap_or_else(Response::error)
        }
        // A Worker cannot refuse to start, so it refuses every request.
        None => {
            let reply = Reply::not_configured(seed());
            http::response(&reply.head, &reply.body)
        }
    }
}

async fn answer(isolate: &Isolate, client: &Rc<Client>, request: &Request) -> Response {
    let (method, url) = (request.method(), request.url());
    let path = http::path_and_query(&url);
    let mut live = Box::new(Live::new(isolate, client, &method, path));
    let (head, path) = (http::list(request.headers()), creole::with_version(path));
    if let Some(reason) = isolate.refuse(request, &url, &head) {
        return live.refuse(Failure::Forbidden(reason), Incoming::of(request).as_ref());
    }
    let decided = live.exchange.handle_request_head(&method, &path, &head);
    if decided == RequestHead::Answered {
        return live.reply(Incoming::of(request).as_ref());
    }
    if let Err(failure) = live.hold(request, &head) {
        return live.refuse(failure, Incoming::of(request).as_ref());
    }
    if decided == RequestHead::PassThrough {
        return pass::pass(live, request, head).await;
    }
    drop(head);
    translate(live, request).await
}

async fn translate(mut live: Box<Live>, request: &Request) -> Response {
    match body::collect(&live, Incoming::of(request)).await {
        Ok(collected) => live.exchange.handle_request_body(collected, now()),
        Err((failure, unread)) => return live.refuse(failure, unread.as_ref()),
    }
    loop {
        let Some(call) = live.exchange.poll_call(now()) else { return live.reply(None) };
        match answer_of(live, call).await {
            Answered::Response(response) => return response,
            Answered::Due(due) => live = due,
        }
    }
}

/// Calls an upstream, and waits until a response for the client is ready or another call is due.
async fn answer_of(mut live: Box<Live>, call: Call) -> Answered {
    let id = call.id;
    if let Err(failure) = live.count_call(&call) {
        return failed(live, id, failure);
    }
    let Some(mut sent) = Sent::new(live.exchange.config(), call) else {
        return failed(live, id, Failure::NoRoute);
    };
    let mut timer = Timer::default();
    let answered = loop {
        let next = poll_fn(|context| match sent.poll(live.exchange.config(), context) {
            Poll::Ready(answered) => Poll::Ready(Some(answered)),
            Poll::Pending => timer.poll(live.exchange.poll_timeout(), context).map(|()| None),
        });
        if let Some(answered) = next.await {
            break answered;
        }
        live.exchange.handle_timeout(now());
        if live.exchange.is_ended() || live.exchange.is_call_due() {
            return without_answer(live);
        }
        if let Some(head) = live.exchange.poll_head() {
            return Answered::Response(Answering::waiting(live, sent).begin(&head));
        }
    };
    let response = match answered {
        Ok(response) => response,
        Err(failure) => return failed(live, id, failure),
    };
    let upstream = sent.answered(&response, &mut live.exchange);
    Answering::new(live, id, upstream).respond().await
}

/// Reports to the exchange that its call failed, and returns what follows: another call or a
/// response.
fn failed(mut live: Box<Live>, call: CallId, failure: Failure) -> Answered {
    live.fail_call(call, failure);
    without_answer(live)
}

/// Ends a call whose answer does not go to the client. Either another call is due, even if an image
/// could not be fetched, or the exchange has ended.
fn without_answer(mut live: Box<Live>) -> Answered {
    if live.exchange.is_call_due() {
        return Answered::Due(live);
    }
    Answered::Response(live.reply(None))
}
