//! Writes the reasoning of earlier turns into a request to the model that produced the reasoning.
//! Reasoning items are sent back unchanged.

use crate::carry::signature::{Signature, SignatureField};
use crate::json::{self, Writer};
use crate::model::Block;
use crate::protocols::responses::wire::write_with;
use crate::tokens;

/// Maximum length in bytes of an item's `id`. Some gateways create longer ids, which OpenAI
/// refuses.
const ID_BYTES_MAX: usize = 64;

/// Returns the reasoning items stored in the signature of a thinking block, as a JSON array.
pub(crate) fn items_of(block: &Block<'_>) -> Option<String> {
    let Block::Thinking { signature, .. } = block else { return None };
    let own = Signature::decode(&signature.decode())?;
    own.opaque.filter(|_| own.field == SignatureField::Item)
}

/// Estimates the number of tokens of reasoning items from their size in bytes. Most bytes of an
/// item are encrypted and base64-encoded.
pub(crate) fn tokens_of(bytes: usize) -> u64 {
    tokens::tokens_of((bytes / 2) as u64)
}

/// Returns the reasoning items that the blocks of one message contain, each with the index of the
/// block before which the item belongs.
///
/// A number before an item is the count of texts between the item and its thinking block: the block
/// was written where its call began.
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

/// Writes a reasoning item. `is_stored`: the upstream may have stored the item.
///
/// An upstream that stores nothing would look up an item without readable reasoning by `id`, and
/// refuse each request of the conversation. So no such item is written.
pub(super) fn write_item(item: &str, is_stored: bool, json: &mut Writer<'_>) {
    match json::member(item, "id").filter(|id| *id != "null") {
        None => drop(json.raw(item)),
        Some(id) if !is_taken(id) => write_with(item, "id", None, json),
        Some(_) if is_stored || brings_reasoning(item) => drop(json.raw(item)),
        Some(_) => {}
    }
}

/// Returns true if a reasoning item has reasoning that the model can read: encrypted, or the full
/// text. A summary does not count.
fn brings_reasoning(item: &str) -> bool {
    let is_filled = |value: &str| {
        let is_empty_list = value.starts_with('[') && json::elements(value).next().is_none();
        !is_empty_list && !matches!(value, "null" | "\"\"")
    };
    ["encrypted_content", "content"]
        .into_iter()
        .any(|name| json::member(item, name).is_some_and(is_filled))
}

/// Returns true if upstreams accept the `id` of a reasoning item. `id` is the raw JSON with quotes.
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
