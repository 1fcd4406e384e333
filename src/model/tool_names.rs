//! Look-up of the tool that a model means by a name that it wrote.
//!
//! Models garble names: they keep the markup of their templates around them, and spell them as they
//! like. n8n silently drops a call whose name is not exactly a tool's, and asks again for ever.

use super::request_context::{Tool, Tools, Withheld};
use crate::text::words;

impl Tools {
    /// Returns the tool that an upstream means by `name`: the tool of that name, else the only tool
    /// whose name differs from it by case, spaces, `_` and `-` alone.
    pub(crate) fn meant_by(&self, name: &str) -> Option<&Tool> {
        meant_by(&self.sent, name).or_else(|| meant_by(&self.deferred, name))
    }
}

impl Withheld {
    /// Returns true if a call of `name` goes no further. The name may be spelt in another way, as
    /// that of any other tool, unless it is the name of one of the `tools` that were sent.
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

/// Namespaces of functions in the markup of models. Some models write the namespace before the
/// name; Kimi and gpt-oss leave it out in long contexts.
const PREFIXES: [&str; 4] = ["functions.", "default_api.", "default_api:", "tools."];

/// Returns a name without what models write around it: quotes (Qwen), a tag or control token behind
/// it (GLM, gpt-oss, Mistral), and the number of the call (Kimi).
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

/// Returns a name without one tag that ends behind it, or a control token. With more behind it, an
/// input is lost.
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
