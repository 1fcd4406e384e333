//! Estimate of a text's tokens without a tokenizer, from the kinds of its characters.
//!
//! Current tokenizers split a text between words, numbers and signs, and have a token for each
//! common word. So a word costs one token, and a little more if long; consecutive signs share a
//! token; a Chinese character costs nearly one token. The weights are fitted to o200k, Llama 3 and
//! Qwen 3, which differ by a few percent except for emoji; `docs/tokens.md` has the figures.

/// Number of letters of a word that cost nothing beyond the word itself.
const SHORT_WORD: u64 = 6;

/// Cost of a word. Costs are in thousandths of a token.
const WORD: u64 = 1000;
const LETTER_BEYOND: u64 = 316;
const THREE_DIGITS: u64 = 2200;
const SIGNS: u64 = 650;
const SIGN_MORE: u64 = 100;
const NEWLINES: u64 = 27;
const INDENT: u64 = 1500;
const ACCENTED: u64 = 1000;
const GREEK_TO_ARABIC: u64 = 357;
const HAN: u64 = 690;
const KANA: u64 = 700;
const HANGUL: u64 = 745;
const CJK_SIGN: u64 = 650;
const OTHER: u64 = 1000;
const EMOJI: u64 = 2200;

/// Kind of the current run of characters; costs depend on the length of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Start,
    Word,
    Digits,
    Signs,
    Newlines,
    Blanks,
    Other,
}

/// Returns an estimate of a text's tokens, in thousandths of a token.
#[must_use]
pub(super) fn thousandths(text: &str) -> u64 {
    let (mut run, mut length, mut sum) = (Run::Start, 0u64, 0u64);
    for letter in text.chars() {
        let next = match letter {
            'a'..='z' | 'A'..='Z' => Run::Word,
            '0'..='9' => Run::Digits,
            '\n' | '\r' => Run::Newlines,
            ' ' | '\t' => Run::Blanks,
            '!'..='~' => Run::Signs,
            _ => Run::Other,
        };
        length = if next == run { length.saturating_add(1) } else { 1 };
        run = next;
        let cost = match run {
            Run::Word if length == 1 => WORD,
            Run::Word if length > SHORT_WORD => LETTER_BEYOND,
            Run::Digits if length % 3 == 1 => THREE_DIGITS,
            Run::Signs if length == 1 => SIGNS,
            Run::Signs => SIGN_MORE,
            Run::Newlines if length == 1 => NEWLINES,
            // A single blank belongs to the next word.
            Run::Blanks if length == 2 => INDENT,
            Run::Other => beyond_ascii(letter),
            _ => 0,
        };
        sum = sum.saturating_add(cost);
    }
    sum
}

fn beyond_ascii(letter: char) -> u64 {
    match letter {
        // Control characters are escaped; joiners and variation selectors belong to their
        // character.
        '\0'..='\x7f' => SIGNS,
        '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => 0,
        '\u{80}'..='\u{36f}' => ACCENTED,
        '\u{370}'..='\u{7ff}' => GREEK_TO_ARABIC,
        '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' => CJK_SIGN,
        '\u{3040}'..='\u{30ff}' => KANA,
        '\u{3400}'..='\u{9fff}' => HAN,
        '\u{ac00}'..='\u{d7af}' => HANGUL,
        '\u{10000}'.. => EMOJI,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_signs_are_counted_as_they_are_cut() {
        for (text, expected) in [
            ("", 0),
            ("a word", 2 * WORD),
            ("internationally", WORD + 9 * LETTER_BEYOND),
            ("2026", 2 * THREE_DIGITS),
            ("7", THREE_DIGITS),
            ("a, b", 2 * WORD + SIGNS),
            ("a\nb", 2 * WORD + NEWLINES),
            ("{\"a\":", 2 * SIGNS + SIGN_MORE + SIGN_MORE + WORD),
            ("a\n\n    b", 2 * WORD + NEWLINES + INDENT),
            ("漢字かな", 2 * HAN + 2 * KANA),
            ("👍🏽❤️", 2 * EMOJI + OTHER),
        ] {
            assert_eq!(thousandths(text), expected, "{text:?}");
        }
    }
}
