//! The circuit breaker and the limit of tool turns, for a request that goes up as it came.
//!
//! Guards decide as for any upstream (`guards::loops`). Their decision is then put into the text of
//! the request: a word of warning is one more text in its result, and a tool that is withheld
//! leaves `tools`. If the model must answer, `tools` stays and `tool_choice` becomes `none`,
//! because the API rejects calls in the history whose tools are not defined. So does a withheld
//! tool that cannot be removed.
//!
//! Claude's thinking is bound to all that came before it: the API refuses a request in which
//! `tools` or an earlier message differ from what they were. There nothing is added that would be
//! gone later, and `tools` stays.
//!
//! A guard needs calls, results, words and the names of tools; all else is passed over, since this
//! API has more than Creole translates. A request that cannot even be read so far is left alone,
//! and says so.

use std::borrow::Cow;

use super::{Edit, edited, offset};
use crate::carry::marks::Marks;
use crate::config::{Guards, Pairing};
use crate::error::Error;
use crate::guards::loops::Guarded;
use crate::history::{History, Recipient};
use crate::json::{self, Error as JsonError, Reader, Str, ValueKind};
use crate::model::request_context::Withheld;
use crate::model::tool::{Target, ToolChange};
use crate::model::turn::Turn;
use crate::model::{Block, Request};
use crate::observe::warning::Warnings;
use crate::profile::Profile;
use crate::text::names::{NameSet, Names};
use crate::text::words;
use crate::tools::{self, ToolRequest, ToolSet};

const NONE: &str = r#"{"type":"none"}"#;
const AUTO: &str = r#"{"type":"auto"}"#;
const AUTO_ONE: &str = r#"{"type":"auto","disable_parallel_tool_use":true}"#;

/// Model and profile of the upstream that a request goes to.
#[derive(Clone, Copy)]
pub(super) struct To<'t> {
    /// Model name sent to the upstream.
    pub(super) model: &'t str,
    pub(super) profile: &'t Profile,
    /// True if the history was checked and repaired before, so that its calls and results form
    /// pairs.
    pub(super) is_paired: bool,
}

/// Parts of a request that guards need.
struct Conversation<'a> {
    turns: Vec<Turn<'a>>,
    tools: ToolSet<'a>,
    /// The names of tools that the conversation refers to, which must stay in `tools`.
    referred: NameSet<'a>,
}

impl<'a> Conversation<'a> {
    /// Reads a request; nothing where it cannot be read so far.
    fn read(mut request: Request<'a>, to: To<'_>, pairing: Pairing) -> Option<Self> {
        let To { profile, is_paired, .. } = to;
        // Warnings of what is only looked at are of no use to the client.
        let mut unreported = Warnings::new(false);
        let mut messages = std::mem::take(&mut request.messages);
        for message in &mut messages {
            let of_others =
                |block: &Block<'_>| matches!(block, Block::ContainerUpload | Block::Unknown(_));
            message.content.retain(|block| !of_others(block));
        }
        let recipient =
            Recipient { profile, marks: &Marks::default(), keeps_ids: false, takes_items: false };
        let mut history = History::read(messages, recipient, &mut unreported).ok()?;
        history.repair(if is_paired { Pairing::Off } else { pairing }, &mut unreported);
        // The API refuses references to what is not in `tools`, and an added definition is not
        // there.
        let mut referred = history.activated;
        history.changes.retain(|change| {
            let name = match change {
                ToolChange::Define(definition) => definition.name.clone(),
                ToolChange::Add(reference) | ToolChange::Remove(reference) => {
                    match &reference.target {
                        Target::Tool(name) => Some(name.clone()),
                        _ => None,
                    }
                }
            };
            if let Some(name) = name {
                referred.add(name);
            }
            matches!(change, ToolChange::Define(_))
        });
        // Whatever else a tool is, it has a name and perhaps a schema.
        request.tools.retain_mut(|tool| {
            tool.defer_loading = false;
            tool.uncallable = false;
            let of_client = tools::is_of_client(&tool.tool_type);
            if !of_client {
                tool.tool_type = Cow::Borrowed("");
            }
            of_client || tool.name.is_some()
        });
        let requested = ToolRequest {
            // Its errors are not reported.
            body: "",
            definitions: request.tools,
            changes: history.changes,
            history_has_calls: true,
            ..ToolRequest::default()
        };
        let tools = ToolSet::new(requested, profile, &mut unreported).ok()?;
        Some(Self { turns: history.turns, tools, referred })
    }
}

/// Decisions of the guards, to be written into the body of a request.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// Ids of calls, and what is added to their results, as JSON strings.
    notes: Vec<(String, String)>,
    /// The client's names of the tools that are withheld.
    names: Vec<String>,
    /// True if a withheld tool cannot leave `tools`, so that none leaves.
    stays: bool,
    pub(super) withheld: Withheld,
    /// Text of an answer that needs no upstream.
    pub(super) end: Option<String>,
}

impl Edits {
    /// # Errors
    /// A guard is set to refuse.
    pub(super) fn new(
        request: Option<Request<'_>>,
        to: To<'_>,
        settings: &Guards,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let thinks = request.as_ref().is_some_and(has_thinking);
        let is_bound = words::has(to.model, "claude") && thinks;
        let read = request.and_then(|request| Conversation::read(request, to, settings.pairing));
        let Some(mut read) = read else { return Ok(Self::skipped(settings, warnings)) };
        let before = warnings.clone();
        let mut guarded = Guarded::new(&read.turns, &mut read.tools, settings, warnings)?;
        if is_bound {
            guarded.notes.clear();
            if guarded.withheld == Withheld::Nothing && guarded.end.is_none() {
                // No guard has acted.
                *warnings = before;
            }
        }
        let mut notes = Vec::new();
        for note in guarded.notes {
            if let Some(Turn::User(user)) = read.turns.get(note.turn)
                && let Some(result) = user.results.get(note.result)
            {
                notes.push((result.id.decode().into_owned(), note.text));
            }
        }
        let is_referred = |name: &String| read.referred.contains(name.as_str());
        Ok(Self {
            stays: guarded.unoffered
                || is_bound && !guarded.names.is_empty()
                || guarded.names.iter().any(is_referred),
            notes,
            names: guarded.names,
            // It wants the definitions of all tools that were called.
            withheld: match guarded.withheld {
                Withheld::Unsent => Withheld::All,
                withheld => withheld,
            },
            end: guarded.end,
        })
    }

    /// Returns no decisions, because the request cannot be read; warns if a guard is switched on.
    fn skipped(settings: &Guards, warnings: &mut Warnings) -> Self {
        if settings.breaker.failures_max > 0 || settings.tool_turns_max > 0 {
            warnings.add("guards_skipped");
        }
        Self::default()
    }

    /// Returns the body with the guards' decisions written into it.
    pub(super) fn apply(&self, body: String) -> String {
        if self.notes.is_empty() && self.withheld == Withheld::Nothing {
            return body;
        }
        // It was read before.
        let edits = self.edits(&body).unwrap_or_default();
        String::from_utf8(edited(&body, edits)).unwrap_or_default()
    }

    fn edits(&self, body: &str) -> Result<Vec<Edit>, JsonError> {
        let mut edits = Vec::new();
        let (mut tools, mut choice) = (None, None);
        let mut reader = Reader::of(body);
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let value = reader.skip()?;
            match key.decode().as_ref() {
                "messages" => self.annotate(body, value, &mut edits)?,
                "tools" => tools = Some(value),
                "tool_choice" => choice = Some(value),
                _ => {}
            }
        }
        // Without tools there is nothing to choose from.
        let mut none = self.withheld == Withheld::All || self.stays && tools.is_some();
        if let (Some(tools), Withheld::These(_), false) = (tools, &self.withheld, none) {
            let kept = self.kept(tools)?;
            // A request with calls must have tools.
            none = kept.is_empty();
            if !none {
                edits.push(Edit::replace(body, tools, format!("[{}]", kept.join(","))));
            }
        }
        match choice {
            Some(choice) if none => edits.push(Edit::replace(body, choice, NONE.to_owned())),
            Some(choice) if self.names_withheld(choice) => {
                let one = json::member(choice, "disable_parallel_tool_use") == Some("true");
                let auto = if one { AUTO_ONE } else { AUTO };
                edits.push(Edit::replace(body, choice, auto.to_owned()));
            }
            None if none => {
                let end = body.trim_end().len().saturating_sub(1);
                edits.push(Edit::insert(end, format!(",\"tool_choice\":{NONE}")));
            }
            _ => {}
        }
        Ok(edits)
    }

    /// Returns the tools that are not withheld.
    fn kept<'b>(&self, tools: &'b str) -> Result<Vec<&'b str>, JsonError> {
        let mut kept = Vec::new();
        let mut reader = Reader::of(tools);
        reader.begin_array()?;
        while reader.next_element()? {
            let tool = reader.skip()?;
            if !self.names_withheld(tool) {
                kept.push(tool);
            }
        }
        Ok(kept)
    }

    /// Returns true if a tool, or a choice, has the name of a tool that is withheld.
    fn names_withheld(&self, object: &str) -> bool {
        member(object, "name").is_some_and(|name| self.names.iter().any(|known| name == **known))
    }

    /// Adds the words of warning, each to the last result of its call.
    fn annotate(&self, body: &str, messages: &str, edits: &mut Vec<Edit>) -> Result<(), JsonError> {
        // Ids can repeat. Then the last result with one gets the last note about it: two notes in
        // one place would break the body.
        let mut found: Names<'_, (&str, Option<&str>)> = Names::default();
        for (id, text) in &self.notes {
            found.insert(id.as_str(), (text, None));
        }
        let mut reader = Reader::of(messages);
        reader.begin_array()?;
        while reader.next_element()? {
            let Some(content) = json::member(reader.skip()?, "content") else { continue };
            let mut blocks = Reader::of(content);
            if blocks.kind()? != ValueKind::Array {
                continue;
            }
            blocks.begin_array()?;
            while blocks.next_element()? {
                let block = blocks.skip()?;
                let Some(id) = member(block, "tool_use_id") else { continue };
                if let Some((_, place)) = found.get_mut(&id.decode()) {
                    *place = Some(block);
                }
            }
        }
        // `found` was filled in the order of the conversation.
        for (text, block) in found.values_mut() {
            // Behind another Creole, or with a client that keeps what was sent, the words are there
            // already.
            if let Some(block) = block.filter(|block| !words::has(block, text)) {
                edits.push(with_text(body, block, text));
            }
        }
        Ok(())
    }
}

/// Whether a model has thought in the conversation.
pub(super) fn has_thinking(request: &Request<'_>) -> bool {
    let is_thinking =
        |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking(_));
    request.messages.iter().any(|message| message.content.iter().any(is_thinking))
}

/// Adds one more text to a result.
fn with_text(body: &str, result: &str, text: &str) -> Edit {
    let text = format!("{{\"type\":\"text\",\"text\":{text}}}");
    let Some(content) = json::member(result, "content") else {
        let start = offset(body, result).saturating_add(1);
        return Edit::insert(start, format!("\"content\":[{text}],"));
    };
    let inside = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(inside) = inside {
        let end = offset(body, inside).saturating_add(inside.len());
        let comma = if inside.trim_ascii().is_empty() { "" } else { "," };
        return Edit::insert(end, format!("{comma}{text}"));
    }
    let is_text = content.starts_with('"') && content != "\"\"";
    let first =
        if is_text { format!("{{\"type\":\"text\",\"text\":{content}}},") } else { String::new() };
    Edit::replace(body, content, format!("[{first}{text}]"))
}

/// Returns a member of an object, if it is a string.
fn member<'b>(object: &'b str, name: &str) -> Option<Str<'b>> {
    Reader::new(json::member(object, name)?, 1).string().ok()
}
