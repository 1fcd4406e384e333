//! Sanitizing of texts from clients and upstreams for terminals and logs.
//!
//! Terminals obey control characters (ESC, U+009B), and direction controls can disguise a name as
//! another one. Each of these characters, and each invisible character, becomes U+FFFD.

use std::borrow::Cow;

/// Returns a character, or U+FFFD if the character moves a cursor, changes the writing direction or
/// is invisible.
#[must_use]
pub fn letter(letter: char) -> char {
    match letter {
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
            char::REPLACEMENT_CHARACTER
        }
        '\u{feff}' | '\u{e0000}'..='\u{e007f}' => char::REPLACEMENT_CHARACTER,
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    }
}

/// Returns a text sanitized for one line: line ends and tabs are replaced, too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.into();
    }
    text.chars().map(letter).collect::<String>().into()
}

/// Returns a sanitized text that keeps its line ends and tabs, because Creole wrote them.
#[must_use]
pub fn lines(text: &str) -> String {
    text.chars().map(|it| if matches!(it, '\n' | '\t') { it } else { letter(it) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_and_no_change_of_direction_is_left() {
        let controls = (0..0x20).chain(0x7f..0xa0).chain(0x202a..0x202f).chain(0x2066..0x206a);
        for code in controls.chain([0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff, 0xe0041])
        {
            let text = format!("a{}b", char::from_u32(code).unwrap());
            assert_eq!(line(&text), "a\u{fffd}b", "U+{code:04X}");
            let kept = matches!(code, 0x9 | 0xa);
            assert_eq!(lines(&text), if kept { &*text } else { "a\u{fffd}b" }, "U+{code:04X}");
        }
    }

    #[test]
    fn other_letters_stay() {
        for text in ["", "qwen3-coder:30b/模型", "e\u{301}é\u{a0}…😀 ~"] {
            assert_eq!((line(text), lines(text)), (text.into(), text.to_owned()));
        }
    }
}
