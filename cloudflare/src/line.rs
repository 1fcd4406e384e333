//! The line in the log: one JSON object for each request, which Workers Logs takes apart by field.

use creole::Millis;
use creole::config::Log;
use creole::error::Fault;
use creole::json::Writer;
use creole::report::{Outcome, Report};

/// Longest text in a line that a client can choose.
const TEXT_BYTES_MAX: usize = 100;

/// What the exchange does not know.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// May have a query, which is not logged: some clients put keys there.
    pub(crate) path: String,
    pub(crate) began: Millis,
    /// Status and upstream of an answer that was passed through.
    pub(crate) passed: Option<(u16, String)>,
}

/// How important a line is.
pub(crate) fn level(report: &Report) -> Log {
    match report.outcome {
        Outcome::Failed(_, Fault::Upstream) => Log::Warn,
        Outcome::Failed(_, Fault::Operator) if report.status >= 500 => Log::Error,
        _ => Log::Info,
    }
}

/// The line.
pub(crate) fn line(request: &Request, report: &Report, now: Millis) -> String {
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    let since = |at: Millis| at.saturating_sub(request.began);
    let path = request.path.split('?').next().unwrap_or_default();
    json.begin_object().key("request_id").text(&report.request_id);
    json.key("method").text(short(&request.method)).key("path").text(short(path));
    let (status, upstream) = match &request.passed {
        Some((status, upstream)) => (*status, upstream),
        None => (report.status, &report.upstream),
    };
    json.key("status").u64(status.into()).key("ms").u64(since(now));
    match report.outcome {
        Outcome::Open if request.passed.is_some() => {
            json.key("outcome").text("passed");
        }
        Outcome::Open => {
            json.key("outcome").text("open");
        }
        Outcome::Answered => {
            json.key("outcome").text("answered");
        }
        Outcome::Abandoned => {
            json.key("outcome").text("abandoned");
        }
        Outcome::Failed(kind, fault) => {
            json.key("outcome").text("failed");
            json.key("error").text(kind.word()).key("fault").text(fault.word());
        }
    }
    for (key, value) in [("model", &report.model), ("upstream", upstream)] {
        if !value.is_empty() {
            json.key(key).text(short(value));
        }
    }
    if report.stream {
        json.key("stream").bool(true);
    }
    if let Some(at) = report.first_byte_at.filter(|_| report.head_at.is_some()) {
        json.key("first_byte_ms").u64(since(at));
    }
    let answer = &report.answer;
    for (key, count) in [
        ("input_tokens", answer.input_tokens),
        ("cache_read_input_tokens", answer.cache_read_tokens),
        ("output_tokens", answer.output_tokens),
        ("tool_calls", answer.tool_calls.into()),
    ] {
        if count > 0 {
            json.key(key).u64(count);
        }
    }
    if let Some(stop_reason) = answer.stop_reason {
        json.key("stop_reason").text(stop_reason);
    }
    if let Some(codes) = report.warnings.header() {
        json.key("warnings").text(&codes);
    }
    if !report.guards.is_empty() {
        json.key("guards").text(&report.guards.join(","));
    }
    json.end_object();
    String::from_utf8(out).unwrap_or_default()
}

fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole::error::Kind;

    #[test]
    fn a_line_is_one_json_object_whatever_the_client_chose() {
        let request = Request {
            method: "POST".to_owned(),
            path: "/v1/\"x\n?key=sk-1".to_owned(),
            began: 1000,
            passed: None,
        };
        let mut report = Report { status: 504, ..Default::default() };
        report.outcome = Outcome::Failed(Kind::Timeout, Fault::Upstream);
        report.model = "é".repeat(200);
        let line = line(&request, &report, 1250);
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(!line.contains('\n') && !line.contains("sk-1"), "{line}");
        assert_eq!((&read["ms"], &read["status"]), (&250.into(), &504.into()));
        assert_eq!(read["error"], "timeout_error");
        assert_eq!(read["model"].as_str().unwrap().len(), 100);
        assert_eq!(level(&report), Log::Warn);
    }
}
