//! Spans that a collector of OpenTelemetry gets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::{self, Gateway, Upstream, client, messages, request, send};

/// Head and body of a request.
type Came = (String, Vec<u8>);

/// A collector, with the heads and bodies of the requests that came.
struct Collector {
    url: String,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Collector {
    async fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let came = Arc::<Mutex<Vec<Came>>>::default();
        let heard = Arc::clone(&came);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read(&mut stream).await;
                heard.lock().unwrap().push(request);
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, came }
    }

    /// The spans that came, and the attributes of their process.
    fn spans(&self) -> (Vec<Span>, BTreeMap<String, String>) {
        let (mut spans, mut resource) = (Vec::new(), BTreeMap::new());
        for (head, body) in self.came.lock().unwrap().iter() {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("application/x-protobuf"), "{head}");
            for group in ExportTraceServiceRequest::decode(&body[..]).unwrap().resource_spans {
                resource.extend(attributes(&group.resource.unwrap().attributes));
                spans.extend(group.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        (spans, resource)
    }
}

async fn read(stream: &mut TcpStream) -> Came {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let body = &bytes[end + 4..];
            if body.len() >= length.unwrap().parse().unwrap() {
                return (head, body.to_vec());
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return (String::new(), Vec::new());
        }
    }
}

fn attributes(list: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &AnyValue| match value.value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pair = |it: &KeyValue| (it.key.clone(), text(it.value.as_ref().unwrap()));
    list.iter().map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)] // the gateway is stopped by a signal, and sends its last spans
#[tokio::test]
async fn an_exchange_and_its_call_are_spans_of_the_clients_trace_without_contents() {
    let collector = Collector::start("200 OK").await;
    let upstream = Upstream::refusing(&["temperature"]).await;
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_SERVICE_NAME", "desk")];
    let mut gateway = Gateway::start_with(&["--upstream", &upstream.url()], "{}", &env);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let mut body: serde_json::Value = serde_json::from_str(&messages(false)).unwrap();
    body["temperature"] = serde_json::json!(0.5);
    let mut sent = request("POST", &gateway.url("/v1/messages"), body.to_string());
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    sent.headers_mut().insert("traceparent", parent.parse().unwrap());
    assert_eq!(send(&client(false), sent).await.status, 200);
    gateway.signal("-TERM");
    let ended = tokio::task::spawn_blocking(move || {
        gateway.child.wait().unwrap();
        gateway
    });
    let gateway = rig::soon("the end", ended).await.unwrap();
    let (spans, resource) = collector.spans();
    assert_eq!((&*resource["service.name"], spans.len()), ("desk", 3), "{}", gateway.log());
    let exchange = spans.iter().find(|span| span.name == "chat claude-x").unwrap();
    assert_eq!(hex(&exchange.trace_id), trace);
    assert_eq!(hex(&exchange.parent_span_id), "b7ad6b7169203331");
    let facts = attributes(&exchange.attributes);
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "default"),
        ("gen_ai.request.model", "claude-x"),
        ("gen_ai.response.model", "m"),
        ("gen_ai.response.id", "c1"),
        ("gen_ai.usage.input_tokens", "9"),
        ("gen_ai.usage.output_tokens", "4"),
        ("http.response.status_code", "200"),
        ("creole.cause", "end_turn"),
        ("creole.retries", "1"),
    ] {
        assert_eq!(facts.get(name).map(String::as_str), Some(value), "{name} in {facts:?}");
    }
    let calls: Vec<_> = spans.iter().filter(|span| span.name == "chat").collect();
    let asked = upstream.asked.lock().unwrap();
    for (span, (status, asked)) in calls.iter().zip([("400", &asked[0]), ("200", &asked[1])]) {
        assert_eq!(span.parent_span_id, exchange.span_id);
        assert_eq!(attributes(&span.attributes)["http.response.status_code"], status);
        let own = format!("00-{trace}-{}-01", hex(&span.span_id));
        assert_eq!(asked.headers["traceparent"], own);
        assert!(span.start_time_unix_nano >= exchange.start_time_unix_nano);
        assert!(span.end_time_unix_nano <= exchange.end_time_unix_nano);
    }
    let all = format!("{spans:?}");
    assert!(!all.contains("Hello") && !all.contains("Hi there") && !all.contains("sk-client"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_collector_that_refuses_is_a_line_and_no_request_waits_for_it() {
    let collector = Collector::start("503 Service Unavailable").await;
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    for (url, told) in [
        (&*collector.url, "the collector answered 503"),
        ("http://127.0.0.1:1", "spans were lost: the connection was refused"),
    ] {
        let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", url)];
        let gateway = Gateway::start_with(&["--upstream", &upstream.url()], "{}", &env);
        let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        assert_eq!(send(&client(false), sent).await.status, 200);
        gateway.signal("-TERM");
        rig::until("the line", || !gateway.lines(told).is_empty()).await;
    }
}

#[tokio::test]
async fn without_a_collector_no_header_is_added() {
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    for env in
        [&[][..], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x"), ("OTEL_SDK_DISABLED", "true")]]
    {
        let gateway = Gateway::start_with(&["--upstream", &upstream.url()], "{}", env);
        let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
        assert_eq!(send(&client(false), sent).await.status, 200);
        assert!(!upstream.last().headers.contains_key("traceparent"));
    }
}
