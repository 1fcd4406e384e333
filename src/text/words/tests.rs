//! Tests of `words.rs`.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn words_are_found_where_the_standard_library_finds_them(
        text in "[abé]{0,12}|[abcdé]{0,60}", word in "[abé]{1,3}|[abcd]{4}"
    ) {
        prop_assert_eq!(find(&text, &word), text.find(&word));
        prop_assert_eq!(split_once(&text, &word), text.split_once(&word));
        let expected: Vec<usize> = text.match_indices(&word).map(|(at, _)| at).collect();
        prop_assert_eq!(places(&text, &word).collect::<Vec<_>>(), expected);
        prop_assert_eq!(has_any(&text, &["x", &word]), text.contains(&word));
        prop_assert_eq!(has_byte(&text, b'a'), text.contains('a'));
        prop_assert_eq!(rsplit_once(&text, b'a'), text.rsplit_once('a'));
        prop_assert_eq!(trim_start(&text, b"ab"), text.trim_start_matches(['a', 'b']));
        prop_assert_eq!(trim_end(&text, b"ab"), text.trim_end_matches(['a', 'b']));
        prop_assert_eq!(Some(before(&text, b"ab")), text.split(['a', 'b']).next());
    }

    #[test]
    fn a_text_begins_with_a_word_in_whatever_case(
        text in "[aAbBé]{0,4}", word in "[ab]{0,3}"
    ) {
        let expected = text.to_ascii_lowercase().starts_with(&word);
        prop_assert_eq!(begins(&text, &word), expected);
        let rest = expected.then(|| text.chars().skip(word.len()).collect::<String>());
        prop_assert_eq!(after_start(&text, &word), rest.as_deref());
    }
}
