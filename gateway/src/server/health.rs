//! Health of the gateway, for load balancers and clusters: `/healthz` says that the process serves
//! requests, `/readyz` whether a request could be answered.
//!
//! Both need no client key, because what asks for health has none. The names of upstreams are told
//! only where everyone who can ask may know them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::upstream::reach::Reach;

/// State from which the health of the gateway is told.
#[derive(Debug, Default)]
pub(crate) struct ServerHealth {
    is_stopping: AtomicBool,
    pub(crate) reach: Arc<Reach>,
}

impl ServerHealth {
    pub(crate) fn new(reach: &Arc<Reach>) -> Self {
        Self { is_stopping: AtomicBool::new(false), reach: Arc::clone(reach) }
    }

    /// Notes that the gateway stops.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Answers a request for the health of the gateway; `None` for every other request. If
    /// `is_private` is true, the answer has the names of the upstreams.
    pub(crate) fn answer(&self, head: &Parts, is_private: bool) -> Option<Response<String>> {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let (is_well, body) = match head.uri.path() {
            "/healthz" => (true, json!({"status": "alive"})),
            "/readyz" => self.readiness(is_private),
            _ => return None,
        };
        let mut response = Response::new(format!("{body}\n"));
        if !is_well {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(response)
    }

    /// Returns true if the gateway is ready, and the body of the answer.
    fn readiness(&self, is_private: bool) -> (bool, Value) {
        let upstreams = self.reach.all();
        let mut reasons = Vec::new();
        if self.is_stopping() {
            reasons.push("the gateway is shutting down");
        }
        // An upstream of which nothing is known may answer.
        if !upstreams.is_empty() && upstreams.iter().all(|(_, known)| *known == Some(false)) {
            reasons.push("no upstream can be reached");
        }
        let is_ready = reasons.is_empty();
        let status = if is_ready { "ready" } else { "not ready" };
        if !is_private {
            return (is_ready, json!({"status": status, "reasons": reasons}));
        }
        let word = |known| match known {
            None => "unknown",
            Some(true) => "reachable",
            Some(false) => "unreachable",
        };
        let named = upstreams.into_iter().map(|(name, known)| (name, Value::from(word(known))));
        let named: Map<_, _> = named.collect();
        (is_ready, json!({"status": status, "reasons": reasons, "upstreams": named}))
    }
}

#[cfg(test)]
mod tests {
    use creole::Config;
    use hyper::Request;

    use super::*;

    fn asked(
        health: &ServerHealth,
        method: &str,
        path: &str,
        is_private: bool,
    ) -> Option<(u16, String)> {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        let answer = health.answer(&request.into_parts().0, is_private)?;
        Some((answer.status().as_u16(), answer.into_body()))
    }

    #[test]
    fn the_gateway_is_ready_until_every_upstream_is_gone_or_it_stops() {
        let text = r#"{"upstreams": {"one": {}, "two": {}}}"#;
        let reach = Arc::new(Reach::default());
        reach.take(&Config::from_json(text, |_| None).unwrap());
        let health = ServerHealth::new(&reach);
        let ready = || asked(&health, "GET", "/readyz", true).unwrap();
        assert_eq!(ready().0, 200);
        reach.note("one", false);
        assert_eq!(ready().0, 200, "nothing is known of the other");
        reach.note("two", false);
        let (status, body) = ready();
        assert_eq!(status, 503);
        assert!(body.contains("no upstream can be reached"), "{body}");
        reach.note("two", true);
        let (status, body) = ready();
        assert_eq!(status, 200);
        assert!(body.contains(r#""one":"unreachable","two":"reachable""#), "{body}");
        let (_, body) = asked(&health, "GET", "/readyz", false).unwrap();
        assert_eq!(body, "{\"reasons\":[],\"status\":\"ready\"}\n");
        health.stop();
        assert!(ready().1.contains("shutting down") && ready().0 == 503);
        assert_eq!(asked(&health, "GET", "/healthz", false).unwrap().0, 200);
    }

    #[test]
    fn only_reads_of_the_two_paths_are_answered() {
        let health = ServerHealth::default();
        assert!(asked(&health, "HEAD", "/readyz?verbose", false).is_some());
        for (method, path) in [("POST", "/healthz"), ("GET", "/v1/healthz"), ("GET", "/readyz/")] {
            assert!(asked(&health, method, path, true).is_none(), "{method} {path}");
        }
    }
}
