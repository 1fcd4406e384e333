//! Conversion between the tool call ids of an upstream and the ids that a Messages client sees,
//! without storage.
//!
//! A client's id contains the upstream's id, so every replica can restore the upstream's id
//! exactly:
//!
//! ```text
//! plain(X)  X has only letters, digits, "_" and "-", and does not begin like a tag: c_ r_ x_ u2_
//!
//! upstream U                      client
//! call_X, plain(X)                toolu_X
//! call_X, X looks tagged          toolu_c_X
//! else, safe characters only      toolu_r_U
//! else                            toolu_x_ESC    "-": "--"  ".": "-d"  ":": "-c"  "/": "-s"  "-xHH"
//! used before                     toolu_u2_…, toolu_u3_…: the same with the smallest free number
//! ```
//!
//! [`encode`] is injective on all texts that are not empty, and [`decode`] accepts only texts that
//! [`encode`] writes. An id of another endpoint that looks like one of Creole's (`toolu_01A…`) is
//! decoded as well; a call and its result go through the same function, so their ids still match.
//!
//! [`Outgoing`] adapts ids that the upstream did not issue to the upstream's limits.

use std::borrow::Cow;

use crate::ids::base62_of_hash;
use crate::observe::report::RequestCounts;
use crate::profile::IdStyle;
use crate::text::names::{NameSet, Names};
use crate::text::words::{self, is_name_byte};

/// Maximum length of a foreign id that is sent unchanged, if the upstream has no limit.
const FOREIGN_LENGTH_MAX: usize = 64;

/// Number of hash digits that replace an id which cannot be sent.
const HASH_DIGITS: usize = 22;

/// Returns the client's id for an upstream's id. `used` holds the client's ids of other calls in
/// this conversation or answer. `upstream_id` must not be empty.
#[must_use]
pub(crate) fn encode(upstream_id: &str, used: &NameSet<'_>) -> String {
    let (tag, body) = tagged(upstream_id);
    let id = ["toolu_", tag, &body].concat();
    if !used.contains(&id) {
        return id;
    }
    // Binary search for the first free number, as there can be thousands; numbers were given in
    // order.
    let numbered = |number: u64| format!("toolu_u{number}_{tag}{body}");
    let (mut taken, mut free) = (1u64, 2u64);
    while used.contains(&numbered(free)) {
        taken = free;
        free = free.saturating_mul(2);
    }
    while free.saturating_sub(taken) > 1 {
        let between = taken.midpoint(free);
        if used.contains(&numbered(between)) {
            taken = between;
        } else {
            free = between;
        }
    }
    numbered(free)
}

/// Returns the upstream's id that a client's id contains; `None` if [`encode`] did not write the
/// client's id.
#[must_use]
pub(crate) fn decode(client_id: &str) -> Option<String> {
    let rest = client_id.strip_prefix("toolu_").filter(|rest| is_safe(rest))?;
    let body = without_number(rest);
    let upstream_id = if let Some(rest) = body.strip_prefix("c_") {
        ["call_", rest].concat()
    } else if let Some(rest) = body.strip_prefix("r_") {
        rest.to_owned()
    } else if let Some(rest) = body.strip_prefix("x_") {
        unescape(rest)?
    } else {
        ["call_", body].concat()
    };
    let (tag, canonical) = tagged(&upstream_id);
    let is_canonical = body.strip_prefix(tag).is_some_and(|rest| *rest == *canonical);
    (is_canonical && !upstream_id.is_empty()).then_some(upstream_id)
}

/// Returns the parts of a client's id after `toolu_`: a tag for the form, and the upstream's id
/// without the prefix that the tag implies.
fn tagged(upstream_id: &str) -> (&'static str, Cow<'_, str>) {
    match upstream_id.strip_prefix("call_").filter(|rest| is_safe(rest)) {
        Some(rest) if looks_tagged(rest) => ("c_", rest.into()),
        Some(rest) => ("", rest.into()),
        None if is_safe(upstream_id) => ("r_", upstream_id.into()),
        None => ("x_", escape(upstream_id).into()),
    }
}

fn is_safe(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name_byte)
}

fn looks_tagged(text: &str) -> bool {
    match words::split_once(text, "_") {
        Some(("c" | "r" | "x", _)) => true,
        Some((tag, _)) => tag.strip_prefix('u').is_some_and(is_digits),
        None => false,
    }
}

/// Counts the client's ids by their form. Only the form is known, and not which upstream issued an
/// id.
pub(crate) fn count_forms(ids: &NameSet<'_>, counts: &mut RequestCounts) {
    for id in ids.keys() {
        let count = match id.strip_prefix("toolu_") {
            None => &mut counts.ids_foreign,
            Some(rest) if looks_tagged(rest) => &mut counts.ids_tagged,
            Some(_) => &mut counts.ids_decoded,
        };
        *count = count.saturating_add(1);
    }
}

/// Removes a prefix `u2_`, `u3_` and so on.
fn without_number(text: &str) -> &str {
    let is_number = |tag: &str| {
        let digits = tag.strip_prefix('u').unwrap_or_default();
        is_digits(digits) && !digits.starts_with('0') && digits != "1"
    };
    match words::split_once(text, "_") {
        Some((tag, rest)) if is_number(tag) && !rest.is_empty() => rest,
        _ => text,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(8));
    for byte in text.bytes() {
        match byte {
            b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => out.push(char::from(byte)),
            b'-' => out.push_str("--"),
            b'.' => out.push_str("-d"),
            b':' => out.push_str("-c"),
            b'/' => out.push_str("-s"),
            _ => {
                let digit = |nibble| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                out.extend(['-', 'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    out
}

/// Reverses [`escape`], and accepts more texts than [`escape`] writes: the caller compares the
/// result.
fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'-' => match bytes.next()? {
                b'-' => b'-',
                b'd' => b'.',
                b'c' => b':',
                b's' => b'/',
                b'x' => {
                    let mut digit = || char::from(bytes.next()?).to_digit(16);
                    let value = (digit()? << 4) | digit()?;
                    u8::try_from(value).ok()?
                }
                _ => return None,
            },
            plain => plain,
        };
        out.push(byte);
    }
    String::from_utf8(out).ok()
}

/// Map from the client's tool ids to the upstream's ids, for one request. The calls must be added
/// in the order of the conversation.
///
/// 1. An id that the upstream issued is sent back exactly. An id that does not fit the upstream's
///    limits came from another upstream, before a switch of models, and counts as foreign.
/// 2. A foreign id is sent unchanged if the limits allow, or else as digits of its hash. Shortening
///    would not do, because the first letters of one endpoint's ids are often all the same.
/// 3. Equal ids of the client give equal ids. Different ids of the client give different ids,
///    unless the upstream itself issued one id twice (`call_0` in each turn): both are then sent
///    back unchanged, but not in the same message, where results could not be told apart.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    /// Upstream's id for each id of the client.
    given: Names<'a, String>,
    new: NewIds,
}

/// Generator of ids that an upstream accepts.
#[derive(Debug)]
struct NewIds {
    style: IdStyle,
    /// Maximum length of an id in characters; 0 if unlimited.
    max_length: usize,
    /// Ids in use. For ids that the upstream issued, the value is the number of the last message
    /// with that id.
    taken: Names<'static, Option<u32>>,
    message: u32,
    /// Number of the next call, which is a part of Kimi's ids.
    calls: u64,
}

impl<'a> Outgoing<'a> {
    /// Creates an empty map for one request. A `max_length` of 0 means no limit.
    #[must_use]
    pub(crate) fn new(style: IdStyle, max_length: usize) -> Self {
        let new = NewIds { style, max_length, taken: Names::default(), message: 0, calls: 0 };
        Self { given: Names::default(), new }
    }

    /// Begins a message, to which the following calls belong.
    pub(crate) fn begin_message(&mut self) {
        self.new.message = self.new.message.saturating_add(1);
    }

    /// Returns the upstream's id for the client's id of a call or of its result. `tool_name` is the
    /// upstream's name of the tool.
    pub(crate) fn id(&mut self, client_id: Cow<'a, str>, tool_name: &str) -> &str {
        let new = |client_id: &str| self.new.id(client_id, tool_name);
        self.given.get_or_insert_with(client_id, new).map_or("", String::as_str)
    }
}

impl NewIds {
    fn id(&mut self, client_id: &str, tool_name: &str) -> String {
        let own = decode(client_id).filter(|id| self.fits(id));
        let own = own.filter(|id| match self.taken.get(id) {
            Some(given) => given.is_some_and(|message| message != self.message),
            None => true,
        });
        let issued = own.is_some().then_some(self.message);
        let id = own.unwrap_or_else(|| self.foreign(client_id, tool_name));
        self.calls = self.calls.saturating_add(1);
        self.taken.insert(id.clone(), issued);
        id
    }

    /// Returns true if the upstream could have issued this id.
    fn fits(&self, id: &str) -> bool {
        match self.style {
            IdStyle::Mistral9 => is_nine(id),
            IdStyle::Kimi => is_numbered(id) && self.is_short(id),
            IdStyle::Any => self.is_short(id),
        }
    }

    fn is_short(&self, id: &str) -> bool {
        self.max_length == 0 || id.chars().count() <= self.max_length
    }

    fn foreign(&mut self, client_id: &str, tool_name: &str) -> String {
        let mut attempt = 0u64;
        loop {
            let id = match self.style {
                IdStyle::Kimi if !tool_name.is_empty() => {
                    format!("functions.{tool_name}:{}", self.calls)
                }
                IdStyle::Mistral9 => match attempt {
                    0 if is_nine(client_id) => client_id.to_owned(),
                    _ => hash(client_id, attempt, 9),
                },
                IdStyle::Kimi | IdStyle::Any => self.any(client_id, attempt),
            };
            if !self.taken.contains(&id) {
                return id;
            }
            attempt = attempt.saturating_add(1);
            // Numbers in use are not tried again for the next call.
            if self.style == IdStyle::Kimi {
                self.calls = self.calls.saturating_add(1);
            }
        }
    }

    fn any(&self, client_id: &str, attempt: u64) -> String {
        let longest = if self.max_length == 0 { FOREIGN_LENGTH_MAX } else { self.max_length };
        if attempt == 0 && is_safe(client_id) && client_id.len() <= longest {
            return client_id.to_owned();
        }
        // If the limit is too short for the prefix, all characters are used for digits.
        let prefix = if longest >= 16 { "call_h" } else { "" };
        let digits = longest.saturating_sub(prefix.len()).min(HASH_DIGITS);
        format!("{prefix}{}", hash(client_id, attempt, digits))
    }
}

/// Returns true if an id has Mistral's form: nine letters and digits.
fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns true if an id has one of Kimi's forms: `functions.NAME:N`, and `NAME:N` since K3.
fn is_numbered(id: &str) -> bool {
    let id = id.strip_prefix("functions.").unwrap_or(id);
    words::rsplit_once(id, b':').is_some_and(|(name, number)| !name.is_empty() && is_digits(number))
}

/// Returns digits of the hash of an id; each `attempt` gives different digits.
fn hash(id: &str, attempt: u64, digits: usize) -> String {
    if attempt == 0 {
        return base62_of_hash(id.as_bytes(), digits);
    }
    base62_of_hash(format!("{id}\0{attempt}").as_bytes(), digits)
}

#[cfg(test)]
mod tests;
