//! Memory of what upstreams refused of late. Clients send their settings with each request, so what
//! a model refused once it would refuse each time: for a while, it is left out from the start. A
//! refusal that says nothing of other conversations is remembered of its own alone.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Exchange;
use super::conversations::{ConversationId, Conversations, Known, Lasts, words_of};
use super::round::RoundRequest;
use crate::Millis;
use crate::error::{Reason, Rejection};
use crate::headers::{self, session};
use crate::model::request_context::RequestContext;
use crate::protocols::Refused;
use crate::upstream_error::evidence::Evidence;

/// Time for which a refusal is remembered. After it, the server may be another one.
const REMEMBERED_MS: Millis = 10 * 60_000;

/// Maximum number of refusals that are remembered of models; beyond it, the oldest is forgotten.
const REFUSALS_MAX: usize = 256;

/// Maximum lengths of an error's path and of each of its codes; longer ones are not kept.
const PATH_BYTES_MAX: usize = 512;
const CODE_BYTES_MAX: usize = 128;

/// Maximum length of the name of a model of which something is remembered.
const MODEL_BYTES_MAX: usize = 256;

/// Recent refusals of upstreams, for all exchanges whose configurations name the same upstreams:
/// see [`Exchange::remember`]. Of requests it holds names of models, keyed hashes of conversations,
/// and what an upstream said of a request that its client is told to send again, until it does.
#[derive(Default)]
pub struct Refusals(Mutex<Memory>);

// What an upstream said may quote a prompt.
impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Memory {
    models: Vec<Remembered>,
    conversations: Conversations,
    /// Key of the hashes of conversations: a number that no client knows.
    secret: Option<u64>,
}

#[derive(Debug)]
struct Remembered {
    of: RefusalScope,
    refused: Refused,
    until: Millis,
}

/// Requests of which an upstream refuses the same: those for one model, with or without tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusalScope {
    upstream: String,
    /// Model name that the client sent.
    model: String,
    /// True if the request has tools: some models take an effort only without tools.
    has_tools: bool,
}

/// Change that a rejection asks for: something that is refused and can be left out.
pub(super) struct FoundChange {
    pub(super) refused: Refused,
    /// Requests of which the same is refused, if the rejection says something of others.
    pub(super) scope: Option<RefusalScope>,
    /// Evidence for the change, if the words of the rejection are not known.
    pub(super) evidence: Option<Evidence>,
}

impl RefusalScope {
    fn of(upstream: &str, context: &RequestContext) -> Self {
        let (upstream, model) = (upstream.to_owned(), context.model.clone());
        Self { upstream, model, has_tools: context.counts.tools > 0 }
    }
}

/// Returns true if an error is about the request, not about a key, a rate or the server's state,
/// which come and go.
pub(super) fn is_of_request(rejection: &Rejection) -> bool {
    matches!(rejection.status, 400 | 404 | 405 | 413 | 415 | 422 | 501)
}

/// Returns true if a change would take a file that the user has just given: it may be another one
/// than was refused.
pub(super) fn is_of_new_file(change: &Refused, context: &RequestContext) -> bool {
    match change {
        Refused::Images => context.refusable.new_image,
        Refused::Documents => context.refusable.new_document,
        _ => false,
    }
}

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is refused of requests like `sent`, in the order of the refusals.
    fn of(&self, sent: &RoundRequest, now: Millis) -> Vec<Refused> {
        let remembered = &mut self.lock().models;
        remembered.retain(|one| now < one.until);
        if remembered.is_empty() {
            return Vec::new();
        }
        let scope = RefusalScope::of(&sent.upstream, &sent.context);
        remembered.iter().filter(|one| one.of == scope).map(|one| one.refused.clone()).collect()
    }

    fn add(&self, of: RefusalScope, refused: Refused, now: Millis) {
        let remembered = &mut self.lock().models;
        remembered.retain(|one| one.of != of || !refused.replaces(&one.refused));
        if remembered.len() >= REFUSALS_MAX {
            remembered.remove(0);
        }
        remembered.push(Remembered { of, refused, until: now.saturating_add(REMEMBERED_MS) });
    }
}

impl Exchange {
    /// Makes the exchange remember what upstreams refuse, and leave out what is remembered, with
    /// the warning that a second request would have. A host that cannot [ask
    /// again](super::HostCan::ask_again) tells its clients to do so. Nothing is remembered in
    /// strict mode, which leaves nothing out.
    pub fn remember(&mut self, refusals: Arc<Refusals>) {
        if !self.config.settings.strict {
            self.refusals = Some(refusals);
        }
    }

    /// Removes from a request what is remembered of its model and of its conversation, as far as
    /// that is part of it.
    pub(super) fn without_remembered(
        &mut self,
        body: &str,
        sent: RoundRequest,
        now: Millis,
    ) -> RoundRequest {
        let Some(refusals) = self.refusals.clone() else { return sent };
        let mut remembered = refusals.of(&sent, now);
        let mut sent = sent;
        for refused in &remembered {
            self.leave_out(refused, body, &mut sent);
        }
        if !refusals.lock().conversations.is_empty() {
            self.note_conversation(&sent.upstream, &sent.context);
        }
        let Some(id) = self.conversation else {
            self.remembered = remembered;
            return sent;
        };
        let (known, pending) = refusals.lock().conversations.of(id, now);
        for Known { change, words, is_useless, .. } in known {
            if is_useless {
                remembered.push(change);
            } else if !is_of_new_file(&change, &sent.context)
                && self.leave_out(&change, body, &mut sent)
            {
                remembered.push(change.clone());
                self.own_changes.push((change, words));
            }
        }
        self.remembered = remembered;
        let Some(rejection) = pending else { return sent };
        let known = self.left_out(&rejection, &sent.context);
        let found = known
            .or_else(|| self.evident(&rejection, &sent.context, Some((body, &*sent.body))))
            .filter(|found| self.leave_out(&found.refused, body, &mut sent));
        if let Some(FoundChange { refused, evidence, .. }) = found {
            let is_lasting = evidence.is_some() && rejection.status < 500;
            let lasts = if is_lasting { Lasts::Long } else { Lasts::Briefly };
            let change = (refused, words_of(&rejection));
            refusals.lock().conversations.note(id, &change, lasts, now);
            self.own_changes.push(change);
        }
        sent
    }

    /// Makes a change to a request. Returns false, and takes the change back, if the request stays
    /// the same.
    fn leave_out(&mut self, change: &Refused, body: &str, sent: &mut RoundRequest) -> bool {
        let mut warnings = self.steps.warnings(false);
        self.refused.push(change.clone());
        match self.without(&self.refused, body, &mut warnings) {
            Some(without) if without.body != sent.body => {
                self.note_refused_in(&mut warnings);
                self.report.warnings = warnings;
                *sent = without;
                true
            }
            _ => {
                self.refused.pop();
                false
            }
        }
    }

    /// Notes the conversation of a request. Most conversations are never refused anything, and need
    /// no note.
    pub(super) fn note_conversation(&mut self, upstream: &str, context: &RequestContext) {
        if let (Some(refusals), None) = (&self.refusals, self.conversation) {
            self.conversation = self.conversation_of(refusals, upstream, context);
        }
    }

    /// Identifies the conversation of a request by its session or the user's first words, if either
    /// is known.
    fn conversation_of(
        &self,
        refusals: &Refusals,
        name: &str,
        context: &RequestContext,
    ) -> Option<ConversationId> {
        let headers = &self.client.headers;
        let named = match session::of_headers(headers) {
            Some(session) => session,
            None if context.conversation == 0 => return None,
            None => context.conversation.to_string(),
        };
        let secret = *refusals.lock().secret.get_or_insert_with(|| self.ids.secret());
        let upstream = self.config.upstreams.get(name)?;
        // The key that opens Creole's own door, else the one by which the upstream tells its
        // clients apart.
        let client = match &self.report.client_key {
            Some(name) => name.clone(),
            None if upstream.key.is_own() => String::new(),
            None => {
                let headers = self.upstream_headers(upstream, false).ok()?;
                headers::credentials(&headers, &[]).next().unwrap_or_default().to_owned()
            }
        };
        Some(ConversationId::new(secret, &client, &[name, &context.model, &named]))
    }

    /// Remembers the changes of the conversation with which a request was answered.
    pub(super) fn remember_help(&self, now: Millis) {
        let is_answered = self.report.upstream_status.is_some_and(|status| status < 300);
        if let (Some(refusals), Some(id), true) = (&self.refusals, self.conversation, is_answered) {
            let mut refusals = refusals.lock();
            for change in &self.own_changes {
                refusals.conversations.note(id, change, Lasts::Long, now);
            }
        }
    }

    /// Remembers that the changes which the same words had asked for did not help.
    pub(super) fn remember_no_help(&mut self, rejection: &Rejection) {
        let (Some(refusals), Some(id)) = (&self.refusals, self.conversation) else { return };
        if self.own_changes.is_empty() || !is_of_request(rejection) {
            return;
        }
        let now = self.report.requested_at;
        let is_same = |change: &mut (Refused, u64)| change.1 == words_of(rejection);
        for change in self.own_changes.extract_if(.., is_same) {
            refusals.lock().conversations.spurn(id, &change, now);
        }
    }

    /// Keeps a refusal until the client sends the conversation again. Returns false where that
    /// would be of no use.
    pub(super) fn ask_client(&self, rejection: &Rejection, by_name: bool) -> bool {
        let (Some(refusals), Some(id)) = (&self.refusals, self.conversation) else { return false };
        let mut kept = rejection.clone();
        self.hide_credentials(&mut kept.message);
        kept.parameter = kept.parameter.filter(|path| path.len() <= PATH_BYTES_MAX);
        kept.codes.retain(|code| code.len() <= CODE_BYTES_MAX);
        refusals.lock().conversations.ask(id, kept, by_name, self.report.requested_at)
    }

    /// Returns the requests of which the upstream would refuse the same, if a rejection is about
    /// more than this request.
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

    /// Remembers what is refused of the requests in `scope`.
    pub(super) fn memorize(&self, scope: RefusalScope, refused: &Refused) {
        if let Some(refusals) = &self.refusals {
            refusals.add(scope, refused.clone(), self.report.requested_at);
        }
    }
}
