//! Tests of `metrics.rs`.

use std::collections::HashSet;

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

#[test]
fn the_memory_of_requests_is_told_as_it_is_now() {
    let metrics = Metrics::new();
    for held in [7, 0] {
        let text = metrics.response(held).into_body();
        let line = format!("creole_gateway_held_bytes {held}");
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
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
