//! Reasoning in the history, on its way back to the model that thought it: whole items, byte for byte.

use crate::carry::signature::{Field, Signature};
use crate::json::{self, Reader, Writer};
use crate::model::Block;
use crate::tokens;

/// Longest `id` of an item. Some gateways give longer ones, and OpenAI refuses them.
const ID_BYTES_MAX: usize = 64;

/// The reasoning items that a block of the assistant carries, as a JSON array.
pub(crate) fn items_of(block: &Block<'_>) -> Option<String> {
    let Block::Thinking { signature, .. } = block else { return None };
    let own = Signature::decode(&signature.decode())?;
    own.opaque.filter(|_| own.field == Field::Item)
}

/// How many tokens items with so many bytes may have. Most of an item is encrypted, in base64.
pub(crate) fn tokens_of(bytes: usize) -> u64 {
    tokens::tokens_of((bytes / 2) as u64)
}

/// Writes the items of such an array.
pub(super) fn write_items(items: &str, json: &mut Writer<'_>) {
    for item in json::elements(items) {
        let id = json::member(item, "id").filter(|id| *id != "null");
        if id.is_none_or(is_taken) {
            json.raw(item);
        } else {
            write_without_id(item, json);
        }
    }
}

/// Whether an `id`, as it was written, is one that upstreams take.
fn is_taken(id: &str) -> bool {
    let name = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or_default();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=ID_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_safe)
}

fn write_without_id(item: &str, json: &mut Writer<'_>) {
    let mut reader = Reader::of(item);
    json.begin_object();
    // It was read before, so it is an object.
    if reader.begin_object().is_ok() {
        while let Ok(Some(key)) = reader.next_key() {
            let Ok(value) = reader.skip() else { break };
            if key != "id" {
                json.key_str(key).raw(value);
            }
        }
    }
    json.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_keeps_its_bytes_unless_its_id_is_refused() {
        let written = |items: &str| {
            let mut out = Vec::new();
            write_items(items, Writer::new(&mut out).begin_array());
            String::from_utf8(out).unwrap()
        };
        let kept = r#"[{"id": "rs_1","type":"reasoning", "summary":[] }, {"type":"reasoning"}]"#;
        assert_eq!(
            written(kept),
            r#"[{"id": "rs_1","type":"reasoning", "summary":[] },{"type":"reasoning"}"#
        );
        for id in [&*"x".repeat(65), "a b", "", "\\u0061", "\u{e9}"] {
            let item = format!(r#"[{{"id":"{id}","summary":[1.0]}}]"#);
            assert_eq!(written(&item), r#"[{"summary":[1.0]}"#, "{id}");
        }
    }
}
