//! Tests of `hide.rs`.

#![allow(clippy::arithmetic_side_effects, clippy::string_slice, reason = "a test")]

use super::*;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;

const KEY: &str = "op~er/ator-0123456789+abcdef_XYZ";

fn hidden(text: &str) -> String {
    let mut text = text.to_owned();
    hide(&mut text, [KEY].into_iter());
    text
}

#[test]
fn a_key_is_hidden_in_whatever_form_it_is_quoted() {
    for prefix in ["", "Bearer ", "user:", "x:", "ab", "authorization: Bearer "] {
        let text = [prefix, KEY].concat();
        for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(&text)] {
            let error_body = hidden(&format!("got <{encoded}> here"));
            assert!(
                error_body.starts_with("got <***") && error_body.ends_with("> here"),
                "{error_body}"
            );
            assert!(error_body.len() < 40, "{prefix:?}: {error_body}");
        }
    }
    let percent = KEY.replace('/', "%2F").replace('+', "%2b").replace('~', "%7E");
    let all: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let twice = all.replace('%', "%25");
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let backwards: String = KEY.chars().rev().collect();
    for form in [
        KEY,
        &percent,
        &all,
        &twice,
        &hex,
        &hex.to_uppercase(),
        &backwards,
        &KEY.to_uppercase(),
        &KEY[..20],
        &KEY[..RUN],
        &KEY[9..29],
        &KEY[KEY.len() - RUN..],
    ] {
        let error_body = hidden(&format!("key '{form}' is bad, {form}!"));
        let shown = error_body.replace("***", "").len();
        assert!(
            error_body.contains("***") && shown <= "key '' is bad, !op~er//".len() + 4,
            "{error_body}"
        );
    }
}

#[test]
fn what_is_no_key_stays() {
    for text in [
        "",
        "no key here, only words and 0123456789 digits",
        "op~er/ator-",
        "é𝄞 100% of %zz %2",
        "a/b/c-d_e+f=g",
    ] {
        assert_eq!(hidden(text), text);
    }
    let mut text = "short: abcdefgh, abcdefg".to_owned();
    hide(&mut text, ["abcdefgh", ""].into_iter());
    assert_eq!(text, "short: ***, abcdefg");
}

proptest! {
    #[test]
    fn nothing_is_left_of_a_quotation(key in "[ -~]{12,80}", before in "\\PC{0,20}", from in 0_usize..60) {
        let key = key.trim();
        prop_assume!(key.len() >= RUN);
        let from = from.min(key.len() - RUN);
        let part = &key[from..];
        let mut text = format!("{before} {part} after");
        hide(&mut text, [key].into_iter());
        prop_assert!(!text.contains(part), "{}", text);
    }
}
