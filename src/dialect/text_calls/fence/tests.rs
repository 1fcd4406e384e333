//! Tests of `fence.rs`.

use super::*;

/// Returns one flag for each line: true if a fence is open after the line.
fn open_after(lines: &[&str]) -> Vec<bool> {
    let mut open = None;
    lines
        .iter()
        .map(|line| {
            open = after(line.trim_start(), open);
            open.is_some()
        })
        .collect()
}

#[test]
fn a_fence_ends_with_as_many_marks_and_nothing_behind_them() {
    assert_eq!(open_after(&["```xml\n", "x\n", "```\n"]), [true, true, false]);
    assert_eq!(open_after(&["````\n", "```\n", "`````  \n"]), [true, true, false]);
    assert_eq!(open_after(&["```\n", "```xml\n", "~~~\n", "```\n"]), [true, true, true, false]);
    assert_eq!(open_after(&["~~~ a`b\n", "~~~\n"]), [true, false]);
    assert_eq!(open_after(&["```json {}```\n", "``\n"]), [false, false]);
}

#[test]
fn a_fence_can_stand_in_a_list_or_a_quote() {
    for before in ["- ", "* ", "+   ", "> ", "1. ", "12) ", "> - 3. "] {
        assert_eq!(open_after(&[&format!("{before}```xml\n"), "  ```\n"]), [true, false]);
    }
    for before in ["-", "a ", "1 ", "1.", "*a* "] {
        assert_eq!(open_after(&[&format!("{before}```xml\n")]), [false], "{before}");
    }
}

#[test]
fn a_line_can_be_a_fence_until_it_shows_that_it_is_none() {
    for start in ["", "`", "``", "```", "```x", "~", "-", "- ", "- `", "1", "12", "1.", "1. ~~"] {
        assert!(may_begin(start), "{start}");
    }
    for start in ["a", "`a", "-a", "- a", "1a", "1. a", "1.a", "**", "<tool_call>"] {
        assert!(!may_begin(start), "{start}");
    }
}
