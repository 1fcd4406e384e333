//! Who judges tool calls for clients that ask for verdicts on them.

use super::document::ConfigError;
use super::{Config, Key, MILLISECONDS, Upstream};
use crate::dialect::profile::ResponseFormat;
use crate::json::quoted;
use crate::setting::keys;

keys! {
    /// Who judges tool calls for clients that ask for verdicts (`safeguards`), as Claude Code does in auto mode.
    pub Safeguards {
        /// The model that judges, by its name at its upstream. Empty: none, and no client gets a verdict.
        model: String = String::new();
        /// Its upstream: a name in `upstreams`; may be empty where there is only one.
        upstream: String = String::new();
        /// Longest wait for its verdicts, in milliseconds.
        timeout_ms: u64 = 30_000, MILLISECONDS;
    }
}

impl Upstream {
    /// Whether a request there may have a schema of the answer.
    #[must_use]
    pub(crate) fn takes_schema(&self) -> bool {
        self.profile.response_format != ResponseFormat::None
    }
}

impl Config {
    /// The upstream whose model judges tool calls, and the model's name there; nothing where none judges.
    #[must_use]
    pub fn judge(&self) -> Option<(&Upstream, &str)> {
        let Safeguards { model, upstream, .. } = &self.settings.safeguards;
        if model.is_empty() {
            return None;
        }
        let upstream = match upstream.as_str() {
            "" => self.first_upstream(),
            name => self.upstreams.get(name),
        };
        Some((upstream?, model))
    }

    /// # Errors
    /// A judge is half described, or would get a credential that its client sent for another upstream.
    pub(super) fn check_safeguards(&self) -> Result<(), ConfigError> {
        let Safeguards { model, upstream, .. } = &self.settings.safeguards;
        let refuse =
            |key: &str, reason: String| Err(ConfigError::new(format!("safeguards.{key}"), reason));
        let has_several = self.upstreams.len() > 1;
        if !upstream.is_empty() && !self.upstreams.contains(upstream) {
            let reason = format!("expected a name in upstreams, but found {}", quoted(upstream));
            return refuse("upstream", reason);
        }
        if model.is_empty() {
            return match upstream.as_str() {
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
        if has_several && self.judge().is_some_and(|(judge, _)| judge.key == Key::Client) {
            let reason = "expected an upstream with a key of its own or \"none\": clients send theirs for another one";
            return refuse("upstream", reason.to_owned());
        }
        Ok(())
    }
}
