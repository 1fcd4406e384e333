//! Tests of `references.rs`.

use super::*;

#[test]
fn references_lead_somewhere_or_are_left_out() {
    for (schema, expected) in [
        // References whose definitions a converter dropped.
        (r##"{"properties":{"u":{"$ref":"#/$defs/User"}}}"##, r#"{"properties":{"u":{}}}"#),
        (
            r##"{"properties":{"u":{"$ref":"#/components/schemas/User","title":"U"}}}"##,
            r#"{"properties":{"u":{"title":"U"}}}"#,
        ),
        (
            r##"{"$ref":"#/properties/a/items","properties":{"a":{}}}"##,
            r#"{"properties":{"a":{}}}"#,
        ),
        // Definitions in a subschema, and in a subschema of such a definition.
        (
            r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{"not":{"$ref":"#/$defs/G"},"$defs":{"G":{"type":"null"}}}}}}"##,
            r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{"not":{"$ref":"#/$defs/G"},"$defs":{"G":{"type":"null"}}}}},"$defs":{"F":{"not":{"$ref":"#/$defs/G"},"$defs":{"G":{"type":"null"}}},"G":{"type":"null"}}}"##,
        ),
        (
            r##"{"$defs":{"A":{}},"items":{"$ref":"#/definitions/F","definitions":{"F":{"type":"null"}}}}"##,
            r##"{"items":{"$ref":"#/definitions/F","definitions":{"F":{"type":"null"}}},"$defs":{"A":{}},"definitions":{"F":{"type":"null"}}}"##,
        ),
        // Reference to another path in the root than that of the definition.
        (
            r##"{"items":{"$ref":"#/components/schemas/F"},"definitions":{"F":{}}}"##,
            r##"{"items":{"$ref":"#/definitions/F"},"definitions":{"F":{}}}"##,
        ),
        // Different definitions of the same name in several subschemas.
        (
            r##"{"not":{"type":"null"},"anyOf":[{"$ref":"#/$defs/I","$defs":{"I":{"type":"string"}}},{"$ref":"#/$defs/I","$defs":{"I":{}}},{"$defs":{"I":{}}}]}"##,
            r##"{"not":{"type":"null"},"anyOf":[{"$defs":{"I":{"type":"string"}}},{"$defs":{"I":{}}},{"$defs":{"I":{}}}]}"##,
        ),
        (
            r##"{"$defs":{"I":{"type":"string"}},"items":{"$ref":"#/definitions/I","definitions":{"I":{"type":"null"}}}}"##,
            r##"{"items":{"$ref":"#/definitions/I","definitions":{"I":{"type":"null"}}},"$defs":{"I":{"type":"string"}},"definitions":{"I":{"type":"null"}}}"##,
        ),
        // A reference by the whole path of a definition stays.
        (
            r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{}}},"not":{"$ref":"#/items/$defs/F"}}"##,
            r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{}}},"not":{"$ref":"#/items/$defs/F"},"$defs":{"F":{}}}"##,
        ),
        // PHP writes an empty object as `[]`.
        (
            r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{}}},"$defs":[]}"##,
            r##"{"items":{"$ref":"#/$defs/F","$defs":{"F":{}}},"$defs":{"F":{}}}"##,
        ),
        // Without its reference, `not` would refuse every value, and so would `oneOf`.
        (r##"{"not":{"$ref":"#/a"},"items":{}}"##, r#"{"items":{}}"#),
        (
            r##"{"oneOf":[{"$ref":"#/a"},{"type":"null"},{"$ref":"#/b"}],"items":{}}"##,
            r#"{"anyOf":[{},{"type":"null"},{}],"items":{}}"#,
        ),
        // References with percent signs or escapes.
        (
            r##"{"items":{"$ref":"#/definitions/a%2Fb"},"definitions":{"a/b":{}}}"##,
            r##"{"items":{"$ref":"#/definitions/a~1b"},"definitions":{"a/b":{}}}"##,
        ),
        (
            r##"{"items":{"$ref":"#\/$defs\/F"},"$defs":{"F":{}}}"##,
            r##"{"items":{"$ref":"#/$defs/F"},"$defs":{"F":{}}}"##,
        ),
        (
            r##"{"items":{"$ref":"#/definitions/R%3Cx%3E"},"definitions":{"R<x>":{}}}"##,
            r##"{"items":{"$ref":"#/definitions/R<x>"},"definitions":{"R<x>":{}}}"##,
        ),
        (
            r##"{"items":{"$ref":"#/$defs/R<x>"},"$defs":{"R\u003cx\u003e":{}}}"##,
            r##"{"items":{"$ref":"#/$defs/R<x>"},"$defs":{"R<x>":{}}}"##,
        ),
    ] {
        assert_eq!(plain(schema), expected);
    }
}

#[test]
fn what_leads_somewhere_stays_byte_for_byte() {
    for schema in [
        r##"{ "$ref":"#/$defs/A", "$defs":{"A":{"$ref":"#"}} }"##,
        r##"{"items":{"$ref":"#/$defs/a~1b~0"},"$defs":{"a/b~":{}}}"##,
        r##"{"items":{"$ref":"#/$defs/A/anyOf/1"},"$defs":{"A":{"anyOf":[{},{}]}}}"##,
        r##"{"properties":{"a":{"items":{}},"b":{"$ref":"#/properties/a/items"}}}"##,
        // Texts that are no paths, and members that are no references.
        r##"{"items":{"$ref":"User"},"not":{"$ref":"#user"}}"##,
        r##"{"properties":{"$ref":{"type":"string"}},"default":{"$ref":"#/$defs/A"}}"##,
        r##"{"$ref":null}"##,
    ] {
        let written = plain(schema);
        assert!(matches!(written, Cow::Borrowed(_)), "{written}");
    }
}

#[test]
fn however_many_there_are_none_leads_nowhere() {
    let open: Vec<String> = (0..500).map(|number| format!(r#""p{number}":{{}}"#)).collect();
    let refers = |number: usize| format!(r##"{{"$ref":"#/components/schemas/U{number}"}}"##);
    let properties: Vec<String> =
        (0..500).map(|number| format!(r#""p{number}":{}"#, refers(number))).collect();
    let properties = properties.join(",");
    let bare = format!(r#"{{"properties":{{{properties}}}}}"#);
    assert_eq!(plain(&bare), format!(r#"{{"properties":{{{}}}}}"#, open.join(",")));
    let defined: Vec<String> = (0..500).map(|number| format!(r#""U{number}":{{}}"#)).collect();
    let defined = defined.join(",");
    let whole = format!(r#"{{"properties":{{{properties}}},"$defs":{{{defined}}}}}"#);
    assert_eq!(plain(&whole), whole.replace("#/components/schemas/", "#/$defs/"));
}

#[test]
fn many_long_paths_are_followed_in_time() {
    let names = 0..2000;
    let properties: Vec<String> = names
        .map(|name| {
            format!(r##""p{name}":{{"items":{{"$ref":"#/properties/p{name}/not"}},"not":{{}}}}"##)
        })
        .collect();
    let schema = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
    // WebAssembly has no clock for the time of a thread, and other work must not count.
    #[cfg(not(target_arch = "wasm32"))]
    let start = cpu_time::ThreadTime::now();
    assert!(matches!(plain(&schema), Cow::Borrowed(_)));
    #[cfg(not(target_arch = "wasm32"))]
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
