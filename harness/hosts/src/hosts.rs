//! Table of all hosts, each started with one configuration.

use serde_json::Value;

use crate::Host;
use crate::component::Component;
use crate::core::Core;
use crate::emulator::{Emulator, Rules};
use crate::process::{EnvoyOptions, Process};
use crate::worker::Worker;

/// Name of a host, with the running host or the error of its start.
pub type Started = (&'static str, Result<Box<dyn Host + Send>, String>);

type Start = fn(&Value) -> Result<Box<dyn Host + Send>, String>;

/// Table of hosts; a new host is one more row.
const HOSTS: &[(&str, Start)] = &[
    ("core", |config| Ok(Box::new(Core::new(config)))),
    ("component", |config| Ok(Box::new(Component::new(config)?))),
    ("emulator", |config| Ok(Box::new(Emulator::new(config, Rules::default())?))),
    ("gateway", |config| Ok(Box::new(Process::gateway(config)?))),
    ("envoy", |config| Ok(Box::new(Process::envoy(config, &EnvoyOptions::default())?))),
    ("worker", |config| Ok(Box::new(Worker::new(config)?))),
];

/// Returns the names of the hosts, the core first.
pub fn names() -> Vec<&'static str> {
    HOSTS.iter().map(|(name, _)| *name).collect()
}

/// Starts all hosts, the core first.
pub fn all(config: &Value) -> Vec<Started> {
    HOSTS.iter().map(|(name, start)| (*name, start(config))).collect()
}
