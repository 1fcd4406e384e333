//! Paths that are not Creole's: `/v1/*` goes to the first upstream as it is, with that upstream's key;
//! nothing else is served.

use creole::Failure;
use creole::config::Upstream;
use creole::headers::{CREDENTIALS, own_credential};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};

use crate::answer::Body;
use crate::headers;
use crate::live::Live;
use crate::reach;
use crate::service::Gateway;

pub(crate) async fn pass(
    gateway: &Gateway,
    mut live: Live,
    head: Parts,
    body: Incoming,
) -> Response<Body> {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let Some((upstream, path)) = creole::passed(live.exchange.config(), path) else {
        return live.fail(Failure::NoRoute);
    };
    let target = format!("{}{path}", upstream.url);
    let name = upstream.name.clone();
    let mut sent = head.headers;
    headers::remove_hop_by_hop(&mut sent);
    sent.remove(HOST);
    set_key(&mut sent, upstream);
    let Ok(uri) = target.parse::<Uri>() else { return live.fail(Failure::NoRoute) };
    let mut request = Request::new(Either::Right(body));
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = sent;
    match gateway.client.request(request).await {
        Ok(response) => {
            live.request.passed = Some((response.status().as_u16(), name));
            let (mut head, upstream) = response.into_parts();
            headers::remove_hop_by_hop(&mut head.headers);
            head.version = hyper::Version::default();
            let body = Body::Passed { upstream, live: Box::new(live) };
            Response::from_parts(head, body)
        }
        Err(error) => live.fail(reach::unreachable(&name, &error)),
    }
}

/// The gateway's own key replaces whatever the client sent; the client's is left as it is.
fn set_key(headers: &mut HeaderMap, upstream: &Upstream) {
    let Some((name, value)) = own_credential(&upstream.key, upstream.protocol) else { return };
    for name in CREDENTIALS {
        headers.remove(name);
    }
    if let Ok(mut value) = HeaderValue::try_from(value) {
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole::config::{Key, Protocol};

    #[test]
    fn the_gateways_key_replaces_the_clients() {
        let sent = |upstream: &Upstream| {
            let mut headers = HeaderMap::new();
            headers.insert("x-api-key", HeaderValue::from_static("mine"));
            set_key(&mut headers, upstream);
            headers::list(&headers)
        };
        let mut upstream = Upstream::named("u");
        assert_eq!(sent(&upstream), [("x-api-key".to_owned(), "mine".to_owned())]);
        upstream.key = Key::Secret("sk".to_owned());
        assert_eq!(sent(&upstream), [("authorization".to_owned(), "Bearer sk".to_owned())]);
        upstream.protocol = Protocol::Anthropic;
        assert_eq!(sent(&upstream), [("x-api-key".to_owned(), "sk".to_owned())]);
        upstream.key = Key::Secret(" Bearer oat ".to_owned());
        assert_eq!(sent(&upstream), [("authorization".to_owned(), "Bearer oat".to_owned())]);
    }
}
