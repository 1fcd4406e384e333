//! What an answer must know about its request.
//!
//! Written by `translate` while it reads the request, read by `stream` and by `translate` again
//! while they read the answer. It owns its texts: the request body is gone by then.

use crate::names::NameSet;
use crate::profile::Profile;
use crate::words;

/// What an answer must know about its request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// The model that the client named, which the answer reports.
    pub model: String,
    /// The upstream knows it by another name.
    pub model_mapped: bool,
    /// The most tokens that the upstream was asked for; 0 where that is not known.
    pub max_tokens: u64,
    /// Whether the client wants a stream.
    pub stream: bool,
    /// The tools that were sent to the upstream.
    pub tools: Tools,
    /// The client's stop sequences. The text is cut here too: the upstream may not know all of them
    /// (`stop`, `max_stop`), or ignore them.
    pub stop_sequences: Vec<String>,
    /// Whether reasoning is shown.
    pub thinking: Thinking,
    /// Reasoning must come back with tool calls (`reasoning_history`), so a thinking block carries
    /// it even when its text is not shown.
    pub reasoning_returns: bool,
    /// Which upstream thinks, for the signature of thinking blocks; empty where there is only one.
    pub upstream_mark: String,
    /// The same of its model, for reasoning that no other model takes.
    pub model_mark: String,
    /// The client allows one tool call only (`disable_parallel_tool_use`).
    pub one_tool_call: bool,
    /// The tools that a guard withheld or the client forbids, which the model may call all the same.
    pub withheld: Withheld,
    /// The ids of all `tool_use` blocks in the history; a new id must differ from them.
    pub ids_used: NameSet<'static>,
    /// Estimated input tokens, for `message_start`, which comes before the upstream's usage.
    pub input_tokens: u64,
    /// The upstream got the gateway's own credential: what it says of that is not for the client.
    pub edge_key: bool,
    /// The final assistant text, where the profile says that the upstream repeats it.
    pub prefill: String,
    /// The upstream got images.
    pub has_images: bool,
    /// The upstream got reasoning of earlier turns, if there are any.
    pub has_reasoning: bool,
    /// What shape the request had.
    pub shape: Shape,
    /// What the upstream's answers need.
    pub profile: Profile,
}

/// How much of what there is in a request: counts, for metrics and logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Messages.
    pub messages: u32,
    /// Tools that the client offered.
    pub tools: u32,
    /// Tool results.
    pub tool_results: u32,
    /// Those of them that no earlier request had: that come after the assistant's last message.
    pub new_results: u32,
    /// Ids of tool calls that carry an upstream's id as it is.
    pub ids_decoded: u32,
    /// Ids that carry one behind a tag.
    pub ids_tagged: u32,
    /// Ids of another endpoint.
    pub ids_foreign: u32,
}

/// Whether reasoning is shown to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// No thinking blocks.
    #[default]
    Hidden,
    /// Thinking blocks with empty text (`display: "omitted"`).
    Omitted,
    /// Thinking blocks with their text.
    Shown,
}

/// The tools whose calls are not passed on to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Withheld {
    /// None.
    #[default]
    Nothing,
    /// These, as the upstream knows them.
    These(Vec<String>),
    /// All but those that were sent: the model must answer by calling one of these.
    Unsent,
    /// All: the model must answer.
    All,
    /// All, because the client forbids calls (`tool_choice: none`), which some servers do not read.
    Forbidden,
}

impl Withheld {
    /// Whether a call of `name` goes no further. As of any other tool, the name may be spelt in another
    /// way, unless it is that of one of the `tools` that were sent.
    #[must_use]
    pub fn holds(&self, name: &str, tools: &Tools) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(names) => {
                let is_none_of_them = tools.meant_by(name).is_none();
                names.iter().any(|withheld| {
                    let tool = || Tool { outgoing: withheld.clone(), ..Tool::default() };
                    withheld == name || is_none_of_them && meant_by(&[tool()], name).is_some()
                })
            }
            Self::Unsent => meant_by(&tools.sent, name).is_none(),
            Self::All | Self::Forbidden => true,
        }
    }
}

/// The tools that were sent to the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    sent: Vec<Tool>,
    /// Those that the client would load first. A model that knows their names may call them all the same.
    deferred: Vec<Tool>,
}

/// One tool, under both its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// What the upstream knows it as.
    pub outgoing: String,
    /// What the client knows it as.
    pub name: String,
    /// The client's toolset of which it is a member (`computer`, `browser`).
    pub toolset: Option<&'static str>,
    /// Its JSON Schema, kept only where the answer needs it: tool calls written as text, checks of
    /// inputs.
    pub schema: Option<String>,
}

impl Tools {
    /// Adds a tool.
    pub fn push(&mut self, tool: Tool) {
        self.sent.push(tool);
    }

    /// Adds a tool that was not sent, because nothing has loaded it.
    pub fn push_deferred(&mut self, tool: Tool) {
        self.deferred.push(tool);
    }

    /// All of them, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.sent.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The tool that an upstream means by `name`: the one of that name, else the only one whose
    /// name differs from it by case, spaces, `_` and `-` alone.
    ///
    /// n8n silently drops a call whose name is not exactly a tool's, and asks again for ever.
    #[must_use]
    pub fn meant_by(&self, name: &str) -> Option<&Tool> {
        meant_by(&self.sent, name).or_else(|| meant_by(&self.deferred, name))
    }
}

fn meant_by<'t>(tools: &'t [Tool], name: &str) -> Option<&'t Tool> {
    let exact = |name: &str| tools.iter().find(|tool| tool.outgoing == name);
    let alike = |name: &str| {
        let mut alike = tools.iter().filter(|tool| {
            same_but_for_spelling(&tool.outgoing, name) || same_but_for_spelling(&tool.name, name)
        });
        alike.next().filter(|_| alike.next().is_none())
    };
    if let Some(tool) = exact(name) {
        return Some(tool);
    }
    let name = without_markup(name);
    let bare = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    exact(name)
        .or_else(|| bare.and_then(exact))
        .or_else(|| alike(name))
        .or_else(|| bare.and_then(alike))
}

/// Where models keep their functions in their own markup; some write it before the name.
const PREFIXES: [&str; 4] = ["functions.", "default_api.", "default_api:", "tools."];

/// A name without what models write after it: a control token (gpt-oss, Mistral), and the number of the call (Kimi).
fn without_markup(name: &str) -> &str {
    let name = words::split_once(name, "<|").map_or(name, |(before, _)| before);
    // With an input behind it, that is no name.
    let name = name.trim();
    let name = name.strip_suffix("[ARGS]").unwrap_or(name).trim();
    match name.rsplit_once(':') {
        Some((before, number))
            if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            before
        }
        _ => name,
    }
}

fn same_but_for_spelling(left: &str, right: &str) -> bool {
    let letters = |text: &'_ str| {
        let letters = text.bytes().filter(|letter| !matches!(letter, b' ' | b'_' | b'-'));
        letters.map(|letter| letter.to_ascii_lowercase()).collect::<Vec<u8>>()
    };
    letters(left) == letters(right) && !letters(left).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Tools {
        let mut tools = Tools::default();
        for name in names {
            let name = (*name).to_owned();
            tools.push(Tool { outgoing: name.clone(), name, ..Tool::default() });
        }
        tools
    }

    #[test]
    fn a_name_is_repaired_only_when_one_tool_is_meant() {
        let tools = tools(&["Research_Agent", "read", "Read", "list-dir"]);
        let meant = |name| tools.meant_by(name).map(|tool| tool.name.as_str());
        assert_eq!(meant("Research Agent"), Some("Research_Agent"));
        assert_eq!(meant("research-agent"), Some("Research_Agent"));
        assert_eq!(meant("ListDir"), Some("list-dir"));
        assert_eq!(meant("Read"), Some("Read"));
        assert_eq!(meant("READ"), None);
        assert_eq!(meant("Bassh"), None);
        assert_eq!(meant("_"), None);
    }

    #[test]
    fn a_deferred_tool_is_known_but_was_not_sent() {
        let mut tools = tools(&["read"]);
        let waits =
            Tool { outgoing: "mcp_find".into(), name: "mcp_find".into(), ..Tool::default() };
        tools.push_deferred(waits);
        assert_eq!(tools.meant_by("mcp-find").map(|tool| tool.name.as_str()), Some("mcp_find"));
        assert_eq!(tools.iter().count(), 1);
        assert!(Withheld::Unsent.holds("mcp_find", &tools));
        assert!(!Withheld::Unsent.holds("read", &tools));
        assert!(!Withheld::These(vec!["read".to_owned()]).holds("mcp_find", &tools));
    }

    #[test]
    fn a_prefix_of_the_models_own_markup_is_no_part_of_a_name() {
        let tools = tools(&["get", "functions.put", "put"]);
        for (name, expected) in [
            ("functions.get", Some("get")),
            ("default_api:get", Some("get")),
            ("default_api.get", Some("get")),
            ("functions.put", Some("functions.put")),
            ("functions.Put", Some("functions.put")),
            ("functions.GET", Some("get")),
            ("other.get", None),
            ("functions.", None),
            // Nor is what follows it there.
            ("functions.get:0", Some("get")),
            ("get[ARGS]", Some("get")),
            ("get[ARGS]{\"path\":\"/a\"}", None),
            ("get\n", Some("get")),
            ("\tget", Some("get")),
            ("get<|channel|>commentary", Some("get")),
            ("functions.get:", None),
            ("<|channel|>", None),
        ] {
            assert_eq!(tools.meant_by(name).map(|tool| tool.outgoing.as_str()), expected, "{name}");
        }
    }
}
