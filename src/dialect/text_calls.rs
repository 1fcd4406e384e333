//! Tool calls that a model wrote as text, because its server did not parse them. The profile flag
//! `text_tool_calls` names the model's syntax.
//!
//! A text that runs a tool must be unambiguous. So text counts as a call only if
//!
//! - the markup stands where a model puts it: at the start of a line, or with its first tag at the
//!   end of a line (tags of ordinary characters), anywhere (control tokens), or at the start of the
//!   answer (bare JSON, a bare list);
//! - the markup is outside of code fences and code spans, because models also write about calls;
//! - from the markup to the end of the answer there is only markup and white space, and each call
//!   is complete; only the section around the calls may lack its start or end tag, and LFM2 may add
//!   a remark after calls that begin the answer;
//! - each name is a tool of the request;
//! - the answer has no structured call.
//!
//! Reasoning is searched as well, because some models call a tool before they end their reasoning;
//! then the answer must have no text, either.
//!
//! Otherwise the text stays text. In Harmony, messages without a call become text and reasoning,
//! with or without tools, and no head of a message is left in a text. Text before the markup is
//! sent at once. From the markup on, nothing can be sent until the end of the answer.

mod cursor;
mod fence;
mod harmony;
mod in_json;
mod in_tags;
mod kimi_k3;
mod literals;
mod minimax_m3;
mod schema;
mod syntax;

use crate::carry::signature::SignatureField;
use crate::model::request_context::{Tool, Tools};
use crate::profile::TextToolCalls;
use crate::text::words;
use cursor::Extent;
use fence::Fence;
use syntax::Syntax;

/// Detector of tool calls in the text of an answer, which comes in pieces.
#[derive(Debug)]
pub(crate) struct Markup {
    syntax: &'static Syntax,
    state: CallWatch,
    /// Text of which it is not yet known whether it is a call: the start of a line, or of a marker.
    held: String,
    /// Number of bytes at the start of `held` that are the line's indent or list mark, and are not
    /// examined again.
    indent: usize,
    line_start: bool,
    /// True if the answer so far has nothing but white space.
    first: bool,
    /// Code fence (Markdown) that is open, if any.
    fence: Option<Fence>,
    /// True if the current line is indented like a code block.
    is_code: bool,
    /// True if the current line has an odd number of backticks so far, so that a code span is open.
    in_span: bool,
    /// True if the current line begins like a line of a list, a quotation or a table, in which a
    /// call is only an example.
    is_told: bool,
}

/// Facts about the end of an answer that decide if text in it may be a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerEnd {
    /// True if the answer has no structured tool calls.
    pub(crate) alone: bool,
    /// True if a length limit or a filter ended the answer, and not the model.
    pub(crate) is_cut_off: bool,
}

/// Piece of an answer's text, classified as text, reasoning, call or stop sequence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Thinking(SignatureField, String),
    /// Stop sequence that ended the text, by its position in the request's `stop_sequences`. No
    /// further piece follows.
    Stop(usize),
    /// Tool call written as text. `input` is a JSON object.
    Call {
        id: Option<String>,
        name: String,
        input: String,
    },
}

impl Piece {
    fn call(id: Option<String>, tool: &Tool, input: String) -> Self {
        Self::Call { id: id.filter(|id| !id.is_empty()), name: tool.outgoing.clone(), input }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallWatch {
    Watching,
    /// State: `held` starts with the first tag of markup, which follows text in the same line.
    /// Nothing has followed the tag yet.
    Opened,
    /// State: `held` starts with a bracket, which may begin a list of calls.
    Listed,
    /// State: `held` starts with markup of calls.
    Found,
    /// State: the text contains no calls, and is passed on unchanged.
    Off,
}

/// Number of spaces before a line that make the line code in Markdown.
const CODE_INDENT: usize = 4;

/// Maximum number of bytes of white space behind an opening tag: to the end of its line, and before
/// the text that follows.
const BLANKS_MAX: usize = 64;

impl Markup {
    /// Returns a detector for calls in this syntax, or `None` if the syntax is `off`.
    pub(crate) fn new(syntax: TextToolCalls) -> Option<Self> {
        Some(Self {
            syntax: Syntax::of(syntax)?,
            state: CallWatch::Watching,
            held: String::new(),
            indent: 0,
            line_start: true,
            first: true,
            fence: None,
            is_code: false,
            in_span: false,
            is_told: false,
        })
    }

    /// Returns the texts that can begin a call at the start of a line.
    fn starts(&self) -> impl Iterator<Item = &'static str> + use<> {
        let of_answer: &[&str] = if self.first { self.syntax.answer_starts } else { &[] };
        self.syntax.tokens.iter().chain(self.syntax.line_starts).chain(of_answer).copied()
    }

    /// Reads more text, and returns the part that is certainly no call.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        // Lines are handled one by one: taking text off the front of `held` would copy all later
        // lines.
        for line in text.split_inclusive('\n') {
            match self.state {
                CallWatch::Off => out.push_str(line),
                CallWatch::Opened | CallWatch::Listed => {
                    self.held.push_str(line);
                    self.doubt(&mut out);
                }
                CallWatch::Found => self.held.push_str(line),
                CallWatch::Watching => {
                    self.held.push_str(line);
                    self.read(&mut out);
                }
            }
        }
        out
    }

    fn read(&mut self, out: &mut String) {
        while self.state == CallWatch::Watching && !self.held.is_empty() {
            let before = self.held.len();
            if self.line_start {
                self.read_line_start(out);
            } else {
                self.read_line(out);
            }
            if self.held.len() == before {
                break;
            }
        }
        if self.state == CallWatch::Off {
            out.push_str(&std::mem::take(&mut self.held));
        }
        self.doubt(out);
    }

    /// Decides by the text behind some markup if the markup is a call, so that text need not wait
    /// for the end of the answer.
    fn doubt(&mut self, out: &mut String) {
        match self.state {
            CallWatch::Opened => self.doubt_opener(out),
            CallWatch::Listed => self.doubt_list(out),
            CallWatch::Watching | CallWatch::Found | CallWatch::Off => {}
        }
    }

    /// Decides about an opening tag at the end of a line: the tag is text, unless a call follows.
    fn doubt_opener(&mut self, out: &mut String) {
        let (openers, start) = self.syntax.openers;
        let opener = openers.iter().find_map(|it| Some((*it, self.held.strip_prefix(it)?)));
        let Some((opener, line)) = opener else { return };
        let behind = line.trim_start();
        let is_far = line.len().saturating_sub(behind.len()) > BLANKS_MAX;
        if behind.starts_with(start) {
            self.state = CallWatch::Found;
        } else if is_far || !start.starts_with(behind) {
            let rest = words::split_off(&mut self.held, opener.len());
            out.push_str(&std::mem::replace(&mut self.held, rest));
            self.state = CallWatch::Watching;
            self.read(out);
        }
    }

    /// Decides about a bracket: the bracket begins a list of calls, or a link, a number or other
    /// text.
    fn doubt_list(&mut self, out: &mut String) {
        let list = self.held.get(self.indent..).unwrap_or_default().trim_start();
        self.indent = self.held.len().saturating_sub(list.len());
        match (self.syntax.list_is_call)(list) {
            None => return,
            Some(true) => return self.state = CallWatch::Found,
            Some(false) => {}
        }
        self.indent = 0;
        self.first = false;
        if self.syntax.begins_answer {
            self.state = CallWatch::Off;
            out.push_str(&std::mem::take(&mut self.held));
        } else {
            // A control token can still begin a call.
            self.state = CallWatch::Watching;
            self.read(out);
        }
    }

    /// Examines the start of a line, with which `held` begins.
    fn read_line_start(&mut self, out: &mut String) {
        let seen = self.held.get(self.indent..).unwrap_or_default();
        let seen = if self.first { seen.trim_start() } else { words::trim_start(seen, b" \t") };
        let indent = self.held.len().saturating_sub(seen.len());
        let blanks = self.held.get(..indent).unwrap_or_default();
        self.is_code = !self.first
            && self.syntax.is_in_letters
            && (blanks.len() >= CODE_INDENT || blanks.as_bytes().contains(&b'\t'));
        let callable = self.fence.is_none() && !self.is_code;
        let start = self.starts().find(|start| seen.starts_with(start));
        if let Some(start) = start.filter(|_| callable) {
            self.state = if start == "[" { CallWatch::Listed } else { CallWatch::Found };
            self.indent = indent.saturating_add(1);
            return;
        }
        // Control tokens may directly follow the end of a fence.
        let behind = self.fence.and_then(|it| it.behind_end(seen));
        if let Some(behind) = behind
            && self.syntax.tokens.iter().any(|token| behind.starts_with(token))
        {
            let at = self.held.len().saturating_sub(behind.len());
            let markup = words::split_off(&mut self.held, at);
            out.push_str(&std::mem::replace(&mut self.held, markup));
            self.state = CallWatch::Found;
            return;
        }
        let is_over = seen.ends_with('\n');
        let may_be_call = callable && self.starts().any(|start| start.starts_with(seen));
        if !is_over && (may_be_call || fence::may_begin(seen)) {
            self.indent = indent;
            return;
        }
        self.indent = 0;
        let fence = fence::after(seen, self.fence);
        let is_fence = fence != self.fence;
        self.fence = fence;
        if self.syntax.begins_answer && !is_fence {
            self.state = CallWatch::Off;
        }
        let first = seen.bytes().next();
        self.is_told = blanks.len() >= CODE_INDENT
            || first.is_some_and(|it| it.is_ascii_digit() || b">-*+|#<".contains(&it));
        self.first = false;
        self.in_span = false;
        if is_fence {
            // The marks of a fence open no code span.
            out.push_str(&std::mem::take(&mut self.held));
            return;
        }
        self.line_start = false;
        self.read_line(out);
    }

    /// Examines the text within a line, with which `held` begins.
    fn read_line(&mut self, out: &mut String) {
        let end = self.held.find('\n').map(|at| at.saturating_add(1));
        let line = self.held.get(..end.unwrap_or(self.held.len())).unwrap_or_default();
        let mut ready = line.len();
        if self.fence.is_none() && !self.is_code {
            let opener = if self.is_told { None } else { self.opener_at_end(line) };
            let tokens = self.syntax.tokens.iter();
            let token = tokens.clone().filter_map(|token| self.token(line, token)).min();
            if let Some(at) = token.or_else(|| opener.filter(|_| end.is_some())) {
                out.push_str(line.get(..at).unwrap_or_default());
                self.held = words::split_off(&mut self.held, at);
                self.state = if token.is_some() { CallWatch::Found } else { CallWatch::Opened };
                return;
            }
            if end.is_none() {
                let begun = tokens.chain(self.syntax.openers.0);
                let begun = begun.map(|start| words::overlap(line, start)).max();
                ready =
                    ready.saturating_sub(begun.unwrap_or_default()).min(opener.unwrap_or(ready));
            }
        }
        let rest = words::split_off(&mut self.held, ready);
        self.in_span ^= self.held.matches('`').count() % 2 == 1;
        out.push_str(&std::mem::replace(&mut self.held, rest));
        self.line_start = end.is_some();
    }

    /// Returns the first position of a control token in a line, outside of code spans.
    fn token(&self, line: &str, token: &str) -> Option<usize> {
        let (mut spans, mut counted) = (false, 0);
        words::places(line, token).find(|at| {
            let marks = line.get(counted..*at).unwrap_or_default().matches('`').count();
            spans ^= marks % 2 == 1;
            counted = *at;
            spans == self.in_span
        })
    }

    /// Returns the position of an opening tag outside of code spans, if only white space follows in
    /// the line.
    fn opener_at_end(&self, line: &str) -> Option<usize> {
        let at_end = |opener: &&str| {
            let at = words::places(line, opener).last()?;
            let (before, behind) = line.split_at_checked(at)?;
            let behind = behind.get(opener.len()..)?;
            let is_code = self.in_span ^ (before.matches('`').count() % 2 == 1);
            (behind.len() <= BLANKS_MAX && behind.trim().is_empty() && !is_code).then_some(at)
        };
        self.syntax.openers.0.iter().filter_map(at_end).min()
    }

    /// Releases the held text as text, because a structured call or the end of the text comes.
    pub(crate) fn release(&mut self, pieces: &mut Vec<Piece>) {
        let end = AnswerEnd { alone: false, is_cut_off: false };
        self.decide(&Tools::default(), end, pieces);
        if matches!(self.state, CallWatch::Opened | CallWatch::Listed | CallWatch::Found) {
            self.state = CallWatch::Off;
        }
        self.indent = 0;
    }

    /// Decides about the held text at the end of the answer, and adds it to `pieces`.
    pub(crate) fn finish(mut self, tools: &Tools, end: AnswerEnd, pieces: &mut Vec<Piece>) {
        self.decide(tools, end, pieces);
    }

    /// Adds the held text to `pieces`, as calls or as text.
    fn decide(&mut self, tools: &Tools, end: AnswerEnd, pieces: &mut Vec<Piece>) {
        let held = std::mem::take(&mut self.held);
        if matches!(self.state, CallWatch::Listed | CallWatch::Found) {
            let tool = |name: &str| {
                // In an answer with structured calls, a tool's name in the text begins no call.
                tools.meant_by(name).filter(|_| end.alone)
            };
            let extent = Extent { is_all: self.first, is_cut_off: end.is_cut_off };
            if let Some(found) = self.syntax.read(held.trim(), extent, &tool) {
                return pieces.extend(found);
            }
        }
        if !held.is_empty() {
            pieces.push(Piece::Text(held));
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.len()
    }
}
