//! Tests of numbers beyond the bounds of a schema, and of numbers that are only large.

use super::*;

#[test]
fn a_number_beyond_its_bounds_is_left_out_where_something_takes_its_place() {
    for (schema, beyond) in [
        (r#""type":"integer","minimum":1"#, &["0", "-1", "0.0", "-1e3"][..]),
        (r#""type":"integer","exclusiveMinimum":0"#, &["0"]),
        (r#""type":"number","maximum":9.5"#, &["9.6", "1e308"]),
        (r#""type":"number","exclusiveMaximum":9"#, &["9"]),
        (r#""type":"integer","maximum":9007199254740991"#, &["25999999999999999"]),
        (r#""anyOf":[{"type":"integer","minimum":1},{"type":"null"}]"#, &["0"]),
    ] {
        drops(&format!(r#"{{"default":5,{schema}}}"#), beyond);
        keeps(&format!("{{{schema}}}"), beyond);
        keeps(&format!(r#"{{{schema},"default":null}}"#), beyond);
        // Claude Code has a default for each optional number of its own tools.
        for value in beyond {
            let schema = READ.replace(r#""limit":{"#, &format!(r#""limit":{{{schema}}},"_":{{"#));
            let input = format!(r#"{{"limit":{value}}}"#);
            assert_eq!(mended(&tool("Read", &schema), &input), ("{}".to_owned(), 1), "{schema}");
            let same = (input.clone(), 0);
            assert_eq!(mended(&tool("mcp__files__Read", &schema), &input), same, "{schema}");
        }
    }
    for default in ["", r#","default":5"#] {
        let schema = format!(r#"{{"type":"integer","minimum":1,"maximum":9{default}}}"#);
        keeps(&schema, &["1", "9", "2.0", "1e0", "2.5"]);
        keeps(&format!(r#"{{"type":"string","minimum":5{default}}}"#), &["1", "25999999999999999"]);
    }
}

#[test]
fn a_filter_that_its_server_refuses_is_not_left_out() {
    let purge = tool(
        "mcp__logs__purge_logs",
        r#"{"properties":{"older_than_days":{"type":"integer","minimum":1,"maximum":3650}}}"#,
    );
    for days in ["4000", "0", "\"4000\""] {
        let input = format!(r#"{{"older_than_days":{days}}}"#);
        assert_eq!(mended(&purge, &input), (input, 0));
    }
}

#[test]
fn ids_that_are_larger_than_what_javascript_holds_stay() {
    let ids = ["1185723948572349857", "9223372036854775807", "18446744073709551615"];
    for schema in [
        r#"{"type":"integer"}"#,
        r#"{"type":"integer","default":0}"#,
        r#"{"type":"integer","minimum":0,"default":0}"#,
        r#"{"type":["integer","null"],"default":null}"#,
        r#"{"anyOf":[{"type":"integer","maximum":18446744073709551615},{"type":"null"}],"default":null}"#,
        r#"{"anyOf":[{"type":"integer","format":"int64"},{"type":"null"}],"default":7}"#,
        r#"{"allOf":[{"type":"integer","format":"int64"}]}"#,
        r#"{"type":"integer","format":"int64"}"#,
    ] {
        keeps(schema, &ids);
        // A number in quotes stays quoted, because a client could round an unquoted number.
        keeps(schema, &ids.map(|id| format!("\"{id}\"")).each_ref().map(String::as_str));
    }
    let optional = r#"{"anyOf":[{"type":"integer","maximum":9223372036854775807},{"type":"null"}],"default":null}"#;
    keeps(optional, &["1185723948572349857"]);
    keeps(r#"{"enum":[1,9007199254740993]}"#, &["9007199254740993", "7"]);
    keeps("{}", &["25999999999999999"]);
}
