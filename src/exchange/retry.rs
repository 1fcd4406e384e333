//! A round after a refusal, where an upstream refuses what stays in the conversation, which would then be refused
//! for ever: how calls and results are paired although they were repaired, as each vendor has rules of its own, images
//! or PDFs that its model or its library cannot see, or reasoning, which some servers give and do not take back. Or it
//! refuses a parameter that the client sends with each request, or its value: see [`Refused`].
//!
//! Where no row knows the words of a refusal, what it is about is found in the request that was sent
//! (`src/upstream_error/evidence.rs`). A server may refuse one thing after the other, and each is left out once.

use super::memory::{Found, RefusalScope};
use super::round::RoundRequest;
use super::{Exchange, Path};
use crate::config::Pairing;
use crate::error::{Error, ErrorKind, Fault, Reason, Rejection};
use crate::model::request_context::RequestContext;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;
use crate::protocols::{self, Refused};
use crate::text::words;
use crate::upstream_error::evidence::{self, Evidence};

/// Most requests beside the first. Four parameters are refused by some models: `max_tokens`, `temperature`, `stop` and
/// `parallel_tool_calls`.
const RETRIES_MAX: u32 = 4;

/// Most requests for which nothing but a name speaks.
const NAMED_MAX: u32 = 2;

/// Most changes that are tried on a request to find one that it has: each writes the request once more.
const CHANGES_MAX: usize = 6;

/// An error that a request without what it refuses may mend. The client has nothing but comments.
#[derive(Debug)]
pub(super) struct Refusal {
    /// For the client, if there is no such request.
    pub(super) error: Error,
    refused: Refused,
    /// The requests of which the same is refused, if that is known.
    scope: Option<RefusalScope>,
    by_evidence: bool,
}

impl Exchange {
    /// Whether the client's body may be needed once more, because the upstream may still refuse some of it.
    pub(super) fn may_call_again(&self) -> bool {
        let Some(round) = self.state.round() else { return false };
        // With its status a server says that it does not take `stream_options` or so high a limit of the answer,
        // which every request has.
        let may_refuse = round.answer().is_none_or(|answer| {
            let context = answer.context();
            self.can_rebuild(context)
                || context.refusable.images
                || context.refusable.documents
                || context.refusable.reasoning
                || context.refusable.schema
        });
        may_refuse && self.can_call_again()
    }

    /// Whether not too much was refused, and the client has nothing of the answer yet.
    fn can_call_again(&self) -> bool {
        self.can.ask_again
            && self.report.retries < RETRIES_MAX
            && self.client.path == Path::Messages
            && self.output.is_blank()
    }

    /// The request to send instead of the one that was refused, without what offends the upstream. None if there is no
    /// other. `body` is the client's.
    pub(super) fn without_refused(
        &mut self,
        refusal: &Refusal,
        body: &str,
    ) -> Option<RoundRequest> {
        let mut warnings = self.preparing.warnings(self.config.settings.strict);
        let mut refused = self.refused.clone();
        refused.push(refusal.refused.clone());
        let request = self.without(&refused, body, &mut warnings)?;
        // What was not sent cannot be left out.
        let before = self.without(&self.refused, body, &mut Warnings::new(false));
        if before.is_some_and(|before| before.body == request.body) {
            return None;
        }
        match &refusal.scope {
            Some(scope) => self.memorize(scope.clone(), &refusal.refused),
            None if refusal.by_evidence => self.own_changes.push(refusal.refused.clone()),
            // Where the words are known, it is about one image, one effort or the credit of this moment.
            None => {}
        }
        self.refused = refused;
        self.report.retries = self.report.retries.saturating_add(1);
        self.note_refused_in(&mut warnings);
        // Status, id and time of the first answer say nothing about the second.
        self.report.head_at = None;
        self.report.content_at = None;
        self.report.upstream_status = None;
        self.report.upstream_request_id = None;
        self.report.answer = AnswerReport::default();
        self.report.warnings = warnings;
        self.output.hold(Vec::new());
        Some(request)
    }

    /// The request without what was refused.
    pub(super) fn without(
        &self,
        refused: &[Refused],
        body: &str,
        warnings: &mut Warnings,
    ) -> Option<RoundRequest> {
        let (config, headers) = (&self.config, &self.client.headers);
        RoundRequest::of(protocols::request_without(refused, body, config, headers, warnings))
    }

    /// Names what was refused.
    pub(super) fn note_refused_in(&self, warnings: &mut Warnings) {
        for refused in &self.refused {
            let (code, name) = refused.code();
            warnings.add_named(code, name);
            if let Refused::Calls(_) = refused {
                warnings.acted("pairing");
            }
        }
    }

    /// Takes an error before which nothing came. It is kept if the upstream can be called again; else the client has
    /// it.
    pub(super) fn take_refusal(
        &mut self,
        context: &RequestContext,
        error: Error,
    ) -> Result<Refusal, Error> {
        let found = error.rejection().and_then(|rejection| match self.keeps_body() {
            true => {
                let body = words::utf8(&self.client.body)?;
                let strict = self.config.settings.strict;
                let sent = self.without(&self.refused, body, &mut self.preparing.warnings(strict));
                let sent = sent.filter(|_| self.can_call_again());
                let bodies = sent.as_ref().map(|sent| (body, &*sent.body));
                self.found(rejection, context, bodies)
            }
            false => self.found(rejection, context, None),
        });
        let Some(Found { refused, scope, evidence }) = found else {
            self.remember_no_help(error.rejection());
            return Err(self.explained(context, error));
        };
        self.named = self.named.saturating_add(u32::from(evidence == Some(Evidence::Name)));
        if self.keeps_body() && self.can_call_again() {
            let error = self.explained(context, error);
            return Ok(Refusal { error, refused, scope, by_evidence: evidence.is_some() });
        }
        // A host that cannot ask again tells its client to do so.
        let is_asked = match (scope, error.rejection()) {
            (Some(scope), _) => {
                self.memorize(scope, &refused);
                true
            }
            (None, Some(rejection)) => {
                self.remember_no_help(Some(rejection));
                !self.keeps_body()
                    && !rejection.is_passing
                    && self.output.is_held()
                    && self.ask_client(rejection)
            }
            (None, None) => false,
        };
        if !is_asked || !self.output.is_held() {
            return Err(self.explained(context, error));
        }
        let (code, name) = refused.code();
        self.report.warnings.add_named(code, name);
        let message = format!("Upstream refuses what is left out from now on: {}", error.message);
        Err(Error::new(Fault::Upstream, ErrorKind::Overloaded, message).with_should_retry(true))
    }

    /// Finds what a rejection refuses and can be left out: in words that are known, or by evidence in the request that
    /// was sent. `bodies`: the client's body and that request, where they are known.
    pub(super) fn found(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
        bodies: Option<(&str, &[u8])>,
    ) -> Option<Found> {
        let known = self.left_out(rejection, context);
        known.map(|(refused, scope)| Found { refused, scope, evidence: None }).or_else(|| {
            let (evidence, refused) = self.evident(rejection, context, bodies)?;
            Some(Found { refused, scope: None, evidence: Some(evidence) })
        })
    }

    /// What a rejection refuses of what was sent and can be left out, and the requests of which it is remembered.
    fn left_out(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
    ) -> Option<(Refused, Option<RefusalScope>)> {
        if !self.keeps_body() && self.refusals.is_none() {
            return None;
        }
        // Where a later request is all that can be without it, it must be one of the same conversation.
        let is_known = self.keeps_body() || self.conversation.is_some();
        let is_new = |reason: &Reason, refused: &Refused| {
            let can_be = match refused {
                Refused::Calls(_) => is_known && self.can_rebuild(context),
                Refused::Images | Refused::Documents | Refused::ResponseFormat => is_known,
                // Claude Code sends the conversation again without it, on words of its own.
                Refused::Reasoning if matches!(reason, Reason::ReasoningUnread { .. }) => {
                    self.keeps_body()
                }
                _ => true,
            };
            let is_sent = self.protocol().may_refuse(refused, context);
            can_be && is_sent && self.is_new(refused)
        };
        rejection.reasons.iter().find_map(|reason| {
            let refused = Refused::of(reason, &rejection.message, context)
                .filter(|refused| is_new(reason, refused))?;
            let scope = self.lasting_scope(context, rejection, reason, &refused);
            Some((refused, scope))
        })
    }

    /// Finds the change that a rejection in unknown words asks for, by evidence in the request that was sent, which is
    /// made again for it. Where there are no bodies, a change that a later request may decide for.
    fn evident(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
        bodies: Option<(&str, &[u8])>,
    ) -> Option<(Evidence, Refused)> {
        let strict = self.config.settings.strict;
        let sent = match bodies {
            Some((_, sent)) => Some(words::utf8(sent)?),
            None if self.keeps_body() => return None,
            None => None,
        };
        let found = evidence::changes(rejection, sent, strict).into_iter();
        let may_try = found.filter(|(evidence, refused)| {
            // A new image of the user is the user's to mend.
            let is_sure = *refused != Refused::Images || !context.refusable.new_image;
            let may_name = *evidence != Evidence::Name || self.named < NAMED_MAX;
            let is_sent = self.protocol().may_refuse(refused, context);
            is_sure && may_name && is_sent && self.is_new(refused)
        });
        may_try.take(CHANGES_MAX).find(|(_, refused)| {
            let Some((body, sent)) = bodies else { return true };
            let refused = [&*self.refused, std::slice::from_ref(refused)].concat();
            let changed = self.without(&refused, body, &mut self.preparing.warnings(strict));
            changed.is_some_and(|changed| changed.body != sent)
        })
    }

    pub(super) fn keeps_body(&self) -> bool {
        !self.client.body.is_empty()
    }

    fn is_new(&self, refused: &Refused) -> bool {
        !self.refused.contains(refused) && !self.remembered.contains(refused)
    }

    /// The error as the client gets it, where the upstream is not asked again here. Of an error of pairing the
    /// request is not at fault: the next replica, or the same server a moment later, may take it. Others are in the
    /// client's own words.
    fn explained(&mut self, context: &RequestContext, mut error: Error) -> Error {
        let Some(rejection) = error.rejection() else { return error };
        if !(self.can_rebuild(context) && rejection.reasons.contains(&Reason::Pairing)) {
            if let Some(message) = rejection.in_clients_words() {
                error.message = message;
            }
            return error;
        }
        let refused = Refused::Calls(String::new());
        if self.is_new(&refused) {
            self.report.warnings.add(refused.code().0);
        }
        self.report.warnings.acted("pairing");
        let message = format!("Upstream refuses the conversation's tool calls: {}", error.message);
        Error::new(Fault::Upstream, ErrorKind::Overloaded, message).with_should_retry(true)
    }

    /// Whether there are calls, which can be told in words: all of them have their one result.
    fn can_rebuild(&self, context: &RequestContext) -> bool {
        let repairs = self
            .upstream()
            .is_some_and(|upstream| self.config.guards(upstream).pairing == Pairing::Repair);
        repairs && self.protocol().rebuilds_calls() && context.counts.has_calls()
    }
}
