//! Model of an upstream that the configuration names for Creole's own requests, such as judging
//! tool calls or describing images.

use super::document::ConfigError;
use super::{Config, Key, Upstream};
use crate::json::quoted;

impl Config {
    /// Returns the upstream and the name of a model that a section of the configuration names;
    /// `None` if the section names none.
    pub(super) fn named_model<'c>(
        &'c self,
        model: &'c str,
        upstream: &str,
    ) -> Option<(&'c Upstream, &'c str)> {
        if model.is_empty() {
            return None;
        }
        let upstream = match upstream {
            "" => self.first_upstream(),
            name => self.upstreams.get(name),
        };
        Some((upstream?, model))
    }

    /// # Errors
    /// The model's name or upstream is missing, or the upstream would get a credential that the
    /// client sent for another one. `section` is the key of the section.
    pub(super) fn check_named_model(
        &self,
        section: &str,
        model: &str,
        upstream: &str,
    ) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, reason: String| Err(ConfigError::new(format!("{section}.{key}"), reason));
        let has_several = self.upstreams.len() > 1;
        if !upstream.is_empty() && !self.upstreams.contains(upstream) {
            let reason = format!("expected a name in upstreams, but found {}", quoted(upstream));
            return refuse("upstream", reason);
        }
        if model.is_empty() {
            return match upstream {
                "" => Ok(()),
                _ => {
                    refuse("model", "expected the name of a model, as upstream is given".to_owned())
                }
            };
        }
        if upstream.is_empty() && has_several {
            let reason = "expected the name of an upstream, because there are several";
            return refuse("upstream", reason.to_owned());
        }
        let named = self.named_model(model, upstream);
        if has_several && named.is_some_and(|(upstream, _)| upstream.key == Key::Client) {
            let reason = "expected an upstream with a key of its own or \"none\": clients send theirs for another one";
            return refuse("upstream", reason.to_owned());
        }
        Ok(())
    }
}
