//! Triggers: words in a prompt that choose the answer, as `demo:WORD ARGUMENT`.
//! `docs/quick-start.md` explains each of them.

/// Triggers of one message: the behaviour that words such as `demo:say` ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Triggers {
    /// Names of the tools to call: `tool NAME`, once for each call.
    pub(crate) tools: Vec<String>,
    /// Arguments of the calls in order, unchanged (trigger `input TEXT`). If more calls follow,
    /// they get the last arguments.
    pub(crate) inputs: Vec<String>,
    /// Server tool to call if the request offers its function: `search WORDS`, `fetch URL`, `mcp`.
    pub(crate) server: Option<ServerCall>,
    /// Id of every call, unchanged (trigger `id TEXT`).
    pub(crate) id: Option<String>,
    /// Number of calls in one message (trigger `parallel N`).
    pub(crate) parallel: Option<usize>,
    /// True if the deltas of parallel calls take turns (trigger `interleave`).
    pub(crate) interleave: bool,
    /// Number of turns with tool calls before the answer (trigger `turns N`, or `Nturns`).
    pub(crate) turns: Option<usize>,
    /// Text of the answer (trigger `say TEXT`).
    pub(crate) say: Option<String>,
    /// Length of the answer's text in bytes (trigger `big N`).
    pub(crate) big: Option<usize>,
    /// Name of the field for reasoning (trigger `reason`, or `reason reasoning`).
    pub(crate) reason: Option<String>,
    /// True if the answer is a `refusal` (trigger `refuse`).
    pub(crate) refuse: bool,
    /// True if the answer ends at half with `finish_reason: length` (trigger `length`).
    pub(crate) length: bool,
    /// True if the answer ends with `finish_reason: content_filter` (trigger `filter`).
    pub(crate) filter: bool,
    /// True if the answer has no usage (trigger `no-usage`).
    pub(crate) no_usage: bool,
    /// Status or code of an error in place of the answer (trigger `error STATUS` or `error CODE`).
    pub(crate) error: Option<String>,
    /// True if the answer is status 200 with an error object (trigger `error-in-200`).
    pub(crate) error_in_200: bool,
    /// True if an error object comes in the middle of the stream (trigger `error-mid`).
    pub(crate) error_mid: bool,
    /// True if the answer is an HTML page (trigger `html`).
    pub(crate) html: bool,
    /// True if the body of the answer is empty (trigger `empty`).
    pub(crate) empty: bool,
    /// True if the JSON, or an event of the stream, breaks off in the middle (trigger `json-cut`).
    pub(crate) json_cut: bool,
    /// True if the stream ends between events, without finish and `[DONE]` (trigger `unfinished`).
    pub(crate) unfinished: bool,
    /// True if the connection is cut in the middle of the answer (trigger `cut`).
    pub(crate) cut: bool,
    /// True if the answer stops in the middle, and the connection stays open (trigger `hang`).
    pub(crate) hang: bool,
    /// Pause before the head of the answer, in milliseconds (trigger `late MS`).
    pub(crate) late_ms: u64,
    /// Pause in the middle of the answer, in milliseconds (trigger `stall MS`).
    pub(crate) stall_ms: u64,
    /// Pause before each piece of the answer, in milliseconds (trigger `slow MS`).
    pub(crate) slow_ms: u64,
    /// Size of the pieces that the stream is cut into instead of events (trigger `pieces BYTES`).
    pub(crate) pieces: Option<usize>,
}

/// Call of a tool that Anthropic's servers, or Creole, run for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerCall {
    /// Search of the web for these words.
    Search(String),
    /// Fetch of the page at this URL.
    Fetch(String),
    /// Call of the first tool of an MCP server.
    Mcp,
}

const PREFIX: &str = "demo:";

/// Returns true if a text has a trigger.
pub(crate) fn any(text: &str) -> bool {
    text.contains(PREFIX)
}

impl Triggers {
    /// Reads every trigger of a text. Fails for an unknown word, so that a misspelt trigger in a
    /// test does not pass for a plain prompt.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for (_, after) in text.match_indices(PREFIX).filter_map(|(at, prefix)| {
            text.get(at.saturating_add(prefix.len())..).map(|after| (at, after))
        }) {
            let end =
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(after.len());
            let (word, rest) = after.split_at_checked(end).unwrap_or((after, ""));
            read.set(word, rest)?;
        }
        Ok(read)
    }

    fn set(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let line = rest.lines().next().unwrap_or_default().trim();
        let line = line.split(PREFIX).next().unwrap_or_default().trim_end();
        let argument = line.split_whitespace().next().unwrap_or_default();
        let number = |what: &str| -> Result<u64, String> {
            let digits: String = argument.chars().take_while(char::is_ascii_digit).collect();
            digits
                .parse()
                .map_err(|_| format!("demo:{what}: expected a number, but found {line:?}"))
        };
        let count = |what: &str| number(what).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        match word {
            "tool" => self.tools.push(name(argument)),
            "input" => {
                self.inputs.push(rest.lines().next().unwrap_or_default().trim().to_owned());
            }
            "search" => self.server = Some(ServerCall::Search(line.to_owned())),
            "fetch" => self.server = Some(ServerCall::Fetch(argument.to_owned())),
            "mcp" => self.server = Some(ServerCall::Mcp),
            "id" => self.id = Some(argument.to_owned()),
            "parallel" => self.parallel = Some(count(word)?),
            "interleave" => self.interleave = true,
            "turns" => self.turns = Some(count(word)?),
            "say" => self.say = Some(line.to_owned()),
            "big" => self.big = Some(count(word)?),
            "reason" => self.reason = Some(name(argument)),
            "refuse" => self.refuse = true,
            "length" => self.length = true,
            "filter" => self.filter = true,
            "no-usage" => self.no_usage = true,
            "error" => self.error = Some(name(argument)),
            "error-in-200" => self.error_in_200 = true,
            "error-mid" => self.error_mid = true,
            "html" => self.html = true,
            "empty" => self.empty = true,
            "json-cut" => self.json_cut = true,
            "unfinished" => self.unfinished = true,
            "cut" => self.cut = true,
            "hang" => self.hang = true,
            "late" => self.late_ms = number(word)?,
            "stall" => self.stall_ms = number(word)?,
            "slow" => self.slow_ms = number(word)?,
            "pieces" => self.pieces = Some(count(word)?),
            turns => match turns.strip_suffix("turns").and_then(|n| n.parse().ok()) {
                Some(turns) => self.turns = Some(turns),
                None => return Err(format!("demo:{word}: expected a word of docs/quick-start.md")),
            },
        }
        Ok(())
    }
}

/// Returns the argument of a trigger, without the punctuation of the sentence around it.
fn name(argument: &str) -> String {
    argument
        .trim_matches(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_found_anywhere_in_a_sentence() {
        let read = Triggers::read("Please `demo:tool get_weather`, demo:slow 5. And demo:3turns!");
        let wanted = Triggers {
            tools: vec!["get_weather".to_owned()],
            slow_ms: 5,
            turns: Some(3),
            ..Triggers::default()
        };
        assert_eq!(read.unwrap(), wanted);
    }

    #[test]
    fn an_input_is_the_rest_of_its_line() {
        let read = Triggers::read("demo:tool a\ndemo:input {\"x\": \"demo:y\nmore").unwrap_err();
        assert!(read.starts_with("demo:y:"));
        let read = Triggers::read("demo:input {\"x\": 1\nmore").unwrap();
        assert_eq!(read.inputs, ["{\"x\": 1"]);
    }

    #[test]
    fn what_is_said_ends_at_the_next_trigger() {
        let read = Triggers::read("demo:say Hello there. demo:length").unwrap();
        assert_eq!((read.say.as_deref(), read.length), (Some("Hello there."), true));
    }

    #[test]
    fn a_server_tool_is_asked_for_with_words_or_an_address() {
        let read = |text: &str| Triggers::read(text).unwrap().server;
        let search = ServerCall::Search("rust 2024 edition".to_owned());
        assert_eq!(read("demo:search rust 2024 edition\nPlease."), Some(search));
        let fetch = ServerCall::Fetch("https://a.example/x?y=1".to_owned());
        assert_eq!(read("demo:fetch https://a.example/x?y=1 now"), Some(fetch));
        assert_eq!(read("demo:mcp"), Some(ServerCall::Mcp));
        assert_eq!(read("a search"), None);
    }

    #[test]
    fn an_unknown_word_or_a_missing_number_is_refused() {
        assert!(Triggers::read("demo:tols x").is_err());
        assert!(Triggers::read("demo:stall soon").is_err());
    }
}
