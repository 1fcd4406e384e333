//! Heads that Envoy sends on: the exchange's headers, combined with the headers that Envoy needs.

use creole::config::{Address, Config, Upstream};
use creole::headers::Headers as _;
use creole::{Call, Exchange, Head, Header};

/// Name of the request header by which Envoy's route table chooses the upstream. Its value is the
/// upstream's `cluster` in the configuration, else the upstream's name.
pub const ROUTING_HEADER: &str = "x-creole-upstream";

/// Prefix of the names of Creole's own headers.
const RESERVED: &str = "x-creole-";

/// Name of the header that counts how many Creole hosts a request has passed.
const HOPS: &str = "x-creole-hops";

/// Returns the value of [`ROUTING_HEADER`] for an upstream.
#[must_use]
pub fn routing_value(upstream: &Upstream) -> &str {
    if upstream.cluster.is_empty() { &upstream.name } else { &upstream.cluster }
}

/// Removes Creole's own headers from a client's head, because they choose routes and only Creole
/// may set them. The hop count stays, since it is read and incremented. Returns true if any header
/// was removed.
pub fn remove_reserved(head: &mut Vec<Header>) -> bool {
    let before = head.len();
    head.retain(|(name, _)| !name.starts_with(RESERVED) || name == HOPS);
    head.len() != before
}

/// Returns the headers of a client's head that the upstream needs besides the exchange's headers,
/// and the number of bytes left out.
#[must_use]
pub fn needed(head: Vec<Header>) -> (Vec<Header>, usize) {
    let all = bytes(&head);
    let mut needed = head;
    needed.retain(|(name, _)| name.starts_with(':') || is_envoys(name));
    needed.shrink_to_fit();
    let left_out = all.saturating_sub(bytes(&needed));
    (needed, left_out)
}

/// Returns the size of a head in bytes: names and values.
#[must_use]
pub fn bytes(head: &[Header]) -> usize {
    let bytes = |(name, value): &Header| name.len().saturating_add(value.len());
    head.iter().map(bytes).fold(0, usize::saturating_add)
}

/// Returns the head for an upstream: Envoy's own headers of this request, then `ours`.
///
/// `:authority` becomes that of the upstream's `url` if one is set, because hosted servers select
/// by it. Without a `url` it stays, and `host_rewrite_literal` of the route may change it. Envoy
/// then selects the virtual host by the new authority, and the route by the new path.
#[must_use]
pub fn for_upstream(
    client: &[Header],
    upstream: &Upstream,
    path: &str,
    ours: Vec<Header>,
    content_length: Option<usize>,
) -> Vec<Header> {
    let address = Address::parse(&upstream.url);
    let authority = address.map(|address| address.authority).unwrap_or_default();
    let mut head: Vec<Header> = Vec::with_capacity(client.len());
    // Pseudo-headers go first.
    for (name, value) in client.iter().filter(|(name, _)| name.starts_with(':')) {
        let value = match name.as_str() {
            ":path" => path.to_owned(),
            ":authority" if !authority.is_empty() => authority.to_owned(),
            _ => value.clone(),
        };
        head.push((name.clone(), value));
    }
    for header in client {
        if is_envoys(&header.0) {
            head.push(header.clone());
        }
    }
    head.extend(ours);
    head.push((ROUTING_HEADER.to_owned(), routing_value(upstream).to_owned()));
    if let Some(length) = content_length {
        head.push(number("content-length", length));
    }
    head
}

/// Returns the head for the only configured upstream, before the request body is known. The head is
/// the same for every body, except for `accept`.
#[must_use]
pub fn for_upstream_early(
    client: &[Header],
    config: &Config,
    exchange: &Exchange,
) -> Option<Vec<Header>> {
    let upstream = config.first_upstream()?;
    let (path, mut ours) = exchange.early_head(upstream);
    for (name, value) in &mut ours {
        if name == "accept" {
            "application/json, text/event-stream".clone_into(value);
        }
    }
    Some(for_upstream(client, upstream, &path, ours, None))
}

/// Returns the head of a call at a URL, with its method and path. The headers are those of the
/// call alone: no header of the client is sent.
#[must_use]
pub fn for_call(call: &Call, (scheme, authority): (&str, &str), path: &str) -> Vec<Header> {
    let pseudo = [
        (":method", call.method()),
        (":scheme", scheme),
        (":path", path),
        (":authority", authority),
    ];
    let pseudo = pseudo.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pseudo.into_iter().chain(call.headers.iter().cloned()).collect()
}

/// Returns the response head for the client.
#[must_use]
pub fn for_client(head: Head, content_length: Option<usize>) -> Vec<Header> {
    let mut headers = vec![number(":status", head.status.into())];
    headers.extend(head.headers);
    if let Some(length) = content_length {
        headers.push(number("content-length", length));
    }
    headers
}

/// Returns the status of a response; 0 if it has none.
#[must_use]
pub fn status(head: &[Header]) -> u16 {
    number_of(head, ":status").and_then(|status| status.try_into().ok()).unwrap_or_default()
}

/// Returns the length of a body according to the `content-length` of its head.
#[must_use]
pub fn length(head: &[Header]) -> Option<usize> {
    number_of(head, "content-length").and_then(|length| length.try_into().ok())
}

fn number_of(head: &[Header], name: &str) -> Option<u64> {
    head.value(name).and_then(|text| text.parse().ok())
}

fn number(name: &str, value: usize) -> Header {
    (name.to_owned(), value.to_string())
}

/// Returns true for a header that Envoy, a mesh or a tracer added, besides the headers that the
/// core passes on. Every other header comes from the client and may be a credential, or an
/// instruction for Envoy's router: `x-envoy-original-dst-host` chooses the server that gets the
/// key, `x-envoy-max-retries` sets the number of retries.
fn is_envoys(name: &str) -> bool {
    const ENVOYS: [&str; 10] = [
        "b3",
        "x-envoy-attempt-count",
        "x-envoy-decorator-operation",
        "x-envoy-expected-rq-timeout-ms",
        "x-envoy-external-address",
        "x-envoy-force-trace",
        "x-envoy-internal",
        "x-envoy-peer-metadata",
        "x-envoy-peer-metadata-id",
        "x-forwarded-proto",
    ];
    ENVOYS.contains(&name) || name.starts_with("x-b3-")
}

/// Returns true if the head comes from a client of the Messages API: it has headers that no browser
/// and no client of another API sends.
#[must_use]
pub fn is_of_client(head: &[Header]) -> bool {
    const SIGNS: [&str; 3] = ["anthropic-version", "anthropic-beta", "x-api-key"];
    const AGENTS: [&str; 3] = ["claude-cli/", "claude-code/", "anthropic/"];
    let agent = head.value("user-agent").unwrap_or_default().to_ascii_lowercase();
    head.iter().any(|(name, _)| SIGNS.contains(&name.as_str()))
        || AGENTS.iter().any(|known| agent.starts_with(known))
}

#[cfg(test)]
mod tests;
