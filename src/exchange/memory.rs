//! Memory of recent upstream refusals, which lets later requests leave out the refused parts from
//! the start. Clients repeat their settings in each request, so a model would refuse the same
//! settings each time. A refusal that applies to one conversation only is remembered for that
//! conversation.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Exchange;
use super::conversations::{ConversationId, Conversations, KnownChange, Lasts, words_of};
use super::round::RoundRequest;
use crate::Millis;
use crate::error::{Reason, Rejection};
use crate::headers::{self, session};
use crate::model::request_context::RequestContext;
use crate::protocols::Refused;
use crate::steps::tools::mcp::ToolMemory;
use crate::upstream_error::evidence::Evidence;

/// Time for which a refusal is remembered, in ms. Afterwards another server may answer at the same
/// address.
const REMEMBERED_MS: Millis = 10 * 60_000;

/// Maximum number of refusals remembered for models; beyond this number, the oldest refusal is
/// forgotten.
const REFUSALS_MAX: usize = 256;

/// Maximum length of an error's parameter path, and of each error code, in bytes; longer values are
/// not kept.
const PATH_BYTES_MAX: usize = 512;
const CODE_BYTES_MAX: usize = 128;

/// Maximum length of a model's name for which refusals are remembered, in bytes.
const MODEL_BYTES_MAX: usize = 256;

/// Recent refusals of upstreams, shared by all exchanges whose configurations name the same
/// upstreams: see [`Exchange::remember`]. The memory holds model names, keyed hashes of
/// conversations, and the upstream's error for a request that the client was asked to send again.
#[derive(Default)]
pub struct Refusals {
    memory: Mutex<Memory>,
    /// Eras and lists of MCP servers, for later exchanges.
    tools: ToolMemory,
}

// An upstream's error text may quote a prompt.
impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Memory {
    models: Vec<Remembered>,
    conversations: Conversations,
    /// Secret key of the hashes of conversations: a number that no client knows.
    secret: Option<u64>,
}

#[derive(Debug)]
struct Remembered {
    of: RefusalScope,
    refused: Refused,
    until: Millis,
}

/// Scope of a refusal: requests for one model of an upstream, with or without tools. The upstream
/// refuses the same part of each request in the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusalScope {
    upstream: String,
    /// Model name sent by the client.
    model: String,
    /// True if the request has tools: some models accept a reasoning effort only without tools.
    has_tools: bool,
}

/// Change that an upstream's error asks for: leaving out one refused part of the request.
pub(super) struct FoundChange {
    pub(super) refused: Refused,
    /// Scope of later requests to which the refusal also applies, if the error is not about this
    /// request alone.
    pub(super) scope: Option<RefusalScope>,
    /// Evidence for the change of the request, if the text of the upstream's error is not a known
    /// one.
    pub(super) evidence: Option<Evidence>,
}

impl RefusalScope {
    fn of(upstream: &str, context: &RequestContext) -> Self {
        let (upstream, model) = (upstream.to_owned(), context.model.clone());
        Self { upstream, model, has_tools: context.counts.tools > 0 }
    }
}

/// Returns true if an error is about the request, not about a key, a rate or the server's state,
/// which are temporary.
pub(super) fn is_of_request(rejection: &Rejection) -> bool {
    matches!(rejection.status, 400 | 404 | 405 | 413 | 415 | 422 | 501)
}

/// Returns true if a change would remove a file that the user has just sent, which may differ from
/// the refused file.
pub(super) fn is_of_new_file(change: &Refused, context: &RequestContext) -> bool {
    match change {
        Refused::Images => context.refusable.new_image,
        Refused::Documents => context.refusable.new_document,
        _ => false,
    }
}

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the memory of MCP servers.
    pub(super) fn tools(&self) -> &ToolMemory {
        &self.tools
    }

    /// Returns the remembered refusals that apply to the request `sent`, oldest first.
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
    /// Lets the exchange remember what upstreams refuse, and leave the refused parts out of later
    /// requests, with the same warning as after a retry. A host that cannot [ask
    /// again](super::HostCan::ask_again) tells its clients to retry. In strict mode no refusal is
    /// remembered, because strict mode leaves out no part of a request.
    pub fn remember(&mut self, refusals: Arc<Refusals>) {
        if !self.config.settings.strict {
            self.refusals = Some(refusals);
        }
    }

    /// Removes from a request the parts that were refused before, for the model or for the
    /// conversation.
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
        for KnownChange { change, words, is_useless, .. } in known {
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

    /// Leaves one refused part out of a request. Returns false, and undoes the change, if the
    /// request stays the same.
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

    /// Stores the id of the request's conversation. Most conversations meet no refusal and need no
    /// id.
    pub(super) fn note_conversation(&mut self, upstream: &str, context: &RequestContext) {
        if let (Some(refusals), None) = (&self.refusals, self.conversation) {
            self.conversation = self.conversation_of(refusals, upstream, context);
        }
    }

    /// Returns the id of the request's conversation, built from its session or the user's first
    /// words, if either is known.
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
        // Use the client's key for Creole, else the credential by which the upstream distinguishes
        // clients.
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

    /// Remembers the changes of the request for its conversation, after a request with these
    /// changes was answered.
    pub(super) fn remember_help(&self, now: Millis) {
        let is_answered = self.report.upstream_status.is_some_and(|status| status < 300);
        if let (Some(refusals), Some(id), true) = (&self.refusals, self.conversation, is_answered) {
            let mut refusals = refusals.lock();
            for change in &self.own_changes {
                refusals.conversations.note(id, change, Lasts::Long, now);
            }
        }
    }

    /// Remembers that changes made after the same error text did not help.
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

    /// Keeps an upstream's error until the client sends the conversation again. Returns false if
    /// the conversation is unknown, or if its client was asked before for the same error text, or
    /// too often.
    pub(super) fn ask_client(&self, rejection: &Rejection, by_name: bool) -> bool {
        let (Some(refusals), Some(id)) = (&self.refusals, self.conversation) else { return false };
        let mut kept = rejection.clone();
        self.hide_credentials(&mut kept.message);
        kept.parameter = kept.parameter.filter(|path| path.len() <= PATH_BYTES_MAX);
        kept.codes.retain(|code| code.len() <= CODE_BYTES_MAX);
        refusals.lock().conversations.ask(id, kept, by_name, self.report.requested_at)
    }

    /// Returns the scope of later requests that the upstream would also refuse, if an error is
    /// about more than this request.
    pub(super) fn lasting_scope(
        &self,
        context: &RequestContext,
        rejection: &Rejection,
        reason: &Reason,
        refused: &Refused,
    ) -> Option<RefusalScope> {
        let is_lasting = match (reason, refused) {
            // Refusals that may concern one conversation, image or schema.
            (
                _,
                Refused::Calls(_) | Refused::Images | Refused::Documents | Refused::ResponseFormat,
            ) => false,
            // Refusal that may concern the contents of one conversation.
            (Reason::ReasoningUnread { .. }, _) => false,
            // Refusals of one reasoning effort, or because of the token rate of this minute.
            (Reason::Effort { taken, names_value: true }, _) if taken.is_empty() => false,
            (Reason::RateTooLow(_), _) => false,
            // Prompts of further clients have different lengths.
            (_, Refused::Space(space)) if !space.is_of(context.input_tokens) => false,
            _ => !rejection.is_passing,
        };
        let is_kept = self.refusals.is_some() && self.protocol().remembers_refusals();
        let scope =
            (is_lasting && is_kept).then(|| RefusalScope::of(&self.report.upstream, context));
        scope.filter(|scope| scope.model.len() <= MODEL_BYTES_MAX)
    }

    /// Remembers a refused part for all requests in `scope`.
    pub(super) fn memorize(&self, scope: RefusalScope, refused: &Refused) {
        if let Some(refusals) = &self.refusals {
            refusals.add(scope, refused.clone(), self.report.requested_at);
        }
    }
}
