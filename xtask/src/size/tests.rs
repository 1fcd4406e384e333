//! Tests of `size.rs`.

use super::*;

#[test]
fn what_is_larger_than_its_budget_is_named() {
    assert_eq!(excess("a", 10, 10), None);
    assert!(excess("a", 11, 10).is_some_and(|text| text.contains("11 bytes")));
}

#[test]
fn a_function_belongs_to_the_module_of_its_type() {
    assert_eq!(
        module("<creole::dialect::profile::_::<impl X for Y>::f"),
        "creole::dialect::profile"
    );
    assert_eq!(module("<&mut serde_json::de::Deserializer<R> as T>::f"), "serde_json");
    assert_eq!(module("dlmalloc"), "dlmalloc");
}

/// A module of `nop`, with this name section.
fn named(names: &[u8]) -> Vec<u8> {
    [
        b"\0asm\x01\0\0\0".as_slice(),
        b"\x01\x04\x01\x60\0\0",
        b"\x03\x02\x01\0",
        b"\x0a\x05\x01\x03\0\x01\x0b",
        names,
    ]
    .concat()
}

#[test]
fn sections_are_counted_and_functions_named() {
    let parts = Parts::read(&named(b"\0\x0b\x04name\x01\x04\x01\0\x01f")).unwrap();
    assert_eq!(parts.functions, [("f".to_owned(), 3)]);
    assert_eq!(parts.sections.get("code"), Some(&5));
    assert!(parts.sections.contains_key("name"));
}
