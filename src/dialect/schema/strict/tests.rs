//! Tests of `strict.rs`.

use super::*;

#[test]
fn the_strict_subset_is_told_from_other_schemas() {
    let object = |rest: &str| format!(r#"{{"type":"object",{rest}}}"#);
    for schema in [
        object(r#""properties":{},"additionalProperties":false"#),
        object(
            r#""properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false"#,
        ),
        object(
            r##""additionalProperties":false,"required":["b","\u0061"],"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/d"}]},"b":{"type":"array","items":{"type":"integer","minimum":1}}},"$defs":{"d":{"type":"object","properties":{},"additionalProperties":false}}"##,
        ),
        object(
            r#""properties":{"a":{"type":"string","format":"date-time","pattern":"^(?:a|b)$"}},"required":["a"],"additionalProperties":false"#,
        ),
        object(
            r#""properties":{"allOf":{"type":"string","enum":["x"]}},"required":["allOf"],"additionalProperties":false"#,
        ),
    ] {
        assert!(meets_strict_subset(&schema), "{schema}");
    }
    for schema in [
        "{}".to_owned(),
        "true".to_owned(),
        object(r#""properties":{}"#),
        object(r#""properties":{},"additionalProperties":true"#),
        object(r#""properties":{"a":{}},"required":[],"additionalProperties":false"#),
        object(r#""properties":{"a":{}},"additionalProperties":false"#),
        object(
            r#""properties":{"a":{"type":["object","null"],"properties":{}}},"required":["a"],"additionalProperties":false"#,
        ),
        object(
            r#""properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false"#,
        ),
        object(
            r#""properties":{},"additionalProperties":false,"$defs":{"d":{"type":"object","properties":{}}}"#,
        ),
        object(
            r#""properties":{"a":{"anyOf":[{"type":"object","properties":{}}]}},"required":["a"],"additionalProperties":false"#,
        ),
        object(r#""properties":{},"additionalProperties":false,"allOf":[]"#),
        // Every schema needs a type, and every required name must be a property.
        object(
            r#""properties":{"a":{"enum":["x"]}},"required":["a"],"additionalProperties":false"#,
        ),
        object(r#""properties":{"a":{}},"required":["a"],"additionalProperties":false"#),
        object(r#""properties":{"a":{"title":"A"}},"required":["a"],"additionalProperties":false"#),
        object(r#""properties":{},"required":["a"],"additionalProperties":false"#),
        object(r#""properties":{},"additionalProperties":false,"anyOf":[]"#),
        // Schemas that OpenAI refuses with status 400, although it knows their keywords.
        object(
            r#""properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false"#,
        ),
        object(
            r#""properties":{"a":{"type":["array","null"]}},"required":["a"],"additionalProperties":false"#,
        ),
        object(
            r##""properties":{"a":{"$ref":"#/$defs/d","description":"d"}},"required":["a"],"additionalProperties":false,"$defs":{"d":{"type":"string"}}"##,
        ),
        object(
            r#""properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false"#,
        ),
        r#"{"type":"array","items":{"type":"string"}}"#.to_owned(),
    ] {
        assert!(!meets_strict_subset(&schema), "{schema}");
    }
}
