//! Content of a page from the bytes of its server: the kind of content, its charset, and its text.

use std::borrow::Cow;

use super::html;
use crate::model::fetch::FetchFailure;
use crate::steps::address::WebAddress;
use crate::text::words;

/// First bytes of a PDF.
const PDF_START: &[u8] = b"%PDF-";

/// Number of bytes that decide on the kind of content if the server does not name one.
const SNIFFED_BYTES: usize = 512;

/// Number of bytes of HTML in which a `meta` element may name the charset.
const META_BYTES: usize = 1024;

/// Text behind a page that was cut.
const CUT: &str = "\n\n[\u{2026} cut \u{2026}]";

/// Kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageKind {
    Html,
    /// Text without markup, or with markup that stays as it is.
    Text,
    Pdf,
}

/// Charset of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Utf8,
    Windows1252,
    /// UTF-8 if the bytes are valid, else Windows-1252.
    Unknown,
}

/// Reads a page, and returns its title and its text of at most `text_bytes_max` bytes.
///
/// # Errors
/// The content is no text, or its charset is not known.
pub(super) fn read(
    body: &[u8],
    content_type: Option<&str>,
    address: &WebAddress,
    text_bytes_max: usize,
) -> Result<(Option<String>, String), FetchFailure> {
    let (media_type, charset) = content_type.map(parts).unwrap_or_default();
    let kind = kind_of(&media_type, body).ok_or(FetchFailure::UnsupportedContentType)?;
    if kind == PageKind::Pdf {
        return Err(FetchFailure::UnsupportedContentType);
    }
    let text = decoded(body, charset.as_deref(), kind);
    let text = text.ok_or(FetchFailure::UnsupportedContentType)?;
    let (title, mut text, is_cut) = match kind {
        PageKind::Html => {
            let read = html::read(&text, address, text_bytes_max);
            (read.title, read.text, read.is_cut)
        }
        _ => return Ok((None, cut(&text, text_bytes_max))),
    };
    if is_cut {
        text.push_str(CUT);
    }
    Ok((title, text))
}

/// Returns true if a page is a PDF.
pub(super) fn is_pdf(body: &[u8], content_type: Option<&str>) -> bool {
    let (media_type, _) = content_type.map(parts).unwrap_or_default();
    kind_of(&media_type, body) == Some(PageKind::Pdf)
}

/// Returns a text of at most `bytes_max` bytes, with a note if it was cut.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    let kept = words::beginning(text, bytes_max);
    let note = if kept.len() < text.len() { CUT } else { "" };
    [kept, note].concat()
}

/// Returns the media type of a `content-type` header in lower case, and its charset.
fn parts(header: &str) -> (String, Option<String>) {
    let mut parts = header.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| words::after_start(part.trim(), "charset="));
    (media_type, charset.map(|charset| charset.trim().trim_matches(['"', '\'']).to_owned()))
}

fn kind_of(media_type: &str, body: &[u8]) -> Option<PageKind> {
    // Servers send files of unknown types as text.
    if body.starts_with(PDF_START) {
        return Some(PageKind::Pdf);
    }
    match media_type {
        "" | "application/octet-stream" => sniffed(body),
        "text/html" | "application/xhtml+xml" => Some(PageKind::Html),
        "application/pdf" | "application/x-pdf" => Some(PageKind::Pdf),
        "application/json" | "application/xml" | "application/x-ndjson" => Some(PageKind::Text),
        media_type => {
            let is_text = media_type.starts_with("text/")
                || media_type.ends_with("+json")
                || media_type.ends_with("+xml");
            (is_text && sniffed(body).is_some()).then_some(PageKind::Text)
        }
    }
}

/// Returns the kind of content according to its first bytes; `None` for binary content.
fn sniffed(body: &[u8]) -> Option<PageKind> {
    let start = body.get(..SNIFFED_BYTES).unwrap_or(body);
    let is_utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if !is_utf16 && start.iter().any(is_binary) {
        return None;
    }
    let text = words::lossy(start);
    let text = words::bare(&text);
    let marks =
        ["<!doctype html", "<html", "<head", "<body", "<title", "<!--", "<h1", "<div", "<p"];
    let is_html = marks.iter().any(|mark| words::begins(text, mark));
    Some(if is_html { PageKind::Html } else { PageKind::Text })
}

/// Returns a text in its charset; `None` for a charset that is not known here.
fn decoded<'b>(body: &'b [u8], charset: Option<&str>, kind: PageKind) -> Option<Cow<'b, str>> {
    if let Some(body) = body.strip_prefix(words::BYTE_ORDER_MARK) {
        return Some(words::lossy(body));
    }
    // A last byte that is no unit is left out.
    let (units, _) = body.as_chunks::<2>();
    match units {
        [[0xff, 0xfe], units @ ..] => Some(utf16(units, u16::from_le_bytes).into()),
        [[0xfe, 0xff], units @ ..] => Some(utf16(units, u16::from_be_bytes).into()),
        _ => decoded_bytes(body, charset, kind),
    }
}

fn utf16(units: &[[u8; 2]], unit: fn([u8; 2]) -> u16) -> String {
    let units = units.iter().map(|bytes| unit(*bytes));
    let letters = char::decode_utf16(units);
    letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn decoded_bytes<'b>(
    body: &'b [u8],
    charset: Option<&str>,
    kind: PageKind,
) -> Option<Cow<'b, str>> {
    let charset = match charset {
        Some(name) => charset_of(name)?,
        None if kind == PageKind::Html => meta_charset(body).unwrap_or(Some(Charset::Unknown))?,
        None => Charset::Unknown,
    };
    Some(match charset {
        Charset::Utf8 => words::lossy(body),
        Charset::Windows1252 => windows_1252(body).into(),
        Charset::Unknown => match simdutf8::basic::from_utf8(body) {
            Ok(text) => text.into(),
            Err(_) => windows_1252(body).into(),
        },
    })
}

/// Returns the charset of this name; `None` if it is not known here.
fn charset_of(name: &str) -> Option<Charset> {
    match name.trim().to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "unicode-1-1-utf-8" => Some(Charset::Utf8),
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "latin-1" | "l1"
        | "windows-1252" | "cp1252" | "x-cp1252" => Some(Charset::Windows1252),
        // Servers name these where they know nothing.
        "" | "us-ascii" | "ascii" | "binary" => Some(Charset::Unknown),
        _ => None,
    }
}

/// Returns the charset that a `meta` element names: `None` if there is none, and `Some(None)` for a
/// charset that is not known here.
fn meta_charset(body: &[u8]) -> Option<Option<Charset>> {
    let start = words::lossy(body.get(..META_BYTES).unwrap_or(body)).to_ascii_lowercase();
    let place = words::places(&start, "charset=").find(|at| {
        let before = start.get(..*at).unwrap_or_default();
        words::rsplit_once(before, b'<').is_some_and(|(_, tag)| tag.starts_with("meta"))
    })?;
    let value = start.get(place..)?.strip_prefix("charset=")?;
    let value = words::before(words::trim_start(value, b"\"' "), b"\"' ;/>");
    // A page whose `meta` element can be read is not in UTF-16.
    Some(if value.starts_with("utf-16") { Some(Charset::Utf8) } else { charset_of(value) })
}

/// Characters of the bytes 0x80 to 0x9f in Windows-1252.
const WINDOWS_1252: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

fn windows_1252(body: &[u8]) -> String {
    let letter = |byte: &u8| {
        let place = byte.checked_sub(0x80).map(usize::from);
        let special = place.and_then(|place| WINDOWS_1252.get(place));
        special.copied().unwrap_or_else(|| char::from(*byte))
    };
    body.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT_BYTES_MAX: usize = 1000;

    fn page(body: &[u8], content_type: Option<&str>) -> Result<(Option<String>, String), String> {
        let address = WebAddress::parse("https://a.example/").unwrap();
        let read = read(body, content_type, &address, TEXT_BYTES_MAX);
        read.map_err(|failure| failure.code().to_owned())
    }

    fn text(body: &[u8], content_type: &str) -> String {
        let content_type = Some(content_type).filter(|it| !it.is_empty());
        page(body, content_type).map_or_else(|code| code, |(_, text)| text)
    }

    #[test]
    fn the_media_type_decides_how_a_page_is_read() {
        let html = b"<title>T</title><p>Hi<script>x</script>";
        let unsupported = "unsupported_content_type";
        for (media_type, expected) in [
            ("text/html", "Hi"),
            ("Text/HTML; charset=utf-8", "Hi"),
            ("application/xhtml+xml", "Hi"),
            ("text/plain", "<title>T</title><p>Hi<script>x</script>"),
            ("text/markdown;charset=UTF-8", "<title>T</title><p>Hi<script>x</script>"),
            ("application/json", "<title>T</title><p>Hi<script>x</script>"),
            ("application/ld+json", "<title>T</title><p>Hi<script>x</script>"),
            ("application/rss+xml", "<title>T</title><p>Hi<script>x</script>"),
            ("application/pdf", unsupported),
            ("image/png", unsupported),
            ("application/zip", unsupported),
            ("video/mp4", unsupported),
            ("", "Hi"),
            ("application/octet-stream", "Hi"),
        ] {
            assert_eq!(text(html, media_type), expected, "{media_type}");
        }
        assert_eq!(page(html, Some("text/html")).unwrap().0.as_deref(), Some("T"));
    }

    #[test]
    fn the_first_bytes_decide_if_the_server_names_no_type() {
        for (body, expected) in [
            (&b"%PDF-1.7"[..], "unsupported_content_type"),
            (b"\n <!DOCTYPE HTML><p>x", "x"),
            (b"plain <p>", "plain <p>"),
            (b"{\"a\":1}", "{\"a\":1}"),
            (b"<?xml version=\"1.0\"?><a/>", "<?xml version=\"1.0\"?><a/>"),
            (b"\x89PNG\r\n\x1a\n\0\0", "unsupported_content_type"),
            (b"PK\x03\x04", "unsupported_content_type"),
            (b"\xff\xfea\0", "a"),
            (b"", ""),
        ] {
            assert_eq!(text(body, ""), expected, "{body:?}");
        }
    }

    #[test]
    fn texts_are_decoded_from_their_charset() {
        for (body, content_type, expected) in [
            (&b"\xe4\x80"[..], "text/plain; charset=ISO-8859-1", "\u{e4}\u{20ac}"),
            (b"\xe4\x9f", "text/plain; charset=\"windows-1252\"", "\u{e4}\u{178}"),
            (b"\xe4", "text/plain", "\u{e4}"),
            ("\u{e4}".as_bytes(), "text/plain", "\u{e4}"),
            (b"\xe4", "text/plain; charset=utf-8", "\u{fffd}"),
            (b"\xef\xbb\xbf\xc3\xa4", "text/plain; charset=iso-8859-1", "\u{e4}"),
            (b"\xff\xfe\xe4\0\x3d\xd8\0\xde", "text/plain; charset=utf-16", "\u{e4}\u{1f600}"),
            (b"\xfe\xff\0\xe4\xd8\x3d", "text/plain", "\u{e4}\u{fffd}"),
            (b"a\0", "text/plain; charset=utf-16le", "unsupported_content_type"),
            (b"x", "text/plain; charset=shift_jis", "unsupported_content_type"),
            (b"<meta charset=\"latin1\"><p>\xe4", "text/html", "\u{e4}"),
            (b"<meta charset=utf-8><p>\xe4", "text/html", "\u{fffd}"),
            (
                b"<META http-equiv=x content='text/html; CHARSET=Big5'><p>x",
                "text/html",
                "unsupported_content_type",
            ),
            (b"<p>charset=big5 \xe4", "text/html", "charset=big5 \u{e4}"),
            (b"<meta charset=big5><p>\xc3\xa4", "text/html; charset=utf-8", "\u{e4}"),
        ] {
            assert_eq!(text(body, content_type), expected, "{content_type}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        let long = "\u{e4}".repeat(501);
        let cut = "\u{e4}".repeat(500) + CUT;
        assert_eq!(text(long.as_bytes(), "text/plain"), cut);
        assert_eq!(text(long.as_bytes(), "text/html"), cut);
        let whole = "\u{e4}".repeat(500);
        assert_eq!(text(whole.as_bytes(), "text/plain"), whole);
        assert_eq!(text(whole.as_bytes(), "text/html"), whole);
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_page_unreadable_in_any_other_way(
            body in proptest::collection::vec(any::<u8>(), 0..200),
            content_type in "(text/(html|plain)|application/octet-stream)?(; ?charset=\"?[a-z0-9-]{0,8})?",
        ) {
            if let Err(code) = page(&body, Some(&content_type)) {
                prop_assert_eq!(code, "unsupported_content_type");
            }
        }
    }
}
