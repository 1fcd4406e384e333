//! Spans for OpenTelemetry: one for each exchange and one for each call of an upstream, with the
//! attributes of the conventions for generative AI, and without any content.
//!
//! The variables of OpenTelemetry switch spans on. Without `OTEL_EXPORTER_OTLP_ENDPOINT` nothing of
//! this runs. The exporter sends by the gateway's own client, so that proxies and certificate
//! authorities are the same as for upstreams.

use std::borrow::Cow;
use std::env;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use creole::config::Address;
use creole::error::Fault;
use creole::observe::log::LoggedRequest;
use creole::observe::report::{Outcome, Report};
use creole::{Call, CallId, Config, To};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{HeaderMap, Request, Response};
use opentelemetry::propagation::{Injector, TextMapPropagator as _};
use opentelemetry::trace::{
    SpanBuilder, SpanKind, Status, TraceContextExt as _, TracerProvider as _,
};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::log::rate_limit::RateLimit;
use crate::upstream::client::{self, UpstreamClient};

/// Maximum length, in bytes, of a text in a span that a client or an upstream chose.
const TEXT_BYTES_MAX: usize = 100;

/// Methods of HTTP that a span names. Others are `_OTHER`, as the conventions say.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];

/// Variables with the address of a collector, which switch spans on.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Maximum time to send spans to the collector.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to send the last spans when the gateway ends.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of bytes that are read of a collector's answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Sender of spans.
#[derive(Debug)]
pub(crate) struct Telemetry {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Telemetry {
    /// Returns a sender of spans, if the variables of OpenTelemetry name a collector. Requests to
    /// the collector run on `runtime`.
    ///
    /// # Errors
    /// The variables cannot be used; the text is for the operator.
    pub(crate) fn from_env(
        client: impl FnOnce() -> Result<UpstreamClient, String>,
        runtime: Handle,
    ) -> Result<Option<Self>, String> {
        let value = |name: &str| env::var(name).unwrap_or_default().to_ascii_lowercase();
        let is_off = value("OTEL_SDK_DISABLED") == "true"
            || value("OTEL_TRACES_EXPORTER") == "none"
            || ENDPOINTS.iter().all(|name| value(name).is_empty());
        if is_off {
            return Ok(None);
        }
        let collector = Collector { client: client()?, runtime, failed: Mutex::default() };
        let exporter = SpanExporter::builder().with_http().with_http_client(collector).build();
        let exporter = exporter.map_err(|error| format!("OpenTelemetry: {error}"))?;
        let resource = Resource::builder_empty()
            .with_service_name("creole")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_detector(Box::new(EnvResourceDetector::new()));
        let resource = match env::var("OTEL_SERVICE_NAME") {
            Ok(name) if !name.is_empty() => resource.with_service_name(name),
            _ => resource,
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        let tracer = provider.tracer("creole");
        Ok(Some(Self { provider, tracer }))
    }

    /// Begins the span of an exchange. The span of the client's `traceparent` is its parent.
    pub(crate) fn begin(&self, method: &str, headers: &HeaderMap) -> Box<ExchangeSpans> {
        let parent = TraceContextPropagator::new()
            .extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let method = if METHODS.contains(&method) { method } else { "_OTHER" };
        let method = method.to_owned();
        let span = SpanBuilder::from_name(method.clone())
            .with_kind(SpanKind::Server)
            .with_attributes([KeyValue::new("http.request.method", method)])
            .start_with_context(&self.tracer, &parent);
        let exchange = parent.with_span(span);
        Box::new(ExchangeSpans { tracer: self.tracer.clone(), exchange, calls: Vec::new() })
    }

    /// Sends the spans that wait, for a limited time. Must not be called on the thread of the
    /// runtime that sends them.
    pub(crate) fn finish(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(END_TIMEOUT) {
            tracing::warn!("the last spans may be lost: {error}");
        }
    }
}

/// Spans of one exchange.
#[derive(Debug)]
pub(crate) struct ExchangeSpans {
    tracer: SdkTracer,
    /// Context with the span of the exchange.
    exchange: Context,
    /// Contexts with the spans of calls that have not ended.
    calls: Vec<(CallId, Context)>,
}

impl ExchangeSpans {
    /// Begins the span of a call, and puts it into the call's `traceparent`. Only calls of
    /// upstreams have spans.
    pub(crate) fn begin_call(&mut self, call: &mut Call, config: &Config) {
        let To::Upstream(name) = &call.to else { return };
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("creole.upstream", name.clone()),
        ];
        if let Some(upstream) = config.upstreams.get(name) {
            attributes.push(KeyValue::new("gen_ai.provider.name", provider(upstream.preset)));
            if let Ok(Address { authority, .. }) = Address::parse(&upstream.url) {
                attributes.push(KeyValue::new("server.address", authority.to_owned()));
            }
        }
        let span = SpanBuilder::from_name("chat")
            .with_kind(SpanKind::Client)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &self.exchange);
        let context = self.exchange.with_span(span);
        TraceContextPropagator::new().inject_context(&context, &mut Headers(&mut call.headers));
        self.calls.push((call.id, context));
    }

    /// Notes the status of a call's answer.
    pub(crate) fn note_status(&self, id: CallId, status: u16) {
        if let Some((_, context)) = self.calls.iter().find(|(call, _)| *call == id) {
            let span = context.span();
            span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status)));
            if status >= 400 {
                span.set_attribute(KeyValue::new("error.type", status.to_string()));
                span.set_status(Status::error(""));
            }
        }
    }

    /// Ends the span of a call, with the reason for which the call failed.
    pub(crate) fn end_call(&mut self, id: CallId, failed: Option<&'static str>) {
        let Some(at) = self.calls.iter().position(|(call, _)| *call == id) else { return };
        let (_, context) = self.calls.swap_remove(at);
        let span = context.span();
        if let Some(reason) = failed {
            span.set_attribute(KeyValue::new("error.type", reason));
            span.set_status(Status::error(""));
        }
        span.end();
    }

    /// Ends the span of the exchange, and of calls that were cut.
    pub(crate) fn end(self, report: &Report, request: &LoggedRequest, config: &Config) {
        for (_, context) in &self.calls {
            context.span().end();
        }
        let span = self.exchange.span();
        if report.upstream_request_bytes > 0 && !report.model.is_empty() {
            span.update_name(format!("chat {}", short(&report.model)));
            span.set_attributes(of_model(report, config));
        }
        let passed = request.passed.as_ref().map(|(status, _)| *status);
        let status = i64::from(passed.unwrap_or(report.status));
        span.set_attribute(KeyValue::new("http.response.status_code", status));
        span.set_attribute(KeyValue::new("creole.request_id", report.request_id.clone()));
        span.set_attribute(KeyValue::new("creole.cause", report.cause()));
        match report.outcome {
            Outcome::Abandoned | Outcome::Failed(_, Fault::Upstream | Fault::Operator) => {
                span.set_attribute(KeyValue::new("error.type", report.cause()));
                span.set_status(Status::error(""));
            }
            // An error of the client's is none of this server's.
            Outcome::Open | Outcome::Answered | Outcome::Failed(_, Fault::Client) => {}
        }
        span.end();
    }
}

/// Returns a text that a client or an upstream chose, cut to the length that a span may have.
fn short(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    text.get(..end).unwrap_or_default().to_owned()
}

/// Returns the attributes of an exchange for which a model was asked.
fn of_model(report: &Report, config: &Config) -> Vec<KeyValue> {
    let answer = &report.answer;
    let preset = config.upstreams.get(&report.upstream).map_or("default", |it| it.preset);
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", "chat"),
        KeyValue::new("gen_ai.provider.name", provider(preset)),
        KeyValue::new("gen_ai.request.model", short(&report.model)),
        KeyValue::new("gen_ai.response.model", short(report.served_model())),
        KeyValue::new("creole.upstream", report.upstream.clone()),
        KeyValue::new("creole.retries", i64::from(report.retries)),
    ];
    if let Some(id) = &answer.upstream_id {
        attributes.push(KeyValue::new("gen_ai.response.id", short(id)));
    }
    if let Some(reason) = answer.stop_reason {
        let reasons = Array::String(vec![StringValue::from(reason.word())]);
        attributes.push(KeyValue::new("gen_ai.response.finish_reasons", Value::Array(reasons)));
    }
    // The conventions count cached tokens as input tokens, too.
    let cached = answer.cache_read_tokens.saturating_add(answer.cache_creation_tokens);
    for (name, tokens) in [
        ("gen_ai.usage.input_tokens", answer.input_tokens.saturating_add(cached)),
        ("gen_ai.usage.output_tokens", answer.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", answer.cache_read_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", answer.cache_creation_tokens),
    ] {
        if tokens > 0 {
            attributes.push(KeyValue::new(name, i64::try_from(tokens).unwrap_or(i64::MAX)));
        }
    }
    attributes
}

/// Returns the name that the conventions have for the servers of a preset, or else the preset's.
fn provider(preset: &'static str) -> &'static str {
    match preset {
        "openai" | "openai-chat" => "openai",
        "azure" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}

/// Headers of a call, in which the conventions' headers are replaced.
struct Headers<'h>(&'h mut Vec<creole::Header>);

impl Injector for Headers<'_> {
    fn set(&mut self, name: &str, value: String) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.0.push((name.to_owned(), value));
        }
    }
}

/// Collector to which the exporter sends spans.
struct Collector {
    client: UpstreamClient,
    runtime: Handle,
    failed: Mutex<RateLimit>,
}

impl Collector {
    /// Writes a line about spans that were lost, at most now and then.
    fn lost(&self, reason: &str) {
        if self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_due() {
            tracing::warn!("OpenTelemetry: spans were lost: {reason}");
        }
    }
}

impl HttpClient for Collector {
    // The trait's own macro would write this type.
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'c: 'f,
        Self: 'f,
    {
        let client = self.client.clone();
        let send = async move {
            let response = client.send(request.map(Full::new)).await;
            let response = response.map_err(|error| client::reason(&error).words().to_owned())?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok::<_, String>(Response::from_parts(head, body))
        };
        // The exporter's own thread has no runtime, and so no timer.
        let sent = self.runtime.spawn(async move { timeout(SEND_TIMEOUT, send).await });
        Box::pin(async move {
            let reason: Cow<'_, str> = match sent.await {
                Ok(Ok(Ok(response))) => {
                    if !response.status().is_success() {
                        self.lost(&format!("the collector answered {}", response.status()));
                    }
                    return Ok(response);
                }
                Ok(Ok(Err(reason))) => reason.into(),
                Ok(Err(_)) => "the collector did not answer in time".into(),
                Err(_) => "the gateway ends".into(),
            };
            self.lost(&reason);
            Err(reason.into_owned().into())
        })
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Collector")
    }
}
