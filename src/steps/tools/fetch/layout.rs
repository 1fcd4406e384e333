//! Text that is made of a page: lines, empty lines between blocks, and marks of Markdown.
//!
//! White space and marks are written just before the next word. So no line begins or ends with
//! white space, and an empty element leaves nothing.

use crate::text::words;

/// Maximum depth of nested elements that is counted.
const DEPTH_MAX: u16 = 512;

/// Line before and after text of `pre`.
const FENCE: &str = "```";

/// White space before the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    /// Line break.
    Line,
    /// Empty line.
    Empty,
}

/// Writer of the text of a page.
pub(super) struct PageLayout {
    out: String,
    bytes_max: usize,
    /// True if the text was cut at the limit.
    is_cut: bool,
    gap: Gap,
    /// True if the next word is the first of a list's item.
    is_item: bool,
    /// Level of the heading whose first word comes next; 0 for other text.
    heading: usize,
    /// Link whose text is being written.
    link: Option<OpenLink>,
    /// Number of open elements `pre`.
    pre: u16,
    /// True if text of `pre` was written, and its last fence is missing.
    has_fence: bool,
    row: TableRow,
}

struct OpenLink {
    url: String,
    /// True if the opening bracket was written.
    is_open: bool,
}

/// Row of a table.
#[derive(Default)]
struct TableRow {
    /// Length of the text at the beginning of the row.
    start: usize,
    has_cells: bool,
    /// True if nothing of the current cell was written.
    is_cell_start: bool,
}

impl PageLayout {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            out: String::new(),
            bytes_max,
            is_cut: false,
            gap: Gap::None,
            is_item: false,
            heading: 0,
            link: None,
            pre: 0,
            has_fence: false,
            row: TableRow::default(),
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the text, and true if the text was cut.
    pub(super) fn finish(mut self) -> (String, bool) {
        self.end_link();
        self.end_fence();
        (self.out, self.is_cut)
    }

    /// Writes a text, whose white space is folded outside of `pre`.
    pub(super) fn text(&mut self, text: &str) {
        if self.pre > 0 {
            return self.raw(text);
        }
        let mut rest = text;
        loop {
            let words = rest.trim_start();
            if words.len() < rest.len() {
                self.gap = self.gap.max(Gap::Space);
            }
            if words.is_empty() {
                return;
            }
            let (folded, behind) = words::split_at(words, folded_length(words));
            self.begin_word();
            self.push(folded);
            rest = behind;
        }
    }

    /// Demands white space before the next word.
    pub(super) fn gap(&mut self, gap: Gap) {
        if self.pre > 0 {
            if self.has_fence && gap >= Gap::Line && !self.out.ends_with('\n') {
                self.push("\n");
            }
            return;
        }
        // The address of a link stands in the line of its text.
        if gap >= Gap::Line && self.link.as_ref().is_some_and(|link| link.is_open) {
            self.end_link();
        }
        if gap < Gap::Line || !self.row.is_cell_start {
            self.gap = self.gap.max(gap);
        }
    }

    pub(super) fn line_break(&mut self) {
        if self.pre > 0 && self.has_fence {
            return self.push("\n");
        }
        self.gap(Gap::Line);
    }

    pub(super) fn begin_item(&mut self) {
        self.gap(Gap::Line);
        self.is_item = self.pre == 0;
    }

    /// Ends an item or a list.
    pub(super) fn end_item(&mut self, gap: Gap) {
        self.is_item = false;
        self.gap(gap);
    }

    pub(super) fn begin_heading(&mut self, level: usize) {
        self.gap(Gap::Empty);
        self.heading = if self.pre == 0 { level } else { 0 };
    }

    pub(super) fn end_heading(&mut self) {
        self.heading = 0;
        self.gap(Gap::Empty);
    }

    pub(super) fn begin_row(&mut self) {
        self.row.is_cell_start = false;
        self.gap(Gap::Line);
        self.row = TableRow { start: self.out.len(), ..TableRow::default() };
    }

    pub(super) fn begin_cell(&mut self) {
        self.end_link();
        if self.row.has_cells && self.pre == 0 {
            if self.out.len() > self.row.start {
                self.gap = Gap::Space;
            }
            (self.is_item, self.heading) = (false, 0);
            self.begin_word();
            self.push("|");
            self.gap = Gap::Space;
        }
        (self.row.has_cells, self.row.is_cell_start) = (true, true);
    }

    /// Ends a cell, a row or a table.
    pub(super) fn end_in_table(&mut self, gap: Gap) {
        self.row.is_cell_start = false;
        self.gap(gap);
    }

    pub(super) fn begin_pre(&mut self) {
        if self.pre == 0 {
            self.end_link();
            self.gap(Gap::Empty);
        }
        self.pre = self.pre.saturating_add(1).min(DEPTH_MAX);
    }

    pub(super) fn end_pre(&mut self) {
        if self.pre == 1 {
            self.end_fence();
            (self.pre, self.gap) = (0, self.gap.max(Gap::Empty));
        }
        self.pre = self.pre.saturating_sub(1);
    }

    /// Begins a link. Its marks are written around its text, if there is any.
    pub(super) fn begin_link(&mut self, url: String) {
        self.end_link();
        if self.pre == 0 {
            self.link = Some(OpenLink { url, is_open: false });
        }
    }

    pub(super) fn end_link(&mut self) {
        if let Some(OpenLink { url, is_open: true }) = self.link.take() {
            ["](", &url, ")"].into_iter().for_each(|text| self.push(text));
        }
    }

    /// Writes the white space and the marks before a word.
    fn begin_word(&mut self) {
        if !self.out.is_empty() {
            self.push(match self.gap {
                Gap::None => "",
                Gap::Space => " ",
                Gap::Line => "\n",
                Gap::Empty => "\n\n",
            });
        }
        (self.gap, self.row.is_cell_start) = (Gap::None, false);
        if std::mem::take(&mut self.is_item) {
            self.push("- ");
        }
        let level = std::mem::take(&mut self.heading);
        if level > 0 {
            self.push("######".get(..level).unwrap_or_default());
            self.push(" ");
        }
        if let Some(link) = self.link.as_mut().filter(|link| !link.is_open) {
            link.is_open = true;
            self.push("[");
        }
    }

    /// Writes text of `pre` as it is.
    fn raw(&mut self, text: &str) {
        let mut text = text;
        if !self.has_fence {
            // HTML ignores a line break at the beginning of `pre`.
            text = text.strip_prefix('\n').unwrap_or(text);
            if text.is_empty() {
                return;
            }
            (self.is_item, self.heading) = (false, 0);
            self.gap = self.gap.max(Gap::Line);
            self.begin_word();
            self.push(FENCE);
            self.push("\n");
            self.has_fence = true;
        }
        self.push(text);
    }

    fn end_fence(&mut self) {
        if std::mem::take(&mut self.has_fence) && !self.is_cut {
            let kept = self.out.trim_end().len();
            words::truncate(&mut self.out, kept);
            self.push("\n");
            self.push(FENCE);
        }
    }

    fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        let room = self.bytes_max.saturating_sub(self.out.len());
        self.is_cut = text.len() > room;
        self.out.push_str(words::beginning(text, room));
    }
}

/// Returns the length of the beginning of a text in which words are divided by single spaces. The
/// text begins with a word.
fn folded_length(text: &str) -> usize {
    let start = folded_blocks(text.as_bytes());
    let mut is_after_space = false;
    // The byte before the rest may be a space.
    for (at, byte) in text.bytes().enumerate().skip(start.saturating_sub(1)) {
        let is_space = match byte {
            b' ' if !is_after_space => {
                is_after_space = true;
                continue;
            }
            b'\t'..=b'\r' | b' ' => true,
            // First bytes of the characters that are white space and not ASCII.
            0xc2 | 0xe1 | 0xe2 | 0xe3 => {
                let letter = text.get(at..).and_then(|text| text.chars().next());
                letter.is_some_and(char::is_whitespace)
            }
            _ => false,
        };
        if is_space {
            return at.saturating_sub(usize::from(is_after_space));
        }
        is_after_space = false;
    }
    text.len().saturating_sub(usize::from(is_after_space))
}

/// Number of bytes of a text that are looked at together.
const BLOCK_BYTES: usize = 32;

/// Returns the length of the blocks at the beginning of a text that have only ASCII characters, and
/// single spaces between words.
fn folded_blocks(bytes: &[u8]) -> usize {
    let is_other = |(byte, next): (&u8, &u8)| {
        // Without branches, the compiler looks at all bytes of a block at once.
        (*byte < b' ') | (*byte > b'~') | ((*byte == b' ') & (*next == b' '))
    };
    let nexts = bytes.get(1..).unwrap_or_default();
    let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(nexts.chunks_exact(BLOCK_BYTES));
    let is_folded = |(block, next): &(&[u8], &[u8])| {
        !block.iter().zip(next.iter()).map(is_other).fold(false, |all, one| all | one)
    };
    blocks.take_while(is_folded).count().saturating_mul(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text that is laid out word by word.
    fn by_words(texts: &[String], bytes_max: usize) -> (String, bool) {
        let mut layout = PageLayout::new(bytes_max);
        for text in texts {
            for (at, word) in text.split(char::is_whitespace).enumerate() {
                if at > 0 {
                    layout.gap(Gap::Space);
                }
                layout.text(word);
            }
        }
        layout.finish()
    }

    proptest! {
        #[test]
        fn runs_of_words_are_laid_out_as_single_words_are(
            mixed in proptest::collection::vec("[ab \\n\\t\u{85}\u{a0}\u{a1}é\u{1680}\u{2003}\u{2028}\u{3000}か\u{b}𝄞]{0,12}", 0..4),
            long in "([a-z]{1,12}( |  |\\n|é)?){0,20}",
            bytes_max in 0..200usize,
        ) {
            let texts: Vec<String> = mixed.into_iter().chain([long]).collect();
            let mut layout = PageLayout::new(bytes_max);
            texts.iter().for_each(|text| layout.text(text));
            prop_assert_eq!(layout.finish(), by_words(&texts, bytes_max));
        }
    }

    #[test]
    fn every_character_of_white_space_has_one_of_the_known_first_bytes() {
        for letter in (char::MIN..=char::MAX).filter(|letter| letter.is_whitespace()) {
            assert_eq!(folded_length(&format!("a{letter} b")), 1, "{letter:?}");
        }
    }
}
