//! The `encrypted_content` of a reasoning item. It is not secret: it holds what the demo model has
//! to know when the item comes back, because nothing is stored, and a checksum that shows every
//! change.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::plan::hash;

/// Encrypted content of the original begins so.
const PREFIX: &str = "gAAAAAB";

/// Binding of a reasoning item to its id, its model and the call that came next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The `id` of the item.
    pub(crate) id: String,
    /// The model that thought it.
    pub(crate) model: String,
    /// The `call_id` of the call that came next; nothing where that was a message.
    pub(crate) call_id: Option<String>,
}

impl Sealed {
    /// Writes the binding as the `encrypted_content` of an item.
    pub(crate) fn seal(&self) -> String {
        let bound = serde_json::json!([self.id, self.model, self.call_id]).to_string();
        let checked = format!("{:016x}{bound}", hash(bound.as_bytes()));
        format!("{PREFIX}{}", STANDARD.encode(checked))
    }

    /// Reads an `encrypted_content`; gives nothing if one byte was changed.
    pub(crate) fn open(sealed: &str) -> Option<Self> {
        let checked = STANDARD.decode(sealed.strip_prefix(PREFIX)?).ok()?;
        let (_, bound) = std::str::from_utf8(&checked).ok()?.split_at_checked(16)?;
        let (id, model, call_id) = serde_json::from_str(bound).ok()?;
        let read = Self { id, model, call_id };
        (read.seal() == sealed).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_opens_only_with_every_byte() {
        let bound = Sealed {
            id: "rs_1".to_owned(),
            model: "demo\n\"x\"".to_owned(),
            call_id: Some("call_1".to_owned()),
        };
        let sealed = bound.seal();
        assert_eq!(Sealed::open(&sealed), Some(bound));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(Sealed::open(&String::from_utf8(changed).unwrap()), None, "{at}");
            assert_eq!(sealed.get(..at).and_then(Sealed::open), None, "{at}");
        }
    }
}
