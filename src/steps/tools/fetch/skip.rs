//! Element that is left out with its content, and where it ends: at its end tag, or where HTML ends
//! it without one.

use super::element::PageElement;

/// Maximum depth of nested elements that is counted.
const DEPTH_MAX: u16 = 512;

/// Element that is being left out.
pub(super) struct SkippedElement {
    name: Vec<u8>,
    /// Number of open elements of this name.
    depth: u16,
    /// Number of open elements in it that may have elements of this name.
    inner: u16,
}

impl SkippedElement {
    pub(super) fn new(name: &[u8]) -> Self {
        Self { name: name.to_vec(), depth: 1, inner: 0 }
    }

    pub(super) fn is_of(&self, name: &[u8]) -> bool {
        self.name == name
    }

    /// Handles a start tag. Returns false if the element ends before it.
    pub(super) fn goes_on_at_start(&mut self, name: &[u8], element: PageElement) -> bool {
        if self.is_optional() {
            if self.inner == 0 && self.ends_before(name, element) {
                return false;
            }
            if self.parents().contains(&name) {
                self.inner = self.inner.saturating_add(1).min(DEPTH_MAX);
            }
        } else if self.is_of(name) {
            self.depth = self.depth.saturating_add(1).min(DEPTH_MAX);
        }
        true
    }

    /// Handles an end tag. Returns false if the element ends at it.
    pub(super) fn goes_on_at_end(&mut self, name: &[u8], element: PageElement) -> bool {
        if !self.is_optional() {
            self.depth = self.depth.saturating_sub(u16::from(self.is_of(name)));
            return self.depth > 0;
        }
        let is_parent = match self.name.as_slice() {
            b"p" => element.is_block(),
            _ => self.parents().contains(&name),
        };
        if self.inner == 0 && (is_parent || self.is_of(name)) {
            return false;
        }
        self.inner = self.inner.saturating_sub(u16::from(is_parent));
        true
    }

    /// Returns true if the element may have no end tag.
    fn is_optional(&self) -> bool {
        self.is_of(b"p") || !self.parents().is_empty()
    }

    /// Returns the elements whose end is also the end of this element.
    fn parents(&self) -> &'static [&'static [u8]] {
        match self.name.as_slice() {
            b"li" => &[b"ul", b"ol", b"menu"],
            b"dt" | b"dd" => &[b"dl"],
            b"td" | b"th" | b"tr" | b"thead" | b"tbody" | b"tfoot" => &[b"table"],
            b"option" => &[b"select", b"datalist"],
            _ => &[],
        }
    }

    /// Returns true if the element ends before this start tag.
    fn ends_before(&self, name: &[u8], element: PageElement) -> bool {
        let is_group = matches!(name, b"thead" | b"tbody" | b"tfoot");
        match self.name.as_slice() {
            b"p" => element.is_block(),
            b"dt" | b"dd" => matches!(name, b"dt" | b"dd"),
            b"td" | b"th" => matches!(name, b"td" | b"th" | b"tr") || is_group,
            b"tr" => name == b"tr" || is_group,
            b"thead" | b"tbody" | b"tfoot" => is_group,
            _ => self.is_of(name),
        }
    }
}
