//! Retry of a request after an upstream refusal. An upstream may refuse a part that stays in the
//! conversation, and would refuse each later request too. Examples: the pairing of tool calls and
//! results (vendors have rules of their own, even after Creole's repairs); images or PDFs that the
//! model or library cannot read; reasoning that some servers return but do not accept. Or the
//! upstream refuses a parameter that the client sends with each request, or the parameter's value:
//! see [`Refused`].
//!
//! If the error's text is not in the table of known texts, the refused part is searched for in the
//! request that was sent (`src/upstream_error/evidence.rs`). A server may refuse several parts one
//! after another, and each part is left out once.

use super::conversations::words_of;
use super::memory::{FoundChange, RefusalScope, is_of_new_file, is_of_request};
use super::round::RoundRequest;
use super::{Client, Exchange, Path};
use crate::config::Pairing;
use crate::error::{Error, ErrorKind, Fault, Reason, Rejection};
use crate::model::request_context::RequestContext;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;
use crate::protocols::{self, Refused, Sender, Translated};
use crate::text::words;
use crate::upstream_error::evidence::{self, Evidence};

/// Maximum number of retries of one request. There are models that refuse four parameters:
/// `max_tokens`, `temperature`, `stop` and `parallel_tool_calls`.
const RETRIES_MAX: u32 = 4;

/// Maximum number of retries for which a name in the error is the only evidence.
const NAMED_MAX: u32 = 2;

/// Maximum number of candidate changes that are tried to find one that alters the request: each try
/// writes the request once more.
const CHANGES_MAX: usize = 6;

/// Upstream error after which a changed request, without the refused part, is worth sending. The
/// client has received at most comments.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Error for the client, if no changed request can be sent.
    pub(super) error: Error,
    refused: Refused,
    /// Scope of later requests that the upstream would also refuse, if known.
    scope: Option<RefusalScope>,
    /// Hash of the error's text, if the change is worth remembering for the conversation. `None`
    /// for known texts, which concern one image, one reasoning effort or the current account
    /// balance.
    words: Option<u64>,
    /// True if the text of the error is not known, and the refused part was found in the request.
    is_by_evidence: bool,
}

impl Exchange {
    /// Returns true if the client's body may be needed for a retry, because the upstream may still
    /// refuse a part of the request.
    pub(super) fn may_call_again(&self) -> bool {
        let Some(round) = self.state.round() else { return false };
        // Every request may be refused for `stream_options` or for its limit of output tokens, but
        // servers refuse these with the status.
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

    /// Returns true if the limit of retries is not reached, and the client has received nothing of
    /// the answer yet.
    fn can_call_again(&self) -> bool {
        self.can.ask_again
            && self.report.retries < RETRIES_MAX
            // In a later round, the client has blocks of the answer.
            && self.later.is_none()
            && self.client.path == Path::ANSWER
            && self.output.is_blank()
    }

    /// Writes the request to send after a refusal, without the part that the upstream refused.
    /// Returns `None` if the request would not change. `body` is the client's body.
    pub(super) fn without_refused(
        &mut self,
        refusal: &Refusal,
        body: &str,
    ) -> Option<RoundRequest> {
        let mut warnings = self.steps.warnings(self.config.settings.strict);
        let mut refused = self.refused.clone();
        refused.push(refusal.refused.clone());
        let request = self.without(&refused, body, &mut warnings)?;
        // A part that was not sent cannot be left out.
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
        let by_evidence = &mut self.report.retries_by_evidence;
        *by_evidence = by_evidence.saturating_add(refusal.is_by_evidence.into());
        self.note_refused_in(&mut warnings);
        // Reset status, id and time of the first answer, which do not describe the second.
        self.report.head_at = None;
        self.report.content_at = None;
        self.report.upstream_status = None;
        self.report.upstream_request_id = None;
        self.report.answer = AnswerReport::default();
        self.report.warnings = warnings;
        self.output.hold(Vec::new());
        Some(request)
    }

    /// Writes the upstream's request without the given refused parts.
    pub(super) fn without(
        &self,
        refused: &[Refused],
        body: &str,
        warnings: &mut Warnings,
    ) -> Option<RoundRequest> {
        RoundRequest::of(self.translated(refused, body, warnings))
    }

    /// Translates the client's request without the given refused parts.
    pub(super) fn translated(
        &self,
        refused: &[Refused],
        body: &str,
        warnings: &mut Warnings,
    ) -> Result<Translated, Error> {
        let Client { protocol, headers, .. } = &self.client;
        let sender = Sender { protocol: *protocol, headers, can_run_tools: self.can.run_tools() };
        protocols::translate(refused, body, &self.config, sender, warnings)
    }

    /// Adds warnings that name the refused parts of the request.
    pub(super) fn note_refused_in(&self, warnings: &mut Warnings) {
        for refused in &self.refused {
            let (code, name) = refused.code();
            warnings.add_named(code, name);
            if let Refused::Calls(_) = refused {
                warnings.acted("pairing");
            }
        }
    }

    /// Handles an upstream error that came before any content. Returns the refusal if the upstream
    /// can be called again, else the error for the client.
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
        // Server errors (5xx) may pass without a change.
        let lasting = error.rejection().filter(|it| evidence.is_some() && it.status < 500);
        let words = lasting.map(words_of);
        let is_clients = self.can.later_answers_whole && scope.is_some();
        if self.keeps_body() && self.can_call_again() && !is_clients {
            let error = self.explained(context, error);
            if evidence.is_some() {
                self.first_refusal.get_or_insert_with(|| error.clone());
            }
            let is_by_evidence = evidence.is_some();
            return Ok(Refusal { error, refused, scope, words, is_by_evidence });
        }
        // A host that cannot send a second call tells the client to retry.
        let is_asked = match (scope, error.rejection()) {
            (Some(scope), _) => {
                self.memorize(scope, &refused);
                true
            }
            (None, Some(rejection)) if !self.keeps_body() && self.output.is_held() => {
                let is_of_messages = self.client.path == Path::ANSWER;
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

    /// Returns the error for the client if no change is left to try. The first error with unknown
    /// text is preferred, because the last error is about a request that the client did not send.
    /// Final errors, such as a full context window, are returned unchanged.
    fn given_up(&mut self, context: &RequestContext, error: Error) -> Error {
        let first = self.first_refusal.take();
        let is_final =
            error.rejection().is_none_or(|it| !is_of_request(it) || evidence::is_final(it));
        let is_fault = error.status >= 500 && first.as_ref().is_some_and(|it| it.status >= 500);
        let error = match first.filter(|_| !is_final) {
            Some(first) => first,
            None => self.explained(context, error),
        };
        // The request causes the server's fault, so each retry would meet the same fault.
        if is_fault { error.with_should_retry(false) } else { error }
    }

    /// Finds a change that an upstream's error asks for: by the known texts of errors, or by
    /// evidence in the request that was sent, which is written again for the search.
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

    /// Finds the refused part by the known texts of errors, and the scope for which the refusal is
    /// remembered.
    pub(super) fn left_out(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
    ) -> Option<FoundChange> {
        if !self.keeps_body() && self.refusals.is_none() {
            return None;
        }
        // If only a later request can leave the part out, that request must belong to the same
        // conversation.
        let is_known = self.keeps_body() || self.conversation.is_some();
        let is_new = |reason: &Reason, refused: &Refused| {
            let can_be = match refused {
                Refused::Calls(_) => is_known && self.can_rebuild(context),
                Refused::Images | Refused::Documents | Refused::ResponseFormat => is_known,
                // Claude Code sends the conversation again without reasoning after certain error
                // texts.
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

    /// Finds the change for an error with unknown text, by evidence in the request that was sent.
    /// `bodies`: the client's body and the sent request. If `None`, the change is returned
    /// untested, for a later request.
    pub(super) fn evident(
        &self,
        rejection: &Rejection,
        context: &RequestContext,
        bodies: Option<(&str, &[u8])>,
    ) -> Option<FoundChange> {
        // Pairing errors have one change, which was tried or which the operator has turned off.
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
        // A server's own fault is weaker evidence about the request.
        let named_max = if rejection.status >= 500 { 1 } else { NAMED_MAX };
        let may_try = found.filter(|(evidence, refused)| {
            // A new image or file of the user is the user's to replace.
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
        // Streaming is turned on or off at most once.
        let is_turned = |known: &Refused| matches!(known, Refused::Streaming(_));
        let is_known = self.refused.contains(refused) || self.remembered.contains(refused);
        !(is_known || is_turned(refused) && self.refused.iter().any(is_turned))
    }

    /// Rewrites an error for the client if the upstream is not called again. An error about the
    /// pairing of tool calls is marked as retryable, because the next replica, or the same server
    /// later, may accept the request. Parameters in the texts of further errors are renamed to the
    /// client's names.
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

    /// Returns true if the tool calls of the request can be rewritten as text: the operator allows
    /// repairs, and every call has exactly one result.
    fn can_rebuild(&self, context: &RequestContext) -> bool {
        let repairs = self
            .upstream()
            .is_some_and(|upstream| self.config.guards(upstream).pairing == Pairing::Repair);
        repairs && self.protocol().rebuilds_calls() && context.counts.has_calls()
    }
}
