//! A request to a server that may not exist, with a time limit, and its response.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use creole::Unreachable;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};

use super::problem::Problem;
use crate::headers;
use crate::upstream::client::{self, UpstreamClient};
use crate::upstream::decompress;

/// Maximum number of bytes that are read of a response; no list of models is longer.
const BYTES_MAX: usize = 16 << 20;

/// Response of a server to a probe.
#[derive(Debug, Default)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// True if the response's body broke off, or is longer than the maximum.
    pub(crate) is_cut: bool,
}

/// Reason for which no response came.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The given text is not a URL.
    NotUrl,
    /// The server could not be reached.
    Unreachable(Unreachable),
    /// The server's response did not come within this time.
    Late(Duration),
}

/// Sends a request to a server, and reads the response, within the time `patience`.
pub(crate) async fn ask(
    client: &UpstreamClient,
    method: Method,
    url: &str,
    (headers, body): (HeaderMap, Bytes),
    patience: Duration,
) -> Result<Got, NoAnswer> {
    let uri: Uri = url.parse().map_err(|_| NoAnswer::NotUrl)?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let asked = async {
        let response = client.send(request).await;
        let (head, body) =
            response.map_err(|error| NoAnswer::Unreachable(client::reason(&error)))?.into_parts();
        let mut list = headers::list(&head.headers);
        let mut answer = decompress::DecompressedBody::new(body, &mut list);
        let mut got = Got { status: head.status, headers: head.headers, ..Got::default() };
        while let Some(piece) = poll_fn(|context| answer.poll_piece(context)).await {
            let Ok(piece) = piece else {
                got.is_cut = true;
                break;
            };
            got.body.extend_from_slice(&piece);
            if got.body.len() > BYTES_MAX {
                got.is_cut = true;
                break;
            }
        }
        Ok(got)
    };
    tokio::time::timeout(patience, asked).await.unwrap_or(Err(NoAnswer::Late(patience)))
}

/// Sends a request with one of the operator's keys, and returns the body of a successful response.
/// With a request body, the method is `POST`.
pub(crate) async fn text(
    client: &UpstreamClient,
    url: &str,
    key: Option<&str>,
    body: Option<&str>,
    patience: Duration,
) -> Result<String, Problem> {
    let got = good(client, url, key, body, patience).await?;
    Ok(String::from_utf8_lossy(&got.body).into_owned())
}

/// Sends a request with one of the operator's keys, and returns the successful response. With a
/// request body, the method is `POST`.
pub(crate) async fn good(
    client: &UpstreamClient,
    url: &str,
    key: Option<&str>,
    body: Option<&str>,
    patience: Duration,
) -> Result<Got, Problem> {
    let mut headers = HeaderMap::new();
    if body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(key) = key {
        let value = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut value = value
            .map_err(|_| Problem::new("key", "the key has characters that no header can have"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let sent = (headers, Bytes::from(body.unwrap_or_default().to_owned()));
    match ask(client, method, url, sent, patience).await {
        Ok(got) if got.status.is_success() && !got.is_cut => Ok(got),
        answered => Err(problem(&answered)),
    }
}

/// Describes a missing or unsuccessful response, in words that follow the server's name.
fn problem(answered: &Result<Got, NoAnswer>) -> Problem {
    match answered {
        Err(NoAnswer::NotUrl) => Problem::new("not_url", "not a URL"),
        Err(NoAnswer::Unreachable(reason)) => Problem::new("unreachable", reason.words()),
        Err(NoAnswer::Late(time)) => {
            Problem::new("timeout", format!("no answer in {} ms", time.as_millis()))
        }
        Ok(got) if got.is_cut => Problem::new("cut", "its answer broke off"),
        Ok(Got { status: status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN), .. }) => {
            Problem::new("key", format!("it refused the key (HTTP {status})"))
        }
        Ok(Got { status, .. }) => Problem::new("status", format!("HTTP {status}")),
    }
}
