//! The heads that Envoy sends on: what is the exchange's, and what Envoy needs to stay.

use creole::config::{Address, Config, Upstream};
use creole::headers::Headers as _;
use creole::{Exchange, Head, Header};

/// Names the upstream to the route table: its `cluster` in the configuration, else its name.
pub const ROUTING_HEADER: &str = "x-creole-upstream";

/// What [`ROUTING_HEADER`] says for an upstream.
#[must_use]
pub fn routing_value(upstream: &Upstream) -> &str {
    if upstream.cluster.is_empty() { &upstream.name } else { &upstream.cluster }
}

/// The head for an upstream: Envoy's own headers of this request, then `ours`.
///
/// `:authority` is that of the upstream's `url` where it has one, because hosted servers choose by
/// it; without a `url` it stays, and `host_rewrite_literal` of the route may change it. The
/// virtual host is then chosen by the new authority, like the route by the new path.
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

/// The head for the one upstream, before the body is known: it is the same for every body but for
/// `accept`.
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

/// The head for the client.
#[must_use]
pub fn for_client(head: Head, content_length: Option<usize>) -> Vec<Header> {
    let mut headers = vec![number(":status", head.status.into())];
    headers.extend(head.headers);
    if let Some(length) = content_length {
        headers.push(number("content-length", length));
    }
    headers
}

/// The status of a response; 0 if it has none.
#[must_use]
pub fn status(head: &[Header]) -> u16 {
    number_of(head, ":status").and_then(|status| status.try_into().ok()).unwrap_or_default()
}

/// How long a body says that it is.
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

/// What Envoy, a mesh or a tracer added, beside what the core passes on. Everything else is the client's, and may be a
/// credential, or an instruction for Envoy's router: `x-envoy-original-dst-host` chooses the server that gets the
/// key, `x-envoy-max-retries` how often it is asked.
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

/// Whether a request is of a client of the Messages API: what it sends no browser and no client of another API does.
#[must_use]
pub fn is_of_client(head: &[Header]) -> bool {
    const SIGNS: [&str; 3] = ["anthropic-version", "anthropic-beta", "x-api-key"];
    const AGENTS: [&str; 3] = ["claude-cli/", "claude-code/", "anthropic/"];
    let agent = head.value("user-agent").unwrap_or_default().to_ascii_lowercase();
    head.iter().any(|(name, _)| SIGNS.contains(&name.as_str()))
        || AGENTS.iter().any(|known| agent.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> Header {
        (name.to_owned(), value.to_owned())
    }

    fn client() -> Vec<Header> {
        vec![
            header(":method", "POST"),
            header(":path", "/v1/messages?beta=true"),
            header(":authority", "gateway"),
            header("x-api-key", "sk-client"),
            header("content-length", "17"),
            header("x-forwarded-proto", "https"),
            header("b3", "0"),
            header("x-b3-traceid", "1"),
            header("x-envoy-expected-rq-timeout-ms", "2"),
            header("x-request-id", "of the client"),
            header("traceparent", "of the client"),
            header("x-creole-upstream", "chosen-by-client"),
            header("x-original-url", "/v1/files"),
            header("x-rewrite-url", "/v1/files"),
            header("x-http-method-override", "DELETE"),
            header("openai-organization", "of the client"),
        ]
    }

    #[test]
    fn the_clients_headers_stay_here_and_envoys_go_on() {
        // Of what the core passes on, its own is sent.
        let ours = vec![header("authorization", "Bearer k"), header("x-request-id", "ours")];
        let upstream = Upstream::named("big");
        let head = for_upstream(&client(), &upstream, "/v1/chat/completions", ours, Some(3));
        assert_eq!(
            head,
            [
                header(":method", "POST"),
                header(":path", "/v1/chat/completions"),
                header(":authority", "gateway"),
                header("x-forwarded-proto", "https"),
                header("b3", "0"),
                header("x-b3-traceid", "1"),
                header("x-envoy-expected-rq-timeout-ms", "2"),
                header("authorization", "Bearer k"),
                header("x-request-id", "ours"),
                header("x-creole-upstream", "big"),
                header("content-length", "3"),
            ]
        );
    }

    #[test]
    fn the_url_gives_the_authority_and_the_cluster_gives_the_route() {
        let mut upstream = Upstream::named("big");
        upstream.url = "https://models.example:8443".to_owned();
        upstream.cluster = "blue".to_owned();
        let head = for_upstream(&client(), &upstream, "/v1/chat/completions", Vec::new(), None);
        assert_eq!(head.value(":authority"), Some("models.example:8443"));
        assert_eq!(head.value(":path"), Some("/v1/chat/completions"));
        assert_eq!(head.value(ROUTING_HEADER), Some("blue"));
        assert_eq!(head.value("content-length"), None);
    }

    #[test]
    fn a_client_gives_envoys_router_no_instructions() {
        let instructions = [
            "x-envoy-original-dst-host",
            "x-envoy-original-path",
            "x-envoy-original-url",
            "x-envoy-max-retries",
            "x-envoy-retry-on",
            "x-envoy-retriable-status-codes",
            "x-envoy-hedge-on-per-try-timeout",
            "x-envoy-upstream-rq-timeout-ms",
            "x-envoy-upstream-rq-per-try-timeout-ms",
            "x-envoy-upstream-alt-stat-name",
            "x-envoy-host-override",
        ];
        let client: Vec<Header> = instructions.iter().map(|name| header(name, "1")).collect();
        let head = for_upstream(&client, &Upstream::named("big"), "/", Vec::new(), None);
        assert_eq!(head, [header("x-creole-upstream", "big")]);
    }

    #[test]
    fn a_client_of_the_messages_api_is_told_by_what_it_sends() {
        for (name, value) in [
            ("x-api-key", "k"),
            ("anthropic-version", "2023-06-01"),
            ("anthropic-beta", "x"),
            ("user-agent", "claude-cli/2.1.328 (external, cli)"),
            ("user-agent", "Anthropic/Python 2.10.0"),
        ] {
            assert!(is_of_client(&[header(name, value)]), "{name}");
        }
        for (name, value) in [
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
            ("user-agent", "curl/8.5.0"),
            ("authorization", "Bearer k"),
            ("cookie", "a=b"),
        ] {
            assert!(!is_of_client(&[header(name, value)]), "{name}: {value}");
        }
    }
}
