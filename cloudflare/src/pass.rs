//! Pass-through of paths that Creole does not translate: `/v1/*` goes unchanged to the first
//! upstream, with that upstream's key.
//!
//! The bodies of request and response stay in the runtime and never enter WebAssembly.

use creole::{Failure, Header, PassedHead};
use worker::web_sys::{Request, Response};

use crate::http;
use crate::incoming::Incoming;
use crate::live::{self, Live};
use crate::open_calls::Aborting;

pub(crate) async fn pass(mut live: Box<Live>, request: &Request, head: Vec<Header>) -> Response {
    let url = request.url();
    let path = &*creole::with_version(http::path_and_query(&url));
    let Some((upstream, path)) = creole::passed(live.exchange.config(), path) else {
        return live.refuse(Failure::NoRoute, Incoming::of(request).as_ref());
    };
    live.complete();
    let target = format!("{}{path}", upstream.url);
    let name = upstream.name.clone();
    let headers = http::headers(&head);
    let pairs = head.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let change = PassedHead::of_request(pairs, upstream);
    for name in change.remove {
        let _ = headers.delete(&name);
    }
    for (name, value) in change.set {
        let _ = headers.set(&name, &value);
    }
    // A client that disconnects before the head ends the upstream's request. After the head, the
    // runtime ends both bodies together.
    let (mut aborting, signal) = Aborting::new();
    let body = request.body().map_or(wasm_bindgen::JsValue::NULL, Into::into);
    let sent = match http::send(&request.method(), &target, &headers, &body, &signal) {
        Ok(sent) => sent.await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(response) => {
            aborting.over();
            live.request.passed = Some((response.status(), name));
            response
        }
        Err(error) => {
            live::warn(live.exchange.config(), || {
                format!("upstream {name}: {}", http::describe(&error))
            });
            live.fail(Failure::Unreachable(http::reason(&error)))
        }
    }
}
