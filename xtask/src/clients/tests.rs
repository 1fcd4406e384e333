//! Tests of `mod.rs`.

use super::*;

#[test]
fn the_lines_of_a_script_are_read() {
    let mut outcome = Outcome::default();
    for line in ["version Claude Code 2.1.330", "noise", "ok it_works (0.3 s)", "FAIL other"] {
        assert!(!outcome.read(line), "{line}");
    }
    assert!(outcome.read("1 passed, 1 failed"));
    assert_eq!((outcome.passed, outcome.failed), (1, 1));
    assert_eq!(
        (outcome.version.as_str(), outcome.checks),
        ("2.1.330", vec!["it works".to_owned()])
    );
}

#[test]
fn a_version_begins_after_the_name() {
    let mut outcome = Outcome::default();
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
