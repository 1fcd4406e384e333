//! Tests of `signature.rs`.

use super::*;
use proptest::prelude::*;

fn signature(shown: &str) -> Signature {
    Signature::of(SignatureField::ReasoningContent, fnv1a64(shown.as_bytes()))
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let text = Signature {
        field: SignatureField::Parts,
        hash: 0x0102_0304_0506_0708,
        joined: Vec::new(),
        full_text: Some("é".to_owned()),
        opaque: Some("[]".to_owned()),
        call_signatures: vec![("call_a".to_owned(), "S".to_owned())],
        upstream: "0a".to_owned(),
        call_inputs: vec![("toolu_a".to_owned(), "{}".to_owned())],
    }
    .encode()
    .0;
    assert_eq!(
        unbase64(&text).unwrap(),
        b"TXS\x01\x05\x01\x02\x03\x04\x05\x06\x07\x08\
          \x04\0\0\0\x020a\x03\0\0\0\x08call_a\0S\x02\0\0\0\x02[]\x01\0\0\0\x02\xc3\xa9\
          \x05\0\0\0\x0atoolu_a\0{}"
    );
    assert_eq!(signature("").encode().0, "VFhTAQHL8pzkhCIjJQ==");
}

#[test]
fn hashes_and_base64_are_those_of_other_programs() {
    // Published test values of FNV and of RFC 4648 (base64).
    assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    for (data, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(data.as_bytes()), text);
        assert_eq!(unbase64(text).unwrap(), data.as_bytes());
    }
}

#[test]
fn a_foreign_signature_is_not_read() {
    let own = signature("x").encode().0;
    for foreign in [
        "",
        "=",
        "s",
        "EqQBCkYIARgCKkDx",
        "VFhT",
        "VFhTAQ==",
        "VFhTAg8=",
        "VFhT AQ",
        "VFhT\u{e9}",
        // Signature of version 2, and a signature with the unknown field 10.
        &base64(b"TXS\x02\x0112345678"),
        &base64(b"TXS\x01\x0a12345678"),
        // A record that is longer than the text, and one that is not UTF-8.
        &base64(b"TXS\x01\x0112345678\x01\0\0\0\x05abc"),
        &base64(b"TXS\x01\x0112345678\x01\xff\xff\xff\xffabc"),
        &base64(b"TXS\x01\x0112345678\x01\0\0"),
        &base64(b"TXS\x01\x0112345678\x01\0\0\0\x01\xff"),
        &base64(b"TXS\x01\x0112345678\x03\0\0\0\x01a"),
        own.get(..own.len() - 5).unwrap(),
    ] {
        assert_eq!(Signature::decode(foreign), None, "{foreign:?}");
    }
    assert!(Signature::decode(own.trim_end_matches('=')).is_some());
    assert!(Signature::decode(&base64(b"TXS\x01\x0112345678\x77\0\0\0\x01a")).is_some());
}

#[test]
fn a_changed_text_does_not_match() {
    let mut own = signature("Need tool.");
    assert!(own.matches("Need tool."));
    assert!(!own.matches("Need a tool."));
    assert!(!own.matches(""));
    own.full_text = Some("Need tool.".to_owned());
    assert!(own.matches(""));
    assert!(!own.matches("Need a tool."));
}

#[test]
fn what_does_not_fit_is_left_out_and_the_rest_is_kept() {
    let mut own = signature("");
    own.call_signatures.push(("call_a".to_owned(), "SIG".to_owned()));
    own.opaque = Some("x".repeat(300 << 10));
    own.full_text = Some("short".to_owned());
    let (text, fits) = own.encode();
    assert!(!fits);
    assert!(text.len() <= LENGTH_MAX);
    let read = Signature::decode(&text).unwrap();
    assert_eq!(read.opaque, None);
    assert_eq!(read.full_text, own.full_text);
    assert_eq!(read.call_signatures, own.call_signatures);
    // The frame has 13 + 5 bytes, and 196,608 bytes are 262,144 digits of base64.
    own = signature("");
    own.full_text = Some("x".repeat(196_608 - 18));
    let (text, fits) = own.encode();
    assert!(fits);
    assert_eq!(Signature::decode(&text).unwrap(), own);
    own.full_text = Some("x".repeat(196_608 - 17));
    let (text, fits) = own.encode();
    assert!(!fits);
    assert_eq!(Signature::decode(&text).unwrap().full_text, None);
}

proptest! {
    #[test]
    fn a_signature_is_read_as_it_was_written(
        code in 0usize..8,
        shown in any::<String>(),
        full_text in any::<Option<String>>(),
        opaque in any::<Option<String>>(),
        calls in prop::collection::vec(("[^\0]{0,12}", any::<String>()), 0..4),
        upstream in "([0-9a-f]{8})?",
        inputs in prop::collection::vec(("[^\0]{0,12}", any::<String>()), 0..4),
    ) {
        let written = Signature {
            field: SignatureField::ALL[code],
            hash: fnv1a64(shown.as_bytes()),
            joined: Vec::new(),
            full_text,
            opaque,
            call_signatures: calls,
            upstream,
            call_inputs: inputs,
        };
        let (text, fits) = written.encode();
        prop_assert!(fits);
        let read = Signature::decode(&text).unwrap();
        prop_assert_eq!(&read, &written);
        prop_assert!(read.matches(&shown));
    }

    #[test]
    fn pieces_hash_as_the_whole(pieces in prop::collection::vec(any::<Vec<u8>>(), 0..6)) {
        let mut hash = Fnv::new();
        for piece in &pieces {
            hash.update(piece);
        }
        prop_assert_eq!(hash.finish(), fnv1a64(&pieces.concat()));
    }

    #[test]
    fn no_text_makes_the_reader_fail_badly(text in "VFhT[A-Za-z0-9+/=]{0,60}") {
        if let Some(read) = Signature::decode(&text) {
            prop_assert_eq!(Signature::decode(&read.encode().0), Some(read));
        }
    }
}
