//! Look-up of the tool that a model means by the name in its call.
//!
//! Models garble names: they add markup of their chat templates, or change the spelling. n8n
//! silently drops a call whose name is not exactly a tool's, and repeats the request endlessly.

use super::request_context::{Tool, Tools, Withheld};
use crate::text::words;

impl Tools {
    /// Returns the tool that an upstream means by `name`: preferably the tool of exactly that name.
    /// Otherwise it is the only tool whose name differs just in case, spaces, `_` and `-`.
    pub(crate) fn meant_by(&self, name: &str) -> Option<&Tool> {
        meant_by(&self.sent, name).or_else(|| meant_by(&self.deferred, name))
    }
}

impl Withheld {
    /// Returns true if calls of `name` are not passed on to the client. A withheld name also
    /// matches in another spelling, unless one of the sent `tools` has that name.
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

/// Namespaces that models write before a function's name. Kimi and gpt-oss leave them out in long
/// contexts.
const PREFIXES: [&str; 4] = ["functions.", "default_api.", "default_api:", "tools."];

/// Returns a name without markup that models add: quotes (Qwen), a trailing tag or control token
/// (GLM, gpt-oss, Mistral), the number of the call (Kimi).
fn without_markup(name: &str) -> &str {
    let name = without_tag(name).trim();
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    // If an input follows `[ARGS]`, the text is not the name of a tool.
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

/// Returns a name without one trailing closing tag or control token. A name with more text after it
/// is kept, so that an input in that text is not lost.
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
mod tests;
