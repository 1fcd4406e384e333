//! Names and what is known about each: the only tree of this crate.
//!
//! Every instance of `BTreeMap` for other types is six kilobytes of the filter. All of ours have
//! texts as their keys, so there is one tree, from texts to places in a vector. It stays fast for
//! names that a hostile client chose, which is why it is no hash table.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::text::hash;

/// What is known about each name.
#[derive(Clone, Debug, PartialEq)]
pub struct Names<'a, T> {
    places: Places<'a>,
    values: Vec<T>,
}

/// A set of names.
pub type NameSet<'a> = Names<'a, ()>;

#[derive(Debug, Default, PartialEq)]
struct Places<'a>(BTreeMap<Name<'a>, usize>);

/// The tree's own is larger. Only a configuration is ever copied, for a route that has another.
impl Clone for Places<'_> {
    fn clone(&self) -> Self {
        let mut places = Self::default();
        for (place, name) in self.names().into_iter().enumerate() {
            places.of_or(name.to_owned().into(), place);
        }
        places
    }
}

impl<'a> Places<'a> {
    #[inline(never)]
    fn of(&self, name: &str) -> Option<usize> {
        self.0.get(&Name::new(name.into())).copied()
    }

    /// All names, by their places.
    #[inline(never)]
    fn names(&self) -> Vec<&str> {
        let mut names = vec![""; self.0.len()];
        for (name, place) in &self.0 {
            if let Some(known) = names.get_mut(*place) {
                *known = name.text.as_ref();
            }
        }
        names
    }

    /// The place of `name`, which is `free` if it had none.
    #[inline(never)]
    fn of_or(&mut self, name: Cow<'a, str>, free: usize) -> usize {
        *self.0.entry(Name::new(name)).or_insert(free)
    }
}

/// A name, in the order of its hash. Ids of tools and names of statistics begin alike, and to find one among others is
/// to compare it with a few of them: numbers differ at once. Names whose hashes are the same, which a client can
/// choose, are in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name<'a> {
    hash: u64,
    text: Cow<'a, str>,
}

impl<'a> Name<'a> {
    fn new(text: Cow<'a, str>) -> Self {
        Self { hash: hash::bytes(0, text.as_bytes()), text }
    }
}

impl Ord for Name<'_> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        match self.hash.cmp(&other.hash) {
            Ordering::Equal => in_order(self.text.as_bytes(), other.text.as_bytes()),
            differs => differs,
        }
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// WebAssembly compares texts byte by byte, so what is equal is skipped eight bytes at a time.
#[inline(never)]
fn in_order(ours: &[u8], theirs: &[u8]) -> Ordering {
    let words = ours.as_chunks::<8>().0.iter().zip(theirs.as_chunks::<8>().0);
    let same = words.take_while(|(our, their)| our == their).count().saturating_mul(8);
    ours.get(same..).cmp(&theirs.get(same..))
}

impl<T> Default for Names<'_, T> {
    #[inline(never)]
    fn default() -> Self {
        Self { places: Places::default(), values: Vec::new() }
    }
}

impl<'a, T> Names<'a, T> {
    /// What is known about `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.values.get(self.places.of(name)?)
    }

    /// The value under `name`, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.values.get_mut(self.places.of(name)?)
    }

    /// Whether the name is there.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.places.of(name).is_some()
    }

    /// Sets what is known about `name`, and gives what was known before.
    pub fn insert(&mut self, name: impl Into<Cow<'a, str>>, value: T) -> Option<T> {
        let place = self.places.of_or(name.into(), self.values.len());
        match self.values.get_mut(place) {
            Some(known) => Some(std::mem::replace(known, value)),
            None => {
                self.values.push(value);
                None
            }
        }
    }

    /// What is known about `name`. What is not known yet is asked for.
    pub fn get_or_insert_with(
        &mut self,
        name: Cow<'a, str>,
        value: impl FnOnce(&str) -> T,
    ) -> Option<&T> {
        let place = match self.places.of(&name) {
            Some(place) => place,
            None => {
                self.values.push(value(&name));
                self.places.of_or(name, self.values.len().saturating_sub(1))
            }
        };
        self.values.get(place)
    }

    /// Changes what is known about `name`; a new name begins with the default.
    pub fn update(&mut self, name: impl Into<Cow<'a, str>>, change: impl FnOnce(&mut T))
    where
        T: Default,
    {
        let place = self.places.of_or(name.into(), self.values.len());
        if place == self.values.len() {
            self.values.push(T::default());
        }
        if let Some(value) = self.values.get_mut(place) {
            change(value);
        }
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        self.places.0.clear();
        self.values.clear();
    }

    /// Names and what is known about them, in the order in which the names were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.keys().zip(&self.values)
    }

    /// The names, in the same order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.places.names().into_iter()
    }

    /// What is known, in the same order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// The values, in their order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    /// Takes the values, in their order.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.values.into_iter()
    }
}

impl<'a> NameSet<'a> {
    /// Adds a name, and says whether it is new.
    pub fn add(&mut self, name: impl Into<Cow<'a, str>>) -> bool {
        self.insert(name, ()).is_none()
    }
}

#[cfg(test)]
mod tests;
