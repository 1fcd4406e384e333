use super::*;

fn check(schema: &str, input: &str) -> bool {
    fits(schema, input, &mut ValidationBudget::default())
}

#[test]
fn each_keyword_accepts_and_rejects() {
    for (schema, good, bad) in [
        (r#"{"type":"object"}"#, "{}", "[]"),
        (r#"{"type":"array"}"#, "[1]", r#""[1]""#),
        (r#"{"type":"string"}"#, r#""""#, "1"),
        (r#"{"type":"boolean"}"#, "true", r#""true""#),
        (r#"{"type":"null"}"#, "null", "0"),
        (r#"{"type":"number"}"#, "1.5", r#""1.5""#),
        (r#"{"type":"integer"}"#, "-3", "1.5"),
        (r#"{"type":"integer"}"#, "3.0", "3.1"),
        (r#"{"type":"integer"}"#, "15e1", "15e-1"),
        (r#"{"type":["string","null"]}"#, "null", "{}"),
        (r#"{"type":"string","nullable":true}"#, "null", "1"),
        (r#"{"enum":["a"],"nullable":true}"#, "null", r#""b""#),
        (r##"{"$ref":"#/$defs/n","nullable":true,"$defs":{"n":{"type":"string"}}}"##, "null", "1"),
        (r#"{"type":"string","nullable":false}"#, r#""""#, "null"),
        (r#"{"enum":["a",2,null]}"#, r#""\u0061""#, r#""A""#),
        (r#"{"enum":["a",2,null]}"#, "2.0", "3"),
        (
            r#"{"const":{"a":[1,{"b":2}],"c":"d"}}"#,
            r#"{"c":"d", "a":[1.0,{"b":2}]}"#,
            r#"{"a":[1,{"b":2}]}"#,
        ),
        (r#"{"minimum":0,"maximum":9}"#, "9", "10"),
        (r#"{"minimum":0}"#, "-0.0", "-1"),
        (r#"{"exclusiveMinimum":0}"#, "0.1", "0"),
        (r#"{"exclusiveMaximum":1}"#, "0", "1"),
        (r#"{"minLength":2,"maxLength":3}"#, r#""äöü""#, r#""abcd""#),
        (r#"{"minItems":1}"#, "[0]", "[]"),
        (r#"{"maxItems":1}"#, "[0]", "[0,1]"),
        (r#"{"items":{"type":"string"}}"#, r#"["a"]"#, r#"["a",1]"#),
        (r#"{"items":false}"#, "[]", "[1]"),
        (r#"{"required":["a"]}"#, r#"{"\u0061":null}"#, r#"{"b":1}"#),
        (r#"{"properties":{"a":{"type":"string"}}}"#, r#"{"b":1}"#, r#"{"a":1}"#),
        (r#"{"properties":{"a":{}},"additionalProperties":false}"#, r#"{"a":1}"#, r#"{"b":1}"#),
        (r#"{"additionalProperties":{"type":"string"}}"#, r#"{"a":"b"}"#, r#"{"a":1}"#),
        (r#"{"anyOf":[{"type":"string"},{"minimum":3}]}"#, "3", "2"),
        (r#"{"oneOf":[{"type":"string"},{"type":"null"}]}"#, "null", "2"),
        (r#"{"allOf":[{"minimum":1},{"maximum":3}]}"#, "2", "4"),
        (r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"null"}}}"##, "null", "1"),
        (r##"{"$ref":"#/definitions/n","definitions":{"n":{"type":"null"}}}"##, "null", "1"),
        (
            r##"{"type":["object"],"properties":{"next":{"$ref":"#"}}}"##,
            r#"{"next":{"next":{}}}"#,
            r#"{"next":{"next":1}}"#,
        ),
    ] {
        assert!(check(schema, good), "{schema} {good}");
        assert!(!check(schema, bad), "{schema} {bad}");
    }
}

#[test]
fn a_required_field_is_missing_where_it_is_not_given_or_null() {
    let schema = r#"{"required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"}},
        "additionalProperties":false}"#;
    let complete = |schema, input| has_required(schema, input, &mut ValidationBudget::default());
    for input in [r#"{"a":"x","b":null}"#, r#"{"a":1,"c":2}"#, r#"{"\u0061":""}"#] {
        assert!(complete(schema, input), "{input}");
    }
    for input in [r#"{"b":"x"}"#, r#"{"a":null}"#, "{}", r#""{\"a\":\"x\"}""#] {
        assert!(!complete(schema, input), "{input}");
    }
    let null = r#"{"required":["a"],"properties":{"a":{"type":["string","null"]}}}"#;
    assert!(complete(null, r#"{"a":null}"#));
    assert!(complete(r#"{"properties":{"a":{}}}"#, "[]"));
}

#[test]
fn what_is_not_known_accepts() {
    for (schema, input) in [
        ("true", "1"),
        ("{}", "1"),
        ("not a schema", "1"),
        (r#"{"type":"date"}"#, "1"),
        (r#"{"pattern":"^a$","format":"email"}"#, r#""b""#),
        (r#"{"not":{}}"#, "1"),
        (r#"{"if":{},"then":false}"#, "1"),
        (r#"{"$ref":"https://example.com/schema"}"#, "1"),
        (r##"{"$ref":"#/properties/a"}"##, "1"),
        (r##"{"$ref":"#/$defs/gone","type":"string"}"##, "1"),
        (r#"{"patternProperties":{"^x":{}},"additionalProperties":false}"#, r#"{"xa":1}"#),
        (r#"{"prefixItems":[{}],"items":false}"#, "[1]"),
        (r#"{"items":[{"type":"string"}]}"#, "[1]"),
        (r#"{"minimum":0,"exclusiveMinimum":true}"#, "0"),
        (r#"{"oneOf":[{"type":"number"},{"type":"integer"}]}"#, "1"),
        (r#"{"minLength":3,"minItems":3,"minimum":3}"#, "{}"),
        (r#"{"exclusiveMaximum":12345678901234567891}"#, "12345678901234567890"),
        (r#"{"required":"a","properties":[],"enum":"x","anyOf":{}}"#, "{}"),
    ] {
        assert!(check(schema, input), "{schema} {input}");
    }
}

#[test]
fn the_first_misfit_at_any_depth_counts_and_so_does_what_is_no_json() {
    let schema = r#"{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
        "properties":{"name":{"type":["string","null"]}},"required":["name","id"]}}},
        "additionalProperties":false}"#;
    assert!(check(schema, r#"{"items":[{"name":"n","id":1},{"name":null,"id":2}]}"#));
    for input in [
        r#"{"items":[{"name":"n","id":1},{"name":"n"}]}"#,
        r#"{"items":[{"name":1,"id":1}]}"#,
        r#"{"x":1}"#,
        r#"{"items":"#,
        "{} {}",
    ] {
        assert!(!check(schema, input), "{input}");
    }
}

#[test]
fn comparing_values_spends_the_budget_of_all_checks() {
    let members: Vec<String> = (0..1000).map(|name| format!("\"{name}\":0")).collect();
    let input = format!("{{{}}}", members.join(","));
    for (schema, input) in [
        (format!(r#"{{"enum":[{}{{"z":1}}]}}"#, "{},".repeat(1000)), input.clone()),
        (format!("{{{}}}", [r#""minItems":0"#; 2000].join(",")), format!("[{input}]")),
    ] {
        let mut budget = ValidationBudget { bytes: 2 << 20 };
        fits(&schema, &input, &mut budget);
        assert_eq!(budget.bytes, 0);
        assert!(fits(r#"{"type":"null"}"#, "1", &mut budget), "everything fits when it is spent");
    }
}

#[test]
fn a_schema_without_end_comes_to_an_end() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
        r##"{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}},"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
    ] {
        assert!(check(schema, r#"{"a":{"a":{}}}"#));
    }
}
