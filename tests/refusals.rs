//! Refusals of public reports, in `tests/refusals`: data for the work on refusals, checked for
//! being usable.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

const SHOWN: &str = include_str!("refusals/shown.jsonl");
const SEALED: &str = include_str!("refusals/sealed.jsonl");
const NEVER_SHOWN: &str = include_str!("refusals/never-shown.jsonl");
const NEVER_SEALED: &str = include_str!("refusals/never-sealed.jsonl");

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_row_has_its_address_and_the_words_of_the_server() {
    let mut ids = BTreeSet::new();
    for (text, count) in [(SHOWN, 30), (SEALED, 30), (NEVER_SHOWN, 100), (NEVER_SEALED, 50)] {
        let rows = rows(text);
        assert_eq!(rows.len(), count);
        for row in rows {
            let text = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{name}: {row}"));
            assert!(text("url").starts_with("https://"), "{row}");
            assert!(["chat", "responses", "messages"].contains(&text("protocol")), "{row}");
            assert!(!text("body").is_empty() && !text("change").is_empty(), "{row}");
            assert!(ids.insert(text("id").to_owned()), "twice: {row}");
        }
    }
}

#[test]
fn the_sealed_rows_are_those_that_were_sealed() {
    let seal = |text: &str| {
        let hash = Sha256::digest(text.as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let readme = include_str!("refusals/README.md");
    for text in [SEALED, NEVER_SEALED] {
        assert!(readme.contains(&seal(text)), "{}", seal(text));
    }
}
