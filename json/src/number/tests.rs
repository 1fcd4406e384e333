//! Tests of `number.rs`.

use super::*;
use proptest::prelude::*;

fn number(text: &str) -> Number<'_> {
    Number::read(text).unwrap()
}

#[test]
fn the_same_value_is_the_same_however_it_is_written() {
    for same in [
        &["0", "-0", "0.0", "0e9", "-0.000E-3"] as &[&str],
        &["1", "1.0", "10e-1", "0.1e1", "1.000e0", "0.0001E+4"],
        &["-120", "-1.2e2", "-0.12e3", "-120.00"],
        &["100", "1e2", "100.0", "0.001e5"],
    ] {
        let same: Vec<_> = same
            .iter()
            .map(|text| {
                (
                    number(text).exponent,
                    number(text).negative,
                    number(text).digits().take(1).count(),
                )
            })
            .collect();
        assert!(same.windows(2).all(|pair| pair[0] == pair[1]), "{same:?}");
    }
    assert_eq!(number("1.0"), number("10e-1"));
    assert_eq!(number("-1.2e2"), number("-120"));
    assert!(number("9007199254740993") > number("9007199254740992"));
    for text in ["", "-", "1.", ".5", "x", "1e", "1e+", "+1", "inf", "NaN", "1 "] {
        assert!(Number::read(text).is_none(), "{text}");
    }
}

#[test]
fn whole_numbers_are_known() {
    for (text, whole, part) in [
        ("0", true, Some(0)),
        ("12.0", true, Some(12)),
        ("1e2", true, Some(100)),
        ("1.25e2", true, Some(125)),
        ("1.25e1", false, Some(12)),
        ("0.999", false, Some(0)),
        ("-0.5", false, None),
        ("-3", true, None),
        ("18446744073709551615", true, Some(u64::MAX)),
        ("18446744073709551616", true, Some(u64::MAX)),
        ("1e400", true, Some(u64::MAX)),
        ("1e-400", false, Some(0)),
    ] {
        assert_eq!((number(text).is_whole(), number(text).whole_part()), (whole, part), "{text}");
    }
}

proptest! {
    #[test]
    fn floats_are_in_the_same_order(left in any::<f64>(), right in any::<f64>(), near in -50i32..50) {
        for (left, right) in [(left, right), (f64::from(near) / 8.0, f64::from(near / 3))] {
            prop_assume!(left.is_finite() && right.is_finite());
            for written in [(format!("{left}"), format!("{right:e}")), (format!("{left:e}"), format!("{right}"))] {
                let (read, other) = (number(&written.0), number(&written.1));
                prop_assert_eq!(Some(read.cmp(&other)), left.partial_cmp(&right), "{:?}", written);
                prop_assert_eq!(read.is_whole(), left.fract() == 0.0);
                let part = (left >= 0.0).then_some(left as u64);
                if left < 9e15 { prop_assert_eq!(read.whole_part().or(Some(0)), part.or(Some(0))); }
            }
        }
    }
}
