//! Detection of an image's type by the first bytes of its data.

use crate::json::{Str, unescape};

const PNG: &str = "image/png";
const JPEG: &str = "image/jpeg";
const GIF: &str = "image/gif";
const WEBP: &str = "image/webp";

/// Pairs of a name that clients write after `image/`, and the media type of the Messages API.
const NAMES: [(&str, &str); 7] = [
    ("jpeg", JPEG),
    ("jpg", JPEG),
    ("pjpeg", JPEG),
    ("png", PNG),
    ("x-png", PNG),
    ("gif", GIF),
    ("webp", WEBP),
];

/// Number of bytes of the image data to inspect: 16 characters, each perhaps a JSON escape of six
/// bytes.
const START: usize = 16 * 6;

/// Returns the media type for the `NAME` in `image/NAME`.
pub(super) fn named(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, is)| *is)
}

/// Returns the media type of an image in base64, detected by its first bytes; `None` if the
/// Messages API does not support the type.
pub(crate) fn of(data: Str<'_>) -> Option<&'static str> {
    let raw = data.raw();
    // JSON encoders escape characters of base64: PHP writes `\/`, .NET `\u002B`.
    let start = raw.get(..raw.len().min(START))?;
    let mut text = String::new();
    if data.is_escaped() {
        unescape(&mut text, start);
        of_start(&text)
    } else {
        of_start(start)
    }
}

/// Detects an image's media type from `start`, the beginning of its base64. The compared prefixes
/// are the magic bytes of each type, in base64.
fn of_start(start: &str) -> Option<&'static str> {
    if start.starts_with("iVBORw0") {
        Some(PNG)
    } else if start.starts_with("/9j/") {
        Some(JPEG)
    } else if start.starts_with("R0lGODdh") || start.starts_with("R0lGODlh") {
        Some(GIF)
    } else if start.starts_with("UklGR") && start.get(11..16) == Some("XRUJQ") {
        Some(WEBP)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_first_bytes_however_they_are_escaped() {
        for (data, expected) in [
            ("iVBORw0KGgoAAAANSUhEUg", Some(PNG)),
            ("iVBORw0=", Some(PNG)),
            ("/9j/4AAQSkZJRgABAQ", Some(JPEG)),
            (r"\/9j\/4AAQSkZJRgABAQ", Some(JPEG)),
            (r"\u002f9j\u002F4AAQSkZJRgABAQ", Some(JPEG)),
            ("R0lGODlhAQABAIAAAP", Some(GIF)),
            ("R0lGODdhAQABAIAAAP", Some(GIF)),
            ("UklGRiIAAABXRUJQVlA4", Some(WEBP)),
            (r"UklGR\u002B\u002B\u002B\u002B\u002B\u002BXRUJQVlA4", Some(WEBP)),
            // Sound file (WAVE), which begins with the same bytes as a WebP image.
            ("UklGRiIAAABXQVZFZm10", None),
            ("PHN2ZyB4bWxucz0iaHR0", None),
            ("iVBORw", None),
            ("AA==", None),
            ("", None),
            ("ééééééééééééééééééééééééééééééééééééééééééééééééé", None),
            (r"\u002f9j\u002", None),
        ] {
            let written = Str::inside(data).unwrap_or_else(|| Str::plain(data));
            assert_eq!(of(written), expected, "{data}");
        }
    }
}
