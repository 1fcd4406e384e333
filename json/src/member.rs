//! Finds one member of an object, or one string, for callers that need no other.

use crate::{Reader, Str};

/// The text of the member `name`; of several the last one, as for most readers of JSON. `None` if
/// there is none, or if `object` is not an object.
#[must_use]
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut reader = Reader::of(object);
    reader.begin_object().ok()?;
    let mut found = None;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        if key == *name {
            found = Some(value);
        }
    }
    found
}

/// The string that `text` is; `None` if it is anything else.
#[must_use]
pub fn string(text: &str) -> Option<Str<'_>> {
    let mut reader = Reader::new(text, 1);
    let string = reader.string().ok()?;
    reader.end().ok()?;
    Some(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_member_of_a_name_counts_however_it_is_escaped() {
        for (object, expected) in [
            (r#"{"a":1,"b":{"a":2}}"#, Some("1")),
            (r#"{"a":1,"\u0061": [ 3 ] }"#, Some("[ 3 ]")),
            (r#"{"a":null}"#, Some("null")),
            (r#"{"b":1}"#, None),
            (r#"["a",1]"#, None),
            (r#"{"a":1,"#, None),
            ("", None),
        ] {
            assert_eq!(member(object, "a"), expected, "{object}");
        }
    }

    #[test]
    fn a_string_is_one_and_nothing_else() {
        assert_eq!(string(r#" "a\n" "#).map(|text| text.raw()), Some(r"a\n"));
        for other in ["", "a", r#""a"#, r#""a" "b""#, r#"["a"]"#, "null"] {
            assert_eq!(string(other), None, "{other}");
        }
    }
}
