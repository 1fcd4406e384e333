//! Extraction of the text of one PDF page, from its glyphs and their positions.
//!
//! A PDF has no words and no lines, only positioned glyphs. The glyphs are read in the order of the
//! file. Word processors, browsers and TeX write glyphs in reading order, even with columns.
//! Spaces, lines and paragraphs are derived from the distances between glyphs.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "of points and vectors, whose numbers saturate"
)]

use std::panic;

use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::kurbo::{BezPath, Point, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
};

/// Number of font units that make one font size.
const EM: f64 = 1000.0;

/// Distances between glyphs, in font sizes, from which a space or a tab is written. A tab stands
/// for another column of a table.
const SPACE: f64 = 0.18;
const TAB: f64 = 1.5;

/// Maximum number of letters that one glyph stands for. Some fonts have glyphs for a few words.
const LETTERS_MAX: usize = 32;

/// Maximum distance of a glyph from its line, in font sizes, for indices and letters of another
/// size.
const OFF_LINE: f64 = 0.5;

/// Distance between two lines, in font sizes, from which an empty line is written between them.
const PARAGRAPH: f64 = 1.9;

/// Drawing device for a PDF page that keeps only the text.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) text: String,
    /// True if the page shows an image, such as a scan.
    pub(super) has_image: bool,
    /// Number of letters that are known, and number of glyphs for which the font does not name a
    /// letter.
    pub(super) known: usize,
    pub(super) unknown: usize,
    /// Maximum size of the kept text, in bytes.
    bytes_max: usize,
    last: Option<LastGlyph>,
    is_full: bool,
}

/// Position and size of the last glyph.
#[derive(Clone, Copy, Debug)]
struct LastGlyph {
    begin: Point,
    end: Point,
    size: f64,
    /// Point at which the line of the last glyph begins.
    line: Point,
}

/// Separator that is written between two glyphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    None,
    Space,
    Tab,
    Line,
    Paragraph,
}

impl Page {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Returns true if the page has more text than is kept.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    fn take(&mut self, glyph: &PositionedGlyph<'_>, is_vertical: bool, props: &DrawProps<'_>) {
        let transform = props.transform * glyph.transform();
        let at = |x, y| transform * Point::new(x, y);
        let begin = at(0.0, 0.0);
        let size = begin.distance(at(0.0, EM));
        let end = if is_vertical { at(0.0, -EM) } else { at(advance(glyph), 0.0) };
        let unit = if is_vertical { at(0.0, -EM) - begin } else { at(EM, 0.0) - begin };
        if !begin.is_finite() || !end.is_finite() || !size.is_normal() || unit.hypot() == 0.0 {
            return;
        }
        let unit = unit / unit.hypot();
        let letters = letters(glyph);
        if letters.as_deref().is_some_and(|it| it.chars().all(char::is_whitespace)) {
            // The distance to the next glyph shows a space as well.
            return;
        }
        match letters {
            Some(_) => self.known = self.known.saturating_add(1),
            None => self.unknown = self.unknown.saturating_add(1),
        }
        let gap = self.last.map_or(Gap::None, |last| last.gap(begin, size, unit));
        let line = match (gap, self.last) {
            (Gap::None | Gap::Space | Gap::Tab, Some(last)) => last.line,
            _ => begin,
        };
        self.last = Some(LastGlyph { begin, end, size, line });
        let (gap, letters) = (gap.text(), letters.as_deref().unwrap_or("\u{fffd}"));
        let length = self.text.len().saturating_add(gap.len()).saturating_add(letters.len());
        self.is_full |= length > self.bytes_max;
        if self.is_full {
            // The rest of the page is not read, and a small file may draw for minutes.
            panic::resume_unwind(Box::new("the text is full"));
        }
        self.text.push_str(gap);
        self.text.push_str(letters);
    }
}

impl LastGlyph {
    /// Returns the gap between this glyph and a following glyph that begins at `begin`. `along` is
    /// the direction of the line.
    fn gap(&self, begin: Point, size: f64, along: Vec2) -> Gap {
        let size = size.max(self.size);
        let (on, off) = ((begin - self.end).dot(along), (begin - self.end).cross(along));
        if off.abs() < size * OFF_LINE && (begin - self.begin).dot(along) > -size * SPACE {
            return match on / size {
                far if far > TAB => Gap::Tab,
                far if far > SPACE => Gap::Space,
                _ => Gap::None,
            };
        }
        let below = (begin - self.line).cross(along).abs();
        if below > size * PARAGRAPH { Gap::Paragraph } else { Gap::Line }
    }
}

impl Gap {
    fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Space => " ",
            Self::Tab => "\t",
            Self::Line => "\n",
            Self::Paragraph => "\n\n",
        }
    }
}

fn advance(glyph: &Glyph<'_>) -> f64 {
    let advance = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        Glyph::Type3(glyph) => glyph.advance_width(),
    };
    advance.map_or(0.0, f64::from)
}

/// Returns the letters that a glyph stands for, if its font names them.
fn letters(glyph: &Glyph<'_>) -> Option<String> {
    let text = match glyph.as_unicode()? {
        BfString::Char(letter) => letter.to_string(),
        BfString::String(text) => text,
    };
    let is_private = |letter: char| matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{fffd}');
    if text
        .chars()
        .all(|letter| is_private(letter) || letter.is_control() && !letter.is_whitespace())
    {
        return None;
    }
    let mut letters = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()).take(LETTERS_MAX) {
        match ligature(letter) {
            Some(parts) => letters.push_str(parts),
            None => letters.push(letter),
        }
    }
    Some(letters)
}

/// Returns the separate letters of a ligature.
fn ligature(letter: char) -> Option<&'static str> {
    Some(match letter {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

impl Device<'_> for Page {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, mode: &DrawMode) {
        // Letters that are filled and also outlined are drawn twice.
        if matches!(mode, DrawMode::Stroke(_)) && self.is_at(run, &props) {
            return;
        }
        let is_vertical = run.writing_mode() == WritingMode::Vertical;
        run.glyphs().iter().for_each(|glyph| self.take(glyph, is_vertical, &props));
    }

    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {
        self.has_image = true;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

impl Page {
    /// Returns true if the last glyph of a run has the same position as the last kept glyph.
    fn is_at(&self, run: &GlyphRun<'_, '_>, props: &DrawProps<'_>) -> bool {
        let Some((last, glyph)) = self.last.zip(run.glyphs().last()) else { return false };
        let begin = props.transform * glyph.transform() * Point::ORIGIN;
        begin.distance(last.begin) < last.size * SPACE
    }
}
