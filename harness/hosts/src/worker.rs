//! Host: the Cloudflare Worker in workerd, as it is deployed.

use std::panic::catch_unwind;

use creole_worker_tests::Worker as Running;
use serde_json::Value;

use crate::{Got, Host, Trial, client};

/// Running workerd with a Worker of one configuration.
pub struct Worker {
    running: Running,
}

impl Worker {
    /// Starts the Worker with this configuration. A panic during the start is returned as an error.
    pub fn new(config: &Value) -> Result<Self, String> {
        let config = config.to_string();
        let running = catch_unwind(|| Running::start_with(&[("CREOLE_CONFIG", &config)]));
        Ok(Self { running: running.map_err(|_| "see the panic above".to_owned())? })
    }
}

impl Host for Worker {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn send(&self, trial: &Trial) -> Got {
        client::send_trial(self.running.address, trial)
    }
}
