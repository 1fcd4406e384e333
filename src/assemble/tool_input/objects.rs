//! Input of a tool call that arrives as several JSON objects.
//!
//! MiniMax sends the arguments of a call as objects and not as strings. Each object has the next
//! piece of a member, or the next member. Other servers repeat everything so far in each object. So
//! members of different names are merged, and members of the same name as follows:
//!
//! | before | now | together |
//! |---|---|---|
//! | `"Par"` | `"Paris"` | `"Paris"`: it is cumulative |
//! | `"Par"` | `"is"` | `"Paris"`: it is a delta |
//! | `[1]`, `null` | `[1,2]` | the later value |
//! | anything | `null` | the earlier value |
//! | `1` | `2` | a contradiction: the input is invalid |
//!
//! An object that comes with the tool's name again may be another call with the same id. Such an
//! object may add members or extend one cumulatively, but a delta counts as a contradiction.
//!
//! A short delta can begin with everything before it by chance (`"ha"`, `"ha"`), so both
//! interpretations of a text are kept until a fragment or the length decides. Each fragment is
//! compared only with as many bytes as it has itself, so that the total time is linear.

use crate::json::{self, Reader};
use crate::text::names::Names;
use crate::text::words;

/// Maximum number of bytes of a fragment that may repeat the value so far by chance. A longer
/// repetition means that the fragments are cumulative.
const CHANCE_BYTES_MAX: usize = 32;

/// Merged members of the objects that arrived so far.
#[derive(Clone, Debug, Default)]
pub(super) struct MergedObjects {
    /// Index in `members` of each member, by the member's name.
    places: Names<'static, usize>,
    /// Names and values of the members, in order of arrival.
    members: Vec<(String, MemberValue)>,
    /// First object that contradicts the objects before it, if any.
    contradiction: Option<String>,
    bytes: usize,
}

/// Value of a member, as JSON text.
#[derive(Clone, Debug, Default)]
struct MemberValue {
    json: String,
    /// Value so far under the other interpretation: that the fragments which look cumulative are
    /// deltas.
    joined: Option<String>,
    /// True if some fragments of the value were certainly deltas. A later fragment that begins with
    /// all fragments before it is cumulative.
    has_deltas: bool,
}

impl MergedObjects {
    pub(super) fn of(object: &str) -> Self {
        let mut objects = Self::default();
        objects.add(object, false);
        objects
    }

    /// Merges one more object of the input. `named`: the tool's name came with the object. Returns
    /// true if the object contradicts the objects before it.
    pub(super) fn add(&mut self, object: &str, named: bool) -> bool {
        if self.contradiction.is_some() {
            return false;
        }
        if self.add_members(object, named).is_none() {
            self.bytes = self.bytes.saturating_add(object.len());
            self.contradiction = Some(object.to_owned());
        }
        self.contradiction.is_some()
    }

    fn add_members(&mut self, object: &str, named: bool) -> Option<()> {
        let mut reader = Reader::of(object);
        reader.begin_object().ok()?;
        while let Some(key) = reader.next_key().ok()? {
            let key = key.decode();
            let json = reader.skip().ok()?;
            if let Some((_, value)) =
                self.places.get(&key).and_then(|place| self.members.get_mut(*place))
            {
                let before = value.held_bytes();
                value.add(json, named)?;
                debug_assert!(self.bytes >= before, "bytes of a member were not counted");
                self.bytes = self.bytes.saturating_sub(before).saturating_add(value.held_bytes());
                continue;
            }
            self.bytes = self.bytes.saturating_add(key.len()).saturating_add(json.len());
            self.places.insert(key.clone().into_owned(), self.members.len());
            self.members.push((
                key.into_owned(),
                MemberValue { json: json.to_owned(), ..MemberValue::default() },
            ));
        }
        Some(())
    }

    /// Returns all members as one object. If there was a contradiction, it is appended, so that the
    /// text is no JSON.
    pub(super) fn text(&self) -> String {
        let mut text = json::written(|json| {
            json.begin_object();
            for (key, value) in &self.members {
                json.key_text(key).raw(&value.json);
            }
            json.end_object();
        });
        text.push_str(self.contradiction.as_deref().unwrap_or_default());
        text
    }

    /// Returns the number of bytes that the members hold in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }
}

impl MemberValue {
    fn held_bytes(&self) -> usize {
        self.json.len().saturating_add(self.joined.as_ref().map_or(0, String::len))
    }

    /// Adds the next fragment of a member's value. Returns `None` if the fragment contradicts the
    /// value so far.
    fn add(&mut self, json: &str, named: bool) -> Option<()> {
        if json == "null" {
            return Some(());
        }
        let grows = self.json.starts_with(['"', '[', '{']) && json.starts_with(open(&self.json));
        if grows || json == self.json {
            self.joined = match (self.joined.take(), delta(json)) {
                _ if self.has_deltas || self.json.len() > CHANCE_BYTES_MAX => None,
                (joined, Some(delta)) => {
                    Some(join(joined.unwrap_or_else(|| self.json.clone()), delta))
                }
                _ => None,
            };
            json.clone_into(&mut self.json);
            return Some(());
        }
        if self.json == "null" {
            json.clone_into(&mut self.json);
            return Some(());
        }
        let delta = delta(json).filter(|_| self.json.starts_with('"') && !named)?;
        let before = self.joined.take().unwrap_or_else(|| std::mem::take(&mut self.json));
        self.json = join(before, delta);
        self.has_deltas = true;
        Some(())
    }
}

/// Returns a JSON value without its closing quote or bracket. A longer version of the same value
/// begins with the returned text.
fn open(json: &str) -> &str {
    let inside = words::trim_end(json, b"}]");
    inside.strip_suffix('"').unwrap_or(inside)
}

/// Returns the text that a string fragment adds to another string: everything but its first quote.
fn delta(json: &str) -> Option<&str> {
    json.strip_prefix('"')
}

fn join(mut before: String, delta: &str) -> String {
    before.pop();
    before.push_str(delta);
    before
}
