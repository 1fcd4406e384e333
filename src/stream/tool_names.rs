//! Which tool a model means by a name that it wrote.
//!
//! Models garble names: they keep the markup of their templates around them, and spell them as they like. n8n
//! silently drops a call whose name is not exactly a tool's, and asks again for ever.

use crate::request_context::{Tool, Tools, Withheld};
use crate::words;

impl Tools {
    /// The tool that an upstream means by `name`: the one of that name, else the only one whose
    /// name differs from it by case, spaces, `_` and `-` alone.
    pub(crate) fn meant_by(&self, name: &str) -> Option<&Tool> {
        meant_by(&self.sent, name).or_else(|| meant_by(&self.deferred, name))
    }
}

impl Withheld {
    /// Whether a call of `name` goes no further. As of any other tool, the name may be spelt in another
    /// way, unless it is that of one of the `tools` that were sent.
    pub(crate) fn holds(&self, name: &str, tools: &Tools) -> bool {
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

/// Where models keep their functions in their own markup. Some write it before the name; Kimi and gpt-oss leave
/// it out in long contexts.
const PREFIXES: [&str; 4] = ["functions.", "default_api.", "default_api:", "tools."];

/// A name without what models write around it: quotes (Qwen), a tag or control token behind it (GLM, gpt-oss, Mistral),
/// and the number of the call (Kimi).
fn without_markup(name: &str) -> &str {
    let name = without_tag(name).trim();
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    // With an input behind it, that is no name.
    let name = name.strip_suffix("[ARGS]").unwrap_or(name).trim();
    match words::rsplit_once(name, b':') {
        Some((before, number))
            if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            before
        }
        _ => name,
    }
}

/// A name without one tag that ends behind it, or a control token. With more behind it, an input is lost.
fn without_tag(name: &str) -> &str {
    let before = words::before(name, b"<");
    let tag = name.get(before.len()..).unwrap_or_default();
    let end = tag.strip_prefix("</").and_then(|tag| tag.trim_end().strip_suffix('>'));
    let ends = end.is_some_and(|word| !words::has_byte(word, b'<') && !words::has_byte(word, b'>'));
    if ends || tag.starts_with("<|") { before } else { name }
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
            ("get</arg_value>", Some("get")),
            ("get</function>", Some("get")),
            ("get\n<arg_value>ls</arg_value>", None),
            ("get<arg_key>city</arg_key><arg_value>Paris</arg_value>", None),
            ("get<parameter=city>Paris", None),
            ("get <tool_call>get", None),
            ("\"get\"", Some("get")),
            ("\"get", None),
            ("functions.get:", None),
            ("<|channel|>", None),
        ] {
            assert_eq!(tools.meant_by(name).map(|tool| tool.outgoing.as_str()), expected, "{name}");
        }
    }
}
