//! Which model describes images for those that see none.

use super::document::ConfigError;
use super::{Config, MILLISECONDS, Upstream};
use crate::setting::{Bounds, keys};

keys! {
    /// Which model describes images for upstreams whose models see none (`image_parts: "none"`).
    pub Vision {
        /// The model that describes, by its name at its upstream. Empty: none, and a text says that an image was left
        /// out.
        model: String = String::new();
        /// Its upstream: a name in `upstreams`; may be empty where there is only one.
        upstream: String = String::new();
        /// Most images of one request that are described, the newest first. Each is a call, in every request of the
        /// conversation.
        images_max: u32 = 4, Bounds::Between(1, 100);
        /// Longest wait for all descriptions of one request, in milliseconds.
        timeout_ms: u64 = 60_000, MILLISECONDS;
    }
}

impl Config {
    /// The upstream whose model describes images, and the model's name there; nothing where none does.
    #[must_use]
    pub fn vision(&self) -> Option<(&Upstream, &str)> {
        let Vision { model, upstream, .. } = &self.settings.vision;
        self.named_model(model, upstream)
    }

    /// # Errors
    /// The model is half described, or would get a credential that its client sent for another upstream.
    pub(super) fn check_vision(&self) -> Result<(), ConfigError> {
        let Vision { model, upstream, .. } = &self.settings.vision;
        self.check_named_model("vision", model, upstream)
    }
}
