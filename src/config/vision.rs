//! Model that describes images for upstream models that cannot see images.

use super::document::ConfigError;
use super::{Config, MILLISECONDS, Upstream};
use crate::profile::ImageParts;
use crate::setting::{Bounds, keys};

keys! {
    /// Model that describes images for upstreams whose models see none (`image_parts: "none"`).
    pub Vision {
        /// Name of the describing model at its upstream. Empty: no model describes images, and a
        /// text says that an image was left out.
        model: String = String::new();
        /// Name of the describing model's upstream in `upstreams`; may be empty where there is only
        /// one upstream.
        upstream: String = String::new();
        /// Most images of one request that are described, the newest first. Each image is a call to
        /// the describing model, in every request of the conversation.
        images_max: u32 = 4, Bounds::Between(1, 100);
        /// Longest wait for all descriptions of one request, in milliseconds.
        timeout_ms: u64 = 60_000, MILLISECONDS;
    }
}

impl Config {
    /// Returns the upstream and the name of the model that describes images; `None` if none is
    /// configured.
    #[must_use]
    pub fn vision(&self) -> Option<(&Upstream, &str)> {
        let Vision { model, upstream, .. } = &self.settings.vision;
        self.named_model(model, upstream)
    }

    /// Returns a note that the describing model is never called, if every upstream accepts images.
    pub(super) fn vision_note(&self) -> Option<String> {
        self.vision()?;
        let sees = |upstream: &Upstream| upstream.profile.image_parts != ImageParts::None;
        self.upstreams.values().all(sees).then(|| {
            "vision: no upstream has image_parts none in its profile_overrides, so that this model is never asked".into()
        })
    }

    /// # Errors
    /// The model's name or upstream is missing, or the upstream would get a credential that the
    /// client sent for another one.
    pub(super) fn check_vision(&self) -> Result<(), ConfigError> {
        let Vision { model, upstream, .. } = &self.settings.vision;
        self.check_named_model("vision", model, upstream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_for_images_that_is_never_asked_is_noted() {
        let notes = |upstream: &str| {
            let text = format!(r#"{{"upstreams":{{"a":{upstream}}},"vision":{{"model":"v"}}}}"#);
            Config::from_json(&text, |_| None).unwrap().notes()
        };
        let [note] = &notes("{}")[..] else { panic!("no note, or several") };
        assert!(note.starts_with("vision: no upstream has image_parts none"), "{note}");
        let blind = r#"{"profile_overrides":{"image_parts":"none"}}"#;
        assert_eq!(notes(blind), [""; 0]);
        assert_eq!(Config::default().notes(), [""; 0]);
    }
}
