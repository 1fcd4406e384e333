//! Request member `context_management`: parts of the history to hide from the model, and counts of
//! the parts that were cleared.

use super::source::{BodySource, Read, bad_tag, required};
use crate::json::{self, Str, ValueKind};
use crate::model::limits::Many;
use crate::text::names::NameSet;

/// Default number of input tokens above which tool uses are cleared.
const TRIGGER_TOKENS: u64 = 100_000;
/// Default number of tool uses that are kept.
const KEPT_TOOL_USES: u64 = 3;

/// Edits of the history that a request contains. The last of two edits of the same type wins.
#[derive(Debug, Default)]
pub(crate) struct ContextManagement<'a> {
    /// Number of the assistant's last turns that keep their thinking (`clear_thinking_20251015`);
    /// `None` if all turns keep their thinking.
    pub thinking_kept: Option<u64>,
    /// Edit `clear_tool_uses_20250919`, which clears old tool results.
    pub tool_uses: Option<ClearToolUses<'a>>,
    /// Index of the edit `compact_20260112` in `context_management.edits`.
    pub compaction_at: Option<usize>,
    /// True if the edit that clears thinking is not the first edit of `context_management.edits`.
    pub thinking_is_late: bool,
    /// True if an edit has an unknown type.
    pub has_unknown: bool,
}

/// Edit `clear_tool_uses_20250919`: the rules for clearing old tool uses.
#[derive(Debug)]
pub(crate) struct ClearToolUses<'a> {
    /// Threshold above which tool uses are cleared.
    pub trigger: Trigger,
    /// Number of the last tool uses that are kept.
    pub keep: u64,
    /// Minimum number of tokens to clear. If fewer could be cleared, the history stays unchanged.
    pub clear_at_least: u64,
    /// Names of tools whose uses are never cleared.
    pub exclude_tools: NameSet<'a>,
    /// Tools whose call inputs are cleared along with the tool results.
    pub inputs: Inputs<'a>,
}

/// Threshold above which tool uses are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// Threshold in tokens of the request.
    InputTokens(u64),
    /// Threshold in tool uses that are not cleared yet.
    ToolUses(u64),
}

/// Value of `clear_tool_inputs`: tools whose call inputs are cleared.
#[derive(Debug)]
pub(crate) enum Inputs<'a> {
    /// No inputs are cleared.
    Kept,
    /// Inputs of every tool are cleared.
    Cleared,
    /// Inputs of the tools with these names are cleared.
    Of(NameSet<'a>),
}

/// Counts of what was cleared from a request's history, with estimates in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Number of the assistant's turns that lost their thinking.
    pub thinking_turns: u64,
    /// Estimated number of tokens of the cleared thinking.
    pub thinking_tokens: u64,
    /// Number of tool uses that lost their result.
    pub tool_uses: u64,
    /// Estimated number of tokens of the cleared results and inputs.
    pub tool_tokens: u64,
}

impl Cleared {
    /// Returns the estimated number of tokens cleared from the history.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.thinking_tokens.saturating_add(self.tool_tokens)
    }
}

impl ContextManagement<'_> {
    /// Returns true if an edit can change what the model sees. Claude Code always asks to keep all
    /// thinking, an edit without effect.
    pub(crate) fn clears(&self) -> bool {
        self.thinking_kept.is_some() || self.tool_uses.is_some()
    }
}

impl Default for ClearToolUses<'_> {
    fn default() -> Self {
        Self {
            trigger: Trigger::InputTokens(TRIGGER_TOKENS),
            keep: KEPT_TOOL_USES,
            clear_at_least: 0,
            exclude_tools: NameSet::default(),
            inputs: Inputs::Kept,
        }
    }
}

impl<'a> BodySource<'a, '_> {
    /// Reads the value of the request member `context_management`.
    pub(super) fn context_management(&mut self) -> Read<ContextManagement<'a>> {
        let mut management = ContextManagement::default();
        self.object(|source, key| {
            if key != "edits" {
                return Ok(false);
            }
            let mut at = 0usize;
            source.array(Many::Fields, |source| {
                source.edit(at, &mut management)?;
                at = at.saturating_add(1);
                Ok(())
            })?;
            Ok(true)
        })?;
        Ok(management)
    }

    fn edit(&mut self, at: usize, management: &mut ContextManagement<'a>) -> Read<()> {
        match self.tag()?.decode().as_ref() {
            "clear_thinking_20251015" => {
                management.thinking_is_late |= at > 0;
                management.thinking_kept = self.clear_thinking()?;
            }
            "clear_tool_uses_20250919" => management.tool_uses = Some(self.clear_tool_uses()?),
            "compact_20260112" => {
                management.compaction_at = Some(at);
                self.skip()?;
            }
            _ => {
                management.has_unknown = true;
                self.skip()?;
            }
        }
        Ok(())
    }

    /// Reads a `clear_thinking` edit. Returns the number of turns that keep their thinking, or
    /// `None` if all turns do.
    fn clear_thinking(&mut self) -> Read<Option<u64>> {
        let mut kept = None;
        self.tagged(|source, key| {
            if key != "keep" {
                return Ok(false);
            }
            kept = match source.reader.kind()? {
                ValueKind::String => {
                    let start = source.reader.clone();
                    if source.reader.string()? != "all" {
                        source.reader = start;
                        return Err(json::Error::value("Input should be 'all'"));
                    }
                    None
                }
                _ if source.tag()? == "all" => source.skip().map(|_| None)?,
                _ => Some(source.amount(&["thinking_turns"], 1)?.1),
            };
            Ok(true)
        })?;
        Ok(kept)
    }

    fn clear_tool_uses(&mut self) -> Read<ClearToolUses<'a>> {
        let mut edit = ClearToolUses::default();
        self.tagged(|source, key| {
            match key {
                "trigger" => {
                    let (kind, value) = source.amount(&["input_tokens", "tool_uses"], 1)?;
                    edit.trigger = match kind {
                        0 => Trigger::InputTokens(value),
                        _ => Trigger::ToolUses(value),
                    };
                }
                "keep" => edit.keep = source.amount(&["tool_uses"], 0)?.1,
                "clear_at_least" => edit.clear_at_least = source.amount(&["input_tokens"], 0)?.1,
                "exclude_tools" => edit.exclude_tools = source.names()?,
                "clear_tool_inputs" if source.reader.kind()? == ValueKind::Array => {
                    edit.inputs = Inputs::Of(source.names()?);
                }
                "clear_tool_inputs" => {
                    edit.inputs =
                        if source.reader.bool()? { Inputs::Cleared } else { Inputs::Kept };
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(edit)
    }

    /// Reads an object `{"type": …, "value": …}`. Returns the index of the type in `kinds`, and the
    /// value, which must be at least `least`.
    fn amount(&mut self, kinds: &[&str], least: u64) -> Read<(usize, u64)> {
        let tag = self.tag()?;
        let Some(kind) = kinds.iter().position(|kind| tag == **kind) else {
            return Err(bad_tag(tag, &["'", &kinds.join("', '"), "'"].concat()));
        };
        let mut value = None;
        self.tagged(|source, key| {
            if key != "value" {
                return Ok(false);
            }
            let start = source.reader.clone();
            source.whole_number(&mut value)?;
            if value < Some(least) {
                source.reader = start;
                let words = format!("Input should be greater than or equal to {least}");
                return Err(json::Error::value(words));
            }
            Ok(true)
        })?;
        Ok((kind, required(value, "value")?))
    }

    fn names(&mut self) -> Read<NameSet<'a>> {
        let mut names = NameSet::default();
        self.array(Many::Fields, |source| {
            let name: Str<'a> = source.reader.string()?;
            names.add(name.decode());
            Ok(())
        })?;
        Ok(names)
    }
}
