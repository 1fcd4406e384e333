//! Host: the core in this process, with which every other host is compared.

use std::sync::Arc;

use creole::{Call, CallId, Config, End, Exchange, Head, HostCan, Millis, Refusals, RequestHead};
use serde_json::Value;

use crate::seam::{self, Seam};
use crate::{Got, Header, Host, Trial};

/// Host that runs [`Exchange`] directly.
#[derive(Debug)]
pub struct Core {
    config: Arc<Config>,
    refusals: Arc<Refusals>,
}

impl Core {
    /// Creates the host with this configuration.
    pub fn new(config: &Value) -> Self {
        match Config::from_json(&config.to_string(), |_| None) {
            Ok(config) => Self { config: Arc::new(config), refusals: Arc::default() },
            Err(error) => panic!("{error}"),
        }
    }
}

impl Host for Core {
    fn name(&self) -> &'static str {
        "core"
    }

    fn send(&self, trial: &Trial) -> Got {
        let mut exchange = Exchange::new(Arc::clone(&self.config), 0x5eed, HostCan::default());
        exchange.remember(Arc::clone(&self.refusals));
        seam::send(&mut exchange, trial)
    }
}

impl Seam for Exchange {
    fn handle_request_head(&mut self, method: &str, path: &str, headers: &[Header]) -> RequestHead {
        Self::handle_request_head(self, method, path, headers)
    }

    fn handle_request_body(&mut self, body: &[u8], now: Millis) {
        Self::handle_request_body(self, body.to_vec(), now);
    }

    fn handle_call_head(&mut self, id: CallId, status: u16, headers: &[Header], now: Millis) {
        Self::handle_call_head(self, id, status, headers, now);
    }

    fn handle_call_body(&mut self, id: CallId, piece: &[u8], now: Millis) {
        Self::handle_call_body(self, id, piece, now);
    }

    fn handle_call_end(&mut self, id: CallId, how: End, now: Millis) {
        Self::handle_call_end(self, id, how, now);
    }

    fn handle_timeout(&mut self, now: Millis) {
        Self::handle_timeout(self, now);
    }

    fn poll_call(&mut self, now: Millis) -> Option<Call> {
        Self::poll_call(self, now)
    }

    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Head> {
        self.poll_body(out);
        self.poll_head()
    }

    fn poll_timeout(&mut self) -> Option<Millis> {
        Self::poll_timeout(self)
    }

    fn is_ended(&mut self) -> bool {
        Self::is_ended(self)
    }
}
