//! Tests of which bytes are sent, when they are sent, and how many are held.

use super::*;

#[test]
fn commas_and_white_space_are_right_whichever_members_are_left_out() {
    let schema =
        r#"{"properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}}}"#;
    let tool = tool("t", schema);
    for bits in 0..8 {
        for form in ["{A,B,C}", "{ A , B , C }", "{\n  A,\n  B,\n  C\n}", "{A\t,B\r\n,\n\nC} "] {
            let mut input = form.to_owned();
            let mut left = Vec::new();
            for (bit, name) in ["a", "b", "c"].into_iter().enumerate() {
                let is_bad = bits >> bit & 1 == 1;
                let value = if is_bad { "null" } else { "1" };
                input = input.replace(&name.to_uppercase(), &format!("\"{name}\" : {value}"));
                left.extend((!is_bad).then_some(name));
            }
            let (out, count) = mended(&tool, &input);
            let read: serde_json::Value = serde_json::from_str(&out).unwrap();
            let names: Vec<&String> = read.as_object().unwrap().keys().collect();
            assert_eq!(names, left, "{input:?} became {out:?}");
            assert_eq!(count as usize, 3 - left.len());
            if count == 0 {
                assert_eq!(out, input);
            }
        }
    }
}

#[test]
fn of_two_members_with_one_name_the_second_stays() {
    let tool = with(r#"{"type":"integer"}"#);
    for (input, expected) in [
        (r#"{"a":1,"a":null}"#, r#"{"a":1,"a":null}"#),
        (r#"{"a":null,"a":1}"#, r#"{"a":1}"#),
        (r#"{"a":"","\u0061":""}"#, r#"{"\u0061":""}"#),
    ] {
        assert_eq!(mended(&tool, input).0, expected);
    }
}

#[test]
fn keys_are_read_as_they_are_meant() {
    let tool = tool("t", r#"{"properties":{"a\"b":{"type":"integer"},"ä":{"type":"integer"}}}"#);
    for key in [r#"a\"b"#, r#"\u0061\u0022b"#, "ä", r#"\u00e4"#] {
        assert_eq!(mended(&tool, &format!(r#"{{"{key}":null}}"#)), ("{}".to_owned(), 1), "{key}");
    }
}

#[test]
fn what_is_no_json_passes_as_it_came() {
    let tool = with(r#"{"type":"integer"}"#);
    for input in [
        "",
        " ",
        "null",
        "[1]",
        r#"{"a":nul}"#,
        r#"{"a"null}"#,
        r#"{a:null}"#,
        r#"{"a":"#,
        r#"{"a":nu"#,
        r#"{"a":"tr"#,
        r#"{"a":25999999999999999"#,
        r#"{"a":-}"#,
        r#"{"z":1,"a"#,
        r#"{"z":1,,"a":null}"#,
        r#"{,"a":null}"#,
        r#"{"z":[},"a":null}"#,
        r#"{"z":tru,"a":null}"#,
        r#"{"z":1}{"a":null}"#,
        "{\"z\":\"\u{e4}",
        "{\u{e4}}",
    ] {
        assert_eq!(mended(&tool, input), (input.to_owned(), 0), "{input}");
    }
    // A member that was removed before the syntax error is not restored.
    assert_eq!(mended(&tool, r#"{"a":null,,"z":1}"#).0, r#"{,"z":1}"#);
    assert_eq!(mended(&tool, r#"{"a":nulll}"#).0, "{l}");
}

#[test]
fn what_breaks_off_has_no_comma_behind_a_bracket() {
    let tool = with(r#"{"type":"integer","default":1}"#);
    for (input, expected) in [
        (r#"{"a":null,"file_pa"#, r#"{"file_pa"#),
        (r#"{"a":null,"z"#, r#"{"z"#),
        (r#"{"a":null , "z":nul"#, r#"{ "z":nul"#),
        (r#"{"a":null,"#, "{"),
        (r#"{"a":null,}"#, "{}"),
        (r#"{"z":1,"a":null,}"#, r#"{"z":1,}"#),
        (r#"{"z":1,"a":nu"#, r#"{"z":1,"a":nu"#),
        (r#"{"z":1,"a":null,"a":2"#, r#"{"z":1,"a":2"#),
    ] {
        assert_eq!(mended(&tool, input), (expected.to_owned(), u32::from(input.contains("null"))));
    }
}

#[test]
fn the_first_byte_of_a_value_that_stays_leaves_before_the_last_has_come() {
    let schema = r#"{"properties":{"path":{"type":"string"},"content":{"type":"string"},
        "note":{"type":"string"},"n":{"type":"integer","default":1}},"required":["path","content"],"additionalProperties":false}"#;
    let pieces = [
        "{\"con",
        "tent\"",
        ":",
        "\"ab",
        "c",
        "\\",
        "n",
        "d\"",
        ",\"note\":\"",
        "s",
        "o\"",
        ", \"n\"",
        ":1",
        "2",
        ",\"n2\":\"",
        "\",\"path\":",
        "\"/",
        "x\"}",
    ];
    let (sent, mended) = in_pieces(&tool("t", schema), &pieces);
    assert_eq!(
        sent,
        [
            "{",
            "\"content\"",
            ":",
            "\"ab",
            "c",
            "\\",
            "n",
            "d\"",
            "",
            ",\"note\":\"s",
            "o\"",
            "",
            "",
            "",
            ", \"n\":12",
            ",\"path\":",
            "\"/",
            "x\"}",
            "",
        ]
    );
    assert_eq!(mended, 1);
}

#[test]
fn no_more_is_held_than_what_can_be_left_out() {
    let schema = with(r#"{"type":"integer","default":1}"#);
    let long = "9".repeat(HELD_BYTES_MAX + 9);
    for input in [
        format!(r#"{{"a":{long},"z":1}}"#),
        format!(r#"{{"a":"{long}","z":1}}"#),
        format!(r#"{{"a":"{}","z":1}}"#, " ".repeat(HELD_BYTES_MAX)),
        format!(r#"{{"{long}":null,"a":1}}"#),
        format!(r#"{{"a":{}null,"z":1}}"#, " ".repeat(HELD_BYTES_MAX)),
        format!(r#"{{"z":1{},"z":1}}"#, " ".repeat(HELD_BYTES_MAX)),
        format!(r#"{{"z":1,{}"z":1}}"#, " ".repeat(HELD_BYTES_MAX)),
    ] {
        let mut budget = ValidationBudget::default();
        let mut mender = InputMender::of(&schema, &mut budget).unwrap();
        let mut out = String::new();
        for letter in input.chars() {
            out.push_str(mender.push(letter.encode_utf8(&mut [0; 4]), &mut budget));
            assert!(mender.held.len() <= HELD_BYTES_MAX);
        }
        assert_eq!(out, input);
    }
    // White space that is too long to be held does not change which commas are removed.
    let blanks = " ".repeat(HELD_BYTES_MAX);
    for input in
        [format!(r#"{{"a":null{blanks},"z":1}}"#), format!(r#"{{"a":null,{blanks}"z":1}}"#)]
    {
        let (sent, _) = in_pieces(&schema, &[&input]);
        assert_eq!(sent.concat().replace(' ', ""), r#"{"z":1}"#);
    }
    let closed = tool("t", r#"{"properties":{},"additionalProperties":false}"#);
    let input = format!(r#"{{"x":[{}],"y":null}}"#, " ".repeat(HELD_BYTES_MAX));
    let (sent, _) = in_pieces(&closed, &[&input]);
    assert_eq!(sent.concat().replace(' ', ""), r#"{"x":[]}"#);
}

#[test]
fn a_held_text_is_what_it_began_as() {
    let tool = with(r#"{"type":["integer","boolean"]}"#);
    let pieces = |input: &'static str| in_pieces(&tool, &[input]).0;
    for (input, sent) in [
        (r#"{"a":" 3"#, r#"{"a":" 3"#),
        (r#"{"a":"3 "#, r#"{"a":"3 "#),
        (r#"{"a":"tr3"#, r#"{"a":"tr3"#),
        (r#"{"a":"3t"#, r#"{"a":"3t"#),
        (r#"{"a":" t"#, r#"{"a":" t"#),
        (r#"{"a":"  "#, "{"),
        (r#"{"a":"-12e"#, "{"),
        (r#"{"a":"fals"#, "{"),
    ] {
        assert_eq!(pieces(input)[0], sent);
    }
}

#[test]
fn what_is_known_of_a_schema_is_bounded() {
    let name = |at: usize| format!("{at:04}{}", "n".repeat(60));
    let members = |count: usize, schema: &str| -> String {
        (0..count).map(|at| format!(r#""{}":{schema},"#, name(at))).collect()
    };
    // Each reference counts as a separate schema with all names of its target.
    let schema = format!(
        r##"{{"properties":{{"all":{{"properties":{{{}"z":{{}}}}}}}},"$defs":{{"d":{{"properties":{{{}"a":{{"type":"integer"}}}}}}}}}}"##,
        members(127, r##"{"$ref":"#/$defs/d"}"##),
        members(127, "{}"),
    );
    let tool = tool("t", &schema);
    let input = format!(r#"{{"all":{{{}"z":1}}}}"#, members(127, r#"{"a":null}"#));
    let mut budget = ValidationBudget::default();
    let mut mender = InputMender::of(&tool, &mut budget).unwrap();
    let out = mender.push(&input, &mut budget).to_owned();
    let kept: usize = mender.shapes.iter().map(Shape::bytes).sum();
    assert!(mender.shapes.len() > 8 && kept <= KNOWN_BYTES_MAX, "{kept}");
    // The first members are mended, and the remaining members stay unchanged.
    assert!(out.starts_with(&format!(r#"{{"all":{{"{}":{{}},"#, name(0))));
    assert!(out.ends_with(&format!(r#""{}":{{"a":null}},"z":1}}}}"#, name(126))));
    // A root schema larger than the memory limit is not read.
    let wide =
        format!(r#"{{"properties":{{"{}":{{"type":"integer"}}}}}}"#, "n".repeat(KNOWN_BYTES_MAX));
    assert!(InputMender::of(&Tool { schema: Some(wide.into()), ..tool }, &mut budget).is_none());
}

#[test]
fn a_spent_budget_leaves_everything() {
    let schema = with(r#"{"type":"integer"}"#);
    let mut budget = ValidationBudget::default();
    let mut mender = InputMender::of(&schema, &mut budget).unwrap();
    let elements = "{\"a\":null},".repeat(200_000);
    let many = tool(
        "t",
        r#"{"properties":{"l":{"type":"array","items":{"properties":{"a":{"type":"integer"}}}}}}"#,
    );
    let _ = InputMender::whole(&many, &format!("{{\"l\":[{elements}{{}}]}}"), &mut budget);
    assert_eq!(mender.push(r#"{"a":null,"z":1}"#, &mut budget), r#"{"a":null,"z":1}"#);
}
