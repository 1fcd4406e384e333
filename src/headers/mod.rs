//! Headers that are passed from the client to the upstream and back, and the lists of their names.
//!
//! Headers that are not listed here are dropped: cookies, telemetry of SDKs, and descriptions of a
//! server. A value that is invalid in a header (line breaks, control characters) is never passed
//! on, whoever sent it.

pub(crate) mod session;
pub(crate) mod time;

use crate::Millis;
use crate::config::{CREDENTIAL_BYTES_MAX, Key, UpstreamHeader};
use crate::error::{Error, ErrorKind, Fault};
use crate::text::words;

/// Name (in lower case) and value of a header.
pub type Header = (String, String);

/// Maximum length of a header's value that is passed on, in bytes. Common servers accept lines of
/// this length.
const VALUE_BYTES_MAX: usize = 8 << 10;

/// Maximum number of values of one header: `tracestate` and `baggage` may come in several lines.
const VALUES_MAX: usize = 8;

/// Minimum length of a credential, in bytes. A shorter text is an ordinary word, such as a
/// placeholder for a server without keys.
const CREDENTIAL_BYTES_MIN: usize = 8;

/// Names of the headers that carry credentials, from clients and to upstreams.
pub const CREDENTIALS: [&str; 2] = ["authorization", "x-api-key"];

/// Headers of a single connection (RFC 9110, 7.6.1), besides those that its `connection` header
/// names. The other side may use another HTTP version, where these headers are errors. `expect` is
/// listed because the gateway itself answers a client that waits for 100.
pub(crate) const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Look-up of headers by name.
pub trait Headers {
    /// Returns the first value of a header. `name` is in lower case.
    fn value(&self, name: &str) -> Option<&str>;
}

impl Headers for [Header] {
    fn value(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Client headers that are passed unchanged to every upstream.
const TRACE: [&str; 4] = ["traceparent", "tracestate", "baggage", "x-request-id"];

/// Client headers that are passed unchanged to an upstream that speaks the Messages API. All but
/// the first name an account within an organisation, and are passed only with the client's own
/// credential.
const OF_MESSAGES: &[&str] =
    &["anthropic-beta", "anthropic-workspace-id", "anthropic-user-profile-id"];

/// Further client headers that an exchange needs, besides credentials.
const NEEDED: &[&str] = &["anthropic-version", "x-claude-code-agent-id", HOPS];

/// Header with the number of Creole instances that a request has passed. The name is Creole's own,
/// because proxies drop `via` or act on it.
pub(crate) const HOPS: &str = "x-creole-hops";

/// API version for an upstream that speaks the Messages API, if the client sends none: the API
/// requires a version.
const OLDEST_VERSION: &str = "2023-06-01";

/// Returns the client's headers that the exchange needs later, with names in lower case.
#[must_use]
pub fn kept(headers: &[Header]) -> Vec<Header> {
    let mut kept = Vec::new();
    for names in [TRACE.as_slice(), OF_MESSAGES, NEEDED, &session::NAMES] {
        for name in names {
            pass(headers, name, &mut kept);
        }
    }
    // Credentials are kept unchecked: an invalid credential is an error only when it is used.
    for name in CREDENTIALS {
        for (_, value) in named(headers, name).take(VALUES_MAX) {
            kept.push((name.to_owned(), value.clone()));
        }
    }
    kept
}

/// Returns the credentials that a client sent, including a scheme such as `Bearer`.
pub(crate) fn sent_credentials(client: &[Header]) -> impl Iterator<Item = &str> {
    let values = CREDENTIALS.iter().flat_map(|name| named(client, name).take(VALUES_MAX));
    values.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// Returns the number of Creole instances that a request has passed.
#[must_use]
pub(crate) fn hops(client: &[Header]) -> u32 {
    let counts = named(client, HOPS).filter_map(|(_, value)| value.trim().parse().ok());
    counts.max().unwrap_or_default()
}

fn named<'h>(headers: &'h [Header], name: &str) -> impl Iterator<Item = &'h Header> {
    headers.iter().filter(move |(sent, _)| sent.eq_ignore_ascii_case(name))
}

/// Sets the operator's configured headers, replacing headers of the same name.
pub(crate) fn set_own(own: &[UpstreamHeader], headers: &mut Vec<Header>) {
    for UpstreamHeader { name, value, .. } in own {
        headers.retain(|(known, _)| known != name);
        headers.push((name.clone(), value.clone()));
    }
}

/// Returns true if a request comes from Claude Code, judged by its beta flags.
#[must_use]
pub(crate) fn is_of_claude_code(headers: &[Header]) -> bool {
    headers.value("anthropic-beta").is_some_and(|betas| words::has(betas, "claude-code-"))
}

/// Returns the trace id in a W3C `traceparent`: `00-TRACE-SPAN-FLAGS`.
#[must_use]
pub(crate) fn trace_id(traceparent: &str) -> Option<String> {
    let id = traceparent.trim().split('-').nth(1)?;
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (id.len() == 32 && id.bytes().all(hex)).then(|| id.to_owned())
}

/// Returns the headers for the upstream, except `host` and `content-length`. `client` may hold only
/// the headers that [`kept`] returns.
///
/// # Errors
///
/// The client sent no usable credential, or the configured credential is not usable.
pub fn to_upstream(client: &[Header], key: &Key, stream: bool) -> Result<Vec<Header>, Error> {
    let credential = authorization(client, key)?.map(|value| ("authorization", value));
    Ok(with_credentials(client, stream, credential.into_iter().collect()))
}

/// Returns the headers for an upstream that speaks the Messages API. The client's credential stays
/// in its header, with the client's API version and beta flags; account headers are passed only
/// with the client's own credential. A secret of the gateway goes into `x-api-key`, unless it
/// begins with the scheme `Bearer`.
///
/// # Errors
///
/// The client sent no usable credential, or the configured credential is not usable.
pub fn to_messages_upstream(
    client: &[Header],
    key: &Key,
    stream: bool,
) -> Result<Vec<Header>, Error> {
    // The check is the same as for other upstreams; only the headers differ.
    authorization(client, key)?;
    let credentials = match key {
        Key::None => Vec::new(),
        Key::Secret(_) => api_key(key).into_iter().collect(),
        Key::Client => {
            let given = |name| {
                let value = client.value(name)?;
                Some((name, credential(name, value).ok()?.to_owned()))
            };
            [given("x-api-key"), given("authorization")].into_iter().flatten().collect()
        }
    };
    let mut headers = with_credentials(client, stream, credentials);
    let version = client.value("anthropic-version").and_then(usable).unwrap_or(OLDEST_VERSION);
    headers.push(("anthropic-version".to_owned(), version.to_owned()));
    let most = if key.is_own() { 1 } else { OF_MESSAGES.len() };
    for name in OF_MESSAGES.iter().take(most) {
        pass(client, name, &mut headers);
    }
    Ok(headers)
}

/// Returns the `authorization` header with the gateway's own secret, as Chat Completions expects;
/// `None` if the gateway has no secret.
#[must_use]
pub(crate) fn bearer(key: &Key) -> Option<(&'static str, String)> {
    let Key::Secret(secret) = key else { return None };
    let secret = secret.trim();
    let token = secret.strip_prefix("Bearer ").map_or(secret, str::trim_start);
    Some(("authorization", ["Bearer ", token].concat()))
}

/// Returns the `x-api-key` header with the gateway's own secret, as the Messages API expects;
/// `None` if the gateway has no secret.
#[must_use]
pub(crate) fn api_key(key: &Key) -> Option<(&'static str, String)> {
    let Key::Secret(secret) = key else { return None };
    let secret = secret.trim();
    let name = if secret.starts_with("Bearer ") { "authorization" } else { "x-api-key" };
    Some((name, secret.to_owned()))
}

/// Returns the credentials in the headers for an upstream, without those too short to be real.
/// `own` are the operator's headers.
pub(crate) fn credentials<'h>(
    upstream: &'h [Header],
    own: &'h [UpstreamHeader],
) -> impl Iterator<Item = &'h str> {
    let values = upstream.iter().filter(|(name, _)| CREDENTIALS.contains(&name.as_str()));
    let secrets = own.iter().filter(|header| header.is_secret).map(|header| &header.value);
    values
        .map(|(_, value)| value)
        .chain(secrets)
        .map(|value| value.strip_prefix("Bearer ").unwrap_or(value).trim())
        .filter(|credential| credential.len() >= CREDENTIAL_BYTES_MIN)
}

fn with_credentials(
    client: &[Header],
    stream: bool,
    credentials: Vec<(&str, String)>,
) -> Vec<Header> {
    let accept = if stream { "text/event-stream" } else { "application/json" };
    let mut headers: Vec<Header> = [
        ("content-type", "application/json"),
        ("accept", accept),
        // The answer must be readable without decompression.
        ("accept-encoding", "identity"),
        ("user-agent", concat!("creole/", env!("CARGO_PKG_VERSION"))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    headers.extend(credentials.into_iter().map(|(name, value)| (name.to_owned(), value)));
    for name in TRACE {
        pass(client, name, &mut headers);
    }
    headers.push((HOPS.to_owned(), next_hop(client)));
    headers
}

/// Returns the value of the header [`HOPS`] for the upstream's request.
#[must_use]
pub(crate) fn next_hop(client: &[Header]) -> String {
    hops(client).saturating_add(1).to_string()
}

/// Returns the `authorization` header for the upstream. SDKs before October 2026 send `x-api-key`,
/// newer SDKs `authorization`, and Claude Code with a key helper both. The real API then uses
/// `x-api-key`.
fn authorization(client: &[Header], key: &Key) -> Result<Option<String>, Error> {
    if *key == Key::None {
        return Ok(None);
    }
    if let Some((_, value)) = bearer(key) {
        return if is_credential(&value) {
            Ok(Some(value))
        } else {
            let message = "The gateway's credentials are not usable.";
            Err(Error::new(Fault::Operator, ErrorKind::Api, message).with_should_retry(false))
        };
    }
    let mut wrong = None;
    for name in ["x-api-key", "authorization"] {
        let Some(value) = client.value(name) else { continue };
        match credential(name, value) {
            Ok(key) if name == "x-api-key" => {
                if let Some(token) = token(key) {
                    return Ok(Some(format!("Bearer {token}")));
                }
            }
            // A scheme without a credential counts as absent.
            Ok(value) if value.eq_ignore_ascii_case("bearer") => {}
            Ok(value) => return Ok(Some(value.to_owned())),
            Err(error) => wrong = wrong.or(error),
        }
    }
    Err(wrong.unwrap_or_else(|| unauthorized("x-api-key header is required")))
}

/// Returns a trimmed credential. An unusable credential is an error: `None` if the credential is
/// just empty.
fn credential<'v>(name: &str, value: &'v str) -> Result<&'v str, Option<Error>> {
    let value = value.trim();
    if is_credential(value) {
        return Ok(value);
    }
    Err(match value.len() {
        0 => None,
        1..=CREDENTIAL_BYTES_MAX => {
            Some(unauthorized(format!("{name}: expected visible ASCII characters in one line")))
        }
        length => Some(unauthorized(format!(
            "{name}: expected at most {CREDENTIAL_BYTES_MAX} bytes, but found {length}"
        ))),
    })
}

/// Returns the error for a client whose credential cannot be used.
pub(crate) fn unauthorized(message: impl Into<String>) -> Error {
    Error::new(Fault::Client, ErrorKind::Authentication, message).with_should_retry(false)
}

/// Returns true if a text can be sent as a credential.
fn is_credential(text: &str) -> bool {
    text.len() <= CREDENTIAL_BYTES_MAX.saturating_add("Bearer ".len()) && is_visible(text)
}

/// Returns a key without a `Bearer` scheme before it; `None` if there is only the scheme.
fn token(key: &str) -> Option<&str> {
    let (scheme, token) = words::split_once(key, " ").unwrap_or((key, ""));
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(token.trim_start()).filter(|token| !token.is_empty());
    }
    Some(key)
}

/// Returns the upstream's own id of a request.
#[must_use]
pub fn request_id(upstream: &[Header]) -> Option<&str> {
    upstream.value("x-request-id").or_else(|| upstream.value("request-id"))
}

/// Returns the time after which an upstream may be called again, in milliseconds, if its headers
/// name one.
#[must_use]
pub(crate) fn pause_ms(upstream: &[Header], now: Millis) -> Option<u64> {
    let millis = upstream.value("retry-after-ms").map(str::trim);
    let millis = millis.filter(|value| time::is_number(value)).and_then(time::duration);
    let seconds = upstream.value("retry-after").map(str::trim);
    let seconds = seconds.and_then(|value| time::retry_after(value, now));
    // The function `duration` reads a plain number as seconds.
    let millis = millis.map(|millis| millis.div_ceil(1_000));
    millis.or_else(|| seconds.as_deref().and_then(time::duration))
}

/// Returns the upstream's headers that are passed to the client, renamed. `now` is needed to
/// convert the waiting times of rate limits to points in time.
#[must_use]
pub fn to_client(upstream: &[Header], now: Millis) -> Vec<Header> {
    let mut headers = Vec::new();
    let wait = upstream.value("retry-after").map(str::trim);
    let wait = wait.and_then(|value| time::retry_after(value, now));
    let wait_ms = upstream.value("retry-after-ms").map(str::trim);
    for (value, to) in [
        (request_id(upstream), "x-upstream-request-id"),
        (wait.as_deref(), "retry-after"),
        (wait_ms.filter(|value| time::is_number(value)), "retry-after-ms"),
        (upstream.value("x-should-retry"), "x-should-retry"),
    ] {
        if let Some(value) = value.and_then(usable) {
            headers.push((to.to_owned(), value.to_owned()));
        }
    }
    for what in ["requests", "tokens"] {
        for part in ["limit", "remaining", "reset"] {
            let value = upstream.value(&format!("x-ratelimit-{part}-{what}")).map(str::trim);
            let value = match part {
                "reset" => value.and_then(|value| time::reset_time(value, now)),
                _ => value.filter(|value| is_value(value)).map(str::to_owned),
            };
            if let Some(value) = value {
                headers.push((format!("anthropic-ratelimit-{what}-{part}"), value));
            }
        }
    }
    // An upstream that speaks the Messages API already uses these names.
    for (name, value) in upstream {
        let name = name.to_ascii_lowercase();
        let known = headers.iter().any(|(known, _)| *known == name);
        if name.starts_with("anthropic-ratelimit-") && !known && is_value(value.trim()) {
            headers.push((name, value.trim().to_owned()));
        }
    }
    headers
}

/// Returns the trimmed value of a header, if the value may be passed on.
fn usable(value: &str) -> Option<&str> {
    Some(value.trim()).filter(|value| is_value(value))
}

/// Appends the values of the header `name` that may be passed on.
fn pass(headers: &[Header], name: &str, out: &mut Vec<Header>) {
    let values = headers.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
    for value in values.filter_map(|(_, value)| usable(value)).take(VALUES_MAX) {
        out.push((name.to_owned(), value.to_owned()));
    }
}

/// Returns true if a text is a valid header value everywhere: visible ASCII characters with spaces
/// between them, of limited length.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.len() <= VALUE_BYTES_MAX && is_visible(text)
}

fn is_visible(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
}

#[cfg(test)]
mod tests;
