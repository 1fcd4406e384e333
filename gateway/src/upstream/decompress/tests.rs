//! Tests of `decompress.rs`.

use super::*;

fn claimed(values: &[&str]) -> Option<Claim> {
    let header = |value: &&str| ("content-encoding".to_owned(), (*value).to_owned());
    claim(&values.iter().map(header).collect::<Vec<_>>())
}

#[test]
fn one_coding_is_undone_and_what_is_unknown_is_left() {
    assert_eq!(claimed(&[]), Some(Claim::Nothing));
    assert_eq!(claimed(&["identity", ""]), Some(Claim::Nothing));
    assert_eq!(claimed(&["GZIP"]), Some(Claim::Gzip));
    assert_eq!(claimed(&["x-gzip, identity"]), Some(Claim::Gzip));
    assert_eq!(claimed(&["deflate"]), Some(Claim::Deflate));
    for unknown in [&["br"][..], &["gzip", "gzip"], &["deflate, gzip"], &["zstd"]] {
        assert_eq!(claimed(unknown), None, "{unknown:?}");
    }
}

#[test]
fn the_first_bytes_tell_what_a_body_is() {
    let name = |claim, first: &[u8]| match coding(claim, first) {
        Coding::Unknown(..) => "unknown",
        Coding::Plain => "plain",
        Coding::Gzip(_) => "gzip",
        Coding::Zlib(_) => "zlib",
        Coding::Deflate(_) => "deflate",
        Coding::Over => "over",
    };
    for claim in [Claim::Nothing, Claim::Gzip, Claim::Deflate] {
        for plain in ["{\"a\"", "[{\"a", "data:", "event", ": ping", "\n\n{", "<html", ""] {
            assert_eq!(name(claim, plain.as_bytes()), "plain", "{plain} {claim:?}");
        }
        assert_eq!(name(claim, b"\x1f\x8b\x08\0"), "gzip");
        assert_eq!(name(claim, b"\x78\x9c\xab"), "zlib");
    }
    assert_eq!(name(Claim::Deflate, b"\xab\x56\x4a"), "deflate");
    assert_eq!(name(Claim::Nothing, b"x^2 is"), "plain");
}
