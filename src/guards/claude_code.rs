//! Texts that Claude Code (2.1) writes into a conversation by itself, taken from its code: nothing
//! marks them.

use crate::json::{self, Str};
use crate::model::{Block, ToolResult};

/// Text that Claude Code writes beside the result of a search for tools.
pub(crate) const TOOL_LOADED: &str = "Tool loaded.";

/// Beginnings of texts that Claude Code (2.1) writes by itself, taken from its code. Most follow an
/// answer that had no text, was cut off or had a call in it that nobody could read. It drops that
/// answer, so that they come to stand beside the results before it. The last ones are from a hook
/// that did not let it stop, and from Cline and Roo Code.
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

/// Beginnings of texts that Claude Code writes beside results: what became of an image, and the
/// text of a skill.
pub(crate) const BESIDE_RESULTS: [&str; 3] =
    ["[Image: original ", "[Image: source: ", "Base directory for this skill:"];

/// Beginning of the result of a skill. The skill's text stands beside the result, and if it is that
/// of a command, nothing else marks it.
pub(crate) const SKILL: &str = "Launching skill: ";

/// Beginning of a text in which Claude Code passes on what a person wrote while the agent worked.
pub(crate) const SPOKE: &str = "The user sent a new message while you were working:";

/// Beginning of a text in which Claude Code tells what became of a background task, unless it
/// begins with the element.
pub(crate) const NOTIFIED: &str = "[SYSTEM NOTIFICATION - NOT USER INPUT]";

pub(crate) const REMINDER: &str = "system-reminder";
pub(crate) const NOTIFICATION: &str = "task-notification";

/// Names of elements that Claude Code writes by itself, even where there are no results.
pub(crate) const BY_CLIENT: [&str; 2] = [REMINDER, NOTIFICATION];

/// Names of elements that clients write beside results: Claude Code, Cline and Roo Code.
pub(crate) const OF_CLIENTS: [&str; 3] = [REMINDER, NOTIFICATION, "environment_details"];

/// Beginnings of results, with `is_error`, in which Claude Code (2.1) tells that a person was asked
/// and said no. What the person wants instead follows in the same text. The names in the comments
/// are its own, from its code.
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

/// Returns true if a result says that a person did not want the call.
pub(crate) fn is_refused(result: &ToolResult<'_>) -> bool {
    let Some(Block::Text(text)) = result.content.first().filter(|_| result.is_error) else {
        return false;
    };
    REFUSALS.iter().any(|start| text.text.raw().starts_with(start))
}

/// Beginnings of results of calls that Claude Code did not make, because another call of the same
/// turn failed.
const CANCELLED: [&str; 2] = ["Sibling tool call errored", "Cancelled: parallel tool call "];

/// Returns true if a result says that the call was not made.
pub(crate) fn is_cancelled(result: &ToolResult<'_>) -> bool {
    let Some(Block::Text(text)) = result.content.first().filter(|_| result.is_error) else {
        return false;
    };
    let raw = text.text.raw();
    let raw = raw.strip_prefix("<tool_use_error>").unwrap_or(raw);
    CANCELLED.iter().any(|start| raw.starts_with(start))
}

/// Returns a result's text without what Claude Code adds to its end for the model, such as the
/// number of tokens left. That changes from turn to turn, and would make equal results look
/// different.
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

/// Returns the end of a result's text that [`without_reminders`] leaves out, escaped.
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
