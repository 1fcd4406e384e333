//! Detection of calls that wait for something. Their result stays the same until another process is
//! done, so repeating them is no mistake.

use crate::json::{Reader, member};
use crate::model::ToolUse;
use crate::text::words;

/// Names of Claude Code's tools that query a background task.
const OF_TASKS: [&str; 3] = ["TaskOutput", "BashOutput", "AgentOutput"];

/// Names of OpenHands' tools that wait for the last command if called without a command.
const OF_COMMANDS: [&str; 2] = ["execute_bash", "terminal"];

/// Returns true if a call waits: by the name of its tool, by its action, or by a command that
/// sleeps.
pub(crate) fn waits(call: &ToolUse<'_>) -> bool {
    let name = &*call.name.decode();
    OF_TASKS.contains(&name)
        || has_word(name, ["wait", "Wait"])
        || OF_COMMANDS.contains(&name) && member(&call.input, "command") == Some("\"\"")
        || has_action(&call.input)
        || sleeps(call)
}

/// Returns true if the input has an `action` with the value `wait`, as the inputs of computer use
/// tools do.
fn has_action(input: &str) -> bool {
    const ACTION: &str = "\"action\"";
    words::places(input, ACTION).any(|at| {
        let value = input.get(at.saturating_add(ACTION.len())..).unwrap_or_default();
        let value = value.trim_ascii_start().strip_prefix(':').unwrap_or_default();
        value.trim_ascii_start().starts_with("\"wait\"")
    })
}

/// Returns true if the call's command sleeps, so that the call waited even if it failed.
pub(crate) fn sleeps(call: &ToolUse<'_>) -> bool {
    let Some(command) = member(&call.input, "command") else { return false };
    // Clients may write a command as a list of words.
    let text = Reader::new(command, 1).string().map(|text| text.decode());
    let text = text.as_deref().unwrap_or(command);
    has_word_before(text, ["sleep", "Sleep"], says_how_long)
}

/// Returns true if the text after the word `sleep` begins with a duration: `sleep 5`, `["sleep",
/// "5"]`, `time.sleep(0.5)`, `Start-Sleep -Seconds 5`. The word alone is often just a name in a
/// search or test.
fn says_how_long(behind: &str) -> bool {
    let time = words::trim_start(behind, b" \"',(");
    let is_apart = time.len() < behind.len();
    let is_own = !behind.starts_with(['"', '\'']) || behind.contains(',');
    // Options of PowerShell's `Start-Sleep`.
    let option = words::after_start(time, "-s").or_else(|| words::after_start(time, "-m"));
    let time = option.map_or(time, |rest| {
        rest.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).trim_start()
    });
    let number = time.strip_prefix('.').unwrap_or(time);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    // The redirection `2>&1` is not a duration.
    let is_number = digits > 0 && number.as_bytes().get(digits) != Some(&b'>');
    is_apart && is_own && (is_number || time.starts_with('$') || time.starts_with("infinity"))
}

/// Returns true if `text` contains `word`, in lower case or capitalized: as in `wait_for`,
/// `browserWait` and `Start-Sleep`, but not in `await` or `sleeper`.
fn has_word(text: &str, word: [&str; 2]) -> bool {
    has_word_before(text, word, |_| true)
}

/// Returns true if `text` contains a word, given in lower case and capitalized, and `fits` holds
/// for the text after the word.
fn has_word_before(text: &str, [small, capital]: [&str; 2], fits: fn(&str) -> bool) -> bool {
    let ends = |at: usize| {
        let behind = text.get(at.saturating_add(small.len())..).unwrap_or_default();
        !behind.starts_with(|letter: char| letter.is_ascii_lowercase()) && fits(behind)
    };
    let before = |at: usize| at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    let begins = |at: usize| !before(at).is_some_and(u8::is_ascii_alphabetic);
    words::places(text, small).any(|at| begins(at) && ends(at))
        || words::places(text, capital).any(ends)
}

#[cfg(test)]
mod tests;
