//! Tests of `configure_client.rs`.

use super::*;

/// Returns what is left of `now` when the change from `before` to `after` is taken back.
fn taken_back(before: &str, after: &str, now: &str) -> String {
    let value = |text: &str| serde_json::from_str(text).unwrap();
    let root = parsed(now, Path::new("a")).unwrap();
    restore(&root.object_value().unwrap(), &value(before), &value(after), &value(now));
    root.to_string()
}

#[test]
fn only_what_was_written_is_taken_back_and_the_users_changes_stay() {
    let before = r#"{"env": {"A": "1", "B": "2"}}"#;
    let after = r#"{"env": {"A": "x", "B": "2", "C": "y"}, "statusLine": {"type": "command"}}"#;
    let now = "{\n  \"env\": {\"A\": \"x\", \"B\": \"9\", \"C\": \"y\", \"D\": \"4\"},\n  \"statusLine\": {\"type\": \"command\"},\n  \"theme\":   \"dark\"\n}\n";
    assert_eq!(
        taken_back(before, after, now),
        "{\n  \"env\": {\"A\": \"1\", \"B\": \"9\", \"D\": \"4\"},\n  \"theme\":   \"dark\"\n}\n"
    );
    let padded = r#"{"statusLine": {"type": "command", "command": "a", "padding": 1}}"#;
    let ours = r#"{"statusLine": {"type": "command", "command": "a"}}"#;
    assert_eq!(taken_back("{}", ours, padded), "{}");
    let other = padded.replace("\"a\"", "\"b\"");
    assert_eq!(taken_back("{}", ours, &other), other);
    // A value that the user changed is the user's.
    let own = r#"{"env": {"A": "own"}, "statusLine": {"type": "own"}}"#;
    assert_eq!(taken_back("{}", after, own), own);
    assert_eq!(taken_back("{}", r#"{"env": {"A": "x"}}"#, r#"{"env": {"A": "x"}}"#), "{}");
}
