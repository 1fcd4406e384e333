//! Whether two tool calls, or two results, are the same.
//!
//! A call is known by a hash of its name and its input: white space, the order of keys and escapes
//! make no difference. Numbers count as they are written. The id that n8n adds to each input that it
//! sends back is passed over, or no two calls would be the same. So is what a model says of its call and words anew
//! each time, for its user to read: [`OF_CALLS`] and [`OF_COMMANDS`].

use super::claude_code::without_reminders;
use crate::anthropic::{
    Block, Document, DocumentSource, ImageSource, SearchResult, ToolResult, ToolUse,
};
use crate::hash::{self, bytes, mix, text};
use crate::json::{Error, Reader, Str, ValueKind};
use crate::words;

/// Words in the names of tools that run commands.
const SHELLS: [&str; 4] = ["bash", "command", "shell", "terminal"];

/// What a model says of a call of any tool: Cline, OpenHands and Factory Droid ask for it.
const OF_CALLS: [&str; 3] = ["task_progress", "security_risk", "riskLevelReason"];

/// Beside these, so is a `summary`. Of other tools it can be what they are for.
const RISKS: [&str; 2] = ["\"security_risk\"", "\"riskLevelReason\""];

/// What a model says of a command beside it: OpenHands and Factory Droid, VS Code.
const OF_COMMANDS: [&str; 3] = ["summary", "explanation", "goal"];

/// What is known of an input as a whole.
#[derive(Clone, Copy)]
struct Input<'a> {
    /// The call's.
    id: Str<'a>,
    /// Its tool runs commands.
    is_shell: bool,
    /// Its tool does, and it has one.
    has_command: bool,
    /// It has one of [`RISKS`].
    has_risk: bool,
}

impl Input<'_> {
    /// Whether this is only said of the call.
    fn is_said_of_call(self, key: Str<'_>) -> bool {
        let is_one_of = |keys: &[&str]| keys.iter().any(|known| key == *known);
        is_one_of(&OF_CALLS)
            || self.is_shell && key == "description"
            || self.has_command && is_one_of(&OF_COMMANDS)
            || self.has_risk && key == "summary"
    }
}

/// What stands for a call. Nobody but the client itself is hurt by two that collide.
pub(super) fn of_call(call: &ToolUse<'_>) -> u64 {
    let mut reader = Reader::of(&call.input);
    let is_shell = words::has_any(&call.name.decode().to_ascii_lowercase(), &SHELLS);
    let has_command = is_shell && words::has(&call.input, "\"command\"");
    let has_risk = words::has_any(&call.input, &RISKS);
    let input = Input { id: call.id, is_shell, has_command, has_risk };
    let input = input_value(&mut reader, input);
    let input = input.unwrap_or_else(|_| bytes(5, call.input.as_bytes()));
    let toolset = call.toolset.map_or(0, text);
    mix(mix(text(call.name), toolset), input)
}

/// A call, to be compared with any number of others.
pub(super) struct KnownCall<'t, 'a> {
    call: &'t ToolUse<'a>,
    hash: Option<u64>,
}

impl<'t, 'a> KnownCall<'t, 'a> {
    pub(super) fn of(call: &'t ToolUse<'a>) -> Self {
        Self { call, hash: None }
    }

    /// Whether this call is the same. What is written alike need not be read.
    pub(super) fn is_same(&mut self, other: &ToolUse<'_>) -> bool {
        let call = self.call;
        call.name == other.name
            && call.toolset == other.toolset
            && (call.input == other.input
                || *self.hash.get_or_insert_with(|| of_call(call)) == of_call(other))
    }
}

/// The hash of an input. What a model or a client only adds to it is passed over.
fn input_value(reader: &mut Reader<'_>, input: Input<'_>) -> Result<u64, Error> {
    if reader.kind()? != ValueKind::Object {
        return hash::value(reader);
    }
    reader.begin_object()?;
    let mut members = hash::Members::default();
    while let Some(key) = reader.next_key()? {
        if input.is_said_of_call(key) {
            reader.skip()?;
            continue;
        }
        let member = if key == "id" && reader.kind()? == ValueKind::String {
            let member = reader.string()?;
            if input.id == member {
                continue;
            }
            text(member)
        } else {
            hash::value(reader)?
        };
        members.add(key, member);
    }
    Ok(members.hash())
}

/// What a result says, to be compared with any number of others.
pub(super) struct KnownResult<'t, 'a> {
    is_error: bool,
    parts: Vec<Part<'t, 'a>>,
}

impl<'t, 'a> KnownResult<'t, 'a> {
    pub(super) fn of(result: &'t ToolResult<'a>) -> Self {
        Self { is_error: result.is_error, parts: parts(&result.content).collect() }
    }

    /// Whether this result says the same.
    pub(super) fn is_same(&self, result: &ToolResult<'_>) -> bool {
        let mut wanted = self.parts.iter();
        self.is_error == result.is_error
            && parts(&result.content).all(|parts| wanted.next().is_some_and(|it| parts.is_same(it)))
            && wanted.next().is_none()
    }
}

/// A part of what a tool said.
enum Part<'t, 'a> {
    Text(Str<'a>),
    Block(&'t Block<'a>),
}

impl Part<'_, '_> {
    fn is_same(&self, other: &Part<'_, '_>) -> bool {
        match (self, other) {
            (Self::Text(left), Part::Text(right)) => same_text(*left, *right),
            (Self::Block(left), Part::Block(right)) => same_block(left, right),
            _ => false,
        }
    }
}

/// What the tool said, without blocks, and ends of texts, that are the client's words alone.
fn parts<'t, 'a>(blocks: &'t [Block<'a>]) -> impl Iterator<Item = Part<'t, 'a>> {
    blocks.iter().filter_map(|block| match block {
        Block::Text(text) => {
            let parts = without_reminders(text.text);
            (text.text.is_empty() || !parts.is_empty()).then_some(Part::Text(parts))
        }
        _ => Some(Part::Block(block)),
    })
}

fn same_blocks(left: &[Block<'_>], right: &[Block<'_>]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_block(left, right))
}

fn same_block(left: &Block<'_>, right: &Block<'_>) -> bool {
    match (left, right) {
        (Block::Text(left), Block::Text(right)) => same_text(left.text, right.text),
        (Block::ToolReference(left), Block::ToolReference(right)) => left == right,
        (Block::Image(left), Block::Image(right)) => match (&left.source, &right.source) {
            (ImageSource::Base64 { data: left, .. }, ImageSource::Base64 { data: right, .. })
            | (ImageSource::Url(left), ImageSource::Url(right)) => left == right,
            _ => false,
        },
        (Block::Document(left), Block::Document(right)) => {
            left.title == right.title
                && left.context == right.context
                && same_source(&left.source, &right.source)
        }
        (Block::SearchResult(left), Block::SearchResult(right)) => {
            left.source == right.source
                && left.title == right.title
                && same_blocks(&left.content, &right.content)
        }
        (
            Block::BrowserState { tabs: left_tabs, changes: left },
            Block::BrowserState { tabs: right_tabs, changes: right },
        ) => left_tabs == right_tabs && left == right,
        _ => false,
    }
}

fn same_source(left: &DocumentSource<'_>, right: &DocumentSource<'_>) -> bool {
    match (left, right) {
        (DocumentSource::Base64 { data: left, .. }, DocumentSource::Base64 { data: right, .. }) => {
            left == right
        }
        (DocumentSource::Text(left), DocumentSource::Text(right)) => same_text(*left, *right),
        (DocumentSource::Content(left), DocumentSource::Content(right)) => same_blocks(left, right),
        _ => false,
    }
}

/// What stands for a result: the same for results that are the same.
pub(super) fn of_result(result: &ToolResult<'_>) -> u64 {
    let of = |parts| match parts {
        Part::Text(parts) => text(parts),
        Part::Block(block) => of_block(block),
    };
    let content = parts(&result.content).fold(6, |all, parts| mix(all, of(parts)));
    mix(u64::from(result.is_error), content)
}

fn of_blocks(blocks: &[Block<'_>]) -> u64 {
    blocks.iter().fold(6, |all, block| mix(all, of_block(block)))
}

fn of_block(block: &Block<'_>) -> u64 {
    let optional = |part: Option<Str<'_>>| part.map_or(0, text);
    match block {
        Block::Text(block) => text(block.text),
        Block::ToolReference(name) => mix(7, text(*name)),
        Block::Image(image) => match image.source {
            ImageSource::Base64 { data: inside, .. } | ImageSource::Url(inside) => {
                mix(8, text(inside))
            }
            ImageSource::File => 12,
        },
        Block::Document(document) => {
            let Document { source, title, context, .. } = &**document;
            let source = match source {
                DocumentSource::Base64 { data: inside, .. } | DocumentSource::Text(inside) => {
                    text(*inside)
                }
                DocumentSource::Content(blocks) => of_blocks(blocks),
                DocumentSource::Url | DocumentSource::File => 9,
            };
            mix(mix(source, optional(*title)), optional(*context))
        }
        Block::SearchResult(found) => {
            let SearchResult { source, title, content } = &**found;
            mix(mix(text(*source), text(*title)), of_blocks(content))
        }
        Block::BrowserState { tabs, changes } => {
            mix(bytes(10, tabs.as_bytes()), bytes(11, changes.as_bytes()))
        }
        _ => 12,
    }
}

/// Clients escape a text in the same way each time, so that texts which differ are told apart at the
/// first byte that does, unless that is in an escape. Results are long and full of escapes.
fn same_text(left: Str<'_>, right: Str<'_>) -> bool {
    const STEP: usize = 32;
    let (one, other) = (left.raw().as_bytes(), right.raw().as_bytes());
    if one == other {
        return true;
    }
    let steps = one.chunks(STEP).zip(other.chunks(STEP)).take_while(|(left, right)| left == right);
    let start = steps.count().saturating_mul(STEP).min(one.len()).min(other.len());
    let rest = one.iter().zip(other).skip(start);
    let same = rest.take_while(|(left, right)| left == right).count();
    let at = start.saturating_add(same);
    (is_in_escape(one, at) || is_in_escape(other, at)) && left == right
}

/// Whether the byte is one of an escape, if backslashes are all taken for the start of one.
fn is_in_escape(text: &[u8], at: usize) -> bool {
    (0..6usize).any(|back| {
        let Some(start) = at.checked_sub(back) else { return false };
        let escape = text.get(start..).unwrap_or_default();
        match escape {
            [b'\\', b'u', ..] => true,
            [b'\\', ..] => back < 2,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::Image;
    use crate::anthropic::Text;
    use crate::json::Raw;

    fn same_result(left: &ToolResult<'_>, right: &ToolResult<'_>) -> bool {
        KnownResult::of(left).is_same(right)
    }

    fn hash(name: &'static str, id: &'static str, input: &str) -> u64 {
        let (id, name) = (Str::plain(id), Str::plain(name));
        of_call(&ToolUse { at: 0, id, name, toolset: None, input: Raw::of(input) })
    }

    #[test]
    fn calls_are_the_same_however_they_are_written() {
        let base =
            hash("w", "t1", r#"{"a":"\u0062\/\\\n\b","list":[1,{"x":null,"y":true}],"id":7}"#);
        let other =
            r#" { "list" : [ 1 , { "y":true,"x":null } ], "id": 7,"a":"b/\\\u000a\u0008" } "#;
        assert_eq!(base, hash("w", "t2", other));
        let echoed = |id, input| hash("w", id, input);
        assert_eq!(
            echoed("toolu_1", r#"{"q":"x","id":"toolu_1"}"#),
            echoed("toolu_2", r#"{"id":"toolu_2","q":"x"}"#)
        );
        assert_eq!(echoed("t", "not json"), echoed("u", "not json"));
        assert_eq!(
            hash("Bash", "t", r#"{"description":"a","command":"ls","task_progress":[1]}"#),
            hash("Bash", "t", r#"{"command":"ls","description":"b"}"#)
        );
        for [one, other] in [
            [r#"{"command":"ls","explanation":"a","goal":"b"}"#, r#"{"command":"ls","goal":"c"}"#],
            [r#"{"command":"ls","summary":"a"}"#, r#"{"command":"ls","summary":"b"}"#],
        ] {
            assert_eq!(hash("run_in_terminal", "t", one), hash("run_in_terminal", "t", other));
            assert_ne!(hash("w", "t", one), hash("w", "t", other));
        }
        assert_ne!(
            hash("terminal_ticket", "t", r#"{"goal":"a"}"#),
            hash("terminal_ticket", "t", r#"{"goal":"b"}"#)
        );
        for [one, other] in [
            [
                r#"{"path":"a","summary":"x","security_risk":"LOW"}"#,
                r#"{"summary":"y","path":"a","security_risk":"HIGH"}"#,
            ],
            [
                r#"{"command":"ls","summary":"x","riskLevelReason":"y"}"#,
                r#"{"command":"ls","riskLevelReason":"z"}"#,
            ],
        ] {
            assert_eq!(hash("w", "t", one), hash("w", "t", other));
        }
        assert_ne!(
            echoed("t", r#"{"summary":"a","task_progress":"x"}"#),
            echoed("t", r#"{"summary":"b","task_progress":"x"}"#)
        );
        // What is no shell may mean it.
        assert_ne!(
            echoed("t", r#"{"command":"create","description":"a"}"#),
            echoed("t", r#"{"command":"create","description":"b"}"#)
        );
    }

    #[test]
    fn calls_that_differ_are_not_the_same() {
        let texts = [
            "{}",
            "[]",
            "null",
            r#"{"a":null}"#,
            r#"{"a":"null"}"#,
            r#"{"a":["b","c"]}"#,
            r#"{"a":["c","b"]}"#,
            r#"{"a":[["b"],"c"]}"#,
            r#"{"a":"b","b":"a"}"#,
            r#"{"a":"a","b":"b"}"#,
            r#"{"a":{"a":"b"}}"#,
            r#"{"id":"other"}"#,
            r#"{"a":{"id":"t"}}"#,
            r#"{"a":"0123456789abcdef"}"#,
            r#"{"a":"0123456789abcdeg"}"#,
            r#"{"a":1}"#,
            r#"{"a":true}"#,
            r#"{"description":"a"}"#,
            r#"{"description":"b"}"#,
            r#"{"command":"ls"}"#,
            r#"{"a":{"command":"ls"}}"#,
            r#"{"a":{"command":"ls","description":"a"}}"#,
        ];
        let mut all: Vec<u64> = texts.iter().map(|input| hash("w", "t", input)).collect();
        all.push(hash("v", "t", "{}"));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), texts.len() + 1);
    }

    #[test]
    fn results_are_compared_by_what_they_say() {
        let result = |words: &'static str, is_error| {
            let text = Text { text: Str::plain(words), cached: false, cited: false };
            ToolResult { id: Str::plain(words), content: vec![Block::Text(text)], is_error }
        };
        assert!(same_result(&result("a", false), &result("a", false)));
        assert!(!same_result(&result("a", false), &result("b", false)));
        assert!(!same_result(&result("a", false), &result("a", true)));
        for (left, right, same) in [
            (r#""a\nb""#, r#""a\u000ab""#, true),
            (r#""a\nb""#, r#""a\nc""#, false),
            (r#""\u0041b""#, r#""Ab""#, true),
            (r#""\u0041b""#, r#""\u0042b""#, false),
            (r#""\ud83d\ude00!""#, "\"😀!\"", true),
            (r#""\\n""#, r#""\n""#, false),
            (r#""\\\n""#, r#""\\\u000a""#, true),
            (r#""a""#, r#""a\u0020""#, false),
            (r#""tab\there""#, r#""tab\u0009here, and on""#, false),
        ] {
            let read = |text| Reader::new(text, 1).string().unwrap();
            assert_eq!(same_text(read(left), read(right)), same, "{left} {right}");
            assert_eq!(same_text(read(right), read(left)), same, "{right} {left}");
            let far = |text: &str| text.replacen('"', &format!("\"{}", "x".repeat(70)), 1);
            let (left, right) = (far(left), far(right));
            assert_eq!(same_text(read(&left), read(&right)), same, "{left} {right}");
        }
        // The first byte that differs is far from the end.
        let (left, right) =
            [r#""a\n"#, r#""a\u000a"#].map(|text| text.to_owned() + &"x".repeat(70) + "\"").into();
        let read = |text| Reader::new(text, 1).string().unwrap();
        assert!(same_text(read(&left), read(&right)) && same_text(read(&right), read(&left)));
        let empty = ToolResult { id: Str::plain("t"), content: Vec::new(), is_error: false };
        assert!(!same_result(&result("a", false), &empty));
    }

    #[test]
    fn what_a_client_adds_to_a_result_makes_no_difference() {
        let of = |texts: &[&str]| {
            let block = |text: &&str| {
                let quoted = Box::leak(format!("\"{text}\"").into_boxed_str());
                let text = Reader::new(quoted, 1).string().unwrap();
                Block::Text(Text { text, cached: false, cited: false })
            };
            ToolResult {
                id: Str::plain("t"),
                content: texts.iter().map(block).collect(),
                is_error: false,
            }
        };
        let reminder = r"\n\n<system-reminder>\nToken usage: 7/9; a < b\n</system-reminder>\n";
        let (one, two) = (format!("a.txt{reminder}"), format!("a.txt{reminder}{reminder}"));
        let plain = of(&["a.txt"]);
        for same in [of(&[&one]), of(&[&two]), of(&["a.txt", reminder]), of(&[&one, reminder])] {
            assert!(same_result(&plain, &same) && same_result(&same, &plain), "{same:?}");
            assert_eq!(of_result(&plain), of_result(&same), "{same:?}");
        }
        // An escaped backslash and a letter are no white space.
        let (path, noted) = (of(&[r"C:\\n"]), of(&[&format!(r"C:\\n{reminder}")]));
        assert!(same_result(&path, &noted) && of_result(&path) == of_result(&noted));
        for other in [
            of(&[&format!("b.txt{reminder}")]),
            of(&["a.txt", "b"]),
            of(&[&format!("{reminder}a.txt")]),
            of(&[r"a.txt</system-reminder>"]),
            of(&[reminder]),
            of(&[]),
        ] {
            assert!(!same_result(&plain, &other) && !same_result(&other, &plain), "{other:?}");
            assert_ne!(of_result(&plain), of_result(&other), "{other:?}");
        }
    }

    #[test]
    fn results_of_every_kind_are_the_same_if_they_say_the_same() {
        let found = |title: &'static str, text: &'static str| {
            let text = Text { text: Str::plain(text), cached: false, cited: false };
            let (source, title) = (Str::plain("s"), Str::plain(title));
            let content = vec![Block::Text(text)];
            Block::SearchResult(Box::new(SearchResult { source, title, content }))
        };
        let document = |at, source| {
            let (title, context) = (None, None);
            Block::Document(Box::new(Document { at, source, title, context, cached: false }))
        };
        let data = |data| DocumentSource::Base64 {
            media_type: Str::plain("application/pdf"),
            data: Str::plain(data),
        };
        let image = |data| {
            let source = ImageSource::Base64 { media_type: Str::plain("image/png"), data };
            Block::Image(Box::new(Image { at: 3, source, cached: false }))
        };
        let blocks = [
            found("t", "a"),
            found("t", "b"),
            found("u", "a"),
            document(1, data("QQ==")),
            document(1, data("Qg==")),
            document(1, DocumentSource::Text(Str::plain("QQ"))),
            document(1, DocumentSource::Content(vec![found("t", "a")])),
            image(Str::plain("QQ==")),
            Block::ToolReference(Str::plain("QQ==")),
            Block::BrowserState { tabs: "[1]", changes: "" },
            Block::BrowserState { tabs: "", changes: "[1]" },
        ];
        let of = |block: Block<'static>| ToolResult {
            id: Str::plain("t"),
            content: vec![block],
            is_error: false,
        };
        let results = blocks.map(of);
        for (at, left) in results.iter().enumerate() {
            for (other, right) in results.iter().enumerate() {
                assert_eq!(same_result(left, right), at == other, "{left:?} {right:?}");
                assert_eq!(of_result(left) == of_result(right), at == other, "{left:?} {right:?}");
            }
        }
        // Where it stands makes no difference.
        let (here, there) = (of(document(1, data("QQ=="))), of(document(2, data("QQ=="))));
        assert!(same_result(&here, &there) && of_result(&here) == of_result(&there));
    }
}
