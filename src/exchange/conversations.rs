//! What upstreams refused in single conversations: it comes again with each of their requests, and says nothing of
//! other conversations.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::Millis;
use crate::error::Rejection;
use crate::protocols::Refused;

/// How long a conversation is remembered after the last that was learnt of it.
const REMEMBERED_MS: Millis = 10 * 60_000;

/// Most conversations; then the client that has most of them loses its oldest one.
const CONVERSATIONS_MAX: usize = 256;

/// Most changes of a conversation; then the oldest is forgotten.
const CHANGES_MAX: usize = 16;

/// How often in a row clients are told to send a conversation again.
const ASKED_MAX: u32 = 4;

/// A conversation of one client with one model. Of clients and conversations nothing but keyed hashes is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConversationId {
    client: u64,
    conversation: u64,
}

impl ConversationId {
    /// `client`: its keys. `conversation`: upstream, model and what names the conversation.
    pub(super) fn new(secret: u64, client: &[&str], conversation: &[&str]) -> Self {
        let keyed = |texts: &[&str]| {
            let mut hasher = DefaultHasher::new();
            (secret, texts).hash(&mut hasher);
            hasher.finish()
        };
        Self { client: keyed(client), conversation: keyed(&[client, conversation].concat()) }
    }
}

/// Conversations of which something is remembered, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Conversations(Vec<Conversation>);

#[derive(Debug)]
struct Conversation {
    id: ConversationId,
    changes: Vec<(Refused, Standing)>,
    /// A refusal of which the next request of the conversation decides what is changed.
    pending: Option<Box<Rejection>>,
    /// How often its client was told to send it again since a request was answered.
    asked: u32,
    until: Millis,
}

/// What is known of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A request with it is under way, or was.
    Tried,
    /// A request with it was answered.
    Helped,
    /// A request with it was refused all the same.
    Useless,
}

/// What is known of a conversation.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Changes with which its requests are sent.
    pub(super) changes: Vec<Refused>,
    /// Changes that are not worth another request.
    pub(super) useless: Vec<Refused>,
    /// The refusal that waits for a request.
    pub(super) pending: Option<Box<Rejection>>,
}

impl Conversations {
    /// What is known of a conversation. The refusal that waits is taken.
    pub(super) fn known(&mut self, id: ConversationId, now: Millis) -> Known {
        self.0.retain(|one| now < one.until);
        let Some(one) = self.0.iter_mut().find(|one| one.id == id) else { return Known::default() };
        let (useless, changes): (Vec<_>, Vec<_>) =
            one.changes.iter().partition(|(_, standing)| *standing == Standing::Useless);
        let only = |all: Vec<&(Refused, Standing)>| {
            all.into_iter().map(|(refused, _)| refused.clone()).collect()
        };
        Known { changes: only(changes), useless: only(useless), pending: one.pending.take() }
    }

    /// Keeps a refusal until the next request, which its client is told to send. Returns false where it was told so
    /// too often.
    pub(super) fn ask(&mut self, id: ConversationId, rejection: &Rejection, now: Millis) -> bool {
        self.learn(id, now, |one| {
            let may_ask = one.asked < ASKED_MAX;
            if may_ask {
                one.asked = one.asked.saturating_add(1);
                one.pending = Some(Box::new(rejection.clone()));
            }
            may_ask
        })
    }

    /// A request is sent with a change.
    pub(super) fn tried(&mut self, id: ConversationId, change: &Refused, now: Millis) {
        self.learn(id, now, |one| one.note(change, Standing::Tried));
    }

    /// A request with these changes was answered.
    pub(super) fn helped(&mut self, id: ConversationId, changes: &[Refused], now: Millis) {
        self.learn(id, now, |one| {
            one.asked = 0;
            changes.iter().for_each(|change| one.note(change, Standing::Helped));
        });
    }

    /// A request with these changes was refused.
    pub(super) fn useless(&mut self, id: ConversationId, changes: &[Refused], now: Millis) {
        self.learn(id, now, |one| {
            changes.iter().for_each(|change| one.note(change, Standing::Useless));
        });
    }

    fn learn<T>(
        &mut self,
        id: ConversationId,
        now: Millis,
        act: impl FnOnce(&mut Conversation) -> T,
    ) -> T {
        let known = self.0.iter().position(|one| one.id == id);
        let mut one = match known {
            Some(at) => self.0.remove(at),
            None => Conversation { id, changes: Vec::new(), pending: None, asked: 0, until: now },
        };
        one.until = now.saturating_add(REMEMBERED_MS);
        let result = act(&mut one);
        if self.0.len() >= CONVERSATIONS_MAX {
            self.forget_one();
        }
        self.0.push(one);
        result
    }

    /// Forgets the oldest conversation of the client that has most: one client must not push out all others.
    fn forget_one(&mut self) {
        let of = |client| self.0.iter().filter(|one| one.id.client == client).count();
        // Of equals the one whose conversation is older.
        let largest = self.0.iter().rev().map(|one| one.id.client).max_by_key(|client| of(*client));
        let oldest = self.0.iter().position(|one| Some(one.id.client) == largest);
        if let Some(oldest) = oldest {
            self.0.remove(oldest);
        }
    }
}

impl Conversation {
    fn note(&mut self, change: &Refused, standing: Standing) {
        if let Some((_, known)) = self.changes.iter_mut().find(|(known, _)| known == change) {
            // What has helped a conversation helps it when something else is refused, too.
            if *known != Standing::Helped {
                *known = standing;
            }
            return;
        }
        if self.changes.len() >= CHANGES_MAX {
            self.changes.remove(0);
        }
        self.changes.push((change.clone(), standing));
    }
}
