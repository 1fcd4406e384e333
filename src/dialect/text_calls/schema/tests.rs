//! Tests of `schema.rs`.

use super::*;
use crate::json_schema::input::property;

#[test]
fn a_schema_allows_a_type_in_many_ways() {
    let root = r##"{"$defs":{"Name":{"type":"string"},"Loop":{"$ref":"#/$defs/Loop"}},
            "properties":{}}"##;
    for schema in [
        r#"{"type":"string"}"#,
        r#"{"type":["null","string"]}"#,
        r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#,
        r#"{"oneOf":[{"type":"null"},{"enum":["a","5"]}]}"#,
        r#"{"enum":[1,"1"]}"#,
        r#"{"const":"5"}"#,
        r##"{"$ref":"#/$defs/Name"}"##,
        r##"{"anyOf":[{"$ref":"#/$defs/Name"},{"type":"null"}]}"##,
    ] {
        assert!(allows(root, schema, "string"), "{schema}");
    }
    for schema in [
        "{}",
        r#"{"type":"integer"}"#,
        r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#,
        r#"{"type":"integer","enum":[1,2]}"#,
        r##"{"$ref":"#/$defs/Loop"}"##,
        r##"{"$ref":"#/$defs/None"}"##,
        r##"{"$ref":"other.json"}"##,
    ] {
        assert!(!allows(root, schema, "string"), "{schema}");
    }
    assert!(allows(root, r#"{"anyOf":[{"type":"boolean"}]}"#, "boolean"));
}

#[test]
fn a_schema_that_lists_parameters_has_no_others() {
    let listed = r#"{"properties":{"a":{}}}"#;
    assert!(has_parameter(listed, "a") && !has_parameter(listed, "b"));
    for open in ["", "{}", r#"{"properties":{}}"#] {
        assert!(has_parameter(open, "a"), "{open}");
    }
}

#[test]
fn schemas_that_lead_back_to_each_other_are_not_followed_for_ever() {
    let back = [r##"{"$ref":"#/properties/a"}"##; 6].join(",");
    let root = format!(
        r##"{{"properties":{{"a":{{"anyOf":[{back}],"oneOf":[{back}],"allOf":[{back}]}}}}}}"##
    );
    let left = Cell::new(SCHEMAS_MAX);
    let schema = property(&root, "a").unwrap();
    assert!(!allows_within(&root, schema, "string", DEPTH_MAX, &left));
    assert_eq!(left.get(), 0);
    // A type that is listed before the limit is found.
    let schema = format!(r#"{{"anyOf":[{{"type":"string"}},{back}]}}"#);
    assert!(allows(&root, &schema, "string"));
}
