//! Changes that upstreams asked for in single conversations. An upstream repeats the refusal for
//! each request of the conversation, but the refusal does not apply to further conversations.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::Millis;
use crate::error::Rejection;
use crate::protocols::Refused;

/// Time for which a change of the request, asked for by an upstream, is applied to a conversation,
/// in ms. Afterwards another server may answer at the same address.
const REMEMBERED_MS: Millis = 10 * 60_000;

/// Time for which a change of the request that concerns one image or the current load is applied to
/// a conversation, in ms.
const BRIEFLY_MS: Millis = 60_000;

/// Maximum number of conversations; beyond this number, the client with the largest number of
/// conversations loses its oldest conversation.
const CONVERSATIONS_MAX: usize = 256;

/// Maximum number of changes remembered for a conversation; beyond this number, the oldest change
/// is forgotten.
const CHANGES_MAX: usize = 16;

/// Maximum number of refusals of a conversation after which the client is told to retry.
/// `NAMED_MAX` limits those refusals whose only evidence for the change is a name.
const ASKED_MAX: usize = 4;
const NAMED_MAX: usize = 2;

/// Identity of a conversation of one client with one model. Only keyed hashes of the client and the
/// conversation are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConversationId {
    client: u64,
    conversation: u64,
}

impl ConversationId {
    /// Hashes the client's key together with `conversation`: the upstream, the model and the texts
    /// that identify the conversation.
    pub(super) fn new(secret: u64, client: &str, conversation: &[&str]) -> Self {
        let keyed = |texts: &[&str]| {
            let mut hasher = DefaultHasher::new();
            (secret, texts).hash(&mut hasher);
            hasher.finish()
        };
        Self { client: keyed(&[client]), conversation: keyed(&[&[client], conversation].concat()) }
    }
}

/// Conversations with remembered refusals of upstreams, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Conversations(Vec<Conversation>);

#[derive(Debug)]
struct Conversation {
    id: ConversationId,
    changes: Vec<KnownChange>,
    /// Upstream's refusal for which the conversation's next request chooses a change of the
    /// request.
    pending: Option<Box<Rejection>>,
    /// Refusals after which the client was asked to send the conversation again.
    asked: Vec<AskedUpstream>,
    until: Millis,
}

/// Change of the request that was made in a conversation, and whether the change helped.
#[derive(Clone, Debug)]
pub(super) struct KnownChange {
    pub(super) change: Refused,
    /// Hash of the upstream's error text that asked for the change of the request.
    pub(super) words: u64,
    /// True if a request with the change was refused with the same error text.
    pub(super) is_useless: bool,
    until: Millis,
}

#[derive(Debug)]
struct AskedUpstream {
    words: u64,
    by_name: bool,
    until: Millis,
}

/// Duration for which a change is remembered: [`REMEMBERED_MS`] or [`BRIEFLY_MS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasts {
    Long,
    Briefly,
}

impl Conversations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the changes remembered for a conversation, and removes the refusal that waits for
    /// the conversation's next request.
    pub(super) fn of(
        &mut self,
        id: ConversationId,
        now: Millis,
    ) -> (Vec<KnownChange>, Option<Box<Rejection>>) {
        self.0.retain(|one| now < one.until);
        let Some(one) = self.0.iter_mut().find(|one| one.id == id) else {
            return Default::default();
        };
        one.changes.retain(|known| now < known.until);
        (one.changes.clone(), one.pending.take())
    }

    /// Keeps an upstream's refusal until the client's retry, which the client is asked to send.
    /// Returns false if the client was asked before for the same error text, or too often.
    pub(super) fn ask(
        &mut self,
        id: ConversationId,
        rejection: Rejection,
        by_name: bool,
        now: Millis,
    ) -> bool {
        let words = words_of(&rejection);
        self.learn(id, now, |one| {
            one.asked.retain(|asked| now < asked.until);
            let named = one.asked.iter().filter(|asked| asked.by_name).count();
            let may_ask = one.asked.len() < ASKED_MAX
                && !(by_name && named >= NAMED_MAX)
                && !one.asked.iter().any(|asked| asked.words == words);
            if may_ask {
                let until = now.saturating_add(REMEMBERED_MS);
                one.asked.push(AskedUpstream { words, by_name, until });
                one.pending = Some(Box::new(rejection));
            }
            may_ask
        })
    }

    /// Remembers a change of the request. `lasts` is the duration, counted from the first time the
    /// change was made, however often the change helps.
    pub(super) fn note(
        &mut self,
        id: ConversationId,
        (change, words): &(Refused, u64),
        lasts: Lasts,
        now: Millis,
    ) {
        let until = now.saturating_add(match lasts {
            Lasts::Long => REMEMBERED_MS,
            Lasts::Briefly => BRIEFLY_MS,
        });
        self.learn(id, now, |one| {
            if one.changes.iter().any(|known| known.change == *change) {
                return;
            }
            if one.changes.len() >= CHANGES_MAX {
                one.changes.remove(0);
            }
            let (change, words) = (change.clone(), *words);
            one.changes.push(KnownChange { change, words, is_useless: false, until });
        });
    }

    /// Marks a change as useless: a request with the change was refused with the same error text.
    pub(super) fn spurn(&mut self, id: ConversationId, change: &(Refused, u64), now: Millis) {
        self.note(id, change, Lasts::Long, now);
        self.learn(id, now, |one| {
            let known = one.changes.iter_mut().filter(|known| known.change == change.0);
            known.for_each(|known| known.is_useless = true);
        });
    }

    fn learn<T>(
        &mut self,
        id: ConversationId,
        now: Millis,
        act: impl FnOnce(&mut Conversation) -> T,
    ) -> T {
        self.0.retain(|one| now < one.until);
        let known = self.0.iter().position(|one| one.id == id);
        let mut one = match known {
            Some(at) => self.0.remove(at),
            None => {
                let (changes, asked) = (Vec::new(), Vec::new());
                Conversation { id, changes, pending: None, asked, until: now }
            }
        };
        one.until = now.saturating_add(REMEMBERED_MS);
        let result = act(&mut one);
        if self.0.len() >= CONVERSATIONS_MAX {
            self.forget_one();
        }
        self.0.push(one);
        result
    }

    /// Removes the oldest conversation of the client with the largest number of conversations, so
    /// that one client cannot displace all others.
    fn forget_one(&mut self) {
        let of = |client| self.0.iter().filter(|one| one.id.client == client).count();
        // Among clients with equally many conversations, choose the client with the older
        // conversation.
        let largest = self.0.iter().rev().map(|one| one.id.client).max_by_key(|client| of(*client));
        let oldest = self.0.iter().position(|one| Some(one.id.client) == largest);
        if let Some(oldest) = oldest {
            self.0.remove(oldest);
        }
    }
}

/// Returns a hash of an error's text that is equal for repetitions of the error. Words with digits,
/// such as request ids, are left out, but the names in parameter paths are kept.
pub(super) fn words_of(rejection: &Rejection) -> u64 {
    let mut hasher = DefaultHasher::new();
    let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    for word in rejection.message.split_ascii_whitespace() {
        // Parameter paths in error texts are like `tools.0.name` or `messages[3].content`.
        let is_path = word.contains(['.', '[']);
        match has_digit(word) {
            true if is_path => word
                .split(['.', '[', ']'])
                .filter(|step| !has_digit(step))
                .for_each(|step| step.hash(&mut hasher)),
            true => {}
            false => word.hash(&mut hasher),
        }
    }
    (&rejection.parameter, &rejection.codes).hash(&mut hasher);
    hasher.finish()
}
