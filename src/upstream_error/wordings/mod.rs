//! Tables of phrases in servers' error messages: one row for each wording, one file for each kind
//! of error.
//!
//! A new wording is one row: the phrase in lower case and without quotes, the server that uses it,
//! and a URL of a page that shows it.
//!
//! ```text
//! Refusal: "not a vlm" => "SiliconFlow", "https://…";      Alone: "tool_call_id & not found";
//! ```
//!
//! `|` separates alternative phrases. ` & ` separates parts of a phrase that must all occur,
//! anywhere in the text. `<` before a part means that no longer name may end there: `<image` is not
//! found in `generate_image`.

mod accounts;
mod codes;
mod history;
mod images;
mod numbers;
mod parameters;
mod requests;
mod unknown;
mod windows;

pub(super) use accounts::*;
pub(super) use codes::*;
pub(super) use history::*;
pub(super) use images::*;
pub(super) use numbers::*;
pub(super) use parameters::*;
pub(super) use requests::*;
pub(super) use unknown::*;
pub(super) use windows::*;

use super::number_beside::{number_after, number_before};
use crate::text::words;

/// Role of a phrase in recognizing an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhraseRole {
    /// Phrase that is sufficient by itself to recognize this kind of error.
    Alone,
    /// Phrase that names the part of the request that the error is about.
    Subject,
    /// Phrase that expresses the refusal of a part of the request.
    Refusal,
    /// Phrase that excludes this kind of error, whatever else the message says.
    Other,
    /// Phrase that is followed by a number.
    After,
    /// Phrase that is preceded by a number.
    Before,
}

/// Phrases of one wording, with their source.
#[derive(Debug)]
pub(super) struct WordingRow {
    part: PhraseRole,
    phrases: &'static [&'static str],
    /// Server or service that uses the wording; empty if several do.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test of the tables")
    )]
    who: &'static str,
    /// URL of a page that shows the wording; empty if no page is known.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for readers, and for the test of the tables")
    )]
    link: &'static str,
}

/// Wordings of one kind of error.
#[derive(Debug)]
pub(super) struct Wordings(&'static [WordingRow]);

impl Wordings {
    /// Returns the phrases with one role, in the order of the table.
    pub(super) fn phrases(&self, part: PhraseRole) -> impl Iterator<Item = &'static str> {
        let rows = self.0.iter().filter(move |row| row.part == part);
        rows.flat_map(|row| row.phrases.iter().copied())
    }

    /// Returns true if `text` contains a phrase with this role.
    pub(super) fn has(&self, part: PhraseRole, text: &str) -> bool {
        self.phrases(part).any(|phrase| stands(text, phrase))
    }

    /// Returns true if `text` contains a phrase that is sufficient by itself.
    pub(super) fn any(&self, text: &str) -> bool {
        self.has(PhraseRole::Alone, text)
    }

    /// Returns true if `text` is an error of the kind that these wordings describe: by a sufficient
    /// phrase, or by a subject and a refusal, and without an excluding phrase.
    pub(super) fn says(&self, text: &str) -> bool {
        (self.any(text)
            || self.has(PhraseRole::Subject, text) && self.has(PhraseRole::Refusal, text))
            && !self.has(PhraseRole::Other, text)
    }

    /// Returns true if `word` equals one of the phrases that are sufficient by themselves.
    pub(super) fn lists(&self, word: &str) -> bool {
        self.phrases(PhraseRole::Alone).any(|phrase| phrase == word)
    }

    /// Returns the position in `text` at which the first of the phrases begins.
    pub(super) fn first_place(&self, text: &str) -> Option<usize> {
        self.phrases(PhraseRole::Alone).filter_map(|phrase| words::find(text, phrase)).min()
    }

    /// Returns the number beside the first phrase of the table that stands beside a number.
    pub(super) fn number(&self, text: &str) -> Option<u64> {
        let phrases = self.0.iter().flat_map(|row| row.phrases.iter().map(|it| (row.part, *it)));
        phrases.into_iter().find_map(|(part, phrase)| match part {
            PhraseRole::Before => number_before(text, phrase),
            _ => number_after(text, phrase),
        })
    }
}

fn stands(text: &str, phrase: &str) -> bool {
    phrase.split(" & ").all(|piece| match piece.strip_prefix('<') {
        Some(piece) => words::places(text, piece).any(|at| {
            let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
            !before.is_some_and(|byte| words::is_name_byte(*byte))
        }),
        None => words::has(text, piece),
    })
}

/// Defines tables of wordings. The braces keep each row on one line.
macro_rules! wordings {
    ($($(#[doc = $doc:literal])+ $name:ident {
        $($part:ident: $($phrase:literal)|+ $(=> $who:literal $(, $link:literal)?)?;)+
    })+) => {
        $($(#[doc = $doc])+ pub(in crate::upstream_error) static $name: $crate::upstream_error::wordings::Wordings =
            $crate::upstream_error::wordings::Wordings(&[$($crate::upstream_error::wordings::WordingRow {
                part: $crate::upstream_error::wordings::PhraseRole::$part,
                phrases: &[$($phrase),+],
                who: concat!($($who)?),
                link: concat!($($($link)?)?),
            }),+]);)+

        #[cfg(test)]
        pub(super) static ALL: &[&$crate::upstream_error::wordings::Wordings] = &[$(&$name),+];
    };
}
use wordings;

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(unused_qualifications, reason = "each file has its own list")]
    #[test]
    fn rows_can_match_and_their_links_are_links() {
        let all =
            [accounts::ALL, codes::ALL, history::ALL, images::ALL, numbers::ALL, requests::ALL]
                .into_iter()
                .chain([parameters::ALL, unknown::ALL, windows::ALL]);
        for row in all.flatten().flat_map(|wordings| wordings.0) {
            assert!(row.link.is_empty() || row.link.starts_with("https://"), "{row:?}");
            assert!(row.link.is_empty() || !row.who.is_empty(), "who writes it? {row:?}");
            assert!(row.phrases.iter().all(|it| *it == it.to_lowercase()), "{row:?}");
        }
    }

    #[test]
    fn a_phrase_may_have_pieces_and_begin_a_name() {
        assert!(stands("the image is bad", "bad & <image") && !stands("the image", "bad & <image"));
        assert!(!stands("generate_image", "<image") && stands("image", "<image"));
    }
}
