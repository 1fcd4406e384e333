//! Check that an upstream answers at its URL, and which models it lists: the first two steps of
//! `creole check`.
//!
//! A server without a list of models can still be used. So if the list is not found, other paths
//! are tried. Last, an empty request is sent to the path of answers, for which no model runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use creole::config::{Key, Protocol, Upstream};
use creole::{Config, Exchange, Header, HostCan, RequestHead, Unreachable};
use hyper::Method;
use hyper::header::LOCATION;

use super::ask::{Got, NoAnswer, ask};
use super::models::{self, List};
use super::problem::{PAGE, Problem};
use crate::headers;
use crate::probe::private_network::is_in_private_network;
use crate::upstream::client::UpstreamClient;

/// Usual base paths before `/models`, the most likely first.
const BASES: [&str; 9] = [
    "/v1",
    "/openai/v1",
    "/api/v1",
    "/api",
    "/v1beta/openai",
    "/compatible-mode/v1",
    "/inference/v1",
    "/api/paas/v4",
    "",
];

/// Key that clients send if the server requires none.
pub(crate) const PLACEHOLDER: &str = "local";

/// Maximum time of each request of the check, for which no model runs.
pub(crate) const LOOK_TIME: Duration = Duration::from_secs(10);

/// Result of checking an upstream.
#[derive(Debug)]
pub(crate) enum Looked {
    Models(List),
    /// The upstream has an API, but no list of models.
    NoList,
    Wrong(Problem),
}

/// Checks an upstream and asks for its models. Each request may last `patience`.
pub(crate) async fn look(
    client: &UpstreamClient,
    upstream: &Upstream,
    patience: Duration,
) -> Looked {
    let place = CheckedUpstream { client, upstream, patience };
    let url = &upstream.url;
    match place.list(url, &upstream.base_path).await {
        ListResult::Models(listed) => Looked::Models(listed),
        ListResult::Unreachable(reason) => Looked::Wrong(place.unreachable(&reason).await),
        ListResult::Plain => Looked::Wrong(place.speaks_tls()),
        ListResult::Key(status) => Looked::Wrong(Problem::key(upstream, status)),
        ListResult::Redirect(to) => {
            let text = format!("{url} sends clients on to {to}: write that address");
            Looked::Wrong(Problem::new("redirect", text))
        }
        ListResult::Failing(status) => {
            let text = format!("{url} answers {status}: look at the server's log, or try again");
            Looked::Wrong(Problem::new("status", text))
        }
        ListResult::Nothing(status) => place.elsewhere(&status.to_string()).await,
        ListResult::Page => place.elsewhere(PAGE).await,
    }
}

/// Checks an upstream that gave no list of models. Returns the problem, or `None` if the upstream
/// is usable without a list.
pub(crate) async fn what_is_wrong(client: &UpstreamClient, upstream: &Upstream) -> Option<Problem> {
    match look(client, upstream, LOOK_TIME).await {
        Looked::Wrong(problem) => Some(problem),
        Looked::Models(_) | Looked::NoList => None,
    }
}

/// Returns true if an upstream answers a request for its models, whatever the answer is.
pub(crate) async fn answers(
    client: &UpstreamClient,
    upstream: &Upstream,
    patience: Duration,
) -> bool {
    let place = CheckedUpstream { client, upstream, patience };
    let answer = place.list(&upstream.url, &upstream.base_path).await;
    !matches!(answer, ListResult::Unreachable(_))
}

/// Returns the problem of an upstream that lists models to everyone, but refuses the key for
/// answers; `None` if it has none, or does not say so in time.
pub(crate) async fn refused_key(client: &UpstreamClient, upstream: &Upstream) -> Option<Problem> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let mut asked = upstream.clone();
    if asked.key == Key::Client {
        // There is no client yet whose key could go there.
        asked.key = Key::None;
    }
    match (CheckedUpstream { client, upstream: &asked, patience: PATIENCE }).endpoint().await {
        // With 403 a server may also refuse the empty request.
        Some(Endpoint::Key(status @ 401)) => Some(Problem::key(upstream, status)),
        _ => None,
    }
}

/// Returns the preset that the upstream's list of models shows. The gateway waits for the list at
/// its start, so the time limit is short.
pub(crate) async fn preset_by_list(
    client: &UpstreamClient,
    upstream: &Upstream,
) -> Option<&'static str> {
    const PATIENCE: Duration = Duration::from_secs(2);
    list(client, upstream, PATIENCE).await?.preset
}

/// Returns the list of models at the configured path; no other path is tried.
pub(crate) async fn list(
    client: &UpstreamClient,
    upstream: &Upstream,
    patience: Duration,
) -> Option<List> {
    let place = CheckedUpstream { client, upstream, patience };
    match place.list(&upstream.url, &upstream.base_path).await {
        ListResult::Models(listed) => Some(listed),
        _ => None,
    }
}

/// Upstream to check, with the means to send requests to it.
struct CheckedUpstream<'a> {
    client: &'a UpstreamClient,
    upstream: &'a Upstream,
    patience: Duration,
}

/// Result of a request for the list of models.
#[derive(Debug)]
enum ListResult {
    Models(List),
    Unreachable(Unreachable),
    /// The upstream speaks TLS, but the request was sent without TLS.
    Plain,
    Key(u16),
    Redirect(String),
    Failing(u16),
    /// The server has no list of models at the requested path. The number is the status of the
    /// response, or 0 if no request was sent.
    Nothing(u16),
    Page,
}

impl CheckedUpstream<'_> {
    async fn list(&self, url: &str, base: &str) -> ListResult {
        let Some((path, headers)) = list_head(self.upstream, base) else {
            return ListResult::Nothing(0);
        };
        match self.ask(Method::GET, &[url, &path].concat(), headers, Bytes::new()).await {
            Ok(got) => read(&got),
            Err(reason) => ListResult::Unreachable(reason),
        }
    }

    /// Explains why the upstream could not be reached. A TLS server gives no useful error to plain
    /// HTTP, so the URL is also tried with the other scheme.
    async fn unreachable(&self, reason: &Unreachable) -> Problem {
        let url = &self.upstream.url;
        let is_odd = matches!(
            reason,
            Unreachable::NotHttp | Unreachable::Closed | Unreachable::NotConnected
        );
        if let Some(host) = url.strip_prefix("http://").filter(|_| is_odd)
            && self.answers_at(&["https://", host].concat()).await
        {
            return self.speaks_tls();
        }
        // HTTP without TLS is tried only in private networks, because it must not be advised
        // elsewhere.
        if let Some(host) =
            url.strip_prefix("https://").filter(|_| is_odd && is_in_private_network(url))
            && self.answers_at(&["http://", host].concat()).await
        {
            return Problem::unreachable(url, &Unreachable::NotTls);
        }
        Problem::unreachable(url, reason)
    }

    /// Returns true if a server answers at the upstream's URL with the other scheme. The operator
    /// did not configure this URL, so the request has no key, and no header or path of the
    /// upstream.
    async fn answers_at(&self, other: &str) -> bool {
        match self.ask(Method::GET, &[other, "/"].concat(), Vec::new(), Bytes::new()).await {
            Ok(got) => !is_plain(&got.body),
            Err(reason) => matches!(
                reason,
                Unreachable::UnknownIssuer
                    | Unreachable::Expired
                    | Unreachable::OtherName
                    | Unreachable::AuthorityAsServer
                    | Unreachable::BadCertificate
            ),
        }
    }

    fn speaks_tls(&self) -> Problem {
        let url = &self.upstream.url;
        Problem::new("tls", format!("{url} speaks TLS: write https:// in place of http://"))
    }

    /// Looks for a list of models at other base paths, after the configured path had none.
    async fn elsewhere(&self, answered: &str) -> Looked {
        let Upstream { url, base_path, .. } = self.upstream;
        let below = [base_path, "/v1"].concat();
        let mut asks_for_key = None;
        for base in [below.as_str()].into_iter().chain(BASES).filter(|base| base != base_path) {
            match self.list(url, base).await {
                ListResult::Models(_) => {
                    return Looked::Wrong(Problem::path(self.upstream, answered, Some(base)));
                }
                ListResult::Key(_) => asks_for_key = asks_for_key.or_else(|| Some(base.to_owned())),
                // A server that is gone or slow is not asked for each of the nine base paths.
                ListResult::Unreachable(_) => break,
                _ => {}
            }
        }
        match self.endpoint().await {
            Some(Endpoint::There) => Looked::NoList,
            Some(Endpoint::Key(status)) => Looked::Wrong(Problem::key(self.upstream, status)),
            None => Looked::Wrong(Problem::path(self.upstream, answered, asks_for_key.as_deref())),
        }
    }

    /// Sends an empty request to the path of answers, and returns the kind of endpoint there;
    /// `None` if the path has no endpoint.
    async fn endpoint(&self) -> Option<Endpoint> {
        let (path, headers) = answer_head(self.upstream)?;
        let url = [&self.upstream.url, &*path].concat();
        let got = self.ask(Method::POST, &url, headers, Bytes::from_static(b"{}")).await.ok()?;
        let text = String::from_utf8_lossy(&got.body).to_ascii_lowercase();
        match got.status.as_u16() {
            401 | 403 => Some(Endpoint::Key(got.status.as_u16())),
            300..=399 | 405 => None,
            // A 404 about the model comes from an API, because the request names no model.
            404 if text.trim_start().starts_with('{') && text.contains("model") => {
                Some(Endpoint::There)
            }
            404 => None,
            _ if is_page(&got.body) => None,
            _ => Some(Endpoint::There),
        }
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: Vec<Header>,
        body: Bytes,
    ) -> Result<Got, Unreachable> {
        let sent = (headers::map(headers), body);
        match ask(self.client, method, url, sent, self.patience).await {
            Ok(got) => Ok(got),
            Err(NoAnswer::NotUrl) => Err(Unreachable::NotConnected),
            Err(NoAnswer::Unreachable(reason)) => Err(reason),
            Err(NoAnswer::Late(_)) => Err(Unreachable::TimedOut),
        }
    }
}

/// Kind of endpoint at the path of answers: an API, or a response that requires a key.
enum Endpoint {
    There,
    Key(u16),
}

/// Returns the path and headers with which the core requests the list of models, for another base
/// path.
fn list_head(upstream: &Upstream, base: &str) -> Option<(String, Vec<Header>)> {
    let mut upstream = upstream.clone();
    base.clone_into(&mut upstream.base_path);
    let mut sent = client_headers();
    if upstream.protocol == Protocol::Anthropic {
        // With a version header the request would pass unchanged, and the upstream's list would not
        // be read here.
        sent.retain(|(name, _)| name != "anthropic-version");
    }
    let mut exchange = exchange(upstream);
    if exchange.handle_request_head("GET", "/v1/models", &sent) != RequestHead::Translate {
        return None;
    }
    exchange.handle_request_body(Vec::new(), 0);
    let call = exchange.poll_call(0)?;
    Some((call.path, call.headers))
}

/// Returns the path and headers with which the core requests an answer.
fn answer_head(upstream: &Upstream) -> Option<(String, Vec<Header>)> {
    let mut exchange = exchange(upstream.clone());
    let head = exchange.handle_request_head("POST", "/v1/messages", &client_headers());
    (head == RequestHead::Translate).then(|| exchange.early_head(upstream))
}

/// Returns an exchange whose configuration has only this upstream.
fn exchange(upstream: Upstream) -> Exchange {
    let mut config = Config::default();
    config.upstreams.clear();
    config.upstreams.insert(upstream.name.clone(), upstream);
    let can = HostCan { list_models: true, ..HostCan::default() };
    Exchange::new(Arc::new(config), 0, can)
}

/// Returns the headers of a client that has no key.
fn client_headers() -> Vec<Header> {
    [("anthropic-version", "2023-06-01"), ("x-api-key", PLACEHOLDER)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn read(got: &Got) -> ListResult {
    let Got { status, headers, body, .. } = got;
    let status = status.as_u16();
    match status {
        401 | 403 => ListResult::Key(status),
        _ if is_plain(body) => ListResult::Plain,
        200..=299 => match models::read(headers, body) {
            Some(listed) => ListResult::Models(listed),
            None if is_page(body) => ListResult::Page,
            None => ListResult::Nothing(status),
        },
        300..=399 => match headers.get(LOCATION).and_then(|to| to.to_str().ok()) {
            // The query of the URL may contain a secret.
            Some(to) => {
                ListResult::Redirect(to.split(['?', '#']).next().unwrap_or_default().to_owned())
            }
            None => ListResult::Nothing(status),
        },
        429 | 500..=599 if status != 501 => ListResult::Failing(status),
        _ => ListResult::Nothing(status),
    }
}

/// Returns true if a body is the error of nginx, or of a server in Go, for plain HTTP on a TLS
/// port.
fn is_plain(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body.get(..1024).unwrap_or(body));
    text.contains("HTTP request to an HTTPS server")
        || text.contains("plain HTTP request was sent to HTTPS port")
}

fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

#[cfg(test)]
mod tests;
