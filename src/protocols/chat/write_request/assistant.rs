//! Writes the assistant's turns of the conversation: text, reasoning and tool calls in one message.

use super::messages::MessageWriter;
use super::thinking::TurnReasoning;
use crate::carry::signature::{self, SignaturePlace};
use crate::error::Error;
use crate::json::{Writer, escape};
use crate::model::turn::{User, calls};
use crate::model::{Block, ToolResult, ToolUse};
use crate::profile::{EmptyAssistantContent, Prefill, ToolSchema};
use crate::protocols::words::end_text;

/// Google's placeholder for the signature of a call that Gemini did not sign. Gemini 3 refuses a
/// message whose first call has neither a signature nor the placeholder, for example after a change
/// of models.
const UNSIGNED: &str = "skip_thought_signature_validator";

impl<'a> MessageWriter<'_, 'a> {
    /// Writes a turn of the assistant. If the upstream accepts only one call in a message, each
    /// call except the last is followed by its result here.
    pub(crate) fn assistant(
        &mut self,
        blocks: &[Block<'a>],
        next: Option<&mut User<'a>>,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let all: Vec<&ToolUse<'a>> = calls(blocks).collect();
        let Some((last, others)) = all
            .split_last()
            .filter(|(_, others)| self.profile().single_tool_call && !others.is_empty())
        else {
            return self.assistant_message(blocks, &all, json);
        };
        let mut content = blocks;
        let mut no_results = Vec::new();
        let results = next.map_or(&mut no_results, |user| &mut user.results);
        // The results stand in the order of the calls (`pairs::order`), so the search for a result
        // begins after the previous result.
        let mut waiting: Vec<_> = std::mem::take(results).into_iter().map(Some).collect();
        let mut places = waiting.iter_mut();
        for call in others {
            self.assistant_message(content, &[call], json)?;
            content = &[];
            let has_id = |it: &ToolResult<'_>| it.id == call.id;
            let ahead = places.as_slice().iter().position(|it| it.as_ref().is_some_and(has_id));
            if let Some(result) = ahead.and_then(|at| places.nth(at)?.take()) {
                self.tool(result, &[], json)?;
            }
        }
        results.extend(waiting.into_iter().flatten());
        self.assistant_message(content, &[last], json)
    }

    fn assistant_message(
        &mut self,
        blocks: &[Block<'a>],
        calls: &[&ToolUse<'a>],
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let reasoning = TurnReasoning::of(blocks);
        let sent = reasoning.sent_bytes(self.profile());
        let bytes = self.written.reasoning_bytes.saturating_add(sent);
        self.written.reasoning_bytes = bytes;
        json.begin_object().key("role").text("assistant");
        self.assistant_content(blocks, &reasoning, !calls.is_empty(), json)?;
        reasoning.write(self.profile(), !calls.is_empty() || !self.tools.is_empty(), json);
        if !calls.is_empty() {
            self.ids.begin_message();
            json.key("tool_calls").begin_array();
            for (at, call) in calls.iter().enumerate() {
                self.tool_call(call, at == 0, &reasoning, json)?;
            }
            json.end_array();
        } else if self.is_last && self.profile().prefill == Prefill::Prefix {
            json.key("prefix").bool(true);
        }
        json.end_object();
        Ok(())
    }

    fn assistant_content(
        &mut self,
        blocks: &[Block<'a>],
        reasoning: &TurnReasoning<'a>,
        has_calls: bool,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let before = json.out().len();
        json.key("content");
        if reasoning.is_content(self.profile()) {
            json.begin_array();
            reasoning.write_parts(json);
            let from = json.out().len();
            self.words.begin_text(json);
            let start = json.out().len();
            self.push_assistant_text(json.out(), blocks)?;
            if json.out().len() > start {
                end_text(json, None);
            } else {
                json.out().truncate(from);
            }
            json.end_array();
            return Ok(());
        }
        json.value().out().push(b'"');
        let start = json.out().len();
        // vLLM looks in the prompt for the whole text that is to be continued; chat templates
        // remove reasoning from that text.
        let is_continued =
            self.is_last && !has_calls && self.profile().prefill == Prefill::Continue;
        if reasoning.is_in_text(self.profile()) && !is_continued {
            reasoning.push_in_text(json.out());
        }
        self.push_assistant_text(json.out(), blocks)?;
        json.out().push(b'"');
        if json.out().len() > start.saturating_add(1) {
            return Ok(());
        }
        json.out().truncate(before);
        let is_text = self.profile().empty_assistant_content == EmptyAssistantContent::Empty;
        self.written.silent_calls |= has_calls && !is_text;
        match self.profile().empty_assistant_content {
            EmptyAssistantContent::Null if has_calls => {
                json.key("content").null();
            }
            EmptyAssistantContent::Absent if has_calls => {}
            // A message without calls must have a `content`.
            _ => {
                json.key("content").text("");
            }
        }
        Ok(())
    }

    /// Joins the texts of a turn without a gap, because the stream was cut into blocks without a
    /// gap. The texts of two messages are joined with an empty line.
    fn push_assistant_text(&self, out: &mut Vec<u8>, blocks: &[Block<'a>]) -> Result<(), Error> {
        let start = out.len();
        let (mut own_line, mut own_message) = (false, false);
        for block in blocks {
            let is_prose = matches!(block, Block::Text(_));
            own_message |= matches!(block, Block::Note);
            if matches!(block, Block::ToolUse(_) | Block::Thinking { .. } | Block::Note) {
                continue;
            }
            let before = out.len();
            if before > start {
                let gap = match (own_message, own_line || !is_prose) {
                    (true, _) => "\n\n",
                    (_, true) => "\n",
                    _ => "",
                };
                escape(out, gap);
            }
            let from = out.len();
            self.words.push_said(out, block)?;
            if out.len() == from {
                out.truncate(before);
            } else {
                (own_line, own_message) = (!is_prose, false);
            }
        }
        Ok(())
    }

    fn tool_call(
        &mut self,
        call: &ToolUse<'a>,
        is_first: bool,
        reasoning: &TurnReasoning<'a>,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        json.make_room();
        let of_gemini = self.profile().tool_schema == ToolSchema::Gemini;
        let name = call.name.decode();
        let outgoing = self.tools.outgoing_name_of(call);
        let client_id = call.id.decode();
        let id = self.ids.id(client_id.clone(), &outgoing);
        if self.words.profile.tool_result_name {
            self.called.insert(id.to_owned(), outgoing.clone().into_owned());
        }
        let signature = reasoning.signature_of(&client_id);
        let unsigned = || (is_first && of_gemini).then_some((SignaturePlace::Google, UNSIGNED));
        let signature = signature.map(signature::place_of).or_else(unsigned);
        json.begin_object().key("id").text(id).kind("function");
        json.key("function").begin_object().key("name").text(&outgoing);
        json.key("arguments");
        self.words.write_arguments(call, self.tools.schema_of(&name), self.warnings, json)?;
        if let Some((SignaturePlace::Function, signature)) = signature {
            json.key("thought_signature").text(signature);
        }
        json.end_object();
        match signature {
            None | Some((SignaturePlace::Function, _)) => {}
            Some((SignaturePlace::Call, signature)) => {
                json.key("thought_signature").text(signature);
            }
            Some((place, signature)) => {
                json.key("extra_content").begin_object();
                json.key(if place == SignaturePlace::Vertex { "vertex" } else { "google" })
                    .begin_object();
                json.key("thought_signature").text(signature).end_object().end_object();
            }
        }
        json.end_object();
        Ok(())
    }
}
