//! Map by name that keeps the order of insertion.
//!
//! Clients choose many of these names, so lookups must stay fast for hostile names too. A hash
//! table would need a random seed, which is not available here; so the map is a tree. Most requests
//! have few names, and for these a list is faster: the tree has only the names that come after the
//! first ones. Ids of tools and names of metrics share prefixes, so names are compared by their
//! hashes first, and byte by byte only if the hashes are equal.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::text::hash;

/// Maximum number of names in the list, which is searched from its beginning.
const FIRST_MAX: usize = 32;

/// Capacity of the list of names once it has a name: few maps have only one name.
const FIRST_CAPACITY: usize = 16;

/// Map of values by name, in the order in which the names were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Names<'a, T> {
    /// First names that were added, at most [`FIRST_MAX`], each at the index of its value.
    first: Vec<Name<'a>>,
    /// Index in `values` of each later name's value.
    later: BTreeMap<Name<'a>, usize>,
    values: Vec<T>,
}

/// Set of names, in the order of insertion.
pub type NameSet<'a> = Names<'a, ()>;

/// Name as a map key, ordered by its hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a> {
    hash: u64,
    text: Cow<'a, str>,
}

impl<'a> Name<'a> {
    fn new(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        Self { hash: hash::bytes(0, text.as_bytes()), text }
    }
}

impl<T> Default for Names<'_, T> {
    fn default() -> Self {
        Self { first: Vec::new(), later: BTreeMap::new(), values: Vec::new() }
    }
}

impl<'a, T> Names<'a, T> {
    fn place(&self, name: &str) -> Option<usize> {
        let name = Name::new(name);
        let place = self.first.iter().position(|known| *known == name);
        place.or_else(|| self.later.get(&name).copied())
    }

    /// Returns the index of the value of `name`. A new name gets the index of the next value, which
    /// the caller must add.
    fn place_or_next(&mut self, name: impl Into<Cow<'a, str>>) -> usize {
        let (name, next) = (Name::new(name), self.values.len());
        if let Some(place) = self.first.iter().position(|known| *known == name) {
            return place;
        }
        if self.first.len() < FIRST_MAX {
            if self.first.is_empty() {
                self.first.reserve(FIRST_CAPACITY);
                self.values.reserve(FIRST_CAPACITY);
            }
            self.first.push(name);
            return next;
        }
        *self.later.entry(name).or_insert(next)
    }

    /// Returns the value that the map has for `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.values.get(self.place(name)?)
    }

    /// Returns a mutable reference to the value that the map has for `name`.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let place = self.place(name)?;
        self.values.get_mut(place)
    }

    /// Returns true if the map has a value for `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Sets the map's value for `name`, and returns the previous value.
    pub fn insert(&mut self, name: impl Into<Cow<'a, str>>, value: T) -> Option<T> {
        let place = self.place_or_next(name);
        debug_assert!(place <= self.values.len(), "a name has no value");
        match self.values.get_mut(place) {
            Some(known) => Some(std::mem::replace(known, value)),
            None => {
                self.values.push(value);
                None
            }
        }
    }

    /// Returns the map's value for `name`. If there is none, inserts the result of the function
    /// `value` first.
    pub fn get_or_insert_with(
        &mut self,
        name: Cow<'a, str>,
        value: impl FnOnce(&str) -> T,
    ) -> Option<&T> {
        let place = match self.place(&name) {
            Some(place) => place,
            None => {
                let (value, place) = (value(&name), self.values.len());
                self.insert(name, value);
                place
            }
        };
        self.values.get(place)
    }

    /// Changes the map's value for `name`; a new name starts with the default value.
    pub fn update(&mut self, name: impl Into<Cow<'a, str>>, change: impl FnOnce(&mut T))
    where
        T: Default,
    {
        let place = self.place_or_next(name);
        if place == self.values.len() {
            self.values.push(T::default());
        }
        if let Some(value) = self.values.get_mut(place) {
            change(value);
        }
    }

    /// Returns the number of names in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if the map has no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Removes all names and their values from the map.
    pub fn clear(&mut self) {
        self.first.clear();
        self.later.clear();
        self.values.clear();
    }

    /// Returns the names of the map with their values, in the order in which the names were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.keys().zip(&self.values)
    }

    /// Returns the names of the map, in the order in which they were added.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let mut later = vec![""; self.later.len()];
        for (name, place) in &self.later {
            if let Some(slot) = later.get_mut(place.saturating_sub(FIRST_MAX)) {
                *slot = name.text.as_ref();
            }
        }
        self.first.iter().map(|name| name.text.as_ref()).chain(later)
    }

    /// Returns the values of the map, in the order in which their names were added.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Returns mutable references to the values, in the order in which their names were added.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    /// Consumes the map, and returns the values in the order in which their names were added.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.values.into_iter()
    }
}

impl<'a> NameSet<'a> {
    /// Adds a name to the set, and returns true if the name is new.
    pub fn add(&mut self, name: impl Into<Cow<'a, str>>) -> bool {
        self.insert(name, ()).is_none()
    }
}

/// Returns true if a tool's name may be sent to models: at most 128 letters, digits, `_`, `.` and
/// `-`.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
