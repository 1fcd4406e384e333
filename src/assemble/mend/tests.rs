//! Tests of `mend.rs`: each rule, and inputs that are malformed, split or oddly spaced.

mod bytes;
mod numbers;
mod reference;

use super::*;

fn tool(name: &str, schema: &str) -> Tool {
    Tool { name: name.to_owned(), schema: Some(schema.into()), ..Tool::default() }
}

/// Returns the pieces of a call's input after mending, and the number of mended members.
fn in_pieces(tool: &Tool, pieces: &[&str]) -> (Vec<String>, u32) {
    let mut budget = ValidationBudget::default();
    let Some(mut mender) = InputMender::of(tool, &mut budget) else {
        return (pieces.iter().map(|piece| (*piece).to_owned()).collect(), 0);
    };
    let mut sent: Vec<String> = Vec::new();
    for piece in pieces {
        sent.push(mender.push(piece, &mut budget).to_owned());
    }
    sent.push(mender.rest().to_owned());
    (sent, mender.take_mended())
}

/// Returns a mended input, after checking that the result is the same if the input comes in two
/// pieces or byte by byte.
#[track_caller]
fn mended(tool: &Tool, input: &str) -> (String, u32) {
    let (sent, count) = in_pieces(tool, &[input]);
    let all = sent.concat();
    for at in (0..=input.len()).filter(|at| input.is_char_boundary(*at)) {
        let (one, other) = input.split_at(at);
        let (sent, again) = in_pieces(tool, &[one, other]);
        assert_eq!((sent.concat(), again), (all.clone(), count), "{input} cut at {at}");
    }
    let letters: Vec<String> = input.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(in_pieces(tool, &letters).0.concat(), all, "{input} by letters");
    (all, count)
}

/// Returns a tool with an optional member `a` of this schema, and a required member `z`.
fn with(schema: &str) -> Tool {
    let schema =
        format!(r#"{{"type":"object","properties":{{"a":{schema},"z":{{}}}},"required":["z"]}}"#);
    tool("t", &schema)
}

#[track_caller]
fn drops(schema: &str, values: &[&str]) {
    for value in values {
        let input = format!(r#"{{"a":{value},"z":1}}"#);
        assert_eq!(mended(&with(schema), &input), (r#"{"z":1}"#.to_owned(), 1), "{schema} {value}");
    }
}

#[track_caller]
fn keeps(schema: &str, values: &[&str]) {
    for value in values {
        let input = format!(r#"{{"a":{value},"z":1}}"#);
        assert_eq!(mended(&with(schema), &input), (input, 0), "{schema}");
    }
}

#[track_caller]
fn becomes(schema: &str, value: &str, other: &str) {
    let input = |value: &str| format!(r#"{{"a":{value},"z":1}}"#);
    assert_eq!(mended(&with(schema), &input(value)), (input(other), 1), "{schema} {value}");
}

#[test]
fn null_is_left_out_where_the_schema_takes_none() {
    for schema in [
        r#"{"type":"string"}"#,
        r#"{"type":["integer","boolean"]}"#,
        r#"{"enum":["a","b"]}"#,
        r#"{"const":"a"}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"array"}]}"#,
        r#"{"allOf":[{"type":"string"}]}"#,
        r#"{"type":"object","properties":{"b":{}}}"#,
    ] {
        drops(schema, &["null"]);
    }
    for schema in [
        "{}",
        "true",
        r#"{"description":"anything"}"#,
        r#"{"type":["string","null"]}"#,
        r#"{"type":"string","nullable":true}"#,
        r#"{"enum":["a",null]}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        r#"{"oneOf":[{"type":"string"},{}]}"#,
        r##"{"$ref":"https://example.com/x"}"##,
        r##"{"$ref":"#/$defs/none"}"##,
        r#"{"type":"any"}"#,
        r#"{"minimum":3}"#,
    ] {
        keeps(schema, &["null"]);
    }
}

#[test]
fn a_blank_text_is_left_out_where_another_value_is_wanted() {
    for schema in [
        r#"{"type":"number"}"#,
        r#"{"type":"integer","minimum":0}"#,
        r#"{"type":"boolean"}"#,
        r#"{"type":"array","items":{"type":"string"}}"#,
        r#"{"type":"object"}"#,
        r#"{"type":["object","null"]}"#,
        r#"{"type":"string","enum":["a","b"]}"#,
        r#"{"type":"string","minLength":3}"#,
        r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#,
    ] {
        drops(schema, &[r#""""#, r#""  ""#]);
    }
    for schema in [
        r#"{"type":"string","format":"uri"}"#,
        r#"{"type":"string","format":"date-time"}"#,
        r#"{"type":"string","pattern":"^[a-z0-9-]+$"}"#,
        r#"{"type":"string","pattern":"^[^\\]]{1,64}$"}"#,
        r#"{"type":"string","pattern":"^x?\\d"}"#,
        r#"{"anyOf":[{"type":"string","format":"uuid"},{"type":"null"}]}"#,
    ] {
        drops(schema, &[r#""""#]);
    }
}

#[test]
fn a_text_that_may_be_meant_stays() {
    for schema in [
        r#"{"type":"string"}"#,
        r#"{"type":"string","maxLength":9}"#,
        r#"{"enum":["","a"]}"#,
        r#"{"type":["integer","string"]}"#,
        r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#,
        r#"{"type":"string","format":"uri-reference"}"#,
        r#"{"type":"string","format":"something"}"#,
        r#"{"type":"string","pattern":"^[a-z]*$"}"#,
        r#"{"type":"string","pattern":"^(a|)$"}"#,
        r#"{"type":"string","pattern":"a{0,3}"}"#,
    ] {
        keeps(schema, &[r#""""#, r#""x""#, r#""true""#, r#""3""#, r#""\n""#]);
    }
    keeps(r#"{"type":"integer"}"#, &[r#""x""#, r#""3 ""#, r#""\u0033""#, r#""3.5""#, r#""-""#]);
    keeps(r#"{"type":"boolean"}"#, &[r#""yes""#, r#""True""#, r#""truely""#, r#""1""#, "1"]);
    keeps(r#"{"enum":["a","b"]}"#, &[r#""c""#, "3", "[]", "{}"]);
}

#[test]
fn a_number_or_a_boolean_in_a_text_comes_out_of_it() {
    for number in ["3", "-3", "2.0", "1e2", "true", "false"] {
        becomes(r#"{"type":["integer","boolean"]}"#, &format!("\"{number}\""), number);
    }
    becomes(r#"{"type":"number"}"#, r#""0.5""#, "0.5");
    becomes(r#"{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]}"#, r#""7""#, "7");
    // An unquoted number is checked against the bounds like any other number.
    drops(r#"{"type":"integer","minimum":1,"default":5}"#, &[r#""0""#]);
    keeps(r#"{"type":"integer","minimum":1}"#, &[r#""0""#]);
    keeps(r#"{"type":"boolean"}"#, &[r#""tru""#, r#""true ""#]);
    keeps(r#"{"type":"number"}"#, &[r#""007""#, r#""1-2""#, r#""+1""#]);
}

#[test]
fn a_member_that_must_be_there_is_never_touched() {
    let schema = r#"{"type":"object","properties":{
        "n":{"type":"integer","minimum":1},"e":{"enum":["a"]},"b":{"type":"boolean"},"s":{"type":"string"}},
        "required":["n","e","b","s"],"additionalProperties":false}"#;
    for input in [
        r#"{"n":null,"e":"","b":"true","s":""}"#,
        r#"{"n":"","e":null,"b":"","s":null}"#,
        r#"{"n":"3","e":" ","b":null,"s":"x"}"#,
        r#"{"n":25999999999999999,"e":"b","b":1}"#,
    ] {
        assert_eq!(mended(&tool("t", schema), input), (input.to_owned(), 0));
    }
}

#[test]
fn a_member_with_a_default_may_lack_though_it_is_required() {
    let schema = r#"{"type":"object","properties":{"m":{"type":"boolean","default":false},"q":{"type":"string"}},
        "required":["m","q"]}"#;
    for bad in [r#""""#, "null"] {
        let input = format!(r#"{{"q":"","m":{bad}}}"#);
        assert_eq!(mended(&tool("t", schema), &input), (r#"{"q":""}"#.to_owned(), 1));
    }
}

#[test]
fn an_empty_member_that_the_schema_forbids_is_left_out_and_another_stays() {
    let closed = tool("t", r#"{"properties":{"a":{}},"additionalProperties":false}"#);
    for empty in ["null", r#""""#, "[]", "{}", "[ \n]", "{ }"] {
        let input = format!(r#"{{"x":{empty},"a":1}}"#);
        assert_eq!(mended(&closed, &input), (r#"{"a":1}"#.to_owned(), 1), "{empty}");
    }
    for full in [r#"" ""#, r#""x""#, "0", "false", "[[]]", r#"{"a":null}"#, "[ 1]", "true"] {
        let input = format!(r#"{{"x":{full},"a":1}}"#);
        assert_eq!(mended(&closed, &input), (input, 0));
    }
    for open in [
        r#"{"properties":{"a":{"type":"string"}}}"#,
        r#"{"properties":{"a":{"type":"string"}},"additionalProperties":{}}"#,
        r#"{"properties":{"a":{"type":"string"}},"additionalProperties":false,"patternProperties":{"^x":{}}}"#,
    ] {
        let input = r#"{"x":null,"y":"","a":"1"}"#;
        assert_eq!(mended(&tool("t", open), input), (input.to_owned(), 0));
    }
}

#[test]
fn what_stands_in_objects_and_arrays_is_mended_too() {
    let schema = r##"{"type":"object","properties":{
        "questions":{"type":"array","items":{"type":"object","properties":{
            "text":{"type":"string"},"multi":{"type":"boolean","default":false},
            "options":{"type":"array","items":{"$ref":"#/$defs/option"}}},
            "required":["text","multi"]}},
        "filter":{"anyOf":[{"type":"object","properties":{"size":{"type":"integer","minimum":1,"default":9}}},{"type":"null"}]},
        "both":{"anyOf":[{"properties":{"n":{"type":"integer"}}},{"properties":{"n":{"type":"string"}}}]},
        "tree":{"$ref":"#/$defs/node"}},
        "required":["questions"],
        "$defs":{"option":{"type":"object","properties":{"label":{"type":"string"},"preview":{"type":"string"}}},
            "node":{"type":"object","properties":{"child":{"$ref":"#/$defs/node"},"n":{"type":"integer"}}}}}"##;
    let tool = tool("t", schema);
    for (input, expected, count) in [
        (
            r#"{"questions": [ {"text":"","multi":"","options":[{"preview":null,"label":""}, {}]} , {"multi":null} ]}"#,
            r#"{"questions": [ {"text":"","options":[{"label":""}, {}]} , {} ]}"#,
            3,
        ),
        (r#"{"filter":{"size":0}}"#, r#"{"filter":{}}"#, 1),
        (r#"{"filter":null}"#, r#"{"filter":null}"#, 0),
        (r#"{"both":{"n":null}}"#, r#"{"both":{"n":null}}"#, 0),
        (
            r#"{"tree":{"n":"","child":{"child":{"n":"3","child":null}}}}"#,
            r#"{"tree":{"child":{"child":{"n":3}}}}"#,
            3,
        ),
        (
            r#"{"questions":[null,"",[{"multi":null}]]}"#,
            r#"{"questions":[null,"",[{"multi":null}]]}"#,
            0,
        ),
    ] {
        assert_eq!(mended(&tool, input), (expected.to_owned(), count), "{input}");
    }
}

#[test]
fn where_a_schema_says_it_in_several_places_everything_stays() {
    for schema in [
        r#"{"properties":{"a":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        r#"{"properties":{"a":{"type":"integer"}},"if":{},"then":{"required":["a"]}}"#,
        r#"{"properties":{"a":{"type":"integer"}},"dependentRequired":{"b":["a"]}}"#,
        r#"{"allOf":[{"properties":{"a":{"type":"integer"}}},{"required":["a"]}]}"#,
        "{}",
        "true",
        "[]",
        "no schema",
    ] {
        let input = r#"{"a":null,"b":""}"#;
        assert_eq!(mended(&tool("t", schema), input), (input.to_owned(), 0), "{schema}");
    }
}

const READ: &str = r#"{"type":"object","properties":{"file_path":{"type":"string"},
    "offset":{"type":"integer","minimum":0,"maximum":9007199254740991},
    "limit":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991},
    "pages":{"type":"string"}},"required":["file_path"],"additionalProperties":false}"#;

#[test]
fn claude_codes_own_tools_have_rules_by_name() {
    let bash = r#"{"properties":{"command":{"type":"string"},"timeout":{"type":"number"},
        "run_in_background":{"type":"boolean"}},"required":["command"]}"#;
    let agent = r#"{"properties":{"prompt":{"type":"string"},"subagent_type":{"type":"string"},
        "model":{"type":"string","enum":["sonnet","opus"]}},"required":["prompt"]}"#;
    for (name, schema, member, dropped, kept) in [
        ("Read", READ, "offset", vec!["0", "0.0", "\"0\"", "null"], vec!["1", "200"]),
        ("Bash", bash, "timeout", vec!["0", "-1", "0.5", "\"-1\""], vec!["1", "5000", "1e308"]),
        ("Agent", agent, "subagent_type", vec!["\"\"", "\" \""], vec!["\"Explore\""]),
        ("Task", agent, "model", vec!["\"inherit\"", "\"\"", "\"3\""], vec!["\"opus\"", "3"]),
    ] {
        for (values, is_kept) in [(dropped, false), (kept, true)] {
            for value in values {
                let input = format!(r#"{{"{member}":{value}}}"#);
                let expected = if is_kept { input.as_str() } else { "{}" };
                assert_eq!(mended(&tool(name, schema), &input).0, expected, "{name}");
            }
        }
    }
    // Tools that share only the name or only the members with Claude Code's `Read`.
    let other = r#"{"properties":{"offset":{"type":"integer"},"limit":{"type":"integer"}}}"#;
    for (name, schema) in [("Read", other), ("read_lines", READ)] {
        assert_eq!(mended(&tool(name, schema), r#"{"offset":0}"#).0, r#"{"offset":0}"#);
    }
}

#[test]
fn the_call_that_models_make_over_and_over_is_mended() {
    let input = r#"{"file_path":"/a","offset":0,"limit":25999999999999999,"pages":""}"#;
    let expected = (r#"{"file_path":"/a","pages":""}"#.to_owned(), 2);
    assert_eq!(mended(&tool("Read", READ), input), expected);
    // A number beyond the bounds of a schema is removed for Claude Code's tools.
    let grep = r#"{"properties":{"pattern":{"type":"string"},"output_mode":{"enum":["count"]},
        "head_limit":{"type":"integer","minimum":0}},"required":["pattern"]}"#;
    let input = r#"{"pattern":"a","head_limit":-1}"#;
    let expected = (r#"{"pattern":"a"}"#.to_owned(), 1);
    assert_eq!(mended(&tool("Grep", grep), input), expected);
}

#[test]
fn a_tool_that_asks_for_all_it_knows_is_not_looked_at() {
    let mut budget = ValidationBudget::default();
    for schema in [
        r#"{"properties":{"a":{"type":"integer"}},"required":["a"]}"#,
        r#"{"type":"object","properties":{}}"#,
        "{}",
    ] {
        assert!(InputMender::of(&tool("t", schema), &mut budget).is_none(), "{schema}");
    }
}
