//! Configuration for one route of a host. Envoy has no Wasm configuration for each route, but
//! routes have metadata, in which an operator can change settings.

use super::document::{ConfigError, DEPTH_MAX, Document};
use super::{Config, Guards, Settings};
use crate::json::{Error, Reader};
use crate::setting::{Keys as _, Overrides, Setting, read_object};

/// Keys that a route cannot change, because they apply to all streams of a VM or process together,
/// or name secrets of the host.
const SHARED: [&str; 7] = [
    "upstreams",
    "client_keys",
    "buffered_bytes_max",
    "pause_headers",
    "deferred_flush",
    "check_route",
    "server_tools",
];

impl Config {
    /// Returns this configuration with the changes of a route. `text` is a document whose `models`
    /// and settings replace those of this configuration. Its `guards` are merged into the existing
    /// guards, including those of upstreams.
    ///
    /// # Errors
    /// The same errors as for [`Config::from_json`], or the document has a key that a route cannot
    /// change.
    ///
    /// ```
    /// use creole::Config;
    ///
    /// let config = Config::from_json(r#"{"guards": {"pairing": "reject"}}"#, |_| None)?;
    /// let route = config.for_route(r#"{"strict": true, "guards": {"tool_turns_max": 10}}"#)?;
    /// assert!(route.settings.strict);
    /// assert_eq!(route.settings.guards.pairing, config.settings.guards.pairing);
    /// assert!(config.for_route(r#"{"upstreams": {}}"#).is_err());
    /// # Ok::<(), creole::config::ConfigError>(())
    /// ```
    pub fn for_route(&self, text: &str) -> Result<Self, ConfigError> {
        let mut config = self.clone();
        let mut models = None;
        let mut reader = Reader::new(text, DEPTH_MAX);
        let mut known = [Document::FIELDS, Settings::FIELDS].concat();
        known.retain(|field| !SHARED.contains(&field.name));
        read_object(&mut reader, &known, |key, reader| {
            match key {
                key if SHARED.contains(&key) => {
                    let reason = "expected no such key, because a route cannot change it";
                    return Err(Error::value(reason));
                }
                "models" => models = Some(Setting::read(reader)?),
                "guards" => config.read_guards_over(&Setting::read(reader)?)?,
                _ => return config.settings.read_key(key, reader),
            }
            Ok(true)
        })?;
        reader.end()?;
        config.set_models(models)?;
        config.settings.check()?;
        for upstream in config.upstreams.values() {
            config.guards(upstream).check("guards")?;
        }
        Ok(config)
    }

    fn read_guards_over(&mut self, overrides: &Overrides<Guards>) -> Result<(), Error> {
        let own = self.upstreams.values_mut().filter_map(|upstream| upstream.guards.as_mut());
        own.chain([&mut self.settings.guards]).try_for_each(|guards| overrides.apply(guards))
    }
}

#[cfg(test)]
mod tests;
