//! Tests of `metrics.rs`.

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
