//! What upstreams refused of late. Clients send their settings with each request, so what a model refused once it
//! would refuse each time: for a while, it is left out from the start.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Exchange;
use super::round::RoundRequest;
use crate::error::{Reason, Rejection};
use crate::model::request_context::RequestContext;
use crate::protocols::Refused;
use crate::{Millis, protocols};

/// How long it is remembered: by then the server may be another one.
const REMEMBERED_MS: Millis = 10 * 60_000;

/// Most of what is remembered; then the oldest is forgotten.
const REFUSALS_MAX: usize = 256;

/// Longest name of a model of which something is remembered.
const MODEL_BYTES_MAX: usize = 256;

/// What upstreams refused of late, for all exchanges whose configurations name the same upstreams: see
/// [`Exchange::remember`]. Of requests it holds nothing but names of models.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Vec<Remembered>>);

#[derive(Debug)]
struct Remembered {
    of: RefusalScope,
    refused: Refused,
    until: Millis,
}

/// Requests of which the same is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusalScope {
    upstream: String,
    /// As the client names it.
    model: String,
    /// Some models take an effort only without tools.
    has_tools: bool,
}

impl RefusalScope {
    fn of(upstream: &str, context: &RequestContext) -> Self {
        let (upstream, model) = (upstream.to_owned(), context.model.clone());
        Self { upstream, model, has_tools: context.counts.tools > 0 }
    }
}

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, Vec<Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is refused of such requests, in the order in which it was.
    fn of(&self, sent: &RoundRequest, now: Millis) -> Vec<Refused> {
        let mut remembered = self.lock();
        remembered.retain(|one| now < one.until);
        if remembered.is_empty() {
            return Vec::new();
        }
        let scope = RefusalScope::of(&sent.upstream, &sent.context);
        remembered.iter().filter(|one| one.of == scope).map(|one| one.refused.clone()).collect()
    }

    fn add(&self, of: RefusalScope, refused: Refused, now: Millis) {
        let mut remembered = self.lock();
        remembered.retain(|one| one.of != of || !refused.replaces(&one.refused));
        if remembered.len() >= REFUSALS_MAX {
            remembered.remove(0);
        }
        remembered.push(Remembered { of, refused, until: now.saturating_add(REMEMBERED_MS) });
    }
}

impl Exchange {
    /// What upstreams refuse is remembered here, and what is remembered is left out, with the warning that a second
    /// request would have. A host that cannot [ask again](super::HostCan::ask_again) tells its clients to do so. Not in
    /// strict mode, which leaves nothing out.
    pub fn remember(&mut self, refusals: Arc<Refusals>) {
        if !self.config.settings.strict {
            self.refusals = Some(refusals);
        }
    }

    /// The request without what is remembered of its model, as far as that is part of it.
    pub(super) fn without_remembered(
        &mut self,
        body: &str,
        sent: RoundRequest,
        now: Millis,
    ) -> RoundRequest {
        let Some(refusals) = &self.refusals else { return sent };
        self.remembered = refusals.of(&sent, now);
        let mut sent = sent;
        for refused in &self.remembered {
            let mut warnings = self.preparing.warnings(false);
            self.refused.push(refused.clone());
            let (refused, headers) = (&self.refused, &self.client.headers);
            let without =
                protocols::request_without(refused, body, &self.config, headers, &mut warnings);
            match RoundRequest::of(without) {
                Some(without) if without.body != sent.body => {
                    self.note_refused_in(&mut warnings);
                    self.report.warnings = warnings;
                    sent = without;
                }
                _ => drop(self.refused.pop()),
            }
        }
        sent
    }

    /// The requests of which the upstream would refuse it, if a rejection is about more than this request.
    pub(super) fn lasting_scope(
        &self,
        context: &RequestContext,
        rejection: &Rejection,
        reason: &Reason,
        refused: &Refused,
    ) -> Option<RefusalScope> {
        let is_lasting = match (reason, refused) {
            // Those may be a matter of one conversation, image or schema.
            (
                _,
                Refused::Calls(_) | Refused::Images | Refused::Documents | Refused::ResponseFormat,
            ) => false,
            // Or of what one conversation carries.
            (Reason::ReasoningUnread { .. }, _) => false,
            // Or of one effort; or of the tokens of this minute.
            (Reason::Effort { taken, names_value: true }, _) if taken.is_empty() => false,
            (Reason::RateTooLow(_), _) => false,
            // Other clients have prompts of their own.
            (_, Refused::Space(space)) if !space.is_of(context.input_tokens) => false,
            _ => !rejection.is_passing,
        };
        let is_kept = self.refusals.is_some() && self.protocol().remembers_refusals();
        let scope =
            (is_lasting && is_kept).then(|| RefusalScope::of(&self.report.upstream, context));
        scope.filter(|scope| scope.model.len() <= MODEL_BYTES_MAX)
    }

    /// Remembers what is refused of such requests.
    pub(super) fn memorize(&self, scope: RefusalScope, refused: &Refused) {
        if let Some(refusals) = &self.refusals {
            refusals.add(scope, refused.clone(), self.report.requested_at);
        }
    }
}
