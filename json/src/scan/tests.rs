//! Tests of `scan.rs`.

use super::*;
use proptest::prelude::*;

/// Strategy for runs of plain bytes, some of them long, between special bytes.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let plain = |length| prop::collection::vec(prop_oneof![0x23u8..0x5c, 0x80u8..], length);
    prop::collection::vec(
        (plain(0..40), plain(0..3), any::<u8>(), prop::bool::weighted(0.1)),
        0..12,
    )
    .prop_map(|runs| {
        let mut text = Vec::new();
        for (some, few, special, long) in runs {
            text.extend(if long { some.repeat(12) } else { few });
            text.push(special);
        }
        text
    })
}

fn specials(text: &[u8], from: usize) -> Vec<usize> {
    (from..text.len()).filter(|&at| is_special(text[at])).collect()
}

proptest! {
    #[test]
    fn specials_are_found_wherever_they_are(text in text(), from in 0usize..70) {
        let mut walk = Specials::new(from);
        let mut found = Vec::new();
        while let (at, Some(special)) = walk.next(&text) {
            prop_assert_eq!(special, text[at]);
            found.push(at);
            walk.go_on(at + 1);
        }
        prop_assert_eq!(found, specials(&text, from));
    }

    #[test]
    fn what_an_escape_takes_is_passed_over(text in text(), skip in 2usize..40) {
        let mut walk = Specials::new(0);
        let mut from = 0;
        while let (at, Some(_)) = walk.next(&text) {
            prop_assert_eq!(Some(at), specials(&text, from).first().copied());
            from = at + skip;
            walk.go_on(from);
        }
        prop_assert!(specials(&text, from).is_empty());
    }

    #[test]
    fn a_short_string_ends_at_its_quote(text in text(), from in 0usize..70) {
        let end = specials(&text, from).first().copied().filter(|&at| text[at] == b'"');
        let in_block = end.map(|at| at - from).filter(|&length| length < BLOCK);
        let whole_block = from + BLOCK <= text.len();
        prop_assert_eq!(short_string(&text, from), in_block.filter(|_| whole_block));
    }

    #[test]
    fn plain_bytes_are_copied_up_to_the_special_one(text in text()) {
        let mut rest = text.as_slice();
        let mut out = Vec::new();
        while let Some(special) = copy_plain(&mut out, &mut rest) {
            out.push(special);
            prop_assert_eq!(text.len(), out.len() + rest.len());
        }
        prop_assert_eq!(specials(&text, 0).len(), specials(&out, 0).len());
        prop_assert_eq!(out, text);
    }
}
