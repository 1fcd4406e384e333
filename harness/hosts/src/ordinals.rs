//! Replacement of generated ids in a text by their order of appearance: `msg_…` becomes `msg_#1`,
//! because such ids differ from run to run. Ids derived from an upstream's ids stay, because they
//! must be the same on every host.

use std::collections::BTreeMap;

use crate::support::tool_id;

/// Number of digits in a generated id after its prefix.
const DIGITS: usize = 24;

/// Generated ids of one exchange, in order of appearance.
#[derive(Debug, Default)]
pub struct Ordinals {
    known: BTreeMap<String, String>,
}

impl Ordinals {
    /// Returns a text with each generated id replaced by the id's order of appearance.
    pub fn replace(&mut self, text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        let mut replaced = String::with_capacity(text.len());
        let mut rest: &str = &text;
        while let Some((before, prefix, after)) = next(rest) {
            replaced.push_str(before);
            let size = after
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
                .unwrap_or(after.len());
            let id = format!("{prefix}{}", &after[..size]);
            let made_up = match prefix {
                "toolu_" => tool_id::decode(&id).is_some_and(|id| tool_id::is_minted(&id)),
                _ => size == DIGITS,
            };
            replaced.push_str(&if made_up { self.ordinal(prefix, id) } else { id });
            rest = &after[size..];
        }
        replaced.push_str(rest);
        replaced
    }

    fn ordinal(&mut self, prefix: &str, id: String) -> String {
        let count = self.known.keys().filter(|known| known.starts_with(prefix)).count();
        self.known.entry(id).or_insert_with(|| format!("{prefix}#{}", count + 1)).clone()
    }
}

fn next(text: &str) -> Option<(&str, &'static str, &str)> {
    let found = ["msg_", "req_", "toolu_"].map(|prefix| text.find(prefix).map(|at| (at, prefix)));
    let (at, prefix) = found.into_iter().flatten().min()?;
    Some((&text[..at], prefix, &text[at + prefix.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_ids_become_ordinals_and_others_stay() {
        let made_up = "A".repeat(24);
        let mut ordinals = Ordinals::default();
        let text = format!("msg_{made_up} toolu_{made_up} msg_{made_up} toolu_1 msg_x");
        assert_eq!(ordinals.replace(text.as_bytes()), "msg_#1 toolu_#1 msg_#1 toolu_1 msg_x");
        let other = format!("msg_{}", "B".repeat(24));
        assert_eq!(ordinals.replace(other.as_bytes()), "msg_#2");
    }
}
