//! Search for marks (`[[1]]`) in a text that comes in pieces.
//!
//! ```text
//! It is 1. [[1]][[2]] Maybe.     ─▶  cited "It is 1." by 1 and 2, plain " Maybe."
//! └──────┘ └────────┘
//! segment  run of marks
//! ```
//!
//! A segment is the part of the text that a run of marks cites: it begins behind the segment
//! before, and ends at the end of a sentence, of a line, or before a run of marks. Only one segment
//! and the beginning of one mark are held.

use super::code::CodeState;
use crate::model::search::NumberedPages;
use crate::text::words;

/// Maximum number of bytes of a segment. A longer one is cut, so that a client does not wait long
/// for words.
const SEGMENT_BYTES_MAX: usize = 400;

/// Maximum number of digits in a mark.
const DIGITS_MAX: usize = 6;

/// Maximum number of pages that one run of marks cites. Further marks of the run are left out.
const RUN_MAX: usize = 32;

/// Characters that end a sentence if white space follows.
const SENTENCE_ENDS: [char; 6] = ['.', '!', '?', '。', '！', '？'];

/// Part of a text, without marks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextPart {
    pub(super) text: String,
    /// Numbers of the pages that the part cites.
    pub(super) cites: Vec<u32>,
}

/// Search for marks in one text.
#[derive(Debug, Default)]
pub(super) struct MarkFinder {
    /// Open segment, without its marks.
    segment: String,
    /// True if the segment ended: only white space and marks can follow.
    has_ended: bool,
    /// True if a part of the segment is in a fenced block of code.
    is_fenced: bool,
    /// Beginning of a mark, or a whole mark before the character that follows.
    mark: String,
    /// Numbers in the run of marks behind the segment; empty if there is no run.
    run: Vec<u32>,
    /// White space behind the run.
    gap: String,
    code: CodeState,
    /// Number of further citations that the answer may have.
    citations_left: usize,
    /// Complete parts.
    parts: Vec<TextPart>,
}

impl MarkFinder {
    /// Begins the search in a text with at most this number of citations.
    pub(super) fn new(citations_max: usize) -> Self {
        Self { citations_left: citations_max, ..Self::default() }
    }

    /// Takes the next piece of the text, and returns the parts that are complete.
    pub(super) fn push(&mut self, piece: &str, pages: &NumberedPages) -> Vec<TextPart> {
        for letter in piece.chars() {
            self.code.pass(letter);
            if self.grows(letter) {
                self.mark.push(letter);
            } else if self.mark == "[[" && letter == '[' {
                // The last two of three brackets can begin a mark.
                self.plain('[');
            } else {
                self.end_mark(Some(letter), pages);
                match letter == '[' && !self.code.is_code() {
                    true => self.mark.push('['),
                    false => self.plain(letter),
                }
            }
        }
        std::mem::take(&mut self.parts)
    }

    /// Ends the text, and returns its last parts.
    pub(super) fn end(&mut self, pages: &NumberedPages) -> Vec<TextPart> {
        self.end_mark(None, pages);
        self.end_run();
        self.end_segment();
        std::mem::take(&mut self.parts)
    }

    /// Returns the number of citations that the text has not used.
    pub(super) fn citations_left(&self) -> usize {
        self.citations_left
    }

    /// Returns the number of bytes that wait for more text.
    pub(super) fn held_bytes(&self) -> usize {
        let texts = [&self.segment, &self.mark, &self.gap];
        texts.into_iter().map(String::len).fold(0, usize::saturating_add)
    }

    /// Returns true if the character goes on with the mark that has begun.
    fn grows(&self, letter: char) -> bool {
        let Some(inside) = self.mark.strip_prefix("[[") else {
            return self.mark == "[" && letter == '[';
        };
        let digits = inside.trim_end_matches(']').len();
        match letter {
            ']' => digits > 0 && inside.len() < digits.saturating_add(2),
            '0'..='9' => digits == inside.len() && digits < DIGITS_MAX,
            _ => false,
        }
    }

    /// Ends the mark before the character `next`. What is no mark becomes text.
    fn end_mark(&mut self, next: Option<char>, pages: &NumberedPages) {
        if self.mark.is_empty() {
            return;
        }
        let mark = std::mem::take(&mut self.mark);
        // `[[1]](https://a.example)` is a link with a number as its text.
        let number = number_of(&mark).filter(|_| next != Some('('));
        // A mark that begins a line is a word of the sentence behind it, unless it stands alone.
        let stands_alone = matches!(next, None | Some('\n' | '[')) || !self.begins_line();
        match number {
            Some(number) if stands_alone && self.takes_marks() && pages.has(number) => {
                self.gap.clear();
                if !self.run.contains(&number) && self.run.len() < RUN_MAX {
                    self.citations_left = self.citations_left.saturating_sub(1);
                    self.run.push(number);
                }
            }
            _ => mark.chars().for_each(|letter| self.plain(letter)),
        }
    }

    /// Returns true if there is a text that a mark can cite. A mark behind a fenced block of code
    /// would cut the fence off.
    fn takes_marks(&self) -> bool {
        let has_words = !self.is_fenced && self.segment.contains(char::is_alphanumeric);
        self.citations_left > 0 && (!self.run.is_empty() || has_words)
    }

    /// Returns true if only white space stands before the mark in its line.
    fn begins_line(&self) -> bool {
        let before = if self.run.is_empty() { &self.segment } else { &self.gap };
        before.trim_end_matches([' ', '\t']).ends_with('\n')
    }

    /// Takes a character that belongs to no mark.
    fn plain(&mut self, letter: char) {
        let is_space = letter.is_whitespace();
        if !self.run.is_empty() && is_space && self.gap.len() < SEGMENT_BYTES_MAX {
            return self.gap.push(letter);
        }
        self.end_run();
        if self.has_ended && !is_space {
            self.end_segment();
        }
        // No white space follows the end of a sentence in Chinese and Japanese.
        let ends_sentence = is_space && self.segment.ends_with(SENTENCE_ENDS)
            || matches!(letter, '。' | '！' | '？');
        self.segment.push(letter);
        self.is_fenced |= self.code.is_fenced();
        let ends = letter == '\n' || ends_sentence;
        self.has_ended |= ends && !self.segment.trim_start().is_empty();
        if self.segment.len() > SEGMENT_BYTES_MAX {
            self.cut();
        }
    }

    /// Ends the run of marks. The white space behind it begins the next segment.
    fn end_run(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let (text, cites) = (self.segment.trim_end().to_owned(), std::mem::take(&mut self.run));
        self.parts.push(TextPart { text, cites });
        self.segment = std::mem::take(&mut self.gap);
        (self.has_ended, self.is_fenced) = (false, false);
    }

    /// Ends a segment without marks.
    fn end_segment(&mut self) {
        let text = std::mem::take(&mut self.segment);
        self.push_plain(text);
        (self.has_ended, self.is_fenced) = (false, false);
    }

    /// Cuts a segment that is too long, before its last word.
    fn cut(&mut self) {
        let last = self.segment.trim_end().rfind(char::is_whitespace);
        let half = || words::beginning(&self.segment, self.segment.len() / 2).len();
        let at = last.filter(|at| *at > 0).unwrap_or_else(half);
        let rest = words::split_off(&mut self.segment, at);
        let text = std::mem::replace(&mut self.segment, rest);
        self.push_plain(text);
    }

    /// Adds a part without citations, at the end of one before.
    fn push_plain(&mut self, text: String) {
        match self.parts.last_mut().filter(|part| part.cites.is_empty()) {
            Some(part) => part.text.push_str(&text),
            None if text.is_empty() => {}
            None => self.parts.push(TextPart { text, cites: Vec::new() }),
        }
    }
}

/// Returns the number in a whole mark.
fn number_of(mark: &str) -> Option<u32> {
    mark.strip_prefix("[[")?.strip_suffix("]]")?.parse().ok()
}

#[cfg(test)]
mod tests;
