use super::*;
use proptest::prelude::*;

fn header(name: &str, value: &str) -> Header {
    (name.to_owned(), value.to_owned())
}

fn of(names: &[&str], id: SessionId) -> SessionHeaders {
    SessionHeaders { names: names.iter().map(|name| (*name).to_owned()).collect(), id }
}

fn sent(session: &str, id: SessionId) -> String {
    let mut headers = Vec::new();
    set(session, &of(&["x-session-id"], id), &mut headers);
    headers.pop().unwrap().1
}

#[test]
fn the_header_of_the_client_that_is_surest_wins() {
    let mut headers = vec![
        header("session-id", "codex"),
        header("X-Session-Id", " other "),
        header("x-session-affinity", "opencode"),
        header("X-Claude-Code-Session-Id", "claude"),
    ];
    for expected in ["claude", "opencode", "other", "codex"] {
        assert_eq!(of_headers(&headers).as_deref(), Some(expected));
        headers.pop();
    }
    assert_eq!(of_headers(&[]), None);
    let empty = [header("x-claude-code-session-id", " "), header("session-id", "codex")];
    assert_eq!(of_headers(&empty).as_deref(), Some("codex"));
}

#[test]
fn both_forms_of_claude_codes_user_id_tell_the_session() {
    for (body, expected) in [
        (r#"{"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"s-1\"}"}}"#, Some("s-1")),
        (r#"{"metadata":{"user_id":"user_ab_account__session_s-2"}}"#, Some("s-2")),
        (r#"{"metadata":{"user_id":"user_ab_account__session_"}}"#, None),
        (r#"{"metadata":{"user_id":"{\"session_id\":\"\"}"}}"#, None),
        (r#"{"metadata":{"user_id":"{\"session_id\":7}"}}"#, None),
        (r#"{"metadata":{"user_id":"somebody"}}"#, None),
        (r#"{"metadata":{"user_id":7}}"#, None),
        (r#"{"metadata":null}"#, None),
        (r#"{"metadata"#, None),
        ("", None),
    ] {
        assert_eq!(of_body(body).as_deref(), expected, "{body}");
    }
}

#[test]
fn an_id_goes_as_it_is_and_one_that_no_header_should_have_as_its_hash() {
    let id = "0b5a4d3c-11aa-4ccc-9abc-0123456789ab";
    assert_eq!(sent(id, SessionId::Plain), id);
    assert_eq!(sent(id, SessionId::Hash), hex_of_hash(id.as_bytes()));
    let longest = "a".repeat(ID_BYTES_MAX);
    let long = format!("{longest}a");
    for bad in ["a\r\nx-evil: 1", "a b", "a,b", "é", "\0", &long] {
        assert_eq!(sent(bad, SessionId::Plain), hex_of_hash(bad.as_bytes()), "{bad:?}");
    }
    assert_eq!(sent(&longest, SessionId::Plain), longest);
}

#[test]
fn every_name_gets_the_id_once() {
    let mut headers = vec![header("a", "old"), header("b", "kept")];
    set("s", &of(&["a", "c"], SessionId::Plain), &mut headers);
    assert_eq!(headers, [header("b", "kept"), header("a", "s"), header("c", "s")]);
}

proptest! {
    #[test]
    fn no_id_breaks_a_header_and_equal_ids_stay_equal(id in any::<String>()) {
        for form in [SessionId::Plain, SessionId::Hash] {
            let value = sent(&id, form);
            prop_assert!(id.is_empty() || super::super::is_value(&value), "{value:?}");
            prop_assert!(value.len() <= ID_BYTES_MAX);
            prop_assert_eq!(value, sent(&id, form));
        }
    }
}
