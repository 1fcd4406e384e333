//! Guards that need to know the tools: the circuit breaker and the limit of tool turns.
//!
//! The modules `breaker` and `person` analyse the history. This module acts on the findings, as
//! configured: a note in a result, withheld tools, an answer without the upstream, or an error that
//! tells clients not to retry. A request without findings is not changed.

use crate::carry::tool_id::Outgoing;
use crate::config::{BreakerAction, Guards, ToolTurnsAction};
use crate::error::Error;
use crate::guards::breaker::{self, BreakerFindings, Stuck, Why};
use crate::guards::person;
use crate::history::rebuild;
use crate::json::{Reader, quote};
use crate::json_schema::input as tool_schema;
use crate::json_schema::input::ValidationBudget;
use crate::model::request_context::Withheld;
use crate::model::turn::{Turn, calls};
use crate::model::{Block, Text, ToolUse};
use crate::observe::warning::Warnings;
use crate::profile::Profile;
use crate::text::names::Names;
use crate::text::words;
use crate::tools::ToolSet;

/// Minimum length of a call's id that is searched in an error message, in bytes. A shorter id could
/// be any word.
const ID_BYTES_MIN: usize = 6;

/// Decisions of the guards on one request.
#[derive(Debug, Default)]
pub(crate) struct Guarded {
    pub(crate) notes: Vec<Note>,
    pub(crate) withheld: Withheld,
    /// Client's names of the withheld tools, unless all tools are withheld.
    pub(crate) names: Vec<String>,
    /// True if a withheld tool is not in the list of offered tools: a toolset's member, or a tool
    /// that the model made up.
    pub(crate) unoffered: bool,
    /// Text of an answer that is sent without asking the upstream.
    pub(crate) end: Option<String>,
}

/// Note for the model that is added to a tool result.
#[derive(Debug)]
pub(crate) struct Note {
    /// Index of the turn that holds the tool result.
    pub(crate) turn: usize,
    /// Index of the tool result among the results of its turn.
    pub(crate) result: usize,
    /// Text of the note, as a quoted JSON string.
    pub(crate) text: String,
}

impl Guarded {
    /// Inspects the repaired history, and removes the withheld tools from `tools`.
    ///
    /// # Errors
    ///
    /// A guard is configured to refuse the request.
    pub(crate) fn new(
        turns: &[Turn<'_>],
        tools: &mut ToolSet<'_>,
        settings: &Guards,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let mut guarded = Self::default();
        let breaks = settings.breaker.failures_max > 0;
        if !breaks && settings.tool_turns_max == 0 {
            return Ok(guarded);
        }
        if settings.tool_turns_max > 0 {
            let from = person::after_person(turns);
            guarded.limit_turns(person::tool_turns(turns, from), tools, settings, warnings)?;
        }
        if breaks && guarded.end.is_none() {
            let failures_max = settings.breaker.failures_max;
            let mut budget = ValidationBudget::default();
            let is_complete = |call: &ToolUse<'_>| is_complete(call, tools, &mut budget);
            let verdict = breaker::inspect(turns, failures_max, is_complete);
            guarded.act_on(&verdict, tools, settings, warnings)?;
        }
        Ok(guarded)
    }

    fn limit_turns(
        &mut self,
        turn: u32,
        tools: &mut ToolSet<'_>,
        settings: &Guards,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let most = settings.tool_turns_max;
        warnings.set_tool_turn(turn, most);
        if turn < most || tools.is_empty() {
            return Ok(());
        }
        warnings.acted("tool_turns");
        match settings.tool_turns_action {
            ToolTurnsAction::WindDown => self.must_answer(tools),
            ToolTurnsAction::End => {
                self.end = Some(format!(
                    "Stopped after {turn} turns with tool calls: this gateway allows {most} between \
                     two messages of a person (guards.tool_turns_max)."
                ));
            }
            ToolTurnsAction::Error => {
                return Err(deterministic(&format!(
                    "There were {turn} turns with tool calls since the last message of a person, \
                     and this gateway allows {most} (guards.tool_turns_max)"
                )));
            }
        }
        Ok(())
    }

    /// Withholds all tools but those that give the final answer, so that the model must answer.
    fn must_answer(&mut self, tools: &mut ToolSet<'_>) {
        let can_by_tool = tools.leave_answer_tools();
        self.withheld = if can_by_tool { Withheld::Unsent } else { Withheld::All };
    }

    /// Withholds a tool, given the upstream's names and the client's name.
    fn withhold(&mut self, outgoing: Vec<String>, name: String) {
        match &mut self.withheld {
            Withheld::Unsent | Withheld::All | Withheld::Forbidden => {}
            Withheld::These(known) => known.extend(outgoing),
            Withheld::Nothing => self.withheld = Withheld::These(outgoing),
        }
        self.names.push(name);
    }

    fn withholds(&self, name: &str) -> bool {
        matches!(self.withheld, Withheld::Unsent | Withheld::All)
            || self.names.iter().any(|known| known == name)
    }

    /// Writes the notes for tool results.
    fn write_notes(&mut self, notes: &[breaker::NotePosition<'_>], tools: &ToolSet<'_>) {
        // The list of required members is made once for each tool, because there can be as many
        // notes as results.
        let mut known: Names<'_, String> = Names::default();
        for note in notes {
            let name = &*note.stuck.name;
            if !known.contains(name) {
                known.insert(name, tools.schema_of(name).and_then(required).unwrap_or_default());
            }
            let required = known.get(name).map_or("", String::as_str);
            let mut text = Vec::new();
            quote(&mut text, &breaker::note(&note.stuck, required));
            // Quoted text is valid UTF-8.
            let text = String::from_utf8(text).unwrap_or_default();
            self.notes.push(Note { turn: note.turn, result: note.result, text });
        }
    }

    fn act_on(
        &mut self,
        verdict: &BreakerFindings<'_>,
        tools: &mut ToolSet<'_>,
        settings: &Guards,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        self.write_notes(&verdict.notes, tools);
        for stuck in &verdict.stuck {
            warnings.acted("breaker");
            match stuck.why {
                Why::Failing => warnings.add_named("tool_failing", &stuck.name),
                Why::Repeating => warnings.add_named("tool_repeating", &stuck.name),
            }
        }
        let breaker = &settings.breaker;
        let is_open = |stuck: &&Stuck<'_>| {
            let patience = stuck.news.min(breaker.withhold_after);
            stuck.reaches(breaker.withhold_after.saturating_add(patience))
        };
        for stuck in verdict.stuck.iter().filter(is_open) {
            let toolset = stuck.toolset.as_deref();
            self.unoffered |= toolset.is_some();
            let offered = tools.withhold(&stuck.name, toolset);
            let was_offered = offered.is_some();
            let names = match offered {
                Some(outgoing) => vec![outgoing],
                // The tool may be stuck for both reasons; it is already withheld.
                None if self.withholds(&stuck.name) => continue,
                // The tool does not exist, but the model calls it, by an invented name or by a name
                // from the history.
                None => {
                    self.unoffered = true;
                    let outgoing = tools.outgoing_name(&stuck.name, toolset).into_owned();
                    vec![outgoing, stuck.name.clone().into_owned()]
                }
            };
            match breaker.action {
                BreakerAction::Error => {
                    return Err(deterministic(&format!(
                        "{stuck}, and the circuit breaker of this gateway is open \
                         (guards.breaker)"
                    )));
                }
                // A tool that is not offered cannot be withdrawn: opencode records each malformed
                // call as a call of a tool `invalid`, and the model repeats the call of the
                // original tool.
                BreakerAction::Withhold
                    if !was_offered && stuck.reaches(breaker.withhold_after.saturating_mul(2)) =>
                {
                    self.must_answer(tools);
                }
                BreakerAction::Answer => self.must_answer(tools),
                BreakerAction::Withhold => {}
            }
            self.withhold(names, stuck.name.clone().into_owned());
            warnings.add_named("tool_withheld", &stuck.name);
        }
        Ok(())
    }
}

/// Returns an error for a request that would fail again, with the advice not to retry.
fn deterministic(what: &str) -> Error {
    Error::invalid(format!("{what}. failure_class=deterministic")).with_should_retry(false)
}

/// Appends the notes to their tool results.
pub(crate) fn annotate<'n>(turns: &mut [Turn<'n>], notes: &'n [Note]) {
    for note in notes {
        let Some(Turn::User(user)) = turns.get_mut(note.turn) else { continue };
        let Some(result) = user.results.get_mut(note.result) else { continue };
        let Ok(text) = Reader::new(&note.text, 1).string() else { continue };
        // The result may have the note already, from another Creole in between or from a client
        // that stores what was sent.
        let says = |block: &Block<'_>| matches!(block, Block::Text(known) if known.text == text);
        if result.content.iter().any(says) {
            continue;
        }
        result.content.push(Block::Text(Text { text, cached: None, citations: None }));
    }
}

/// Replaces tool calls by text: the calls that an upstream's error names, or all calls if the error
/// names none.
pub(crate) fn without_refused<'a>(
    turns: Vec<Turn<'a>>,
    tools: &ToolSet<'_>,
    profile: &Profile,
    refusal: &str,
) -> Vec<Turn<'a>> {
    let mut ids = Outgoing::new(profile.id_style, profile.max_id_length);
    let mut named = Vec::new();
    for turn in &turns {
        let Turn::Assistant(blocks) = turn else { continue };
        ids.begin_message();
        for call in calls(blocks) {
            let name = tools.outgoing_name_of(call);
            let outgoing = ids.id(call.id.decode(), &name);
            let is_named = || words::names(refusal, outgoing).next().is_some();
            if outgoing.len() >= ID_BYTES_MIN && is_named() {
                named.push(call.id.decode().into_owned());
            }
        }
    }
    rebuild::without_calls(turns, |call| {
        named.is_empty() || named.iter().any(|id| call.id == id.as_str())
    })
}

/// Returns true if the input of a call has all required members of the tool's schema.
fn is_complete(call: &ToolUse<'_>, tools: &ToolSet<'_>, budget: &mut ValidationBudget) -> bool {
    let schema = tools.schema_of(&call.name.decode()).filter(|_| call.toolset.is_none());
    schema.is_none_or(|schema| tool_schema::has_required(schema, &call.input, budget))
}

/// Maximum length of the list of `required` names in a note, in bytes.
const REQUIRED_BYTES_MAX: usize = 1024;

/// Returns the names in `required` of a schema, as a list that is truncated if long.
fn required(schema: &str) -> Option<String> {
    let mut reader = Reader::of(schema);
    let mut names = String::new();
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key != "required" {
            reader.skip().ok()?;
            continue;
        }
        reader.begin_array().ok()?;
        while reader.next_element().ok()? {
            let name = reader.string().ok()?.decode();
            if names.len().saturating_add(name.len()) > REQUIRED_BYTES_MAX {
                names.push('…');
                return Some(names);
            }
            if !names.is_empty() {
                names.push_str(", ");
            }
            names.push_str(&name);
        }
    }
    Some(names)
}
