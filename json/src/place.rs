//! Position of a substring in its text.

/// Returns the byte offset of `part` in `text`; `None` if `part` is not a slice of `text`.
#[must_use]
pub fn offset_in(text: &str, part: &str) -> Option<usize> {
    let offset = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (offset.checked_add(part.len())? <= text.len()).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slice_of_a_text_has_a_place_in_it() {
        let text = "abcdef".to_owned();
        let part = |from: usize, to: usize| text.get(from..to).unwrap();
        assert_eq!(offset_in(&text, &text), Some(0));
        assert_eq!(offset_in(&text, part(2, 4)), Some(2));
        assert_eq!(offset_in(&text, part(6, 6)), Some(6));
        assert_eq!(offset_in(part(2, 6), part(0, 4)), None);
        assert_eq!(offset_in(part(0, 4), part(2, 6)), None);
        assert_eq!(offset_in(&text, "cd"), None);
    }
}
