//! Tests of `framing.rs`.

use super::*;

fn all(mut data: &str) -> Vec<Payload<'_>> {
    std::iter::from_fn(|| next(&mut data)).collect()
}

#[test]
fn each_thing_in_the_data_is_found() {
    use Payload::{Done, Object, SignOfLife, Unreadable};
    assert_eq!(all("data: data:{}"), [Object("{}")]);
    assert_eq!(
        all("{\"a\":1}data: {\"b\":2}\n[DONE]"),
        [Object("{\"a\":1}"), Object("{\"b\":2}"), Done]
    );
    assert_eq!(all("[{\"a\":1}, {\"b\":2}]"), [Object("{\"a\":1}"), Object("{\"b\":2}")]);
    for done in ["[DONE]", "\"[DONE]\"", "[done]", " [DONE] "] {
        assert_eq!(all(done), [Done], "{done}");
    }
    for alive in ["ping", "[HEARTBEAT]", ": keep-alive", "null", "3", "\"x\"", "true"] {
        assert_eq!(all(alive), [SignOfLife], "{alive}");
    }
    assert_eq!(all("{\"a\":1}{\"b"), [Object("{\"a\":1}"), Unreadable("{\"b")]);
    assert_eq!(all("oh no"), [Unreadable("oh no")]);
    assert_eq!(
        all("{\"a\":[NaN,\"}\\\"\"]}\n{\"b\":1}}<p>{\"c\":2}; [DONE]"),
        [
            Unreadable("{\"a\":[NaN,\"}\\\"\"]}"),
            Object("{\"b\":1}"),
            Unreadable("}<p>"),
            Object("{\"c\":2}"),
            Unreadable("; "),
            Done
        ]
    );
    assert_eq!(all(""), []);
}

#[test]
fn what_libraries_write_instead_of_json_is_repaired() {
    for (text, expected) in [
        ("{\"a\":NaN,\"b\":[-Infinity,Infinity]}", "{\"a\":null,\"b\":[null,null]}"),
        ("{\"a\":\"x\ty\u{1}\"}", "{\"a\":\"x\\ty\\u0001\"}"),
        ("{\"a\":\"it\\'s \\\\ \\\"\"}", "{\"a\":\"it\\\\'s \\\\ \\\"\"}"),
        ("{\"a\":[1,2, ],}", "{\"a\":[1,2 ]}"),
    ] {
        assert_eq!(repaired(text).as_deref(), Some(expected));
    }
    assert_eq!(repaired("{\"a\":\"NaN, ]\"}"), None);
}
