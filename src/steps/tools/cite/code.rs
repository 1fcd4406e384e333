//! Code in a Markdown text: fenced blocks, and code within a line.

/// Smallest number of backticks or tildes that begin a fenced block.
const FENCE_MIN: usize = 3;

/// Place in a Markdown text, as far as it tells whether the next character is code.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeState {
    /// Letter and length of the fence that began the open block.
    fence: Option<(char, usize)>,
    /// Number of backticks that began the open code within a line; 0 outside.
    inline: usize,
    /// Letter and length of the run of backticks or tildes at the end of the text up to now.
    run: Option<(char, usize)>,
    /// True if the run stands at the beginning of its line.
    run_begins_line: bool,
    /// True if the line has no text yet, but for indents, and marks of lists and quotes.
    at_line_start: bool,
    /// True up to the end of the line whose fence began the open block.
    in_fence_line: bool,
}

impl Default for CodeState {
    fn default() -> Self {
        Self {
            fence: None,
            inline: 0,
            run: None,
            run_begins_line: false,
            at_line_start: true,
            in_fence_line: false,
        }
    }
}

impl CodeState {
    /// Moves past a character.
    pub(super) fn pass(&mut self, letter: char) {
        match &mut self.run {
            Some((of, length)) if *of == letter => {
                *length = length.saturating_add(1);
                return;
            }
            _ => self.end_run(),
        }
        match letter {
            '`' | '~' => {
                // No backtick follows a fence of backticks in its line: it was code in the line.
                if let Some(('`', length)) = self.fence.filter(|_| self.in_fence_line) {
                    (self.fence, self.inline, self.in_fence_line) = (None, length, false);
                }
                self.run = Some((letter, 1));
                self.run_begins_line = std::mem::take(&mut self.at_line_start);
            }
            '\n' => {
                (self.inline, self.at_line_start, self.in_fence_line) = (0, true, false);
            }
            ' ' | '\t' | '>' | '-' | '*' | '+' | '.' | ')' | '0'..='9' => {}
            _ => self.at_line_start = false,
        }
    }

    /// Returns true if the text is code here.
    pub(super) fn is_code(&self) -> bool {
        self.fence.is_some() || self.inline > 0
    }

    /// Returns true if a fenced block is open here.
    pub(super) fn is_fenced(&self) -> bool {
        self.fence.is_some()
    }

    /// Handles the end of a run of backticks or tildes.
    fn end_run(&mut self) {
        let Some((of, length)) = self.run.take() else { return };
        match self.fence {
            Some((open, most)) if open == of && length >= most && self.run_begins_line => {
                self.fence = None;
            }
            Some(_) => {}
            None if length >= FENCE_MIN && self.run_begins_line => {
                (self.fence, self.in_fence_line) = (Some((of, length)), true);
            }
            None if of != '`' => {}
            None if self.inline == 0 => self.inline = length,
            None if self.inline == length => self.inline = 0,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_code_after(text: &str) -> bool {
        let mut state = CodeState::default();
        text.chars().for_each(|letter| state.pass(letter));
        // A run ends with the character behind it.
        state.pass('[');
        state.is_code()
    }

    #[test]
    fn code_is_known_by_its_fences_and_backticks() {
        for text in
            ["```\n", "```rust\na ", "a\n~~~~\n~~~\n", "- ```\n", "1. ~~~\nx", "a `", "``a ` "]
        {
            assert!(is_code_after(text), "{text:?}");
        }
        for text in [
            "",
            "a",
            "```\na\n```\n",
            "a ```b``` ",
            "`a` ",
            "a `b\n",
            "~a~ ~~b~~ ",
            "``a ` b`` ",
            "```a``` b ",
        ] {
            assert!(!is_code_after(text), "{text:?}");
        }
    }
}
