//! The Worker in workerd, as it is deployed.

use creole_worker_tests::Worker as Running;
use serde_json::Value;

use crate::{Got, Host, Trial, client};

/// workerd with a Worker of one configuration.
pub struct Worker {
    running: Running,
}

impl Worker {
    /// With this configuration.
    pub fn new(config: &Value) -> Self {
        Self { running: Running::start_with(&[("CREOLE_CONFIG", &config.to_string())]) }
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
