//! Handling of one request: the body is collected, translated and sent on, and the answer is
//! translated on the way back.

use std::rc::Rc;

use creole::{Failure, Reply, RequestHead};
use wasm_bindgen::prelude::*;
use worker::web_sys::{Request, Response};

use crate::body;
use crate::driver::Driver;
use crate::environment::{Isolate, now, seed};
use crate::gone::Client;
use crate::http;
use crate::incoming::Incoming;
use crate::live::Live;
use crate::pass;

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
    Driver::new(live).respond().await
}
