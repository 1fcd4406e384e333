//! Format of the `encrypted_content` of a reasoning item. The content is not secret: it holds what
//! the demo model must know when the item comes back, because the server stores nothing, and a
//! checksum that reveals any change.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::plan::hash;

/// Prefix of the original API's encrypted content.
const PREFIX: &str = "gAAAAAB";

/// Data that binds a reasoning item to its id, its model and the call after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// Value of the reasoning item's `id`.
    pub(crate) id: String,
    /// Name of the model that produced the reasoning.
    pub(crate) model: String,
    /// Value of `call_id` in the call after the reasoning; `None` if a message followed.
    pub(crate) call_id: Option<String>,
}

impl Sealed {
    /// Returns the binding as the `encrypted_content` of a reasoning item.
    pub(crate) fn seal(&self) -> String {
        let bound = serde_json::json!([self.id, self.model, self.call_id]).to_string();
        let checked = format!("{:016x}{bound}", hash(bound.as_bytes()));
        format!("{PREFIX}{}", STANDARD.encode(checked))
    }

    /// Reads an `encrypted_content`. Returns `None` if any byte was changed.
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
