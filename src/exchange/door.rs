//! Checks of a request's head: gateway loops, client keys, and methods that may be forwarded to an
//! upstream.

use super::Exchange;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::{self, Header};
use crate::observe::report::Cause;

/// Maximum number of Creole gateways that one request may pass. A local gateway in front of a
/// team's gateway makes two; a higher number indicates a loop.
const HOPS_MAX: u32 = 4;

/// HTTP methods that are forwarded to an upstream on paths outside of Creole's. `TRACE` would show
/// the client the upstream's request with the operator's key; `CONNECT` would open a tunnel with
/// the key.
const PASSED_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

impl Config {
    /// Returns true if a client with these headers is authorized: no client keys are configured, or
    /// the client sent one of the keys.
    #[must_use]
    pub fn lets_in(&self, headers: &[Header]) -> bool {
        let keys = &self.client_keys;
        keys.is_empty() || keys.name_of(headers::sent_credentials(headers)).is_some()
    }
}

impl Exchange {
    /// Checks the sender of a request: the request must have a client key if keys are configured,
    /// and must not come from a loop of Creole gateways.
    pub(super) fn check_caller(&mut self, headers: &[Header]) -> Result<(), Error> {
        let keys = &self.config.client_keys;
        let name = keys.name_of(headers::sent_credentials(headers)).map(str::to_owned);
        if name.is_none() && !keys.is_empty() {
            self.report.failed_by = Some(Cause::Unauthorized);
            // The error messages are those of Anthropic's API.
            return Err(headers::unauthorized(match headers::sent_credentials(headers).next() {
                Some(_) => "invalid x-api-key",
                None => "x-api-key header is required",
            }));
        }
        self.report.client_key = name;
        if headers::hops(headers) >= HOPS_MAX {
            self.report.failed_by = Some(Cause::Loop);
            let message = format!(
                "This request has passed {HOPS_MAX} gateways of Creole: their upstreams lead to each other."
            );
            let error = Error::new(Fault::Operator, ErrorKind::Api, message);
            return Err(error.with_status(508).with_should_retry(false));
        }
        Ok(())
    }

    /// Checks the method of a request for a path outside of Creole's, which the host would forward.
    pub(super) fn check_other(&self, method: &str) -> Result<(), Error> {
        if self.can.serve_others || PASSED_METHODS.contains(&method) {
            return Ok(());
        }
        Err(Error::method_not_allowed(method, &PASSED_METHODS))
    }
}
