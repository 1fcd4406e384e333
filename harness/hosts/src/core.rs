//! The core in this process: what every other host is compared with.

use std::sync::Arc;

use creole::{
    Config, End, Exchange, Head, Millis, Pings, Refusals, Reply, RequestHead, ResponseHead,
};
use serde_json::Value;

use crate::seam::{self, Seam, Sent};
use crate::{Got, Header, Host, Trial};

/// [`Exchange`] with nothing around it.
#[derive(Debug)]
pub struct Core {
    config: Arc<Config>,
    refusals: Arc<Refusals>,
}

impl Core {
    /// With this configuration.
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
        let mut exchange = Exchange::new(Arc::clone(&self.config), 0x5eed, Pings::No);
        exchange.remember(Arc::clone(&self.refusals));
        seam::send(&mut exchange, trial)
    }
}

impl Seam for Exchange {
    fn handle_request_head(&mut self, method: &str, path: &str, headers: &[Header]) -> RequestHead {
        Self::handle_request_head(self, method, path, headers)
    }

    fn handle_request(&mut self, body: &[u8], now: Millis) -> Result<Sent, Reply> {
        let sent = Self::handle_request(self, body, now).map_err(|reply| *reply)?;
        Ok(Sent { path: sent.path, headers: sent.headers, body: sent.body })
    }

    fn handle_response_head(
        &mut self,
        status: u16,
        headers: &[Header],
        now: Millis,
    ) -> ResponseHead {
        Self::handle_response_head(self, status, headers, now)
    }

    fn handle_response_body(
        &mut self,
        piece: &[u8],
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        Self::handle_response_body(self, piece, now, out)
    }

    fn handle_response_end(&mut self, how: End, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        Self::handle_response_end(self, how, now, out)
    }

    fn handle_timeout(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        Self::handle_timeout(self, now, out)
    }

    fn poll_timeout(&mut self) -> Option<Millis> {
        Self::poll_timeout(self)
    }

    fn is_ended(&mut self) -> bool {
        Self::is_ended(self)
    }
}
