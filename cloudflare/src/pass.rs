//! Paths that are not Creole's: `/v1/*` goes to the first upstream as it is, with that upstream's key;
//! nothing else is served.
//!
//! Both bodies stay with the runtime and never enter WebAssembly.

use creole::Failure;
use creole::config::Upstream;
use creole::headers::{CREDENTIALS, own_credential};
use worker::web_sys::{Request, Response};
use worker::{AbortController, Headers};

use crate::http;
use crate::live::{self, Live};

pub(crate) async fn pass(mut live: Live, request: &Request) -> Response {
    let url = request.url();
    let path = http::path_and_query(&url);
    let Some((upstream, path)) = creole::passed(live.exchange.config(), path) else {
        return live.fail(Failure::NoRoute);
    };
    let target = format!("{}{path}", upstream.url);
    let name = upstream.name.clone();
    let headers = http::headers(&http::list(request.headers()));
    // The runtime sets the one, and has answered a client that waits for 100.
    for name in ["host", "expect"] {
        let _ = headers.delete(name);
    }
    set_key(&headers, upstream);
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
            live.fail(Failure::Unreachable(http::reason(&error).to_owned()))
        }
    }
}

/// The Worker's own key replaces whatever the client sent; the client's is left as it is.
fn set_key(headers: &Headers, upstream: &Upstream) {
    let Some((name, value)) = own_credential(&upstream.key, upstream.protocol) else { return };
    for name in CREDENTIALS {
        let _ = headers.delete(name);
    }
    let _ = headers.set(name, &value);
}
