use super::*;

#[test]
fn a_pattern_needs_a_letter_where_one_of_its_parts_must_be_there() {
    for pattern in [
        "^[a-z]+$",
        "[a-z]",
        "^\\S+$",
        "^a*b",
        "^x?\\d{2,}?$",
        "abc",
        "^[^\\]]{1,64}$",
        "\\bw",
        "^\\.",
        "ä",
    ] {
        assert!(needs_a_letter(pattern), "{pattern}");
    }
    for pattern in [
        "", "^$", "^[a-z]*$", "a?", "a{0,4}", "^(a)$", "a|b|", "\\1", "\\p{L}", "[a-z", "a{x}",
        "^\\b$", "\\u0041?",
    ] {
        assert!(!needs_a_letter(pattern), "{pattern}");
    }
}
