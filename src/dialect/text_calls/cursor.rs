//! Cursor that reads the markup of tool calls from left to right.

use std::borrow::Cow;

use crate::json::{Reader, ValueKind};
use crate::model::request_context::Tool;
use crate::text::bare_json;
use crate::text::json_scan::DEPTH_MAX;
use crate::text::words;

use super::Piece;

/// Function that returns the tool that a model means by a name.
pub(super) type FindTool<'t> = &'t dyn Fn(&str) -> Option<&'t Tool>;

/// Position of a text within the answer: whether it starts and ends the answer.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    /// True if the text starts at the beginning of the answer.
    pub(super) is_all: bool,
    /// True if a length limit or a filter ended the answer, and not the model.
    pub(super) is_cut_off: bool,
}

/// Tags around a section of calls: pairs of start and end.
pub(super) type SectionTags = &'static [(&'static str, &'static str)];

/// Function that reads one call, from behind its start tag to its end.
pub(super) type ReadCall = fn(&mut Cursor<'_>, FindTool<'_>) -> Option<Piece>;

/// Remaining text of a parser. White space between tokens is ignored.
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a str,
    pub(super) extent: Extent,
    /// True if each tag contains DeepSeek's mark, `｜DSML｜`.
    pub(super) is_marked: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.skip_blank();
        match self.behind(self.rest, token) {
            Some(rest) => {
                self.rest = rest;
                self.skip_blank();
                true
            }
            None => false,
        }
    }

    pub(super) fn eat_any(&mut self, tokens: &[&str]) -> bool {
        tokens.iter().any(|token| self.eat(token))
    }

    pub(super) fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// Returns the text behind a token. In DeepSeek's tags, such as `<｜DSML｜name`, the model may
    /// double the bars, use similar characters, or add a space behind them.
    pub(super) fn behind<'t>(&self, text: &'t str, token: &str) -> Option<&'t str> {
        if !self.is_marked || !token.starts_with('<') {
            return text.strip_prefix(token);
        }
        let name = words::trim_start(token, b"</");
        let start = token.get(..token.len().saturating_sub(name.len()))?;
        let bar = |text: &'t str| text.strip_prefix(['｜', '|', '‖']);
        let bars = |text| bar(text).map(|rest| bar(rest).unwrap_or(rest));
        let text = bars(bars(text.strip_prefix(start)?)?.strip_prefix("DSML")?)?;
        words::trim_start(text, b" ").strip_prefix(name)
    }

    /// Reads the end tag of a section of calls. `around`: possible start and end tags of a section;
    /// `open`: index of the pair that began this section.
    ///
    /// Servers treat the end tag as a stop token, and models leave the end tag out. So it may be
    /// missing at the end of the answer or where the next section begins, because the calls are
    /// complete without it. It may be missing anywhere if the section had no start tag.
    pub(super) fn close(&mut self, around: &[(&str, &str)], open: Option<usize>) -> Option<()> {
        let ends = open.and_then(|at| around.get(at..=at)).unwrap_or(around);
        let is_closed = ends.iter().any(|(_, end)| self.eat(end));
        let is_next = || around.iter().any(|(start, _)| self.behind(self.rest, start).is_some());
        let may_miss = || open.is_none() || self.rest.is_empty() || is_next();
        (is_closed || !self.extent.is_cut_off && may_miss()).then_some(())
    }

    /// Reads the end tag `end` of an element that `start` began. The end tag may be missing, like
    /// the end tag of a section.
    pub(super) fn end(&mut self, start: &str, end: &str) -> Option<()> {
        self.close(&[(start, end)], Some(0))
    }

    /// Reads calls that begin with `start`, in sections (see [`Cursor::close`]). Each section must
    /// contain a call.
    pub(super) fn sections(
        &mut self,
        around: SectionTags,
        start: &str,
        tools: FindTool<'_>,
        calls: &mut Vec<Piece>,
        call: ReadCall,
    ) -> Option<()> {
        loop {
            let section = around.iter().position(|(start, _)| self.eat(start));
            if !self.eat(start) {
                return section.is_none().then_some(());
            }
            loop {
                calls.push(call(self, tools)?);
                if !self.eat(start) {
                    break;
                }
            }
            if !around.is_empty() {
                self.close(around, section)?;
            }
        }
    }

    /// Reads the text up to `end`, and returns the text unchanged.
    pub(super) fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = words::split_once(self.rest, end)?;
        self.rest = rest;
        Some(text)
    }

    pub(super) fn take(&mut self, bytes: usize) -> &'a str {
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        text
    }

    /// Reads a JSON object, and returns its text.
    pub(super) fn object(&mut self) -> Option<Cow<'a, str>> {
        self.skip_blank();
        let mut reader = Reader::new(self.rest, DEPTH_MAX);
        if reader.kind().ok()? != ValueKind::Object {
            return None;
        }
        let (object, length) = match reader.skip() {
            Ok(object) => (Cow::Borrowed(object), object.len()),
            Err(_) => {
                bare_json::escaped(self.rest).map(|(object, length)| (object.into(), length))?
            }
        };
        self.rest = self.rest.get(length..)?;
        self.skip_blank();
        Some(object)
    }
}
