//! Removal of an upstream's credential, which Creole knows, from error messages. Servers may quote
//! the header as it came, its beginning, or the base64 of a name and password.

use crate::text::base64::encode;
use crate::text::words;

/// Minimum number of consecutive characters of a credential that count as a quotation; fewer are an
/// ordinary word.
const RUN: usize = 12;

/// Replaces each quotation of these credentials by `***`. Detects the whole credential or a part,
/// reversed, in hexadecimal or base64 (with any prefix, such as `Bearer ` or `user:`),
/// percent-encoded, in lower or upper case.
pub(crate) fn hide<'c>(message: &mut String, credentials: impl Iterator<Item = &'c str>) {
    let mut views = Vec::new();
    let mut marked = vec![false; message.len()];
    for credential in credentials {
        if views.is_empty() {
            views.push(View::of(message, false));
            if words::has_byte(message, b'%') {
                views.push(View::of(message, true));
            }
        }
        for pattern in patterns(credential.as_bytes()) {
            views.iter().for_each(|view| view.mark(&pattern, &mut marked));
        }
    }
    if marked.contains(&true) {
        *message = without_marked(message, &marked);
    }
}

/// Text in a normal form for comparisons.
struct View {
    /// Bytes of the text: in lower case, and with one alphabet of base64.
    letters: Vec<u8>,
    /// Offset in the original text, for each byte.
    places: Vec<usize>,
}

impl View {
    /// Creates the normal form of a text. `decodes`: percent signs are decoded.
    fn of(text: &str, decodes: bool) -> Self {
        let mut view = Self { letters: Vec::new(), places: Vec::new() };
        let mut rest = text.as_bytes().iter();
        loop {
            let place = text.len().saturating_sub(rest.as_slice().len());
            let Some(byte) = rest.next() else { return view };
            let mut letter = *byte;
            // The decoded byte may be another percent sign.
            while decodes
                && letter == b'%'
                && let Some((byte, after)) = words::hex_byte(rest.as_slice())
            {
                letter = byte;
                rest = after.iter();
            }
            view.letters.push(folded(letter));
            view.places.push(place);
        }
    }

    /// Marks the bytes of the text that match a part of the credential in `pattern`.
    fn mark(&self, pattern: &[u8], marked: &mut [bool]) {
        let run = RUN.min(pattern.len());
        if run == 0 {
            return;
        }
        let mut runs: Vec<&[u8]> = pattern.windows(run).collect();
        runs.sort_unstable();
        for (at, letters) in self.letters.windows(run).enumerate() {
            if runs.binary_search(&letters).is_err() {
                continue;
            }
            let place = |at: usize| self.places.get(at).copied();
            let from = place(at).unwrap_or_default();
            let to = place(at.saturating_add(run)).unwrap_or(marked.len());
            if let Some(found) = marked.get_mut(from..to) {
                found.fill(true);
            }
        }
    }
}

/// Returns the text with `***` in place of each word with a marked byte. The digits at either end
/// of base64 also belong to neighbouring bytes.
fn without_marked(text: &str, marked: &[bool]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.find(|letter| !is_word(letter)) {
            Some(0) => rest.chars().next().map_or(0, char::len_utf8),
            Some(end) => end,
            None => rest.len(),
        };
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let from = text.len().saturating_sub(rest.len());
        let word_marks = marked.get(from..from.saturating_add(word.len())).unwrap_or_default();
        if !word_marks.contains(&true) {
            out.push_str(word);
        } else if !out.ends_with("***") {
            out.push_str("***");
        }
        rest = after;
    }
    out
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '+' | '=' | '~' | '%')
}

fn folded(letter: u8) -> u8 {
    match letter.to_ascii_lowercase() {
        b'-' => b'+',
        b'_' => b'/',
        letter => letter,
    }
}

/// Returns a credential in all forms in which it may be quoted, in the normal form of [`View`].
fn patterns(credential: &[u8]) -> Vec<Vec<u8>> {
    let plain: Vec<u8> = credential.iter().copied().map(folded).collect();
    let reversed = plain.iter().rev().copied().collect();
    let hex = credential.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let hex = hex.filter_map(|digit| b"0123456789abcdef".get(usize::from(digit)).copied());
    let mut all = vec![plain, reversed, hex.collect()];
    // Bytes before a credential shift its base64 by one or two bytes. The credential's first bytes
    // then share a digit with the bytes before them.
    for skipped in 0..3 {
        all.push(base64_of_groups(credential.get(skipped..).unwrap_or_default()));
    }
    all
}

/// Returns the base64 digits of all complete groups of three bytes.
fn base64_of_groups(bytes: &[u8]) -> Vec<u8> {
    let whole = bytes.len().saturating_sub(bytes.len() % 3);
    encode(bytes.get(..whole).unwrap_or_default()).bytes().map(folded).collect()
}

#[cfg(test)]
mod tests;
