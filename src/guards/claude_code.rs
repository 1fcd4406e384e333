//! Texts that Claude Code 2.1 inserts into a conversation by itself, copied from its code. No other
//! mark distinguishes these texts from a person's.

use crate::json::{self, Str};
use crate::model::{Block, ToolResult};

/// Text that Claude Code writes beside the result of a tool search.
pub(crate) const TOOL_LOADED: &str = "Tool loaded.";

/// Beginnings of texts that a client writes to make the model go on. Most come from Claude Code
/// 2.1, after an answer that was empty, cut off or had a malformed call. Claude Code drops that
/// answer, so the text follows the tool results before. The last texts are from a hook that
/// prevents stopping, and from Cline and Roo Code.
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

/// Beginnings of texts that Claude Code writes beside tool results: notes on an image, and the text
/// of a skill.
pub(crate) const BESIDE_RESULTS: [&str; 3] =
    ["[Image: original ", "[Image: source: ", "Base directory for this skill:"];

/// Beginning of the result of a skill call. The skill's text follows as a text of the user, mostly
/// without another mark.
pub(crate) const SKILL: &str = "Launching skill: ";

/// Beginning of a text in which Claude Code passes on a message that a person wrote while the agent
/// worked.
pub(crate) const SPOKE: &str = "The user sent a new message while you were working:";

/// Beginning of a text in which Claude Code reports the end of a background task, if the text does
/// not begin with the XML element of the report.
pub(crate) const NOTIFIED: &str = "[SYSTEM NOTIFICATION - NOT USER INPUT]";

pub(crate) const REMINDER: &str = "system-reminder";
pub(crate) const NOTIFICATION: &str = "task-notification";

/// Names of XML elements that Claude Code writes by itself, with or without tool results.
pub(crate) const BY_CLIENT: [&str; 2] = [REMINDER, NOTIFICATION];

/// Names of XML elements that Claude Code, Cline and Roo Code write beside tool results.
pub(crate) const OF_CLIENTS: [&str; 3] = [REMINDER, NOTIFICATION, "environment_details"];

/// Beginnings of error results in which Claude Code 2.1 reports that a person refused the call. The
/// person's wishes follow in the same text. The comments name the constants in Claude Code.
const REFUSALS: [&str; 4] = [
    // Constants `REJECT_MESSAGE` and `REJECT_MESSAGE_WITH_REASON_PREFIX`.
    "The user doesn't want to proceed with this tool use.",
    // Constant `CANCEL_MESSAGE`.
    "The user doesn't want to take this action right now.",
    // Constant `SUBAGENT_REJECT_MESSAGE`. Other denials begin alike, but are made by rules and no
    // person.
    "Permission for this tool use was denied. The tool use was rejected",
    // Text of `AskUserQuestion`, if a client answers in place of the dialogue.
    "The user wants to clarify these questions.",
];

/// Returns true if a tool result says that a person refused the call.
pub(crate) fn is_refused(result: &ToolResult<'_>) -> bool {
    let Some(Block::Text(text)) = result.content.first().filter(|_| result.is_error) else {
        return false;
    };
    REFUSALS.iter().any(|start| text.text.raw().starts_with(start))
}

/// Beginnings of results for calls that Claude Code did not run, because another call of the same
/// turn failed.
const CANCELLED: [&str; 2] = ["Sibling tool call errored", "Cancelled: parallel tool call "];

/// Returns true if a tool result says that the call was not run.
pub(crate) fn is_cancelled(result: &ToolResult<'_>) -> bool {
    let Some(Block::Text(text)) = result.content.first().filter(|_| result.is_error) else {
        return false;
    };
    let raw = text.text.raw();
    let raw = raw.strip_prefix("<tool_use_error>").unwrap_or(raw);
    CANCELLED.iter().any(|start| raw.starts_with(start))
}

/// Returns a result's text without the reminders that Claude Code appends for the model, such as
/// the number of tokens left. Reminders change from turn to turn, and would make equal results look
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

/// Returns the reminders at the end of a result's text, which [`without_reminders`] removes,
/// JSON-escaped.
pub(crate) fn reminders(text: Str<'_>) -> &str {
    // Fast path: nearly every result has another last character before its line ends.
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
