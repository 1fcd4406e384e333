//! The calls of a preparation in which a model that sees describes images for one that does not. The one that sees is
//! called *vision* here, as in the configuration.
//!
//! `prepare::descriptions` has what is asked and what becomes of the words; `own` sends the requests and reads the
//! answers, which come back as [`OwnAnswer`].

use std::borrow::Cow;

use super::own::can_ask_again;
use super::purpose::{Own, OwnAnswer, Purpose};
use super::seam::{Call, End, Failure};
use super::{Exchange, Warnings};
use crate::Millis;
use crate::config::{Config, Upstream};
use crate::error::{Error, ErrorKind, Rejection};
use crate::observe::report::VisionReport;
use crate::prepare::Preparation;
use crate::prepare::descriptions::{Description, Descriptions};
use crate::profile::ImageParts;
use crate::protocols::{self, Translated};
use crate::text::words;

impl Exchange {
    /// Collects the images that the upstream's model does not see, if another model does.
    pub(super) fn images_to_describe(&mut self, body: &[u8]) -> Option<Preparation> {
        let (vision, vision_model) = self.config.vision()?;
        let body = words::utf8(body)?;
        let (upstream, model) = self.route_of(body)?;
        if !self.is_seen_for(upstream, &model) {
            return None;
        }
        let descriptions = Descriptions::of(body, &self.config.settings)?;
        if !self.can.ask_again {
            self.report.warnings.add_named("vision_failed", "unsupported");
            return None;
        }
        if !self.is_sent(body, &descriptions) {
            return None;
        }
        let (model, upstream) = (vision_model.to_owned(), vision.name.clone());
        let report = VisionReport { model, upstream, ..VisionReport::default() };
        self.report.vision = Some(Box::new(report));
        Some(Preparation::Descriptions(descriptions))
    }

    /// Returns true if this model of an upstream sees no images, and the vision model is another
    /// one.
    pub(super) fn is_seen_for(&self, upstream: &Upstream, model: &str) -> bool {
        let is_other =
            |(vision, sees): (&Upstream, &str)| upstream.name != vision.name || model != sees;
        upstream.profile.image_parts == ImageParts::None
            && self.config.vision().is_some_and(is_other)
    }

    /// Returns true if an upstream gets this request: nobody pays for descriptions of one that is
    /// refused or answered here. Strict mode refuses the very images, so the check is made as if
    /// they were described.
    fn is_sent(&self, body: &str, descriptions: &Descriptions) -> bool {
        let (config, headers) = (&self.config, &self.client.headers);
        let described = config.settings.strict.then(|| descriptions.trial(body));
        let body = described.as_deref().map_or(Some(body), words::utf8).unwrap_or_default();
        let mut warnings = Warnings::new(config.settings.strict);
        let translated = protocols::request(body, config, headers, &mut warnings);
        matches!(translated, Ok(Translated::Send { .. }))
    }

    /// Returns the call for the next description, or nothing if there can be none.
    pub(super) fn description_call(
        &mut self,
        body: &[u8],
        until: Millis,
        now: Millis,
    ) -> Option<Call> {
        let (upstream, model) = seeing(&self.config)?;
        let (descriptions, refused) = self.preparing.descriptions()?;
        let request = descriptions.request(words::utf8(body)?, model)?;
        let (call, context) = self.own_call((&upstream, model), refused, &request)?;
        let protocol = upstream.protocol;
        let purpose = Purpose::Own(Own::Description, context);
        self.begin_round(protocol, purpose, until.saturating_sub(now), now);
        Some(call)
    }

    /// Takes the vision model's answer: the description of an image, or an error.
    pub(super) fn take_description(&mut self, answer: &OwnAnswer, is_cut: bool) {
        let said = self.read_description(answer);
        if let Err(error) = &said
            && self.can_ask_vision_again(error, answer)
        {
            return self.state.prepare(is_cut);
        }
        let said = said.unwrap_or_else(|error| Err(failed(&error)));
        if let Some((descriptions, _)) = self.preparing.descriptions_mut() {
            descriptions.take(said);
        }
        self.state.prepare(is_cut);
    }

    fn read_description(
        &mut self,
        answer: &OwnAnswer,
    ) -> Result<Result<Description, &'static str>, Error> {
        let Some((upstream, _)) = self.config.vision().filter(|_| answer.end == End::Complete)
        else {
            return Ok(Err("error"));
        };
        let OwnAnswer { status, body, context, .. } = answer;
        let said = self.read_own(upstream.protocol, *status, body, context)?;
        if let Some(vision) = &mut self.report.vision {
            vision.input_tokens = vision.input_tokens.saturating_add(said.input_tokens);
            vision.output_tokens = vision.output_tokens.saturating_add(said.output_tokens);
        }
        Ok(match said.stop_reason {
            Some("refusal") => Err("refused"),
            reason => {
                let is_cut = matches!(reason, Some("max_tokens" | "model_context_window_exceeded"));
                Ok(Description { text: said.text, is_cut })
            }
        })
    }

    fn can_ask_vision_again(&mut self, error: &Error, answer: &OwnAnswer) -> bool {
        let Some((upstream, _)) = self.config.vision() else { return false };
        let Some((_, refused)) = self.preparing.descriptions_mut() else { return false };
        can_ask_again(refused, upstream.protocol, error, &answer.context)
    }

    /// Notes that the description that was asked for has no answer.
    pub(super) fn take_no_description(&mut self, failure: &Failure) {
        let reason = if *failure == Failure::Timeout { "timeout" } else { "error" };
        if let Some((descriptions, _)) = self.preparing.descriptions_mut() {
            descriptions.take(Err(reason));
        }
        self.state.prepare(false);
    }
}

/// Returns the model that describes images, and its upstream. One server may have it beside models
/// that see nothing, and then the profile says of all that they see nothing.
fn seeing(config: &Config) -> Option<(Cow<'_, Upstream>, &str)> {
    let (upstream, model) = config.vision()?;
    let mut upstream = Cow::Borrowed(upstream);
    if upstream.profile.image_parts == ImageParts::None {
        upstream.to_mut().profile.image_parts = ImageParts::All;
    }
    Some((upstream, model))
}

/// Returns the one-word reason why an upstream's error left an image without a description.
fn failed(error: &Error) -> &'static str {
    if error.rejection().and_then(Rejection::stop_reason) == Some("refusal") {
        return "refused";
    }
    match error.kind {
        ErrorKind::RateLimit | ErrorKind::Overloaded => "rate_limited",
        ErrorKind::Timeout => "timeout",
        _ => "error",
    }
}
