//! Tests of `warning.rs`.

use super::*;

#[test]
fn the_header_names_each_thing_once_and_safely() {
    let mut warnings = Warnings::new(false);
    assert_eq!(warnings.header(), None);
    warnings.add("prefill");
    warnings.dropped("top_k").unwrap();
    warnings.dropped("top_k").unwrap();
    warnings.unknown_field("", "x\r\nset-cookie: a=b,c").unwrap();
    let header = warnings.header().unwrap();
    assert_eq!(header, "prefill,dropped:top_k,unknown_field:xset-cookieabc");
    assert_eq!(warnings.iter().map(|warning| warning.count).sum::<u32>(), 4);
}

#[test]
fn strict_mode_rejects_what_would_be_dropped() {
    let mut warnings = Warnings::new(true);
    let error = warnings.unknown_field("messages[0]", "foo").unwrap_err();
    assert_eq!(error.message, "messages[0].foo: Extra inputs are not permitted");
    assert!(warnings.dropped("speed").is_err());
}

#[test]
fn many_names_cost_no_memory() {
    let mut warnings = Warnings::new(false);
    for number in 0..10_000 {
        warnings.unknown_field("", &format!("f{number}")).unwrap();
    }
    assert!(warnings.iter().count() <= 65);
    assert_eq!(warnings.iter().map(|warning| warning.count).sum::<u32>(), 10_000);
}

#[test]
fn what_is_merged_into_a_full_table_is_counted_all_the_same() {
    let mut warnings = Warnings::new(false);
    for number in 0..KINDS_MAX {
        warnings.add_named("dropped", &format!("f{number}"));
    }
    let mut other = Warnings::new(false);
    for _ in 0..3 {
        other.add_named("dropped", "one_more");
    }
    warnings.merge(&other);
    assert_eq!(warnings.count(), KINDS_MAX as u64 + 3);
}
