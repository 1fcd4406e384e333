//! Lists that nearly always have one element.

/// A list whose first element needs no allocation: a chunk has one choice, and a choice one call.
#[derive(Clone, Debug)]
pub struct Few<T> {
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
    pub fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest.push(item),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.first.iter().chain(&self.rest)
    }
}
