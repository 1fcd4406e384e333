//! Model that judges tool calls, for clients that request verdicts on tool calls.

use super::document::ConfigError;
use super::{Config, MILLISECONDS, Upstream};
use crate::profile::ResponseFormat;
use crate::setting::keys;

keys! {
    /// Model that judges tool calls for clients that request verdicts (`safeguards`), as Claude
    /// Code does in auto mode.
    pub Safeguards {
        /// Name of the judging model at its upstream. Empty: no model judges, and no client gets a
        /// verdict.
        model: String = String::new();
        /// Name of the judging model's upstream in `upstreams`; may be empty where there is only
        /// one upstream.
        upstream: String = String::new();
        /// Longest wait for the verdicts, in milliseconds.
        timeout_ms: u64 = 30_000, MILLISECONDS;
    }
}

impl Upstream {
    /// Returns true if a request to the upstream may contain a schema for the answer.
    #[must_use]
    pub(crate) fn takes_schema(&self) -> bool {
        self.profile.response_format != ResponseFormat::None
    }
}

impl Config {
    /// Returns the upstream and the name of the model that judges tool calls; `None` if none is
    /// configured.
    #[must_use]
    pub fn judge(&self) -> Option<(&Upstream, &str)> {
        let Safeguards { model, upstream, .. } = &self.settings.safeguards;
        self.named_model(model, upstream)
    }

    /// # Errors
    /// The judge's name or upstream is missing, or the upstream would get a credential that the
    /// client sent for another one.
    pub(super) fn check_safeguards(&self) -> Result<(), ConfigError> {
        let Safeguards { model, upstream, .. } = &self.settings.safeguards;
        self.check_named_model("safeguards", model, upstream)
    }
}
