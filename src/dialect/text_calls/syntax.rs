//! Table of the syntaxes in which models write calls as text, one row per syntax.
//!
//! Every syntax allows several calls. The whole text must be calls, perhaps with the tokens that
//! ended it and LFM2's remark; otherwise no call is read. Harmony also contains the model's
//! reasoning and text, with or without calls.

use super::cursor::{Cursor, Extent, FindTool, ReadCall, SectionTags};
use super::{Piece, harmony, in_json, in_tags, kimi_k3, literals, minimax_m3};
use crate::model::request_context::NAME_BYTES_MAX;
use crate::profile::TextToolCalls;
use crate::text::words;

/// Syntax in which models write calls as text.
#[derive(Debug)]
pub(super) struct Syntax {
    name: TextToolCalls,
    /// Tokens that begin a call anywhere: control tokens, which follow text directly.
    pub(super) tokens: &'static [&'static str],
    /// Texts that begin a call at the start of a line.
    pub(super) line_starts: &'static [&'static str],
    /// Texts that begin a call at the start of the answer.
    pub(super) answer_starts: &'static [&'static str],
    /// Opening tags that may follow text in the same line if a line break follows, and the tag that
    /// must come after them. In an example within a sentence, the line goes on behind the tag.
    pub(super) openers: (&'static [&'static str], &'static str),
    /// True if the start tags are ordinary characters, which a model writes in examples too.
    pub(super) is_in_letters: bool,
    /// True if calls in this syntax stand only at the start of an answer, with no text before them.
    pub(super) begins_answer: bool,
    /// Function that returns true if a bare list that begins like this text contains calls, and
    /// false if it does not. `None`: the text is too short to tell.
    pub(super) list_is_call: fn(&str) -> Option<bool>,
    /// True if text and reasoning beside the calls are parsed, too (Harmony).
    reads_answer: bool,
    /// Forms of markup in this syntax, each with its beginning. The first form whose beginning
    /// matches is parsed.
    forms: &'static [(&'static str, MarkupParser)],
}

/// Parser for one form of markup.
#[derive(Debug)]
enum MarkupParser {
    /// Markup whose calls each begin with `start`, in sections delimited by the tags of `around`.
    Calls { around: SectionTags, start: &'static str, call: ReadCall },
    /// Markup that a function of its own parses.
    Other(fn(&mut Cursor<'_>, FindTool<'_>, &mut Vec<Piece>) -> Option<()>),
}

const fn calls(around: SectionTags, start: &'static str, call: ReadCall) -> MarkupParser {
    MarkupParser::Calls { around, start, call }
}

/// Start and end tags of sections in Qwen's and Seed's syntax, which differ only in the tag's name.
const QWEN: SectionTags =
    &[("<tool_call>", "</tool_call>"), ("<seed:tool_call>", "</seed:tool_call>")];

/// Start and end tags of sections in Kimi's syntax. vLLM accepts both spellings.
const KIMI: SectionTags = &[
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),
];

const DEEPSEEK: SectionTags = &[("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")];

/// Base row of the table of syntaxes, without any forms.
const NONE: Syntax = Syntax {
    name: TextToolCalls::Off,
    tokens: &[],
    line_starts: &[],
    answer_starts: &[],
    openers: (&[], ""),
    is_in_letters: false,
    begins_answer: false,
    list_is_call: |_| Some(false),
    reads_answer: false,
    forms: &[],
};

static SYNTAXES: [Syntax; 11] = [
    Syntax {
        name: TextToolCalls::Hermes,
        line_starts: &["<tool_call>"],
        openers: (&["<tool_call>"], "{"),
        is_in_letters: true,
        forms: &[("", calls(&[], "<tool_call>", in_json::hermes))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::QwenXml,
        line_starts: &["<tool_call>", "<function=", "<seed:tool_call>"],
        openers: (&["<tool_call>", "<seed:tool_call>"], "<function="),
        is_in_letters: true,
        forms: &[("", calls(QWEN, "<function=", in_tags::qwen))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Mistral,
        tokens: &["[TOOL_CALLS]"],
        forms: &[("", MarkupParser::Other(in_json::mistral))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Kimi,
        tokens: &[
            "<|tool_calls_section_begin|>",
            "<|tool_call_section_begin|>",
            "<|tool_call_begin|>",
            "<|open|>tools<|sep|>",
            "<|open|>response<|sep|>",
        ],
        forms: &[
            ("<|open|>", MarkupParser::Other(kimi_k3::read)),
            ("", calls(KIMI, "<|tool_call_begin|>", in_json::kimi)),
        ],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Glm,
        tokens: &["<tool_call>"],
        is_in_letters: true,
        forms: &[("", calls(&[], "<tool_call>", in_tags::glm))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Llama,
        line_starts: &["{", "[", "<|python_tag|>"],
        begins_answer: true,
        list_is_call: |list| (!list.is_empty()).then(|| list.starts_with('{')),
        forms: &[("", MarkupParser::Other(in_json::llama))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Minimax,
        tokens: &[minimax_m3::MARK],
        line_starts: &[
            "<minimax:tool_call>",
            "<function_calls>",
            "<tool_calls>",
            "<invoke name=\"",
        ],
        openers: (&["<minimax:tool_call>", "<function_calls>", "<tool_calls>"], "<invoke"),
        is_in_letters: true,
        forms: &[
            (minimax_m3::MARK, MarkupParser::Other(minimax_m3::read)),
            ("", MarkupParser::Other(in_tags::claude)),
        ],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Harmony,
        tokens: &[
            "<|channel|>commentary",
            "<|channel|>analysis",
            "<|channel|>final",
            "<|start|>assistant",
            "<|end|><|start|>assistant",
        ],
        reads_answer: true,
        forms: &[("", MarkupParser::Other(harmony::read))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Deepseek,
        tokens: &[
            "<｜DSML｜",
            "<｜｜DSML｜｜",
            "<|DSML|",
            "<||DSML||",
            "<‖DSML‖",
            "<‖‖DSML‖‖",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
        ],
        forms: &[
            ("<｜tool▁call", calls(DEEPSEEK, "<｜tool▁call▁begin｜>", in_json::deepseek)),
            ("", MarkupParser::Other(in_tags::deepseek)),
        ],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Gemma,
        tokens: &["<|tool_call>"],
        forms: &[("", calls(&[], "<|tool_call>", literals::gemma))],
        ..NONE
    },
    Syntax {
        name: TextToolCalls::Pythonic,
        tokens: &["<|tool_call_start|>", "<|python_start|>"],
        line_starts: &["<function_calls>"],
        answer_starts: &["["],
        is_in_letters: true,
        list_is_call: |list| {
            let name = words::before(list, b"(");
            let is_excluded = |letter: char| letter == ']' || letter.is_whitespace();
            let may_be_name = name.len() < NAME_BYTES_MAX && !name.trim_end().contains(is_excluded);
            (!may_be_name || name.len() < list.len()).then_some(may_be_name)
        },
        forms: &[("", MarkupParser::Other(literals::pythonic))],
        ..NONE
    },
];

impl Syntax {
    /// Returns the row of a syntax in the table, or `None` if the syntax is `off`.
    pub(super) fn of(name: TextToolCalls) -> Option<&'static Self> {
        SYNTAXES.iter().find(|syntax| syntax.name == name)
    }

    /// Parses `text` as calls; `None` if `text` is anything else.
    pub(super) fn read(
        &self,
        text: &str,
        extent: Extent,
        tools: FindTool<'_>,
    ) -> Option<Vec<Piece>> {
        // Harmony's messages contain some of the stop tokens, which must not be removed there.
        let text = if self.reads_answer { text } else { without_stop_tokens(text) };
        let mut cursor = Cursor { rest: text, extent, is_marked: false };
        let mut pieces = Vec::new();
        let (_, form) = self.forms.iter().find(|(start, _)| text.starts_with(start))?;
        match form {
            MarkupParser::Calls { around, start, call } => {
                cursor.sections(around, start, tools, &mut pieces, *call)
            }
            MarkupParser::Other(read) => read(&mut cursor, tools, &mut pieces),
        }?;
        cursor.skip_blank();
        let says = !pieces.is_empty() || self.reads_answer;
        (cursor.rest.is_empty() && says).then_some(pieces)
    }
}

/// Control tokens that end an answer, or begin the next message.
const STOP_TOKENS: [&str; 17] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|observation|>",
    "<|user|>",
    "[e~[",
    "</s>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<｜end▁of▁sentence｜>",
    "<|eom|>",
    "<|eot|>",
    "<|close|>message<|sep|>",
    "<|end_of_msg|>",
    "<|tool_response>",
    "<turn|>",
    "<eos>",
];

fn without_stop_tokens(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) = STOP_TOKENS.iter().find_map(|token| text.strip_suffix(token)) {
        text = rest.trim_end();
    }
    text
}

#[cfg(test)]
mod tests;
