//! Tests of `snapshots.rs`.

use super::*;

#[test]
fn a_text_that_always_comes_whole_is_new_from_where_it_differs() {
    for (chunks, new) in [
        (&["H", "Hi", "Hi!"] as &[&str], &["H", "i", "!"] as &[&str]),
        (&["ha", "haha", "", "haha!"], &["ha", "ha", "", "!"]),
        (&["Hi \u{fffd}", "Hi \u{1f600}", "Hi \u{1f600}."], &["Hi \u{fffd}", "\u{1f600}", "."]),
        (&["Hi \\n", "Hi there", "Hi there."], &["Hi \\n", "there", "."]),
        (&["a\\n", "a\\t", "a\\tb"], &["a\\n", "\\t", "b"]),
        (&["\\u00e9", "\\u00e8"], &["\\u00e9", "\\u00e8"]),
        (&["\u{e9}", "\u{e8}"], &["\u{e9}", "\u{e8}"]),
        (&["Hi ", "Hi", "Hi you"], &["Hi ", "", "you"]),
    ] {
        let mut text = Growing::default();
        let found: Vec<_> = chunks.iter().map(|chunk| text.replace(chunk)).collect();
        assert_eq!(found, new, "{chunks:?}");
    }
}

#[test]
fn a_text_comes_whole_each_time_or_in_pieces() {
    for (chunks, new) in [
        (&["H", "Hi", "Hi!"] as &[&str], &["H", "i", "!"] as &[&str]),
        (&["H", "i", "!"], &["H", "i", "!"]),
        (&["Hi", "Hi", ""], &["Hi", "", ""]),
        (&["H", "i", "!", "Hi!"], &["H", "i", "!", ""]),
        (&["H", "i", "Hi!"], &["H", "i", "!"]),
        (&["\\n\\nH", "i ", "Hi"], &["\\n\\nH", "i ", ""]),
        (&["", "H"], &["", "H"]),
        // A changed text counts as further text.
        (&["H", "Hi", "Ho"], &["H", "i", "Ho"]),
    ] {
        let mut text = Growing::default();
        let found: Vec<_> = chunks.iter().map(|chunk| text.push(chunk)).collect();
        assert_eq!(found, new, "{chunks:?}");
    }
}
