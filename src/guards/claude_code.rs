//! What Claude Code (2.1) writes into a conversation by itself, from its code: nobody marks it.

use crate::json::{self, Str};
use crate::model::{Block, ToolResult};

/// What Claude Code says beside the result of a search for tools.
pub(crate) const TOOL_LOADED: &str = "Tool loaded.";

/// How texts begin that Claude Code (2.1) writes by itself, from its code: most of them where an answer had no text,
/// was cut off or had a call in it that nobody could read. It drops that answer, so that they come to stand beside
/// the results before it. The last ones are from a hook that did not let it stop, and from Cline and Roo Code.
pub(crate) const NUDGES: [&str; 8] = [
    "[Your previous response had no visible output.",
    "Your tool call was malformed and could not be parsed.",
    "The previous response failed to produce a valid tool call.",
    "Output token limit hit. Resume directly",
    "Your response above was cut off mid-stream. Resume directly",
    NOTIFIED,
    "Stop hook feedback:",
    "[ERROR] You did not use a tool in your previous response!",
];

/// How texts begin that it writes beside results: what became of an image, and the text of a skill.
pub(crate) const BESIDE_RESULTS: [&str; 3] =
    ["[Image: original ", "[Image: source: ", "Base directory for this skill:"];

/// How the result of a skill begins. Its text stands beside the result, and if it is that of a command, nothing
/// else marks it.
pub(crate) const SKILL: &str = "Launching skill: ";

/// How it passes on what a person wrote while the agent worked.
pub(crate) const SPOKE: &str = "The user sent a new message while you were working:";

/// How it begins to tell what became of a background task, unless it begins with the element.
pub(crate) const NOTIFIED: &str = "[SYSTEM NOTIFICATION - NOT USER INPUT]";

pub(crate) const REMINDER: &str = "system-reminder";
pub(crate) const NOTIFICATION: &str = "task-notification";

/// Elements that Claude Code writes by itself, even where there are no results.
pub(crate) const BY_CLIENT: [&str; 2] = [REMINDER, NOTIFICATION];

/// The tags of texts that clients write beside results: Claude Code's, Cline's and Roo Code's.
pub(crate) const OF_CLIENTS: [&str; 3] = [REMINDER, NOTIFICATION, "environment_details"];

/// How Claude Code (2.1) tells in a result, with `is_error`, that a person was asked and said no. What the
/// person wants instead follows in the same text. The names are its own, from its code.
const REFUSALS: [&str; 4] = [
    // `REJECT_MESSAGE`, and `REJECT_MESSAGE_WITH_REASON_PREFIX`
    "The user doesn't want to proceed with this tool use.",
    // `CANCEL_MESSAGE`
    "The user doesn't want to take this action right now.",
    // `SUBAGENT_REJECT_MESSAGE`. Other denials begin as it does, and are made by rules alone.
    "Permission for this tool use was denied. The tool use was rejected",
    // `AskUserQuestion`, where a client answers in place of the dialogue.
    "The user wants to clarify these questions.",
];

/// Whether a result says that a person did not want the call.
pub(crate) fn is_refused(result: &ToolResult<'_>) -> bool {
    let Some(Block::Text(text)) = result.content.first().filter(|_| result.is_error) else {
        return false;
    };
    REFUSALS.iter().any(|start| text.text.raw().starts_with(start))
}

/// What it says for calls that it made no more, because another one of the same turn failed.
const CANCELLED: [&str; 2] = ["Sibling tool call errored", "Cancelled: parallel tool call "];

/// Whether a result says that the call was not made.
pub(crate) fn is_cancelled(result: &ToolResult<'_>) -> bool {
    let Some(Block::Text(text)) = result.content.first().filter(|_| result.is_error) else {
        return false;
    };
    let raw = text.text.raw();
    let raw = raw.strip_prefix("<tool_use_error>").unwrap_or(raw);
    CANCELLED.iter().any(|start| raw.starts_with(start))
}

/// A result's text without what Claude Code adds to its end for the model: how many tokens are left, and the like.
/// It changes from turn to turn, and would make equal results look different.
pub(crate) fn without_reminders(text: Str<'_>) -> Str<'_> {
    let mut rest = json::trim_end_raw(text.raw());
    if !rest.ends_with(REMINDER_END) {
        return text;
    }
    while let Some(inside) = rest.strip_suffix(REMINDER_END) {
        let Some(start) = last_reminder(inside) else { break };
        rest = json::trim_end_raw(inside.get(..start).unwrap_or_default());
    }
    Str::inside(rest).unwrap_or(text)
}

/// What [`without_reminders`] leaves out, escaped.
pub(crate) fn reminders(text: Str<'_>) -> &str {
    // Nearly every result ends in another way, behind its last line end.
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\\' | b'n' | b'r' | b't');
    if text.raw().bytes().rfind(|byte| !is_space(byte)) != Some(b'>') {
        return "";
    }
    text.raw().get(without_reminders(text).raw().len()..).unwrap_or_default()
}

const REMINDER_START: &str = "<system-reminder>";
const REMINDER_END: &str = "</system-reminder>";

fn last_reminder(text: &str) -> Option<usize> {
    let mut before = text;
    loop {
        let at = before.bytes().rposition(|byte| byte == b'<')?;
        if text.get(at..)?.starts_with(REMINDER_START) {
            return Some(at);
        }
        before = before.get(..at)?;
    }
}
