//! Map from the host's context ids to values, in ascending order of the ids.
//!
//! The host counts its ids upwards, so a new context nearly always goes to the end of the vector. A
//! tree map would add six kilobytes of code.

/// Id that the host assigned to a context: a plugin or a stream.
pub(crate) type ContextId = u32;

/// Map from context ids to values, sorted by id.
#[derive(Debug)]
pub(crate) struct Contexts<T>(Vec<(ContextId, Box<T>)>);

impl<T> Default for Contexts<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Contexts<T> {
    /// Inserts a context, replacing any context with the same id.
    pub(crate) fn insert(&mut self, id: ContextId, value: T) {
        let value = Box::new(value);
        match self.place(id) {
            Ok(place) => {
                if let Some(known) = self.0.get_mut(place) {
                    known.1 = value;
                }
            }
            Err(place) => self.0.insert(place, (id, value)),
        }
    }

    pub(crate) fn get(&self, id: ContextId) -> Option<&T> {
        Some(&self.0.get(self.place(id).ok()?)?.1)
    }

    pub(crate) fn get_mut(&mut self, id: ContextId) -> Option<&mut T> {
        let place = self.place(id).ok()?;
        Some(&mut self.0.get_mut(place)?.1)
    }

    pub(crate) fn remove(&mut self, id: ContextId) {
        if let Ok(place) = self.place(id) {
            self.0.remove(place);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| &**value)
    }

    /// Returns all contexts: first those with this id or a higher one, then the others.
    pub(crate) fn iter_mut_from(
        &mut self,
        from: ContextId,
    ) -> impl Iterator<Item = (ContextId, &mut T)> {
        let place = self.place(from).unwrap_or_else(|place| place).min(self.0.len());
        let (before, behind) = self.0.split_at_mut(place);
        behind.iter_mut().chain(before).map(|(id, value)| (*id, &mut **value))
    }

    fn place(&self, id: ContextId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_found_by_their_numbers_in_any_order() {
        let mut contexts = Contexts::default();
        for id in [3, 1, 2, 1] {
            contexts.insert(id, id * 10);
        }
        *contexts.get_mut(2).unwrap() += 1;
        contexts.remove(3);
        contexts.remove(9);
        assert_eq!((contexts.get(2), contexts.get(3)), (Some(&21), None));
        let mut from = |id| contexts.iter_mut_from(id).map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!((from(0), from(2), from(9)), (vec![1, 2], vec![2, 1], vec![1, 2]));
    }
}
