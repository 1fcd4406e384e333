//! Headers by which a router in front of an upstream's replicas recognizes a conversation.

use super::credentials::check_name;
use crate::setting::word_enum;

/// Maximum number of session headers: no chain of routers reads more names.
const NAMES_MAX: usize = 8;

word_enum! {
    /// Form in which an upstream gets a conversation's id.
    SessionId {
        /// The id as the client sent it. An id that is longer than 128 bytes, or has other
        /// characters than letters, digits and `-_.:`, is sent as its hash.
        Plain = "plain",
        /// The SHA-256 of the id, in hexadecimal digits: the same for all turns, and without the
        /// client's own text.
        Hash = "hash",
    }
}

/// Headers of an upstream that carry the id of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeaders {
    /// Names of the headers, in lower case. If empty, no conversation id is sent.
    pub names: Vec<String>,
    /// Form in which the conversation's id is sent.
    pub id: SessionId,
}

impl Default for SessionHeaders {
    fn default() -> Self {
        Self { names: Vec::new(), id: SessionId::Plain }
    }
}

impl SessionHeaders {
    /// # Errors
    /// The index of the wrong header name, and the reason.
    pub(super) fn of(given: Vec<String>, id: SessionId) -> Result<Self, (usize, String)> {
        let mut names: Vec<String> = Vec::new();
        for (at, name) in given.into_iter().enumerate() {
            let name = name.to_ascii_lowercase();
            check_name(&name).map_err(|reason| (at, reason))?;
            if names.contains(&name) {
                return Err((at, "expected each name once".to_owned()));
            }
            if at >= NAMES_MAX {
                return Err((at, format!("expected at most {NAMES_MAX} names")));
            }
            names.push(name);
        }
        Ok(Self { names, id })
    }
}
