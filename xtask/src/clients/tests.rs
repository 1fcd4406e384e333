//! Tests of `mod.rs`.

use super::record::{Run, merged};
use super::*;

#[test]
fn the_lines_of_a_script_are_read() {
    let mut outcome = ScriptOutcome::default();
    for line in ["version Claude Code 2.1.330", "noise", "ok it_works (0.3 s)", "FAIL other"] {
        assert!(!outcome.read(line), "{line}");
    }
    assert!(outcome.read("1 passed, 1 failed"));
    assert_eq!((outcome.passed, outcome.failed), (1, 1));
    assert_eq!(outcome.failures, ["other"]);
    assert_eq!(
        (outcome.version.as_str(), outcome.checks),
        ("2.1.330", vec!["it works".to_owned()])
    );
}

#[test]
fn a_version_begins_after_the_name() {
    let mut outcome = ScriptOutcome::default();
    outcome.read("version n8n 2.41.3");
    assert_eq!(outcome.version, "2.41.3");
    outcome.read("version LangChain, Python 1.4.7 (langchain-anthropic 1.7.7)");
    assert_eq!(outcome.version, "1.4.7 (langchain-anthropic 1.7.7)");
}

#[test]
fn every_client_has_a_script_and_a_lock_file() {
    let all = catalog::all::<Client>().unwrap();
    assert!(all.len() > 8);
    for client in all {
        let sources = client.sources();
        assert!(sources.join(&client.main).is_file(), "{}", client.folder);
        let locked = ["package-lock.json", "requirements.txt"];
        assert!(locked.iter().any(|lock| sources.join(lock).is_file()), "{}", client.folder);
    }
}

#[test]
fn a_name_that_is_no_client_is_refused() {
    let error = catalog::chosen::<Client>(&["claude-cod".to_owned()]).err().unwrap().to_string();
    assert!(error.contains("claude-code"), "{error}");
    assert_eq!(catalog::chosen::<Client>(&["pi".to_owned()]).unwrap().len(), 1);
}

fn ran(host: &str, version: &str, date: &str, failed: &[&str]) -> Run {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Run {
        client: "pi".to_owned(),
        host: host.to_owned(),
        protocol: "openai".to_owned(),
        version: version.to_owned(),
        date: date.to_owned(),
        passed: own(&["a", "b"]),
        failed: own(failed),
    }
}

#[test]
fn the_later_run_counts_and_the_others_stay() {
    let known = vec![ran("worker", "1", "2026-11-26", &[]), ran("envoy", "2", "2026-11-27", &[])];
    let kept = vec![
        ran("worker", "2", "2026-11-26", &["c"]),
        ran("envoy", "1", "2026-11-20", &[]),
        ran("gateway", "2", "2026-11-27", &[]),
    ];
    let runs = merged(known, kept.clone());
    assert_eq!(runs, [ran("envoy", "2", "2026-11-27", &[]), kept[2].clone(), kept[0].clone()]);
    assert_eq!(merged(runs.clone(), kept), runs);
}

#[test]
fn the_table_says_what_failed_what_is_older_and_what_was_not_run() {
    let runs = [ran("envoy", "2", "2026-11-27", &["c"]), ran("worker", "1", "2026-11-26", &[])];
    let runs: Vec<&Run> = runs.iter().collect();
    assert_eq!(
        table::cell(&runs, Protocol::Openai, "2"),
        "envoy: 2 passed, **1 failed**, 2026-11-27<br>gateway: not run<br>worker: 2 passed, 1, 2026-11-26"
    );
    assert_eq!(table::cell(&runs, Protocol::Responses, "2"), "not run");
}

#[test]
fn the_page_is_made_of_the_runs() {
    let (path, made) = table::page(&record::all().unwrap()).unwrap();
    let page = fs::read_to_string(&path).unwrap();
    assert!(page == made, "run `cargo xtask clients --table`: {}", path.display());
}
