//! Validation errors of pydantic in Python's notation instead of JSON:
//! `[{'type': 'missing', 'loc': ('body', 'max_tokens'), 'msg': 'Field required', …}]`.

use crate::text::words;

/// Returns the first validation error, with its path: `max_tokens: Field required`.
pub(super) fn complaint(message: &str) -> Option<String> {
    let (_, behind) = words::split_once(message, "'loc': (")?;
    let (place, behind) = words::split_once(behind, ")")?;
    let (_, error_body) = words::split_once(behind, "'msg': ")?;
    let quote = error_body.bytes().next().filter(|byte| matches!(byte, b'\'' | b'"'))?;
    let error_body = words::before(error_body.get(1..)?, &[quote]);
    let names =
        place.split(',').map(|name| words::trim_end(words::trim_start(name.trim(), b"'"), b"'"));
    let names = names.filter(|name| !name.is_empty()).skip_while(|name| *name == "body");
    let path = names.collect::<Vec<_>>().join(".");
    (!path.is_empty()).then(|| format!("{path}: {error_body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_told_with_its_path() {
        for (message, expected) in [
            (
                "[{'type': 'extra_forbidden', 'loc': ('body', 'context_management'), 'msg': 'Extra inputs are not permitted', 'input': {}}]",
                Some("context_management: Extra inputs are not permitted"),
            ),
            (
                "1 validation error: [{'loc': ('body', 'messages', 2, 'content'), 'msg': \"Input should be 'a'\"}]",
                Some("messages.2.content: Input should be 'a'"),
            ),
            ("[{'loc': ('body',), 'msg': 'no'}]", None),
            ("[{'loc': ('body', 'a'), 'msg': no", None),
            ("'loc': (", None),
        ] {
            assert_eq!(complaint(message).as_deref(), expected, "{message}");
        }
    }
}
