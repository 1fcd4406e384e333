//! Another request after a refusal. An upstream may refuse what stays in the conversation, and
//! would then refuse it for ever: how calls and results are paired although they were repaired, as
//! each vendor has rules of its own; images or PDFs that its model or its library cannot see; or
//! reasoning, which some servers give and do not take back. Or it refuses a parameter that the
//! client sends with each request, or its value: see [`Refused`].
//!
//! Where no row knows the words of a refusal, what it is about is found in the request that was
//! sent (`src/upstream_error/evidence.rs`). A server may refuse one thing after the other, and each
//! is left out once.

use super::conversations::words_of;
use super::memory::{FoundChange, RefusalScope, is_of_new_file, is_of_request};
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

/// Maximum number of requests after the first. Four parameters are refused by some models:
/// `max_tokens`, `temperature`, `stop` and `parallel_tool_calls`.
const RETRIES_MAX: u32 = 4;

/// Maximum number of requests for which only a name in the error is evidence.
const NAMED_MAX: u32 = 2;

/// Maximum number of changes that are tried on a request to find one that it has: each writes the
/// request once more.
const CHANGES_MAX: usize = 6;

/// Error that may be mended by a request without what it refuses. The client has nothing but
/// comments.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Error for the client, if there is no request to send without what is refused.
    pub(super) error: Error,
    refused: Refused,
    /// Requests of which the same is refused, if that is known.
    scope: Option<RefusalScope>,
    /// Hash of the error's words, if the change is worth remembering of the conversation. It is
    /// none for words that are known: these are about one image, one effort or the credit of this
    /// moment.
    words: Option<u64>,
}

impl Exchange {
    /// Returns true if the client's body may be needed once more, because the upstream may still
    /// refuse some of it.
    pub(super) fn may_call_again(&self) -> bool {
        let Some(round) = self.state.round() else { return false };
        // With its status a server says that it does not take `stream_options` or so high a limit
        // of the answer, which every request has.
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

    /// Returns true if not too much was refused, and the client has nothing of the answer yet.
    fn can_call_again(&self) -> bool {
        self.can.ask_again
            && self.report.retries < RETRIES_MAX
            && self.client.path == Path::Messages
            && self.output.is_blank()
    }

    /// Writes the request to send after a refusal, without what the upstream refused. Returns
    /// nothing if there is no other request. `body` is the client's.
    pub(super) fn without_refused(
        &mut self,
        refusal: &Refusal,
        body: &str,
    ) -> Option<RoundRequest> {
        let mut warnings = self.steps.warnings(self.config.settings.strict);
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
            None => {
                let own = refusal.words.map(|words| (refusal.refused.clone(), words));
                self.own_changes.extend(own);
            }
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

    /// Writes the request without what was refused.
    pub(super) fn without(
        &self,
        refused: &[Refused],
        body: &str,
        warnings: &mut Warnings,
    ) -> Option<RoundRequest> {
        let (config, headers) = (&self.config, &self.client.headers);
        RoundRequest::of(protocols::request_without(refused, body, config, headers, warnings))
    }

    /// Adds warnings that name what was refused.
    pub(super) fn note_refused_in(&self, warnings: &mut Warnings) {
        for refused in &self.refused {
            let (code, name) = refused.code();
            warnings.add_named(code, name);
            if let Refused::Calls(_) = refused {
                warnings.acted("pairing");
            }
        }
    }

    /// Takes an error before which nothing came. Keeps it if the upstream can be called again; else
    /// returns the error for the client.
    pub(super) fn take_refusal(
        &mut self,
        context: &RequestContext,
        error: Error,
    ) -> Result<Refusal, Error> {
        if let Some(rejection) = error.rejection() {
            let upstream = self.report.upstream.clone();
            self.note_conversation(&upstream, context);
            self.remember_no_help(rejection);
        }
        let found = error.rejection().and_then(|rejection| self.found(rejection, context));
        let Some(FoundChange { refused, scope, evidence }) = found else {
            return Err(self.given_up(context, error));
        };
        let by_name = evidence == Some(Evidence::Name);
        self.named = self.named.saturating_add(u32::from(by_name));
        // A server's own fault may pass by itself.
        let lasting = error.rejection().filter(|it| evidence.is_some() && it.status < 500);
        let words = lasting.map(words_of);
        if self.keeps_body() && self.can_call_again() {
            let error = self.explained(context, error);
            if evidence.is_some() {
                self.first_refusal.get_or_insert_with(|| error.clone());
            }
            return Ok(Refusal { error, refused, scope, words });
        }
        // A host that cannot ask again tells its client to do so.
        let is_asked = match (scope, error.rejection()) {
            (Some(scope), _) => {
                self.memorize(scope, &refused);
                true
            }
            (None, Some(rejection)) if !self.keeps_body() && self.output.is_held() => {
                let is_of_messages = self.client.path == Path::Messages;
                is_of_messages && !rejection.is_passing && self.ask_client(rejection, by_name)
            }
            (None, _) => false,
        };
        if !is_asked || !self.output.is_held() {
            return Err(self.given_up(context, error));
        }
        let (code, name) = refused.code();
        self.report.warnings.add_named(code, name);
        let message = format!("Upstream refuses what is left out from now on: {}", error.message);
        Err(Error::new(Fault::Upstream, ErrorKind::Overloaded, message).with_should_retry(true))
    }

    /// Returns the error for the client if no change is left: the first one in unknown words,
    /// because the last is about a request that the client did not send. But what is final, such as
    /// a full window, is told as it is.
    fn given_up(&mut self, context: &RequestContext, error: Error) -> Error {
        let first = self.first_refusal.take();
        let is_final =
            error.rejection().is_none_or(|it| !is_of_request(it) || evidence::is_final(it));
        let is_fault = error.status >= 500 && first.as_ref().is_some_and(|it| it.status >= 500);
        let error = match first.filter(|_| !is_final) {
            Some(first) => first,
            None => self.explained(context, error),
        };
        // The fault was of the request, for which each repetition meets it.
        if is_fault { error.with_should_retry(false) } else { error }
    }

    /// Finds what a rejection refuses and can be left out: in words that are known, or by evidence
    /// in the request that was sent, which is made again for it.
    fn found(&self, rejection: &Rejection, context: &RequestContext) -> Option<FoundChange> {
        let known = self.left_out(rejection, context);
        if known.is_some() || !self.keeps_body() {
            return known.or_else(|| self.evident(rejection, context, None));
        }
        let body = words::utf8(&self.client.body).filter(|_| self.can_call_again())?;
        let warnings = &mut self.steps.warnings(self.config.settings.strict);
        let sent = self.without(&self.refused, body, warnings)?;
        self.evident(rejection, context, Some((body, &sent.body)))
    }

    /// Finds what a rejection in known words refuses and can be left out, and the requests of which
    /// it is remembered.
    pub(super) fn left_out(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
    ) -> Option<FoundChange> {
        if !self.keeps_body() && self.refusals.is_none() {
            return None;
        }
        // Where a later request is all that can be without it, it must be one of the same
        // conversation.
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
            Some(FoundChange { refused, scope, evidence: None })
        })
    }

    /// Finds the change that a rejection in unknown words asks for, by evidence in the request that
    /// was sent. `bodies`: the client's body, and that request; without them, a change that a later
    /// request may decide for.
    pub(super) fn evident(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
        bodies: Option<(&str, &[u8])>,
    ) -> Option<FoundChange> {
        // Of pairs there is one change, or the operator wants none.
        if rejection.reasons.contains(&Reason::Pairing) {
            return None;
        }
        let strict = self.config.settings.strict;
        let sent = match bodies {
            Some((_, sent)) => Some(words::utf8(sent)?),
            None => None,
        };
        let found = evidence::changes(rejection, sent, strict).into_iter();
        let found = found.map(|(evidence, refused)| match refused {
            Refused::Streaming(_) => (evidence, Refused::Streaming(context.upstream_stream)),
            refused => (evidence, refused),
        });
        // A server's own fault says less of the request.
        let named_max = if rejection.status >= 500 { 1 } else { NAMED_MAX };
        let may_try = found.filter(|(evidence, refused)| {
            // A new image of the user is the user's to mend.
            let is_sure = !is_of_new_file(refused, context);
            let may_name = *evidence != Evidence::Name || self.named < named_max;
            let is_sent = self.protocol().may_refuse(refused, context);
            is_sure && may_name && is_sent && self.is_new(refused)
        });
        let found = may_try.take(CHANGES_MAX).find(|(_, refused)| {
            let Some((body, sent)) = bodies else { return true };
            let refused = [&*self.refused, std::slice::from_ref(refused)].concat();
            let changed = self.without(&refused, body, &mut self.steps.warnings(strict));
            changed.is_some_and(|changed| changed.body != sent)
        });
        found.map(|(evidence, refused)| FoundChange {
            refused,
            scope: None,
            evidence: Some(evidence),
        })
    }

    pub(super) fn keeps_body(&self) -> bool {
        !self.client.body.is_empty()
    }

    fn is_new(&self, refused: &Refused) -> bool {
        // Neither kind of answer is tried twice.
        let is_turned = |known: &Refused| matches!(known, Refused::Streaming(_));
        let is_known = self.refused.contains(refused) || self.remembered.contains(refused);
        !(is_known || is_turned(refused) && self.refused.iter().any(is_turned))
    }

    /// Explains an error to the client if the upstream is not asked again here. Of an error of
    /// pairing the request is not at fault: the next replica, or the same server a moment later,
    /// may take it. Other errors are told in the client's own words.
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

    /// Returns true if the request has calls that can be told in words: all of them have their one
    /// result.
    fn can_rebuild(&self, context: &RequestContext) -> bool {
        let repairs = self
            .upstream()
            .is_some_and(|upstream| self.config.guards(upstream).pairing == Pairing::Repair);
        repairs && self.protocol().rebuilds_calls() && context.counts.has_calls()
    }
}
