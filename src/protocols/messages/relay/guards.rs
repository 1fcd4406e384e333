//! Guards against endless tool calls (the circuit breaker and the limit of tool turns) for a
//! request to an upstream of the Messages API.
//!
//! Guards decide as for any upstream (`guards::loops`). The decision is then edited into the body:
//! a warning is added as a text to its tool result, and a withheld tool is removed from `tools`. If
//! the model must answer without a tool, `tools` stays and `tool_choice` becomes `none`, because
//! the API rejects calls in the history whose tools are not defined. A withheld tool that cannot be
//! removed has the same effect.
//!
//! Claude's thinking is bound to the messages and tools before it: the API refuses a request whose
//! `tools` or earlier messages have changed. In such a conversation no temporary text is added, and
//! `tools` stays.
//!
//! Guards need only calls, results, texts and names of tools. Further content is skipped, since
//! this API has more features than Creole translates. A request that cannot be parsed is left
//! unchanged, with a warning.

use std::borrow::Cow;

use super::without::text;
use super::{Edit, edited, range};
use crate::carry::marks::Marks;
use crate::config::Guards;
use crate::error::Error;
use crate::guards::loops::Guarded;
use crate::history::{History, Recipient, pairs};
use crate::json;
use crate::model::own_tool::ToolsRunHere;
use crate::model::request_context::Withheld;
use crate::model::tool::{ReferencedTool, ToolChange};
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

/// Model and profile of the upstream to which a request is sent.
#[derive(Clone, Copy)]
pub(super) struct GuardedTarget<'t> {
    /// Model name sent to the upstream.
    pub(super) model: &'t str,
    pub(super) profile: &'t Profile,
}

/// Parts of a request that guards against endless tool calls need.
struct GuardedRequest<'a> {
    turns: Vec<Turn<'a>>,
    tools: ToolSet<'a>,
    /// Names of tools that the conversation refers to, which must stay in `tools`.
    referred: NameSet<'a>,
}

impl<'a> GuardedRequest<'a> {
    /// Reads the parts of a request that the guards need. Returns `None` if the request cannot be
    /// read. Its history is already repaired.
    fn read(mut request: Request<'a>, to: GuardedTarget<'_>) -> Option<Self> {
        let profile = to.profile;
        // Warnings about content that is only inspected are of no use to the client.
        let mut unreported = Warnings::new(false);
        let mut messages = std::mem::take(&mut request.messages);
        for message in &mut messages {
            let of_others =
                |block: &Block<'_>| matches!(block, Block::ContainerUpload | Block::Unknown(_));
            message.content.retain(|block| !of_others(block));
        }
        let recipient = Recipient {
            profile,
            marks: &Marks::default(),
            keeps_ids: false,
            takes_items: false,
            // Nothing is run here for an upstream that speaks Messages.
            runs: ToolsRunHere::default(),
        };
        let mut history = History::read(messages, recipient, &mut unreported).ok()?;
        pairs::order(&mut history.turns);
        // The API refuses references to tools outside of `tools`, such as tools defined within the
        // conversation.
        let mut referred = history.activated;
        history.changes.retain(|change| {
            let name = match change {
                ToolChange::Define(definition) => definition.name.clone(),
                ToolChange::Add(reference) | ToolChange::Remove(reference) => {
                    match &reference.target {
                        ReferencedTool::Tool(name) => Some(name.clone()),
                        _ => None,
                    }
                }
            };
            if let Some(name) = name {
                referred.add(name);
            }
            matches!(change, ToolChange::Define(_))
        });
        // A tool of any type has a name and perhaps a schema.
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
            runs: ToolsRunHere::default(),
            // Errors of this call are not reported, so no paths are needed.
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

/// Decisions of the guards, such as tools to withhold and warnings to add, to be edited into a
/// request body.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// Ids of calls, each with the text that is added to the call's result, as a JSON string.
    notes: Vec<(String, String)>,
    /// Names of the tools that a guard withholds, as the client knows these names.
    names: Vec<String>,
    /// True if a withheld tool cannot be removed from `tools`, so that all tools stay.
    stays: bool,
    pub(super) withheld: Withheld,
    /// Text of an answer without an upstream call, if a guard ends the conversation.
    pub(super) end: Option<String>,
}

impl Edits {
    /// Makes the guards' decisions on a request, or no decisions if the request cannot be parsed.
    ///
    /// # Errors
    /// A guard is configured to refuse the request.
    pub(super) fn new(
        request: Option<Request<'_>>,
        to: GuardedTarget<'_>,
        settings: &Guards,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let thinks = request.as_ref().is_some_and(has_thinking);
        let is_bound = words::has(to.model, "claude") && thinks;
        let read = request.and_then(|request| GuardedRequest::read(request, to));
        let Some(mut read) = read else { return Ok(Self::skipped(settings, warnings)) };
        let before = warnings.clone();
        let mut guarded = Guarded::new(&read.turns, &mut read.tools, settings, warnings)?;
        if is_bound {
            guarded.notes.clear();
            if guarded.withheld == Withheld::Nothing && guarded.end.is_none() {
                // The guards have not acted.
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
            // The API requires the definitions of all tools that were called.
            withheld: match guarded.withheld {
                Withheld::Unsent => Withheld::All,
                withheld => withheld,
            },
            end: guarded.end,
        })
    }

    /// Returns no decisions, because the request cannot be parsed. Warns if a guard is configured.
    fn skipped(settings: &Guards, warnings: &mut Warnings) -> Self {
        if settings.breaker.failures_max > 0 || settings.tool_turns_max > 0 {
            warnings.add("guards_skipped");
        }
        Self::default()
    }

    /// Returns the request body after applying the guards' decisions.
    pub(super) fn apply(&self, body: String) -> String {
        if self.notes.is_empty() && self.withheld == Withheld::Nothing {
            return body;
        }
        edited(&body, self.edits(&body))
    }

    fn edits(&self, body: &str) -> Vec<Edit> {
        let mut edits = Vec::new();
        let (mut tools, mut choice) = (None, None);
        for (key, value) in json::members(body) {
            match key.decode().as_ref() {
                "messages" => self.annotate(body, value, &mut edits),
                "tools" => tools = Some(value),
                "tool_choice" => choice = Some(value),
                _ => {}
            }
        }
        // A `tool_choice` makes no sense if the request has no tools.
        let mut none = self.withheld == Withheld::All || self.stays && tools.is_some();
        if let (Some(tools), Withheld::These(_), false) = (tools, &self.withheld, none) {
            let tool = json::elements(tools);
            let kept: Vec<_> = tool.filter(|tool| !self.names_withheld(tool)).collect();
            // A request with calls in its history must have tools.
            none = kept.is_empty();
            if !none {
                edits.push((range(body, tools), format!("[{}]", kept.join(","))));
            }
        }
        match choice {
            Some(choice) if none => edits.push((range(body, choice), NONE.to_owned())),
            Some(choice) if self.names_withheld(choice) => {
                let one = json::member(choice, "disable_parallel_tool_use") == Some("true");
                let auto = if one { AUTO_ONE } else { AUTO };
                edits.push((range(body, choice), auto.to_owned()));
            }
            None if none => {
                let end = body.trim_end().len().saturating_sub(1);
                edits.push((end..end, format!(",\"tool_choice\":{NONE}")));
            }
            _ => {}
        }
        edits
    }

    /// Returns true if a tool or a `tool_choice` has the name of a withheld tool.
    fn names_withheld(&self, object: &str) -> bool {
        text(object, "name").is_some_and(|name| self.names.iter().any(|known| name == **known))
    }

    /// Adds the guards' warnings, each to the last result of its call.
    fn annotate(&self, body: &str, messages: &str, edits: &mut Vec<Edit>) {
        // Ids can repeat. Then the last result with the id gets the last warning for the id: two
        // edits at one position would break the body.
        let mut found: Names<'_, (&str, Option<&str>)> = Names::default();
        for (id, text) in &self.notes {
            found.insert(id.as_str(), (text, None));
        }
        for message in json::elements(messages) {
            for block in json::elements(json::member(message, "content").unwrap_or_default()) {
                let Some(id) = text(block, "tool_use_id") else { continue };
                if let Some((_, place)) = found.get_mut(&id) {
                    *place = Some(block);
                }
            }
        }
        // The order in `found` is the order of the conversation.
        for (text, block) in found.values_mut() {
            // The warning is already present if a second Creole added it, or if the client keeps
            // the upstream's view of the history.
            if let Some(block) = block.filter(|block| !words::has(block, text)) {
                edits.push(with_text(body, block, text));
            }
        }
    }
}

/// Returns true if the conversation has a thinking block.
pub(super) fn has_thinking(request: &Request<'_>) -> bool {
    let is_thinking =
        |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking(_));
    request.messages.iter().any(|message| message.content.iter().any(is_thinking))
}

/// Returns the edit that adds a text block to a tool result.
fn with_text(body: &str, result: &str, text: &str) -> Edit {
    let text = format!("{{\"type\":\"text\",\"text\":{text}}}");
    let Some(content) = json::member(result, "content") else {
        let start = range(body, result).start.saturating_add(1);
        return (start..start, format!("\"content\":[{text}],"));
    };
    let inside = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(inside) = inside {
        let end = range(body, inside).end;
        let comma = if inside.trim_ascii().is_empty() { "" } else { "," };
        return (end..end, format!("{comma}{text}"));
    }
    let is_text = content.starts_with('"') && content != "\"\"";
    let first =
        if is_text { format!("{{\"type\":\"text\",\"text\":{content}}},") } else { String::new() };
    (range(body, content), format!("[{first}{text}]"))
}
