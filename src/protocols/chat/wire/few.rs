//! List type for lists that nearly always have a single element.

/// List whose first element needs no allocation. A chunk nearly always has one choice, and a choice
/// one call.
#[derive(Clone, Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> Few<T> {
    /// Adds an element at the end of the list.
    pub(crate) fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest.push(item),
        }
    }

    /// Adds a default element at the end of the list, and returns the element to be filled in
    /// place. The elements of a chunk are large, so moving them is avoided.
    pub(crate) fn add(&mut self) -> &mut T
    where
        T: Default,
    {
        if self.first.is_none() {
            return self.first.insert(T::default());
        }
        let at = self.rest.len();
        self.rest.resize_with(at.saturating_add(1), T::default);
        match self.rest.last_mut() {
            Some(last) => last,
            // This branch is never reached, because the list has just got longer.
            None => self.first.get_or_insert_default(),
        }
    }

    /// Removes the last element of the list.
    pub(crate) fn pop(&mut self) {
        if self.rest.pop().is_none() {
            self.first = None;
        }
    }

    /// Returns the last element of the list.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.rest.last_mut().or(self.first.as_mut())
    }

    /// Returns true if the list has no element.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the element of the list, if the list has exactly one.
    #[inline]
    #[must_use]
    pub(crate) fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }

    /// Returns an iterator over all elements, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.first.iter().chain(&self.rest)
    }
}
