//! Parser for Harmony, the output format of gpt-oss: messages in channels.

use super::Piece;
use super::cursor::{Cursor, FindTool};
use crate::carry::signature::SignatureField;
use crate::text::words;

const MESSAGE: &str = "<|message|>";

/// Tokens of Harmony that begin the head of a message.
const STARTS: [&str; 2] = ["<|start|>", "<|channel|>"];

/// Tokens of Harmony that end a message.
const ENDS: [&str; 3] = ["<|end|>", "<|call|>", "<|return|>"];

/// Maximum number of failed attempts to read the input of a tool. Each attempt may read to the end
/// of the answer.
const TRIES_MAX: u8 = 8;

/// Reads `<|start|>assistant<|channel|>commentary to=functions.NAME …<|message|>{…}<|call|>`, and
/// the other channels.
///
/// The model's template refuses a history with the head of a message in a text. So once a head was
/// found, everything that is not a call becomes reasoning or text without heads. Returns `None` if
/// the text has no head.
// Long: one loop over the channels, a branch for each of their marks.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    pieces: &mut Vec<Piece>,
) -> Option<()> {
    if !words::has(cursor.rest, MESSAGE) {
        return None;
    }
    let (answer, mut tries, mut has_call) = (cursor.rest, TRIES_MAX, false);
    // True if the final message has no end: text that looks like a message may then belong to it.
    let mut is_open = false;
    while !cursor.rest.is_empty() {
        let Some(head) = cursor.until(MESSAGE) else {
            // The length limit cut off the head of a message, which has no content yet.
            let rest = without_tokens(std::mem::take(&mut cursor.rest));
            if rest.is_empty() || cursor.extent.is_cut_off && rest.starts_with("<|start|>") {
                break;
            }
            if has_call {
                return example(cursor, answer, pieces);
            }
            pieces.push(Piece::Text(rest.to_owned()));
            break;
        };
        // Some servers leave out the channel of the final message.
        let start = first(head, &STARTS).map_or(0, |(at, _)| at);
        let (said, head) = head.split_at_checked(start)?;
        let end = first(said, &ENDS).map_or(said.len(), |(at, _)| at);
        let said = said.get(..end)?;
        if !said.trim().is_empty() && has_call {
            return example(cursor, answer, pieces);
        }
        say(pieces, Piece::Text(said.to_owned()));
        // Models may begin the head of a message and then begin it anew.
        let head =
            words::places(head, "<|start|>").last().and_then(|at| head.get(at..)).unwrap_or(head);
        let name = words::split_once(head, "to=").map(|(_, name)| {
            let end = name.find([' ', '<', '\n']).unwrap_or(name.len());
            name.get(..end).unwrap_or_default()
        });
        let tool = name.and_then(tools);
        if let Some(tool) = tool.filter(|_| tries > 0) {
            if let Some(input) = cursor.message_object() {
                if is_open {
                    return example(cursor, answer, pieces);
                }
                pieces.push(Piece::call(None, tool, input));
                has_call = true;
                continue;
            }
            tries = tries.saturating_sub(1);
        }
        let (body, has_end) = cursor.message()?;
        let body = body.to_owned();
        let is_call = tool.is_some() || name.is_some_and(|name| name.starts_with("functions."));
        if is_call && cursor.extent.is_cut_off && cursor.rest.is_empty() {
            // The length limit cut off this call.
            break;
        }
        let channel = words::places(head, "<|channel|>").last().and_then(|at| head.get(at..));
        is_open |=
            !has_end && channel.is_some_and(|channel| channel.starts_with("<|channel|>final"));
        let is_analysis = channel.is_some_and(|channel| channel.starts_with("<|channel|>analysis"));
        say(
            pieces,
            match is_analysis && !is_call {
                true => Piece::Thinking(SignatureField::ReasoningContent, body),
                false => Piece::Text(body),
            },
        );
    }
    Some(())
}

/// Reads a whole answer as text, because prose follows its call: such a call is only an example.
fn example<'a>(cursor: &mut Cursor<'a>, answer: &'a str, pieces: &mut Vec<Piece>) -> Option<()> {
    cursor.rest = answer;
    pieces.clear();
    read(cursor, &|_| None, pieces)
}

/// Returns the text behind the last message, without the tokens that servers leave around it; empty
/// if it is blank.
fn without_tokens(text: &str) -> &str {
    let mut text = if text.trim().is_empty() { "" } else { text };
    let ends = || ENDS.iter().chain(&["<|endoftext|>"]);
    while let Some(shorter) = ends()
        .find_map(|token| text.strip_prefix(token).or_else(|| text.strip_suffix(token)))
        .or_else(|| text.strip_suffix("<|start|>assistant"))
    {
        text = shorter.trim();
    }
    text
}

/// Adds a message to the pieces, as a paragraph of its own.
fn say(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (_, Piece::Text(text) | Piece::Thinking(_, text)) if text.is_empty() => {}
        (Some(Piece::Text(before)), Piece::Text(text))
        | (Some(Piece::Thinking(_, before)), Piece::Thinking(_, text)) => {
            before.push_str("\n\n");
            before.push_str(&text);
        }
        (_, piece) => pieces.push(piece),
    }
}

/// Returns the position and the length of the first of `tokens` in a text.
fn first(text: &str, tokens: &[&str]) -> Option<(usize, usize)> {
    tokens.iter().filter_map(|token| Some((words::find(text, token)?, token.len()))).min()
}

impl<'a> Cursor<'a> {
    /// Reads a message that is a JSON object.
    fn message_object(&mut self) -> Option<String> {
        let message = self.rest;
        // The end token of a call may be missing, because servers take it for a stop token of the
        // answer.
        let input = self.object().filter(|_| {
            self.eat_any(&ENDS) || self.rest.is_empty() || self.rest.starts_with("<|start|>")
        });
        if input.is_none() {
            self.rest = message;
        }
        input.map(std::borrow::Cow::into_owned)
    }

    /// Reads a message up to its end token, or up to the next head if that token is missing. The
    /// flag is true if the end token was found.
    fn message(&mut self) -> Option<(&'a str, bool)> {
        let next = words::find(self.rest, MESSAGE);
        let text = self.rest.get(..next.unwrap_or(self.rest.len()))?;
        let head = || Some((first(text, &STARTS)?.0, 0)).filter(|_| next.is_some());
        let (end, token) = first(text, &ENDS).or_else(head).unwrap_or((text.len(), 0));
        self.rest = self.rest.get(end.saturating_add(token)..)?;
        Some((text.get(..end)?, token > 0))
    }
}
