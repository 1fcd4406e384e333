//! Tests of `clients.rs`.

use super::*;
use crate::config::Config;

fn config(text: &str) -> Result<Config, String> {
    let secret = |name: &str| match name {
        "A" => Some("key-of-a".to_owned()),
        "B" => Some("Bearer key-of-b\n".to_owned()),
        "SAME" => Some("Bearer key-of-a".to_owned()),
        "TWO_LINES" => Some("a\nb".to_owned()),
        _ => None,
    };
    Config::from_json(text, secret).map_err(|error| error.to_string())
}

#[test]
fn a_key_is_known_by_its_name_and_kept_as_a_hash() {
    let read = config(r#"{"client_keys":[{"env":"A","name":"team-a"},{"secret":"B"}]}"#);
    let keys = read.unwrap().client_keys;
    let name = |key: &str| keys.name_of([key].into_iter());
    assert_eq!(name("key-of-a"), Some("team-a"));
    assert_eq!(name("bearer  key-of-a"), Some("team-a"));
    assert_eq!(name("Bearer key-of-b"), Some("B"));
    for wrong in ["", "Bearer", "key-of-", "key-of-aa", "KEY-OF-A", "team-a"] {
        assert_eq!(name(wrong), None, "{wrong}");
    }
    assert_eq!(keys.name_of(["wrong", "key-of-b"].into_iter()), Some("B"));
    assert_eq!(format!("{keys:?}"), r#"{"team-a", "B"}"#);
    assert!(ClientKeys::default().name_of(["x"].into_iter()).is_none());
}

#[test]
fn keys_that_cannot_be_used_are_refused_with_their_place_and_without_the_key() {
    for (text, expected) in [
        (r#"[{"secret":"NONE"}]"#, "[0].secret: expected an environment variable called \"NONE\""),
        (r#"[{"secret":"A"},{"secret":"TWO_LINES"}]"#, "[1].secret: expected a key in one line"),
        (
            r#"[{"secret":"A"},{"secret":"SAME"}]"#,
            "[1].secret: expected a key of its own, but found that of A",
        ),
        (r#"[{"secret":"A"},{"secret":"B","name":"A"}]"#, "[1].secret: expected a name of its own"),
        (r#"[{"secret":"A","name":"a b"}]"#, "[0].name: expected at most 64 letters"),
        (r#"[{"secret":"A","name":""}]"#, "[0].name: expected at most 64 letters"),
        (r#"["sk-key"]"#, "[0]: expected {\"env\": NAME}"),
        (r#"[{"key":"sk-key"}]"#, "[0]: expected {\"env\": NAME}"),
        (r#"[{"name":"a"}]"#, "[0].env: expected the name of an environment variable"),
    ] {
        let error = config(&format!("{{\"client_keys\":{text}}}")).unwrap_err();
        let expected = ["configuration: client_keys", expected].concat();
        assert!(error.starts_with(&expected), "{text}: {error}");
        assert!(!error.contains("sk-key") && !error.contains("key-of"), "{error}");
    }
}

#[test]
fn no_upstream_gets_the_key_of_a_client_of_ours() {
    let text = |key: &str| {
        format!(r#"{{"client_keys":[{{"secret":"A"}}],"upstreams":{{"u":{{"key":{key}}}}}}}"#)
    };
    let error = config(&text(r#""client""#)).unwrap().check_client_keys().unwrap_err();
    assert!(error.starts_with("configuration: upstreams.u.key: expected {\"env\""), "{error}");
    for key in [r#""none""#, r#"{"secret":"B"}"#] {
        assert_eq!(config(&text(key)).unwrap().check_client_keys(), Ok(()));
    }
    assert_eq!(Config::default().check_client_keys(), Ok(()));
}
