//! Table D (being built).
use crate::asked::Asked;
use crate::error::{Error, Kind};

/// What an upstream's error becomes.
#[derive(Debug)]
pub enum Refusal {
    /// An error.
    Error(Error),
    /// An answer with `stop_reason: "refusal"`.
    ContentFilter,
}

/// Kind and status for the client, by the upstream's status alone.
#[must_use]
pub fn of_status(status: u16) -> (Kind, u16) {
    (Kind::Api, status)
}

/// An error body of the upstream. `edge_key`: the credential is the gateway's own.
#[must_use]
pub fn from_upstream(status: u16, _body: &[u8], _asked: &Asked, _edge_key: bool) -> Refusal {
    let (kind, status) = of_status(status);
    Refusal::Error(Error::new(crate::error::Fault::Upstream, kind, "not built").with_status(status))
}
