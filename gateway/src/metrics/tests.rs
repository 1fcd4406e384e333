//! Tests of `metrics.rs`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use creole::observe::report::Outcome;

#[test]
fn samples_add_up_under_the_names_of_the_table() {
    let metrics = Metrics::new();
    let report = Report {
        status: 200,
        outcome: Outcome::Answered,
        upstream: "default".to_owned(),
        upstream_request_bytes: 7,
        requested_at: 1000,
        ended_at: Some(1030),
        ..Report::default()
    };
    for _ in 0..3 {
        metrics.count(&report, &Config::default(), 2000);
    }
    let text = metrics.render();
    for line in [
        concat!(r#"creole_gateway_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        r#"creole_requests_total{outcome="answered",status="200",upstream="default"} 3"#,
        r#"creole_bytes_total{direction="to_upstream"} 21"#,
        r#"creole_request_duration_milliseconds_bucket{le="25.0",upstream="default"} 0"#,
        r#"creole_request_duration_milliseconds_bucket{le="50.0",upstream="default"} 3"#,
        r#"creole_request_duration_milliseconds_sum{upstream="default"} 90.0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

fn asked(metrics: &Metrics, accept: &'static str) -> Response<String> {
    let accept = HeaderValue::from_static(accept);
    metrics.response(&HeaderMap::from_iter([(header::ACCEPT, accept)]))
}

#[test]
fn a_gauge_has_the_value_of_now_and_is_left_out_without_one() {
    let metrics = Metrics::new();
    let value = Arc::new(AtomicU64::new(7));
    let read = Arc::clone(&value);
    metrics.gauge("a_gauge", "A help text", move || {
        Some(read.load(Ordering::Relaxed)).filter(|value| *value > 0)
    });
    metrics.gauge_of_upstreams("by_upstream", "A help text", || vec![("u".to_owned(), 1)]);
    let text = asked(&metrics, "*/*").into_body();
    for line in ["a_gauge 7", "# TYPE a_gauge gauge", r#"by_upstream{upstream="u"} 1"#] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    value.store(0, Ordering::Relaxed);
    assert!(!metrics.render().contains("a_gauge"));
}

#[test]
fn who_accepts_open_metrics_gets_that_and_others_get_the_text_format() {
    let metrics = Metrics::new();
    let report = Report { status: 200, outcome: Outcome::Answered, ..Report::default() };
    metrics.count(&report, &Config::default(), 2000);
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
    let open = asked(&metrics, prometheus);
    assert!(open.headers()["content-type"].to_str().unwrap().starts_with(OPEN_METRICS));
    assert!(open.body().contains("# TYPE creole_ends counter\n"));
    assert!(open.body().ends_with("# EOF\n"));
    let plain = asked(&metrics, "text/plain");
    assert_eq!(plain.headers()["content-type"], CONTENT_TYPES[1]);
    let text = plain.into_body();
    for part in [
        "# TYPE creole_ends_total counter\ncreole_ends_total{cause=\"reply\"} 1\n",
        "# HELP creole_ends_total Requests that are over",
        "# TYPE creole_gateway_info gauge\ncreole_gateway_info{",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("EOF") && !text.contains(" info\n"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn figures_of_the_process_are_there_and_plausible() {
    let text = Metrics::new().render();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} in\n{text}")).parse::<u64>().unwrap()
    };
    assert!(value("process_open_fds") > 2);
    assert!(value("process_max_fds") >= value("process_open_fds"));
    assert!(value("process_resident_memory_bytes") > 1 << 20);
    assert!(value("process_start_time_seconds") > 1_700_000_000);
}

#[test]
fn what_was_counted_for_names_that_are_not_used_is_removed() {
    let metrics = Metrics::new();
    let mut report = Report {
        status: 200,
        outcome: Outcome::Answered,
        upstream: "default".to_owned(),
        upstream_request_bytes: 7,
        ..Report::default()
    };
    report.answer.stop_reason = Some(creole::StopReason::EndTurn);
    report.answer.output_tokens = 3;
    let mut count = |name: &str| {
        name.clone_into(&mut report.model);
        name.clone_into(&mut report.upstream_model);
        metrics.count(&report, &Config::default(), 2000);
    };
    for number in 0..3000 {
        count(&format!("junk{}", number / 3));
        count("used");
    }
    (0..4).for_each(|_| count("new"));
    let text = metrics.render();
    assert!(text.contains(r#"model="new""#), "{text}");
    let answers = r#"creole_answers_total{model="used",served="used",upstream="default"} 3000"#;
    assert!(text.contains(answers), "{text}");
    for label in ["model", "served"] {
        let before = format!("{label}=\"");
        let parts = text.split(&before).skip(1);
        let labels: HashSet<_> = parts.map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(labels.len() <= 33, "{label}: {labels:?}");
    }
}
