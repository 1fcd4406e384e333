//! Paths that are not Creole's: `/v1/*` goes to the first upstream as it is, with that upstream's key;
//! nothing else is served.
//!
//! Both bodies stay with the runtime and never enter WebAssembly.

use creole::{Failure, PassedHead};
use worker::AbortController;
use worker::web_sys::{Request, Response};

use crate::environment::Isolate;
use crate::http;
use crate::live::{self, Live};
use crate::serve;

pub(crate) async fn pass(isolate: &Isolate, mut live: Live, request: &Request) -> Response {
    let url = request.url();
    let path = &*creole::with_version(http::path_and_query(&url));
    let Some((upstream, path)) = creole::passed(live.exchange.config(), path) else {
        serve::discard(isolate, request).await;
        return live.fail(Failure::NoRoute);
    };
    let target = format!("{}{path}", upstream.url);
    let name = upstream.name.clone();
    let sent = http::list(request.headers());
    let headers = http::headers(&sent);
    let pairs = sent.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let change = PassedHead::of_request(pairs, upstream);
    for name in change.remove {
        let _ = headers.delete(&name);
    }
    for (name, value) in change.set {
        let _ = headers.set(&name, &value);
    }
    // Nothing is cut by hand: the runtime ends both sides together.
    let signal = AbortController::default().signal();
    let body = request.body().map_or(wasm_bindgen::JsValue::NULL, Into::into);
    let sent = match http::send(&request.method(), &target, &headers, &body, &signal) {
        Ok(sent) => sent.await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(response) => {
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
