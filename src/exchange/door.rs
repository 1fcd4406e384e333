//! Checks of a request's head: gateway loops, client keys, and methods that may pass to an
//! upstream.

use super::Exchange;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::{self, Header};
use crate::observe::report::Cause;

/// Maximum number of hosts of Creole that a request passes. A laptop's gateway in front of a team's
/// is two; more are a circle.
const HOPS_MAX: u32 = 4;

/// Methods that go to an upstream on paths that are not Creole's. `TRACE` would show the client
/// what the upstream got, the operator's key included; `CONNECT` would make a tunnel with it.
const PASSED_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

impl Config {
    /// Returns true if a client that sends these headers may come in: no client keys are
    /// configured, or the client sent one.
    #[must_use]
    pub fn lets_in(&self, headers: &[Header]) -> bool {
        let keys = &self.client_keys;
        keys.is_empty() || keys.name_of(headers::sent_credentials(headers)).is_some()
    }
}

impl Exchange {
    /// Checks where a request comes from: not from hosts of Creole that lead to each other, and
    /// where clients have keys, from one of them.
    pub(super) fn check_caller(&mut self, headers: &[Header]) -> Result<(), Error> {
        if headers::hops(headers) >= HOPS_MAX {
            self.report.failed_by = Some(Cause::Loop);
            let message = format!(
                "This request has passed {HOPS_MAX} gateways of Creole: their upstreams lead to each other."
            );
            let error = Error::new(Fault::Operator, ErrorKind::Api, message);
            return Err(error.with_status(508).with_should_retry(false));
        }
        let keys = &self.config.client_keys;
        if keys.is_empty() {
            return Ok(());
        }
        let name = keys.name_of(headers::sent_credentials(headers)).map(str::to_owned);
        if name.is_some() {
            self.report.client_key = name;
            return Ok(());
        }
        self.report.failed_by = Some(Cause::Unauthorized);
        // The real API's words.
        Err(headers::unauthorized(match headers::sent_credentials(headers).next() {
            Some(_) => "invalid x-api-key",
            None => "x-api-key header is required",
        }))
    }

    /// Checks a request for a path that is not Creole's, which the host would send on.
    pub(super) fn check_other(&self, method: &str) -> Result<(), Error> {
        if self.can.serve_others || PASSED_METHODS.contains(&method) {
            return Ok(());
        }
        Err(Error::method_not_allowed(method, &PASSED_METHODS))
    }
}
