//! Streams whose chunks carry a `message` where the format has a `delta`.
//!
//! Servers mean three things by it, and nothing but the texts tells which:
//!
//! | chunks | what it is | the text |
//! |---|---|---|
//! | `H`, `Hi`, `Hi!` | each time all of it so far | the last |
//! | `H`, `i`, `!` | each time the next piece | all together |
//! | deltas, then `Hi!` | all of it once more | that of the deltas |
//!
//! While both of the first two are possible, only what they have in common is sent. If three texts in a
//! row each begin with the one before, they are snapshots (unless all is one repeated character). So is a
//! long text that comes twice. A short one may be a piece that happens to repeat: it waits for what
//! follows. The message adds nothing that the deltas have brought already (text, reasoning, calls).

use super::machine::Machine;
use super::reasoning::{marked, without_end};
use crate::error::Error;
use crate::json::Str;
use crate::openai::{Chunk, Delta, Detail, Part, ToolCall};
use crate::translate::signature::Field;

/// Bytes of a text that no piece has by chance in common with all of the text before it.
const LONG: usize = 64;

/// The texts of messages in a stream.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    text: Growing,
    reasoning: Growing,
    refusal: Growing,
    /// The field of the reasoning.
    field: Option<Field>,
    /// `reasoning_details` with something to hand back were taken.
    has_records: bool,
    /// Calls were.
    has_calls: bool,
}

impl Snapshots {
    pub(super) fn held_bytes(&self) -> usize {
        let Self { text, reasoning, refusal, .. } = self;
        text.held_bytes()
            .saturating_add(reasoning.held_bytes())
            .saturating_add(refusal.held_bytes())
    }

    /// What a message has beside texts, as a delta: what is to be handed back, and calls.
    fn rest_of<'a>(
        &mut self,
        message: &Delta<'a>,
        has_calls: bool,
        takes_calls: bool,
    ) -> Delta<'a> {
        let mut delta = Delta::default();
        let has_records = |detail: &Detail<'_>| detail.data.or(detail.signature).is_some();
        if !self.has_records && message.reasoning_details.iter().any(has_records) {
            self.has_records = true;
            for detail in message.reasoning_details.iter() {
                delta.reasoning_details.push(Detail { text: None, ..*detail });
            }
        }
        if takes_calls {
            self.has_calls |= has_calls;
            delta.function_call = message.function_call;
            for (at, call) in message.tool_calls.iter().enumerate() {
                // A whole message numbers its calls by their places.
                let index = call.index.or_else(|| u64::try_from(at).ok());
                delta.tool_calls.push(ToolCall { index, ..*call });
            }
        }
        delta
    }
}

/// One text, escaped, of which each chunk brings all or a piece.
#[derive(Debug, Default)]
enum Growing {
    #[default]
    Unused,
    /// Both readings are possible.
    Open(Open),
    /// Each chunk is all of it so far.
    All { last: String },
    /// Each chunk is the next piece. A short one that begins with all of them is kept in `again`: it is
    /// one more, or all of it once more.
    Pieces { joined: String, again: String },
}

#[derive(Debug)]
struct Open {
    /// How much of both readings was sent: the first chunk.
    sent: usize,
    /// The last chunk.
    last: String,
    /// All chunks together.
    joined: String,
    /// A chunk has gone on with the one before.
    went_on: bool,
}

impl Open {
    fn new(first: &str) -> Self {
        let (last, joined) = (first.to_owned(), first.to_owned());
        Self { sent: first.len(), last, joined, went_on: false }
    }

    /// Takes the next chunk. Once one reading is certain, gives it and what of it was not sent yet.
    fn push(&mut self, text: &str) -> Option<(Growing, String)> {
        self.joined.push_str(text);
        let Some(rest) = text.strip_prefix(&self.last) else {
            // The last message can be without the white space around it. Or this is a piece.
            return (trimmed(text) != trimmed(&self.last)).then(|| self.pieces());
        };
        let goes_on = !rest.is_empty() && is_telling(text);
        let is_long = trimmed(&self.last).len() >= LONG;
        text.clone_into(&mut self.last);
        if is_long || goes_on && self.went_on {
            return Some(self.all());
        }
        self.went_on |= goes_on;
        None
    }

    fn all(&mut self) -> (Growing, String) {
        let last = std::mem::take(&mut self.last);
        let more = last.get(self.sent..).unwrap_or_default().to_owned();
        (Growing::All { last }, more)
    }

    fn pieces(&mut self) -> (Growing, String) {
        let joined = std::mem::take(&mut self.joined);
        let more = joined.get(self.sent..).unwrap_or_default().to_owned();
        (Growing::Pieces { joined, again: String::new() }, more)
    }
}

impl Growing {
    /// What the next chunk brings: gives what is new and certain, and whether something contradicts what
    /// was sent.
    fn push(&mut self, text: &str) -> (String, bool) {
        if text.is_empty() {
            return (String::new(), false);
        }
        match self {
            Self::Unused => {
                *self = Self::Open(Open::new(text));
                (text.to_owned(), false)
            }
            Self::Open(open) => {
                let Some((reading, more)) = open.push(text) else { return (String::new(), false) };
                *self = reading;
                (more, false)
            }
            Self::All { last } => match text.strip_prefix(last.as_str()) {
                Some(rest) => {
                    text.clone_into(last);
                    (rest.to_owned(), false)
                }
                None => (String::new(), !trimmed(last).starts_with(trimmed(text))),
            },
            Self::Pieces { joined, again } => (push_piece(joined, again, text), false),
        }
    }

    /// Nothing more comes before what comes now: gives what waited, and whether another reading of it
    /// would have been as good.
    fn finish(&mut self) -> (String, bool) {
        match self {
            // After one chunk both readings are the same.
            Self::Open(open) if open.last.len() < open.joined.len() => {
                let is_doubtful = !is_telling(&open.last);
                let (reading, more) = open.all();
                *self = reading;
                (more, is_doubtful)
            }
            Self::Pieces { joined, again } => {
                let again = std::mem::take(again);
                let rest = again.strip_prefix(joined.as_str()).unwrap_or_default();
                joined.push_str(rest);
                (rest.to_owned(), false)
            }
            _ => (String::new(), false),
        }
    }

    fn is_used(&self) -> bool {
        !matches!(self, Self::Unused)
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Unused => 0,
            Self::Open(Open { last, joined, .. }) => last.len().saturating_add(joined.len()),
            Self::All { last } => last.len(),
            Self::Pieces { joined, again } => joined.len().saturating_add(again.len()),
        }
    }
}

/// Takes the next chunk where each is a piece: gives what is certain of it.
fn push_piece(joined: &mut String, again: &mut String, text: &str) -> String {
    let is_long = trimmed(joined).len() >= LONG;
    match text.strip_prefix(joined.as_str()) {
        // The whole once more, perhaps with the last piece.
        Some(rest) if is_long => {
            joined.push_str(rest);
            rest.to_owned()
        }
        None if is_long && trimmed(text) == trimmed(joined) => String::new(),
        more if more.is_some() || trimmed(text) == trimmed(joined) => {
            text.clone_into(again);
            String::new()
        }
        _ => {
            // More follows: what waited was a piece.
            let mut more = std::mem::take(again);
            more.push_str(text);
            joined.push_str(&more);
            more
        }
    }
}

/// Whether there is more in a text than one character repeated.
fn is_telling(raw: &str) -> bool {
    let text = trimmed(raw).as_bytes();
    text.iter().any(|byte| text.first() != Some(byte))
}

/// `raw`, the inside of a JSON string, without the white space around it.
fn trimmed(raw: &str) -> &str {
    const ESCAPED: [&str; 3] = ["\\n", "\\r", "\\t"];
    let mut rest = raw.trim();
    loop {
        let start = ESCAPED.iter().find_map(|escape| rest.strip_prefix(escape));
        let end = || {
            let (before, _) = ESCAPED.iter().find_map(|it| Some((rest.strip_suffix(it)?, it)))?;
            // The backslash itself may be escaped.
            let slashes = before.len().saturating_sub(before.trim_end_matches('\\').len());
            (slashes % 2 == 0).then_some(before)
        };
        match start.or_else(end) {
            Some(shorter) => rest = shorter.trim(),
            None => return rest,
        }
    }
}

/// The reasoning of a message, escaped, and its field. Where two fields have it, it is the same text.
fn reasoning(message: &Delta<'_>) -> Option<(Field, String)> {
    let fields = [
        (Field::ReasoningContent, message.reasoning_content),
        (Field::Reasoning, message.reasoning),
        (Field::ReasoningText, message.reasoning_text),
        (Field::Thinking, message.thinking),
    ];
    let details = || {
        let texts = message.reasoning_details.iter().filter_map(|detail| detail.text);
        (Field::ReasoningDetails, texts.map(|text| text.raw()).collect::<String>())
    };
    let parts = |wanted: Field| {
        let texts = message.content.iter().filter_map(move |part| match part {
            Part::Thinking(text) if wanted == Field::Parts => Some(text.raw()),
            Part::Reasoning(text) if wanted == Field::Marked => Some(text.raw()),
            Part::Text(text) if wanted == Field::Marked && message.is_thought => {
                Some(marked(text.raw()).0)
            }
            _ => None,
        });
        (wanted, texts.collect::<String>())
    };
    let has_text = |found: &(Field, String)| !found.1.is_empty();
    let field = fields.into_iter().find_map(|(field, text)| Some((field, text?.raw().to_owned())));
    Some(details())
        .filter(has_text)
        .or(field)
        .or_else(|| Some(parts(Field::Parts)).filter(has_text))
        .or_else(|| Some(parts(Field::Marked)).filter(has_text))
}

/// What the messages of one chunk say together, escaped.
#[derive(Default)]
struct Said {
    thought: String,
    text: String,
    refusal: String,
    has_calls: bool,
}

/// The messages of a chunk, and their choices. Beside a delta, a message says nothing of its own.
fn messages<'c, 'a>(chunk: &'c Chunk<'a>) -> impl Iterator<Item = (u64, &'c Delta<'a>)> {
    chunk.choices.iter().filter_map(|choice| {
        let stands_alone = choice.delta.as_ref().is_none_or(Delta::is_empty);
        let message = choice.message.as_ref().filter(|message| !message.is_empty())?;
        stands_alone.then_some((choice.index, message))
    })
}

impl Machine {
    /// The messages of a chunk. All choices of one chunk are parts of one answer.
    pub(super) fn take_messages(
        &mut self,
        chunk: &Chunk<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut snapshots = std::mem::take(&mut self.snapshots);
        let said = self.said_in(chunk, &mut snapshots);
        let calls = said.has_calls;
        let mut contradicts = false;
        let mut more = |growing: &mut Growing, text: &str, is_over: bool| {
            let (mut more, contradiction) = growing.push(text);
            contradicts |= contradiction;
            if is_over {
                let (rest, is_doubtful) = growing.finish();
                contradicts |= is_doubtful;
                more.push_str(&rest);
            }
            more
        };
        let thought_is_over = !said.text.is_empty() || calls;
        let thought = more(&mut snapshots.reasoning, &said.thought, thought_is_over);
        let text = more(&mut snapshots.text, &said.text, calls);
        let refusal = more(&mut snapshots.refusal, &said.refusal, calls);
        if contradicts {
            self.warnings.add("upstream_text_changed");
        }
        self.say(snapshots.field, [&thought, &text, &refusal], out)?;
        for (choice, message) in messages(chunk) {
            let takes_calls = self.calls.is_empty() || snapshots.has_calls;
            let delta = snapshots.rest_of(message, calls, takes_calls);
            self.take_delta(choice, &delta, false, out)?;
        }
        self.snapshots = snapshots;
        Ok(())
    }

    /// What the messages of a chunk say, without what deltas have brought already.
    fn said_in(&mut self, chunk: &Chunk<'_>, snapshots: &mut Snapshots) -> Said {
        let mut said = Said::default();
        let reasoned = self.reasoning.field.is_some() && !snapshots.reasoning.is_used();
        for (_, message) in messages(chunk) {
            for part in message.content.iter() {
                match part {
                    Part::Text(part) if message.is_thought => {
                        said.text.push_str(marked(part.raw()).1);
                    }
                    Part::Text(part) if self.reasoning.field == Some(Field::Marked) => {
                        said.text.push_str(without_end(part.raw()));
                    }
                    Part::Text(part) => said.text.push_str(part.raw()),
                    Part::Refusal(part) => said.refusal.push_str(part.raw()),
                    _ => {}
                }
            }
            said.refusal.push_str(message.refusal.map_or("", |refusal| refusal.raw()));
            if !reasoned
                && let Some((field, more)) = reasoning(message)
                && self.reasoning.counts(field)
            {
                snapshots.field.get_or_insert(field);
                said.thought.push_str(&more);
            }
            said.has_calls |= !message.tool_calls.is_empty() || message.function_call.is_some();
        }
        if self.has_text && !snapshots.text.is_used() && !snapshots.refusal.is_used() {
            (said.text, said.refusal) = (String::new(), String::new());
        }
        said
    }

    /// Something else comes, or the stream is over: what a message said last was all of it.
    pub(super) fn finish_messages(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let Snapshots { text, reasoning, refusal, field, .. } = &mut self.snapshots;
        if !(text.is_used() || reasoning.is_used() || refusal.is_used()) {
            return Ok(());
        }
        let field = *field;
        let [thought, text, refusal] = [reasoning, text, refusal].map(Growing::finish);
        if thought.1 || text.1 || refusal.1 {
            self.warnings.add("upstream_text_changed");
        }
        self.say(field, [&thought.0, &text.0, &refusal.0], out)
    }

    /// Takes reasoning, text and refusal, escaped.
    fn say(
        &mut self,
        field: Option<Field>,
        raws: [&str; 3],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let [reasoning, text, refusal] =
            raws.map(|raw| Str::inside(raw).filter(|text| !text.is_empty()));
        if let (Some(reasoning), Some(field)) = (reasoning, field) {
            self.push_reasoning(reasoning, field, out);
        }
        let mut delta = Delta::default();
        delta.refusal = refusal;
        if let Some(text) = text {
            delta.content.push(Part::Text(text));
        }
        self.take_delta(0, &delta, false, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(chunks: &[&str], sent: &[&str]) {
        let mut text = Growing::default();
        let mut found: Vec<String> = chunks.iter().map(|chunk| text.push(chunk).0).collect();
        found.push(text.finish().0);
        assert_eq!(found, sent, "{chunks:?}");
    }

    #[test]
    fn a_text_comes_whole_each_time_or_in_pieces() {
        // All of it so far: certain from the third on, or at the end.
        is(&["H", "Hi", "Hi!", "Hi!!"], &["H", "", "i!", "!", ""]);
        is(&["H", "Hi"], &["H", "", "i"]);
        is(&["Hi", "Hi", "Hi"], &["Hi", "", "", ""]);
        // Pieces, also where one begins with the one before.
        is(&["H", "i", "!"], &["H", "i", "!", ""]);
        is(&["ha", "ha", "ha", "!"], &["ha", "", "", "haha!", ""]);
        is(&["=", "==", "====", "\\n", "Title"], &["=", "", "", "======\\n", "Title", ""]);
        is(&["no ", "no", "pe"], &["no ", "", "nope", ""]);
        is(&["\\n", "    ", "x = 1"], &["\\n", "", "    x = 1", ""]);
        is(&["1", "2", "12", " eggs"], &["1", "2", "", "12 eggs", ""]);
        is(&["\\n", "\\n\\n", "\\n\\n\\nx", "y"], &["\\n", "", "", "\\n\\n\\n\\n\\nxy", ""]);
        // And all of it at the end, perhaps without the white space around it.
        is(&["H", "i", "!", "Hi!"], &["H", "i", "!", "", ""]);
        is(&["H", "i", "Hi!"], &["H", "i", "", "!"]);
        let (long, twice) = ("x y".repeat(30), ["x y".repeat(30).as_str(), "!"].concat());
        is(&[&long, &twice, "x"], &[&long, "!", "", ""]);
        is(&["H", &long, &["H", &long, "!"].concat(), "?"], &["H", &long, "!", "?", ""]);
        is(&["\\n\\nH", "i ", "Hi"], &["\\n\\nH", "i ", "", ""]);
        is(&[" Hi\\n", "Hi"], &[" Hi\\n", "", ""]);
        is(&["", "H"], &["", "H", ""]);
    }

    #[test]
    fn what_was_sent_is_not_taken_back() {
        let mut text = Growing::default();
        for chunk in ["a", "ab", "abc"] {
            text.push(chunk);
        }
        assert_eq!(text.push("ab"), (String::new(), false));
        assert_eq!(text.push("xbc"), (String::new(), true));
        assert_eq!(text.push("abcd"), ("d".to_owned(), false));
    }

    #[test]
    fn escaped_white_space_is_trimmed_and_other_escapes_are_not() {
        for (raw, expected) in [
            (" \\n\\t a b \\r\\n ", "a b"),
            ("a\\\\n", "a\\\\n"),
            ("a\\\\\\n", "a\\\\"),
            ("\\n", ""),
            ("\\u000a", "\\u000a"),
        ] {
            assert_eq!(trimmed(raw), expected);
        }
    }
}
