//! Reasoning in the history, on its way back to the model that thought it: whole items, byte for
//! byte.

use crate::carry::signature::{Field, Signature};
use crate::json::{self, Writer};
use crate::model::Block;
use crate::protocols::responses::wire::write_with;
use crate::tokens;

/// Longest `id` of an item. Some gateways give longer ones, and OpenAI refuses them.
const ID_BYTES_MAX: usize = 64;

/// Returns the reasoning items that a block of the assistant carries, as a JSON array.
pub(crate) fn items_of(block: &Block<'_>) -> Option<String> {
    let Block::Thinking { signature, .. } = block else { return None };
    let own = Signature::decode(&signature.decode())?;
    own.opaque.filter(|_| own.field == Field::Item)
}

/// Estimates the tokens of reasoning items of so many bytes. Most of an item is encrypted, in
/// base64.
pub(crate) fn tokens_of(bytes: usize) -> u64 {
    tokens::tokens_of((bytes / 2) as u64)
}

/// Returns the reasoning items that the blocks of one message carry, each with the position of the
/// block before which it stands. A number before an item counts the texts between it and its block,
/// which was written where its call began.
pub(super) fn placed_items(blocks: &[Block<'_>]) -> Vec<(usize, String)> {
    if !blocks.iter().any(|block| matches!(block, Block::Thinking { .. })) {
        return Vec::new();
    }
    let (mut placed, mut texts) = (Vec::new(), Vec::new());
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Text(_) => texts.push(at),
            Block::ToolUse(_) => texts.clear(),
            block => {
                let mut place = at;
                for item in json::elements(items_of(block).as_deref().unwrap_or_default()) {
                    if let Ok(count) = item.parse::<usize>() {
                        let first = texts.len().saturating_sub(count);
                        place = texts.get(first).copied().unwrap_or(at);
                    } else {
                        placed.push((std::mem::replace(&mut place, at), item.to_owned()));
                    }
                }
            }
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    placed
}

/// Writes an item. `is_stored`: the upstream may have stored it. Where it stores nothing, an item
/// with neither encrypted nor written reasoning would be looked up by its `id`, and refused in each
/// request of the conversation.
pub(super) fn write_item(item: &str, is_stored: bool, json: &mut Writer<'_>) {
    match json::member(item, "id").filter(|id| *id != "null") {
        None => drop(json.raw(item)),
        Some(id) if !is_taken(id) => write_with(item, "id", None, json),
        Some(_) if is_stored || brings_reasoning(item) => drop(json.raw(item)),
        Some(_) => {}
    }
}

/// Returns true if an item has reasoning that a model can read: encrypted, or in words. A summary
/// is neither.
fn brings_reasoning(item: &str) -> bool {
    let is_filled = |value: &str| {
        let is_empty_list = value.starts_with('[') && json::elements(value).next().is_none();
        !is_empty_list && !matches!(value, "null" | "\"\"")
    };
    ["encrypted_content", "content"]
        .into_iter()
        .any(|name| json::member(item, name).is_some_and(is_filled))
}

/// Returns true if upstreams take this `id`, which is given as it was written, with its quotes.
fn is_taken(id: &str) -> bool {
    let name = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or_default();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=ID_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(items: &str, is_stored: bool) -> String {
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        json.begin_array();
        json::elements(items).for_each(|item| write_item(item, is_stored, &mut json));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_item_keeps_its_bytes_unless_its_id_is_refused() {
        let kept = r#"[{"id": "rs_1","type":"reasoning", "summary":[] }, {"type":"reasoning"}]"#;
        assert_eq!(
            written(kept, true),
            r#"[{"id": "rs_1","type":"reasoning", "summary":[] },{"type":"reasoning"}"#
        );
        for id in [&*"x".repeat(65), "a b", "", "\\u0061", "\u{e9}"] {
            let item = format!(r#"[{{"id":"{id}","summary":[1.0]}}]"#);
            assert_eq!(written(&item, true), r#"[{"summary":[1.0]}"#, "{id}");
        }
    }

    #[test]
    fn what_nothing_but_an_id_names_goes_back_only_where_it_may_be_stored() {
        for rest in ["", r#","encrypted_content":"""#, r#","encrypted_content":null,"content":[ ]"#]
        {
            let item = format!(r#"{{"id":"rs_1","summary":["Hm."]{rest}}}"#);
            assert_eq!(written(&format!("[{item}]"), false), "[", "{rest}");
            assert_eq!(written(&format!("[{item}]"), true), format!("[{item}"), "{rest}");
        }
        for rest in [r#""encrypted_content":"gAAA""#, r#""content":[{"text":"Hm."}]"#] {
            let item = format!(r#"{{"id":"rs_1",{rest}}}"#);
            assert_eq!(written(&format!("[{item}]"), false), format!("[{item}"), "{rest}");
        }
    }
}
