//! Separation of a server's own words in an error from words that it quotes from the request.

use std::collections::BTreeMap;

use crate::text::words;
use crate::upstream_error::wordings::{PhraseRole, Wordings};

/// Number of consecutive words that count as a quotation if the request contains them, too. At the
/// end of the error one word fewer is enough, and around words of complaint one more is needed.
pub(super) const QUOTED_WORDS: usize = 4;

/// Number of characters beside a name that are compared with the request, in languages without
/// spaces.
const QUOTED_LETTERS: usize = 4;

/// Maximum number of texts that are searched in the request. Further texts are assumed to be
/// quotations.
const LOOKUPS_MAX: usize = 64;

/// Quotation marks of several languages.
pub(super) const QUOTES: &str = "'\"`“”‘’「」";

/// Error message of a server, and the request that it may quote.
pub(super) struct Echoes<'s> {
    /// Whole error message, with spaces for punctuation.
    all: String,
    /// Server's own words in the message, with spaces for punctuation.
    own: String,
    /// Texts that the error quotes, with spaces for punctuation.
    quoted: Vec<String>,
    /// Request that was sent, as JSON; `None` if the request was dropped.
    sent: Option<&'s str>,
    /// Request with spaces for punctuation, computed on first use.
    plain: Option<String>,
    /// Cache of searched words of complaint: true if the server's own words contain the word.
    refused: BTreeMap<&'static str, bool>,
    lookups: usize,
}

impl<'s> Echoes<'s> {
    pub(super) fn new(message: &str, own: &str, sent: Option<&'s str>) -> Self {
        let quoted = quoted(message).into_iter().map(|text| plain(text, false)).collect();
        let (all, own) = (plain(message, false), plain(own, false));
        Self { all, own, quoted, sent, plain: None, refused: BTreeMap::new(), lookups: 0 }
    }

    /// Returns true if the server's own words contain a name, and the name is not quoted from the
    /// request.
    pub(super) fn names(&mut self, name: &str) -> bool {
        self.says(name, QUOTED_WORDS, is_word)
    }

    /// Returns true if the server's own words contain this word of complaint, even inside of longer
    /// words. Results are cached, because many rows of the evidence search for the same words.
    pub(super) fn refuses(&mut self, word: &'static str) -> bool {
        if let Some(known) = self.refused.get(word) {
            return *known;
        }
        let is_refused = self.says(&plain(word, false), QUOTED_WORDS + 1, |_, _, _| true);
        self.refused.insert(word, is_refused);
        is_refused
    }

    /// Returns true if the server's own words contain one of these phrases.
    pub(super) fn says_one_of(&mut self, wordings: &Wordings) -> bool {
        wordings.phrases(PhraseRole::Alone).any(|phrase| self.refuses(phrase))
    }

    /// Returns true if the server's own words contain `word`. `length`: number of consecutive words
    /// that count as a quotation; `stands`: test of a position.
    fn says(&mut self, word: &str, length: usize, stands: fn(&str, usize, &str) -> bool) -> bool {
        let own = std::mem::take(&mut self.own);
        let found = words::places(&own, word)
            .filter(|at| stands(&own, *at, word))
            .any(|at| !self.is_repeated(&own, at, word, length));
        self.own = own;
        found
    }

    /// Returns true if the word at this position is only quoted from the request: the request
    /// contains the whole message, the word with its neighbours, or a text in quotes that contains
    /// the word.
    fn is_repeated(&mut self, own: &str, at: usize, name: &str, length: usize) -> bool {
        let Some(sent) = self.sent else {
            return self.quoted.iter().any(|text| text != name && words::has(text, name));
        };
        let plain = self.plain.get_or_insert_with(|| plain(sent, true));
        let mut is_found = |is_in: &dyn Fn() -> bool| {
            self.lookups = self.lookups.saturating_add(1);
            self.lookups > LOOKUPS_MAX || is_in()
        };
        let mut quoted = self.quoted.iter().filter(|text| words::has(text, name));
        let is_quoted = quoted.any(|text| {
            // A member that the server names in quotes is no value. No member has a name of two
            // words.
            let is_value =
                text != name || name.contains(' ') || is_found(&|| has_value(sent, name));
            is_value && is_found(&|| words::has(plain, text))
        });
        let mut is_sent = |text: &str| is_found(&|| words::has(plain, text));
        if is_quoted || is_sent(&self.all) {
            return true;
        }
        let end = at.saturating_add(name.len());
        let before = own.get(..at).unwrap_or_default();
        let behind = own.get(end..).unwrap_or_default();
        if !name.is_ascii() {
            let start = before.char_indices().nth_back(QUOTED_LETTERS - 1).map(|(at, _)| at);
            let last = behind.char_indices().nth(QUOTED_LETTERS - 1);
            let last =
                last.map(|(at, letter)| end.saturating_add(at).saturating_add(letter.len_utf8()));
            let around = [start.map(|start| start..end), last.map(|last| at..last)];
            let mut around = around.into_iter().flatten().filter_map(|place| own.get(place));
            return around.any(is_sent);
        }
        // A name may be a part of a word.
        let start = before.rfind(' ').map_or(0, |at| at.saturating_add(1));
        let end = behind.find(' ').map_or(own.len(), |at| end.saturating_add(at));
        let named = own.get(start..end).unwrap_or_default().split(' ');
        let more = length.saturating_sub(named.clone().count());
        let before = own.get(..start).unwrap_or_default().split_whitespace().rev();
        let behind = own.get(end..).unwrap_or_default().split_whitespace();
        let is_end = behind.clone().nth(more.saturating_sub(1)).is_none();
        let more = more.saturating_sub(usize::from(is_end)).max(1);
        let window = named.clone().count().saturating_add(more);
        let mut all: Vec<_> = before.take(more).collect();
        all.reverse();
        all.extend(named.chain(behind.take(more)));
        all.windows(window).any(|window| is_sent(&window.join(" ")))
    }
}

/// Returns the texts between quotation marks. Apostrophes within a word are no quotation marks.
pub(super) fn quoted(message: &str) -> Vec<&str> {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let marks = message.char_indices().filter(|(at, letter)| {
        let before = at.checked_sub(1).and_then(|at| message.as_bytes().get(at));
        let behind = message.as_bytes().get(at.saturating_add(1));
        QUOTES.contains(*letter) && !(is_letter(before) && is_letter(behind))
    });
    let (mut found, mut open) = (Vec::new(), None);
    for (at, mark) in marks {
        match open {
            None => {
                let closing = match mark {
                    '“' => '”',
                    '‘' => '’',
                    '「' => '」',
                    mark => mark,
                };
                open = Some((at.saturating_add(mark.len_utf8()), closing));
            }
            Some((start, closing)) if closing == mark => {
                found.extend(message.get(start..at));
                open = None;
            }
            Some(_) => {}
        }
    }
    found
}

/// Returns true if a request contains a text as a value, and not only as a key or a type.
fn has_value(sent: &str, text: &str) -> bool {
    let text = format!("\"{text}\"");
    let is_key = |at: usize| is_before_colon(sent, at.saturating_add(text.len()));
    let is_type = |at: usize| {
        let before = sent.get(..at).unwrap_or_default().trim_end();
        before.strip_suffix(':').is_some_and(|before| before.trim_end().ends_with("\"type\""))
    };
    words::places(sent, &text).any(|at| !is_key(at) && !is_type(at))
}

fn is_before_colon(sent: &str, at: usize) -> bool {
    sent.get(at..).is_some_and(|behind| behind.trim_start().starts_with(':'))
}

/// Returns true if the name at this position is a whole word, in the singular or plural.
fn is_word(text: &str, at: usize, name: &str) -> bool {
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let behind = behind.get(name.len()..).unwrap_or_default();
    let behind = behind.strip_prefix('s').unwrap_or(behind);
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| words::is_name_byte(*byte));
    !name.is_ascii() || !is_name(before.as_bytes().last()) && !is_name(behind.as_bytes().first())
}

/// Returns a text in lower case, without quotes and with single spaces for punctuation except `_`.
/// `is_json`: the text has backslash escapes.
pub(super) fn plain(text: &str, is_json: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(mut letter) = letters.next() {
        if letter == '\\' && is_json {
            letter = match letters.next() {
                Some(quote @ ('"' | '\\')) => quote,
                Some('u') => letters.nth(3).map_or(' ', |_| ' '),
                _ => ' ',
            };
        }
        if letter == '\\' || QUOTES.contains(letter) {
            continue;
        }
        let is_sign = letter.is_whitespace()
            || letter.is_control()
            || letter.is_ascii_punctuation() && letter != '_';
        let letter = if is_sign { ' ' } else { letter.to_ascii_lowercase() };
        if letter != ' ' || !(out.is_empty() || out.ends_with(' ')) {
            out.push(letter);
        }
    }
    out.truncate(out.trim_end().len());
    out
}
