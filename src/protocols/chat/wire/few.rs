//! Lists that nearly always have one element.

/// A list whose first element needs no allocation: a chunk has one choice, and a choice one call.
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
    /// Adds one at the end.
    pub(crate) fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest.push(item),
        }
    }

    /// Adds one at the end, to be filled where it is: what is read from a chunk is large, and would
    /// be moved several times otherwise.
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
            // Not reachable: it has just got longer.
            None => self.first.get_or_insert_default(),
        }
    }

    /// Leaves out the last one.
    pub(crate) fn pop(&mut self) {
        if self.rest.pop().is_none() {
            self.first = None;
        }
    }

    /// The last one.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.rest.last_mut().or(self.first.as_mut())
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The element, if there is exactly one.
    #[inline]
    #[must_use]
    pub(crate) fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.first.iter().chain(&self.rest)
    }
}
