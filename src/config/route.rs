//! A configuration as one route of a host wants it. Envoy has no Wasm configuration per route, but routes
//! have metadata.

use super::document::{ConfigError, DEPTH_MAX, named};
use super::{Config, ModelMap, Settings, Target};
use crate::json::{Error, Reader};
use crate::setting::{self, Setting as _};

/// What all streams of a VM or process share, so that a route cannot have its own.
const SHARED: [&str; 6] = [
    "upstreams",
    "client_keys",
    "buffered_bytes_max",
    "pause_headers",
    "deferred_flush",
    "check_route",
];

impl Config {
    /// This configuration as a route wants it: `text` is a document whose `models` and settings stand in
    /// place of those here. Its `guards` are read over those here, of upstreams too.
    ///
    /// # Errors
    /// As for [`Config::from_json`], or the document has a key that a route cannot change.
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
        let mut known = "models".to_owned();
        for key in Settings::KEYS.split_ascii_whitespace().filter(|key| !SHARED.contains(key)) {
            known.push(' ');
            known.push_str(key);
        }
        setting::object(&mut reader, &known, &mut |key, reader| {
            match key {
                key if SHARED.contains(&key) => {
                    let reason = "expected no such key, because a route cannot change it";
                    return Err(Error::value(reason));
                }
                "models" => models = Some(named(reader, Target::read)?),
                "guards" => config.read_guards_over(reader.raw()?.text())?,
                _ => return config.settings.read_key(key, reader),
            }
            Ok(true)
        })?;
        reader.end()?;
        if let Some(models) = models {
            config.models = ModelMap::of(models, &config.upstreams)?;
        }
        config.settings.check()?;
        for upstream in config.upstreams.values() {
            config.guards(upstream).check("guards")?;
        }
        Ok(config)
    }

    fn read_guards_over(&mut self, text: &str) -> Result<(), Error> {
        let own = self.upstreams.values_mut().filter_map(|upstream| upstream.guards.as_mut());
        for guards in own.chain([&mut self.settings.guards]) {
            guards.read_over(&mut Reader::new(text, DEPTH_MAX))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
