//! Tests of `call.rs`.

use super::*;
use crate::model::request_context::Tool;

#[test]
fn a_name_may_come_in_fragments_or_again() {
    let mut tools = Tools::default();
    for name in ["get_weather", "Read", "mcp__fs__Read_file", "Read_all"] {
        tools.push(Tool { outgoing: name.to_owned(), ..Tool::default() });
    }
    for (names, expected) in [
        (&["get_", "weather"] as &[&str], "get_weather"),
        (&["get_weather", "get_weather"], "get_weather"),
        (&["get_", "get_weather"], "get_weather"),
        (&["un", "known"], "unknown"),
        // A fragment of a name that is itself the name of another tool.
        (&["mcp__fs__", "Read", "_file"], "mcp__fs__Read_file"),
        (&["Read", "_all"], "Read_all"),
    ] {
        let mut call = CallParts::default();
        for name in names {
            assert!(!call.receive_name(name, &tools));
        }
        assert_eq!(call.name, expected);
    }
    let mut call = CallParts { name: "a".to_owned(), ..CallParts::default() };
    call.input.receive("{", &mut String::new());
    assert!(call.receive_name("b", &tools));
    assert_eq!(call.name, "a");
    // Text behind a whole name is not part of the name, whether or not a client has seen the name.
    let mut call = CallParts { name: "get_weather".to_owned(), ..CallParts::default() };
    assert!(call.receive_name("_v2", &tools));
    assert_eq!(call.name, "get_weather");
}
