//! Who and what may come in, before a request is read.

use super::Exchange;
use crate::error::Error;

/// The methods that go to an upstream on paths that are not Creole's. `TRACE` would show the client what the upstream
/// got, the operator's key included; `CONNECT` would make a tunnel with it.
const PASSED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

impl Exchange {
    /// For a host in front of other services, such as a filter in a proxy: requests for paths that are not Creole's
    /// belong to those services, and get no answer from Creole.
    pub fn leave_others(&mut self) {
        self.leaves_others = true;
    }

    /// Checks a request for a path that is not Creole's, which the host would send on.
    pub(super) fn check_other(&self, method: &str) -> Result<(), Error> {
        if self.leaves_others || PASSED_METHODS.split(", ").any(|known| known == method) {
            return Ok(());
        }
        Err(Error::method_not_allowed(method, PASSED_METHODS))
    }
}
