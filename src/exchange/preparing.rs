//! The preparations of a request: calls before the first of its upstream, one after another.
//!
//! Nothing is sent to the client until all preparations are done. No call that fails ends the
//! exchange by itself: what does not come is missing, and the preparation decides what that means.
//! It may refuse the request when it gives the body ([`Preparation::written`]).

use std::mem;

use super::purpose::{ImageAnswer, Purpose};
use super::round::Round;
use super::seam::{Call, Fetch};
use super::state::Next;
use super::{Exchange, Failure, Path};
use crate::Millis;
use crate::config::{Protocol, Upstream};
use crate::error::Error;
use crate::json;
use crate::observe::report::DocumentsReport;
use crate::observe::warning::Warnings;
use crate::prepare::descriptions::Descriptions;
use crate::prepare::documents::Documents;
use crate::prepare::images::{Images, Missing};
use crate::prepare::{Preparation, Question};
use crate::profile::ImageParts;
use crate::protocols::Refused;
use crate::text::words;

/// Headers for the servers of images. None of them is the client's.
const HEADERS: [(&str, &str); 3] = [
    ("accept", "image/png, image/jpeg, image/gif, image/webp"),
    ("accept-encoding", "identity"),
    ("user-agent", concat!("creole/", env!("CARGO_PKG_VERSION"))),
];

/// Function that begins a preparation of a body, if there is something to do for it.
type Begin = fn(&mut Exchange, &[u8]) -> Option<Preparation>;

/// Preparations in their order. Each checks whether it has something to do for a body, which costs
/// next to nothing where the configuration does not ask for it.
const ALL: [Begin; 3] =
    [Exchange::documents_to_read, Exchange::images_to_fetch, Exchange::images_to_describe];

/// Progress of the preparations of one request.
#[derive(Default)]
pub(super) struct Preparing {
    /// Number of preparations that have begun, or had nothing to do.
    begun: usize,
    /// Preparation that is under way, and the time until which it may ask.
    current: Option<(Preparation, Millis)>,
    /// Parts that the vision model's upstream refused of requests for descriptions.
    refused: Vec<Refused>,
    /// Warnings of the request and its preparations, for whatever request follows.
    warnings: Option<Box<Warnings>>,
}

impl Preparing {
    /// Returns the number of bytes that the preparation keeps in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.current.as_ref().map_or(0, |(preparation, _)| preparation.held_bytes())
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// Returns the warnings of the preparations, with which each further request begins.
    pub(super) fn warnings(&self, is_strict: bool) -> Warnings {
        self.warnings.as_deref().cloned().unwrap_or_else(|| Warnings::new(is_strict))
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn current(&self) -> Option<(&Preparation, Millis)> {
        self.current.as_ref().map(|(preparation, until)| (preparation, *until))
    }

    fn images(&mut self) -> Option<&mut Images> {
        match &mut self.current {
            Some((Preparation::Images(images), _)) => Some(images),
            _ => None,
        }
    }

    /// Returns the images that are described, and what was refused of requests for that.
    pub(super) fn descriptions(&self) -> Option<(&Descriptions, &[Refused])> {
        match &self.current {
            Some((Preparation::Descriptions(descriptions), _)) => {
                Some((descriptions, &self.refused))
            }
            _ => None,
        }
    }

    pub(super) fn descriptions_mut(&mut self) -> Option<(&mut Descriptions, &mut Vec<Refused>)> {
        match &mut self.current {
            Some((Preparation::Descriptions(descriptions), _)) => {
                Some((descriptions, &mut self.refused))
            }
            _ => None,
        }
    }

    pub(super) fn documents(&mut self) -> Option<&mut Documents> {
        match &mut self.current {
            Some((Preparation::Documents(documents), _)) => Some(documents),
            _ => None,
        }
    }
}

impl Exchange {
    /// Goes on with the preparations, and returns what is due for them next.
    pub(super) fn prepare(&mut self, body: &mut Vec<u8>, now: Millis) -> Result<Next, Error> {
        loop {
            if let Some((preparation, until)) = &mut self.preparing.current {
                if now >= *until {
                    preparation.give_up();
                }
                let until = *until;
                match preparation.question() {
                    Some(Question::Image { address, is_private }) => {
                        let fetch = Fetch { url: address.url(), may_be_private: is_private };
                        return Ok(Next::Call(self.fetch_call(fetch, until, now)));
                    }
                    Some(Question::Description) => {
                        if let Some(call) = self.description_call(body, until, now) {
                            return Ok(Next::Call(call));
                        }
                        if let Some((descriptions, _)) = self.preparing.descriptions_mut() {
                            descriptions.take(Err("error"));
                        }
                        continue;
                    }
                    Some(Question::Document { .. }) => return Ok(Next::Host),
                    None => *body = self.prepared(body, now)?,
                }
            }
            let all: &[Begin] = match self.client.path {
                Path::Messages => &ALL,
                // Of the other preparations, the estimate knows what comes.
                Path::CountTokens => &[Self::documents_to_read],
                Path::Models(_) => &[],
            };
            let Some(next) = all.get(self.preparing.begun) else { return Ok(Next::Ready) };
            self.preparing.begun = self.preparing.begun.saturating_add(1);
            let preparation = next(self, body);
            if preparation.is_some() {
                self.check_credential(body)?;
            }
            self.preparing.current = preparation.map(|preparation| {
                let until = now.saturating_add(self.timeout_ms(&preparation));
                (preparation, until)
            });
        }
    }

    /// Refuses a request that its upstream would get without a credential: nobody pays for what is done for it.
    pub(super) fn check_credential(&self, body: &[u8]) -> Result<(), Error> {
        let Some((upstream, _)) = words::utf8(body).and_then(|body| self.route_of(body)) else {
            return Ok(());
        };
        self.upstream_headers(upstream, false).map(|_| ())
    }

    /// Returns the upstream that gets a body, and its name for the model.
    pub(super) fn route_of(&self, body: &str) -> Option<(&Upstream, String)> {
        let model = json::member(body, "model").and_then(json::string)?.decode();
        let (upstream, model) = self.config.route(&model)?;
        Some((upstream, model.to_owned()))
    }

    /// Collects the images that the upstream takes as data alone, or that another model describes.
    fn images_to_fetch(&mut self, body: &[u8]) -> Option<Preparation> {
        let settings = &self.config.settings;
        if settings.fetch_images.hosts.is_empty() || !self.can.fetch || !self.can.ask_again {
            return None;
        }
        let body = words::utf8(body)?;
        let (upstream, model) = self.route_of(body)?;
        let must_come = match upstream.profile.image_parts {
            ImageParts::Data => true,
            // Words stand there for one that is not described, too.
            ImageParts::None if self.is_seen_for(upstream, &model) => false,
            ImageParts::None | ImageParts::All => return None,
        };
        Images::of(body, settings, must_come).map(Preparation::Images)
    }

    fn timeout_ms(&self, preparation: &Preparation) -> u64 {
        match preparation {
            Preparation::Documents(_) => self.config.settings.read_documents.timeout_ms,
            Preparation::Images(_) => self.config.settings.fetch_images.timeout_ms,
            Preparation::Descriptions(_) => self.config.settings.vision.timeout_ms,
        }
    }

    fn fetch_call(&mut self, fetch: Fetch, until: Millis, now: Millis) -> Call {
        self.begin_round(Protocol::Openai, Purpose::Image, until.saturating_sub(now), now);
        let headers = HEADERS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let (upstream, path, body) = (String::new(), String::new(), Vec::new());
        Call { upstream, path, headers, body, fetch: Some(fetch) }
    }

    /// Ends the preparation that is under way, and returns the body as it is from now on.
    fn prepared(&mut self, body: &mut Vec<u8>, now: Millis) -> Result<Vec<u8>, Error> {
        let Some((preparation, until)) = self.preparing.current.take() else {
            return Ok(mem::take(body));
        };
        let began = until.saturating_sub(self.timeout_ms(&preparation));
        let duration_ms = now.saturating_sub(began);
        match &preparation {
            Preparation::Documents(documents) => {
                let (read, unread) = documents.counts();
                self.report.documents =
                    Some(Box::new(DocumentsReport { read, unread, duration_ms }));
            }
            Preparation::Images(images) => {
                let (fetched, missing) = images.counts();
                let report = self.report.images.get_or_insert_default();
                (report.fetched, report.missing) = (fetched, missing);
                report.duration_ms = now.saturating_sub(self.report.requested_at);
            }
            Preparation::Descriptions(descriptions) => {
                if let Some(report) = &mut self.report.vision {
                    (report.described, report.failed) = descriptions.counts();
                    report.duration_ms = duration_ms;
                }
            }
        }
        let warnings = &mut self.report.warnings;
        let written = preparation.written(words::utf8(body).unwrap_or_default(), warnings)?;
        self.preparing.warnings = Some(Box::new(warnings.clone()));
        Ok(written)
    }

    /// Returns true if a call of a preparation has no answer yet.
    pub(super) fn is_preparing(&self) -> bool {
        self.state.round().is_some_and(Round::is_preparation)
    }

    /// Takes an answer for the image that was asked for. `is_cut`: there is more of it than is
    /// read.
    pub(super) fn take_image(&mut self, answer: &ImageAnswer, is_cut: bool) {
        let report = self.report.images.get_or_insert_default();
        report.bytes = report.bytes.saturating_add(answer.body.len());
        if let Some(images) = self.preparing.images() {
            match (answer.status, &answer.location) {
                (200..300, _) if answer.is_whole => images.take(Ok(&answer.body)),
                (200..300, _) => images.take(Err(Missing::BrokeOff)),
                (300..400, Some(location)) => images.redirect(location),
                (status, _) => images.take(Err(Missing::Status(status))),
            }
        }
        self.state.prepare(is_cut);
    }

    /// Notes that a call of a preparation has no answer.
    pub(super) fn take_nothing(&mut self, failure: &Failure) {
        if self.preparing.descriptions().is_some() {
            return self.take_no_description(failure);
        }
        let why = match failure {
            Failure::Timeout => Missing::TimedOut,
            Failure::BrokeOff | Failure::Undecodable => Missing::BrokeOff,
            _ => Missing::Unreachable,
        };
        if let Some(images) = self.preparing.images() {
            images.take(Err(why));
        }
        self.state.prepare(false);
    }
}
