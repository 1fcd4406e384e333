//! Exchange for measurements of server tools. It is no part of `bodies`, whose other users do not
//! link the core.

use std::sync::Arc;

use creole::{Config, Exchange, HostCan, RequestHead};

/// Returns an exchange that has got the head of a request, with a host that can do all that server
/// tools need.
pub(crate) fn exchange(config: &Arc<Config>) -> Exchange {
    let can = HostCan {
        ask_again: true,
        call_services: true,
        fetch: true,
        calls_at_once: 4,
        ..HostCan::default()
    };
    let mut exchange = Exchange::new(Arc::clone(config), 7, can);
    let headers = [("x-api-key".to_owned(), "k".to_owned())];
    let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
    assert!(matches!(head, RequestHead::Translate));
    exchange
}
