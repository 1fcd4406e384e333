//! Tests of `limits.rs`.

use super::*;
use crate::protocols::chat::wire::limits::{CALLS_MAX, CHOICES_MAX, DETAILS_MAX, PARTS_MAX};

/// Writes a number with commas between groups of three digits.
fn written(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn the_documentation_has_every_limit() {
    let page = include_str!("../../../docs/security.md");
    for many in Many::ALL {
        let row = format!("| {} | {} |", many.name(), written(many.most() as usize));
        assert!(page.contains(&row), "{row}");
    }
    for (name, most) in [
        ("choices", CHOICES_MAX),
        ("tool calls", CALLS_MAX),
        ("parts of content", PARTS_MAX),
        ("parts of reasoning", DETAILS_MAX),
    ] {
        let row = format!("| {name} | {} |", written(usize::from(most)));
        assert!(page.contains(&row), "{row}");
    }
    assert!(page.contains(&format!("Messages) | {} |", written(ANSWER_BLOCKS_MAX))));
}

#[test]
fn as_many_as_are_allowed_are_read() {
    let mut counted = Counted::default();
    for many in Many::ALL {
        assert!((0..many.most()).all(|_| !counted.is_exceeded_by(many)), "{many:?}");
        assert!(counted.is_exceeded_by(many), "{many:?}");
    }
}
