//! Error bodies that are no JSON: web pages and plain text.

use super::wordings::DOWN;
use crate::text::words;

/// Maximum number of characters of a web page that are shown to the client.
const CHARS_MAX: usize = 200;

/// Number of words at the beginning of a page (its title) that are searched for a status.
const FIRST_WORDS: usize = 8;

/// Maximum number of bytes of a page that are read, because pages begin with long style sheets.
const BYTES_MAX: usize = 32 << 10;

/// Returns true if a text is an HTML page. A `<` at the start is not enough, since errors of
/// libraries begin with it, too.
pub(crate) fn is_page(text: &str) -> bool {
    let text = words::bare(text);
    words::begins(text, "<!doctype") || words::begins(text, "<html")
}

/// Returns true if a page belongs to a server that is down temporarily, by a status in its first
/// words or by its text.
pub(super) fn is_passing(words: &str) -> bool {
    let mut first = words.split(|letter: char| !letter.is_ascii_alphanumeric());
    first.by_ref().filter(|word| !word.is_empty()).take(FIRST_WORDS).any(|word| {
        word.len() == 3 && word.parse().is_ok_and(|status: u16| (500..600).contains(&status))
    }) || DOWN.any(&words.to_ascii_lowercase())
}

/// Returns the beginning of a web page without markup, on one line.
pub(super) fn text_of(text: &str) -> String {
    let mut words = String::new();
    let mut rest = words::beginning(text, BYTES_MAX);
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let inside = from.strip_prefix('<').unwrap_or_default();
        words.push_str(before);
        if !inside
            .starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
        {
            words.push('<');
            rest = inside;
            continue;
        }
        words.push(' ');
        rest = after_tag(inside);
    }
    words.push_str(rest);
    for (entity, letter) in [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        if words::has(&words, entity) {
            words = replaced(&words, entity, letter);
        }
    }
    let mut line = String::new();
    for word in words.split_whitespace() {
        line.push_str(if line.is_empty() { "" } else { " " });
        line.extend(word.chars().filter(|letter| !letter.is_control()));
        if line.len() > 4 * CHARS_MAX {
            break;
        }
    }
    if let Some((end, _)) = line.char_indices().nth(CHARS_MAX) {
        words::truncate(&mut line, end);
    }
    line.trim().to_owned()
}

fn replaced(text: &str, entity: &str, letter: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = words::split_once(rest, entity) {
        out.push_str(before);
        out.push_str(letter);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the text behind a tag. Skips the content of scripts and styles.
fn after_tag(inside: &str) -> &str {
    let end =
        |mark: &str, text: &'_ str| words::find(text, mark).map(|at| at.saturating_add(mark.len()));
    let skipped = if inside.starts_with("!--") {
        end("-->", inside)
    } else if words::begins(inside, "script") {
        end("</script>", &inside.to_ascii_lowercase())
    } else if words::begins(inside, "style") {
        end("</style>", &inside.to_ascii_lowercase())
    } else {
        end(">", inside)
    };
    skipped.and_then(|at| inside.get(at..)).unwrap_or_default()
}
