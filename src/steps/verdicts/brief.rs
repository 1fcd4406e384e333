//! Brief for the model that judges tool calls: the user's texts and rules, and the assistant's
//! earlier calls.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::input::write_plain;
use crate::json;
use crate::model::safeguards::dangerous_tool_use;
use crate::text::words;

/// Maximum size of the client's rules and folders, in bytes. The judge is not asked beyond this
/// size, because without a rule that forbids a call, the call could pass.
const CONTEXT_BYTES_MAX: usize = 64 << 10;

/// Maximum size of the conversation shown to the judge, in bytes. The user's first text and the
/// newest lines are kept.
const TRANSCRIPT_BYTES_MAX: usize = 24_000;

/// Maximum length of one text or input in the transcript, in bytes.
const LINE_BYTES_MAX: usize = 2_000;

/// Members of `classifier_context` that are copied for the judge.
const CONTEXT: [&str; 6] =
    ["permission_mode", "platform", "live_cwd", "home_dir", "trusted_directories", "rules"];

/// Members of `git_state` in `classifier_context` that are copied for the judge.
const GIT: [&str; 5] = ["cwd", "branch", "default_branch", "status", "visibility"];

/// Lists of the user's own rule sentences, by their names in `auto_mode`.
const SENTENCES: [&str; 4] = ["allow", "soft_deny", "hard_deny", "environment"];

/// Tags around text that Claude Code inserts into a user message: its own notes, outputs of
/// commands, and messages of other agents.
const NOT_THE_USERS: [&str; 9] = [
    "system-reminder",
    "bash-stdout",
    "bash-stderr",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "task-notification",
    "teammate-message",
    "ide_selection",
];

/// Beginning of Claude Code's message that summarizes an earlier, longer conversation. A model
/// wrote the message, not the user.
const SUMMARY: &str = "This session is being continued from a previous conversation";

/// Author of the messages with role `user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    /// Speaker of a sub-agent's request: another agent, which wrote the messages of role `user`.
    Agent,
}

/// Text about a request that is shown to the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Brief {
    /// Folders, rules and the user's rule sentences, as one JSON object per line.
    pub(crate) context: String,
    /// Texts of the user and tool calls of the assistant, as one JSON object per line.
    pub(crate) transcript: String,
    /// Number of sentences in each list of [`SENTENCES`].
    sentences: [usize; SENTENCES.len()],
}

impl Brief {
    /// Reads the facts that the judging model is shown from a client's request. Returns `None` if
    /// the client requests no verdicts, or if its rules and folders are too long to be shown.
    pub(crate) fn read(body: &str, speaker: Speaker) -> Option<Self> {
        let asked = json::member(body, "safeguards").and_then(dangerous_tool_use)?;
        let context = json::member(asked, "classifier_context").unwrap_or("{}");
        let mut brief = Self::default();
        brief.write_context(context);
        let messages = json::member(body, "messages").unwrap_or("[]");
        brief.transcript = transcript(messages, speaker);
        (brief.context.len() <= CONTEXT_BYTES_MAX).then_some(brief)
    }

    /// Returns the number of bytes of the text for the judge that are kept in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.context.len().saturating_add(self.transcript.len())
    }

    /// Returns true if `path`, such as `auto_mode.soft_deny.0`, names one of the user's rule
    /// sentences.
    pub(crate) fn has_rule(&self, path: &str) -> bool {
        let Some((list, number)) =
            path.strip_prefix("auto_mode.").and_then(|it| it.split_once('.'))
        else {
            return false;
        };
        let known = SENTENCES.iter().zip(self.sentences).find(|(name, _)| **name == list);
        let number = number.parse::<usize>().ok().filter(|at| at.to_string() == number);
        known.zip(number).is_some_and(|((_, count), at)| at < count)
    }

    fn write_context(&mut self, context: &str) {
        let facts = json::written(|json| {
            json.begin_object();
            for name in CONTEXT {
                if let Some(value) = json::member(context, name) {
                    json.key(name).value();
                    json::compact(json.out(), value);
                }
            }
            let git = json::member(context, "git_state").unwrap_or("{}");
            json.key("git_state").begin_object();
            for name in GIT {
                if let Some(value) = json::member(git, name) {
                    json.key(name).value();
                    json::compact(json.out(), value);
                }
            }
            json.end_object().end_object();
        });
        push_line(&mut self.context, &facts);
        let own = json::member(context, "auto_mode").unwrap_or("{}");
        for (name, count) in SENTENCES.iter().zip(&mut self.sentences) {
            for (at, sentence) in
                json::elements(json::member(own, name).unwrap_or("[]")).enumerate()
            {
                *count = at.saturating_add(1);
                let line = json::written(|json| {
                    json.begin_object().key("rule").text(&format!("auto_mode.{name}.{at}"));
                    json.key("text").value();
                    json::compact(json.out(), sentence);
                    json.end_object();
                });
                push_line(&mut self.context, &line);
            }
        }
    }
}

/// Appends a line that cannot contain a tag: `<`, which occurs only in strings, is escaped.
pub(super) fn push_line(to: &mut String, json: &str) {
    to.push_str(&json.replace('<', "\\u003c"));
    to.push('\n');
}

/// Returns the texts of the user and the tool calls of the assistant, up to the maximum size.
fn transcript(messages: &str, speaker: Speaker) -> String {
    let mut lines = TranscriptLines::default();
    for message in json::elements(messages) {
        let role = json::member(message, "role").and_then(json::string).unwrap_or_default();
        let content = json::member(message, "content").unwrap_or("[]");
        match role.decode().as_ref() {
            "user" => {
                if let Some(text) = json::string(content) {
                    lines.say(&text.decode(), speaker);
                }
                for block in json::elements(content).filter(|block| is_of(block, "text")) {
                    let text = json::member(block, "text").and_then(json::string);
                    lines.say(&text.unwrap_or_default().decode(), speaker);
                }
            }
            "assistant" => {
                for block in json::elements(content).filter(|block| is_of(block, "tool_use")) {
                    lines.call(block);
                }
            }
            _ => {}
        }
    }
    lines.into_text()
}

fn is_of(block: &str, kind: &str) -> bool {
    json::member(block, "type").and_then(json::string).is_some_and(|it| it == kind)
}

/// Lines of the transcript: the user's first line, and the newest further lines.
#[derive(Default)]
struct TranscriptLines {
    first: Option<String>,
    newest: VecDeque<String>,
    bytes: usize,
    left_out: bool,
}

impl TranscriptLines {
    fn say(&mut self, text: &str, speaker: Speaker) {
        let own = own_words(text);
        let own = own.trim();
        if own.is_empty() {
            return;
        }
        let line = json::written(|json| {
            let by = match speaker {
                _ if own.starts_with(SUMMARY) => "summary",
                Speaker::Agent => "main_agent",
                Speaker::User => "user",
            };
            json.begin_object().key(by).text(&shortened(own)).end_object();
        });
        if self.first.is_none() && self.newest.is_empty() {
            self.bytes = self.bytes.saturating_add(line.len());
            self.first = Some(line);
        } else {
            self.push(line);
        }
    }

    fn call(&mut self, block: &str) {
        let name = json::member(block, "name").and_then(json::string).unwrap_or_default();
        let input = json::member(block, "input").unwrap_or("{}");
        let line = json::written(|json| {
            // The tool name is a value: as a key, the name of an unknown tool could be `user`.
            json.begin_object().key("call").text(&shortened(&name.decode())).key("input");
            let plain = json::written(|json| write_plain(json, input));
            if plain.len() > LINE_BYTES_MAX {
                json.text(&shortened(&plain));
            } else {
                json.raw(&plain);
            }
            json.end_object();
        });
        self.push(line);
    }

    fn push(&mut self, line: String) {
        self.bytes = self.bytes.saturating_add(line.len());
        self.newest.push_back(line);
        while self.bytes > TRANSCRIPT_BYTES_MAX {
            let Some(oldest) = self.newest.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.len());
            self.left_out = true;
        }
    }

    fn into_text(self) -> String {
        let mut text = String::new();
        self.first.iter().for_each(|line| push_line(&mut text, line));
        if self.left_out {
            push_line(&mut text, "{\"note\":\"older lines are left out\"}");
        }
        self.newest.iter().for_each(|line| push_line(&mut text, line));
        text
    }
}

/// Returns the beginning and the end of a long text, with a note about the bytes left out. An order
/// of the user can be at either end.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= LINE_BYTES_MAX {
        return text.into();
    }
    let begin = words::beginning(text, LINE_BYTES_MAX / 2);
    let end = words::end(text, LINE_BYTES_MAX / 2);
    let missing = text.len().saturating_sub(begin.len()).saturating_sub(end.len());
    format!("{begin} [… {missing} bytes are left out here …] {end}").into()
}

/// Returns a text without the parts that Claude Code inserted. A part without a closing tag is
/// kept, because the user may have written it. A part extends to its last closing tag, because a
/// command's output may contain the first one.
fn own_words(text: &str) -> String {
    let mut own = text.to_owned();
    for name in NOT_THE_USERS {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        let is_tag = |at: &usize| {
            let behind = own.get(at.saturating_add(open.len())..).unwrap_or_default();
            behind.starts_with(|letter: char| letter == '>' || letter.is_whitespace())
        };
        let Some(begin) = words::places(&own, &open).find(is_tag) else { continue };
        let Some(last) = words::places(&own, &close).filter(|at| *at > begin).last() else {
            continue;
        };
        let behind = own.get(last.saturating_add(close.len())..).unwrap_or_default();
        own = format!("{}{behind}", own.get(..begin).unwrap_or_default());
    }
    own
}
