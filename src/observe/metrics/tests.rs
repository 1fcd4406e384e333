//! Tests of `metrics.rs`.

use super::*;
use crate::config::Config;
use crate::error::ErrorKind;
use crate::observe::report::{AnswerReport, DocumentsReport, ImagesReport, RequestCounts};

fn answered(model: &str) -> Report {
    Report {
        model: model.to_owned(),
        upstream: "up".to_owned(),
        upstream_model: "asked".to_owned(),
        status: 200,
        outcome: Outcome::Answered,
        request_bytes: 10,
        upstream_request_bytes: 20,
        requested_at: 1000,
        head_at: Some(1100),
        content_at: Some(1250),
        ended_at: Some(3000),
        answer: AnswerReport {
            stop_reason: Some(crate::StopReason::EndTurn),
            input_tokens: 7,
            output_tokens: 3,
            ..AnswerReport::default()
        },
        ..Report::default()
    }
}

#[test]
fn envoy_extracts_every_label() {
    let template = include_str!("../../../envoy/envoy.yaml");
    for label in METRICS.iter().flat_map(|(metric, _)| metric.labels) {
        let tag = format!("- {{tag_name: {label}, regex: ");
        assert!(template.contains(&tag), "{label} has no row in stats_tags");
    }
}

fn samples(counters: &mut Counters, report: &Report, config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    counters.count(report, config.models.entry(&report.model), 9999, |sample| {
        assert_eq!(sample.labels.len(), sample.metric.labels.len(), "{}", sample.metric.name);
        let labels: Vec<_> =
            sample.pairs().map(|(name, value)| format!("{name}={value}")).collect();
        lines.push(format!("{}{{{}}} {}", sample.metric.name, labels.join(","), sample.value));
    });
    lines
}

#[test]
fn an_answer_is_counted_with_its_times_and_tokens() {
    let lines = samples(&mut Counters::default(), &answered("m"), &Config::default());
    for expected in [
        "creole_requests_total{outcome=answered,status=200,upstream=up} 1",
        "creole_ends_total{cause=end_turn} 1",
        "creole_request_duration_milliseconds{upstream=up} 2000",
        "creole_upstream_head_milliseconds{upstream=up} 100",
        "creole_first_token_milliseconds{upstream=up} 250",
        "creole_tokens_total{kind=input,model=m,upstream=up} 7",
        "creole_tokens_total{kind=output,model=m,upstream=up} 3",
        "creole_answers_total{model=m,served=asked,upstream=up} 1",
        "creole_bytes_total{direction=to_upstream} 20",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains("cache_read")), "{lines:#?}");
}

#[test]
fn results_of_earlier_turns_are_not_counted_again() {
    let mut report = answered("m");
    report.counts = RequestCounts { tool_results: 5, new_results: 1, ..RequestCounts::default() };
    let lines = samples(&mut Counters::default(), &report, &Config::default());
    let expected = "creole_tool_results_total{upstream=up} 1";
    assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
}

#[test]
fn calls_of_server_tools_are_counted_by_kind_and_result() {
    let mut tools = ToolsReport { turns: 3, ..ToolsReport::default() };
    for (kind, is_failure) in [("web_search", false), ("web_search", true), ("mcp", false)] {
        tools.calls.add(kind, is_failure);
    }
    let report = Report { tools: Some(Box::new(tools)), ..answered("m") };
    let lines = samples(&mut Counters::default(), &report, &Config::default());
    let found: Vec<_> = lines.iter().filter(|line| line.contains("server_tool")).collect();
    assert_eq!(
        found,
        [
            "creole_server_tool_calls_total{result=ok,tool=web_search} 1",
            "creole_server_tool_calls_total{result=failed,tool=web_search} 1",
            "creole_server_tool_calls_total{result=ok,tool=mcp} 1",
            "creole_server_tool_turns_total{upstream=up} 3",
        ]
    );
}

#[test]
fn steps_and_retries_are_counted_by_what_came_of_them() {
    let report = Report {
        documents: Some(Box::new(DocumentsReport { read: 2, unread: 1, duration_ms: 7 })),
        images: Some(Box::new(ImagesReport { fetched: 3, missing: 4, bytes: 9, duration_ms: 7 })),
        retries: 3,
        retries_by_evidence: 2,
        ..answered("m")
    };
    let lines = samples(&mut Counters::default(), &report, &Config::default());
    for expected in [
        "creole_documents_total{result=read} 2",
        "creole_documents_total{result=unread} 1",
        "creole_fetched_images_total{result=fetched} 3",
        "creole_fetched_images_total{result=missing} 4",
        "creole_retries_total{kind=evidence,upstream=up} 2",
        "creole_retries_total{kind=other,upstream=up} 1",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} in {lines:#?}");
    }
}

#[test]
fn a_refusal_is_counted_without_an_upstreams_times() {
    let report = Report {
        status: 400,
        outcome: Outcome::Failed(ErrorKind::InvalidRequest, Fault::Client),
        request_bytes: 5,
        ..Report::default()
    };
    let lines = samples(&mut Counters::default(), &report, &Config::default());
    assert_eq!(
        lines,
        [
            "creole_requests_total{outcome=failed_client,status=400,upstream=none} 1",
            "creole_ends_total{cause=request_refused} 1",
            "creole_bytes_total{direction=from_client} 5",
        ]
    );
}

#[test]
fn clients_cannot_make_more_labels_than_there_may_be() {
    let mut counters = Counters::default();
    let mut models = std::collections::BTreeSet::new();
    for number in 0..1000 {
        let mut report = answered(&format!("m{number}\n\"é;x=1,"));
        report.status = 200 + number;
        report.upstream = format!("up;{}", "x".repeat(number.into()));
        for line in samples(&mut counters, &report, &Config::default()) {
            let labels = line.split_once('{').unwrap().1;
            assert!(!labels.contains([';', '\n', '"']), "{line}");
            models.extend(
                line.split_once("model=")
                    .map(|(_, rest)| rest.split(',').next().unwrap().to_owned()),
            );
        }
    }
    assert_eq!(models.len(), MODELS_MAX + 1, "{models:?}");
    assert!(models.contains("other"));
}

#[test]
fn invented_names_keep_no_label_from_a_model_that_is_used() {
    let (mut counters, config) = (Counters::default(), Config::default());
    let mut label = |model: &str| {
        let report = answered(model);
        counters.model(&report, config.models.entry(model)).into_owned()
    };
    for _ in 0..20 {
        label("used-before");
    }
    for number in 0..6000 {
        label(&format!("junk{number}"));
        if number % 50 == 0 {
            assert_eq!(label("used-before"), "used-before");
        }
    }
    for _ in 0..2 {
        label("used-after");
    }
    assert_eq!(label("used-after"), "used-after");
    assert_eq!(label("used-before"), "used-before");
    assert_eq!(label("junk5999"), "other");
}

#[test]
fn names_that_take_turns_get_no_more_labels_than_there_may_be() {
    let (mut counters, config) = (Counters::default(), Config::default());
    let mut labels = std::collections::BTreeSet::new();
    for number in 0..20_000 {
        let model = format!("m{}", number / 5);
        let report = answered(&model);
        labels.insert(counters.model(&report, config.models.entry(&model)).into_owned());
        assert!(counters.models.known.len() <= MODELS_MAX);
        assert!(counters.models.waiting.len() <= MODELS_MAX);
    }
    assert_eq!(labels.len(), GIVEN_MAX + 1);
    // Labels that the host has removed make place for new labels.
    let given_up: Vec<_> = counters.take_given_up().collect();
    assert!(given_up.contains(&("model", "m0".to_owned())), "{given_up:?}");
    assert_eq!(given_up.len(), GIVEN_MAX - MODELS_MAX);
    let report = answered("new");
    let mut label = || counters.model(&report, config.models.entry("new")).into_owned();
    assert!((0..1000).any(|_| label() == "new"));
}

#[test]
fn models_of_the_map_are_labels_and_all_others_are_one() {
    let text = r#"{"models":{"claude-x":{"model":"m"},"claude-*":{},"*":{}}}"#;
    let config = Config::from_json(text, |_| None).unwrap();
    for (model, label) in [("claude-x", "claude-x"), ("claude-9", "claude-*"), ("gpt", "other")] {
        let lines = samples(&mut Counters::default(), &answered(model), &config);
        let expected = format!("creole_tokens_total{{kind=input,model={label},upstream=up}} 7");
        assert!(lines.contains(&expected), "{expected} in {lines:#?}");
    }
}

#[test]
fn names_follow_the_conventions_of_prometheus() {
    for (metric, _) in METRICS {
        let name = metric.name;
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == MetricKind::Counter, "{name}");
        // Envoy finds its tags by `label=`, so no label may be the end of another label.
        for label in metric.labels {
            let others = METRICS.iter().flat_map(|(metric, _)| metric.labels);
            assert!(others.clone().all(|other| other == label || !other.ends_with(label)));
        }
    }
}
