//! HTML as text, in one pass over the tokens of a page and without a tree. The time is linear in
//! the page, and the text is bounded.
//!
//! What no reader needs is left out: scripts, styles, navigation, forms, hidden elements.

use std::ops::ControlFlow;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, Tokenizer};

use super::element::PageElement;
use super::layout::{Gap, PageLayout};
use super::link::LinkBase;
use super::skip::SkippedElement;
use crate::steps::address::WebAddress;
use crate::text::words;

/// Maximum length of a title, in bytes.
const TITLE_BYTES_MAX: usize = 500;

/// Maximum length of the value of an attribute that is read, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 8 << 10;

/// Text of an HTML page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HtmlText {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// True if the text was cut at the limit.
    pub(super) is_cut: bool,
}

/// Reads a page as text of at most `bytes_max` bytes. `page`: the address to which the addresses in
/// the page are relative.
pub(super) fn read(html: &str, page: &WebAddress, bytes_max: usize) -> HtmlText {
    let mut reader = HtmlReader::new(page.clone(), bytes_max);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        reader.take(event).is_break().then_some(())
    });
    // The content of elements such as `script` is no markup.
    emitter.naively_switch_states(true);
    let _ = Tokenizer::new_with_emitter(html, Forgiving(emitter)).next();
    let title = Some(reader.title).filter(|title| !title.is_empty());
    let (text, is_cut) = reader.layout.finish();
    HtmlText { title, text, is_cut }
}

/// Emitter that wants no errors of a page. To find them, the tokenizer would look at each byte
/// once more, which is half of its work.
struct Forgiving<E>(E);

impl<E: Emitter> ForwardingEmitter for Forgiving<E> {
    type Token = E::Token;

    fn inner(&mut self) -> &mut impl Emitter<Token = Self::Token> {
        &mut self.0
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }
}

/// Attribute of a tag that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadAttribute {
    Hidden,
    AriaHidden,
    Href,
    Alt,
    Other,
}

/// Start tag up to now.
struct StartTag {
    name: Vec<u8>,
    /// Attribute whose value comes next.
    attribute: ReadAttribute,
    is_hidden: bool,
    href: Option<String>,
    alt: Option<String>,
}

/// State of the pass over a page.
struct HtmlReader {
    layout: PageLayout,
    /// Address to which links are relative.
    base: LinkBase,
    has_base: bool,
    title: String,
    is_in_title: bool,
    tag: StartTag,
    /// Element that is being left out.
    skip: Option<SkippedElement>,
    /// Number of bytes of addresses that links may still cost. Each link is joined with the base,
    /// which can be long.
    link_bytes_left: usize,
}

/// Number of bytes of addresses that the links of a page may cost.
const LINK_BYTES_MAX: usize = 8 << 20;

impl HtmlReader {
    fn new(base: WebAddress, bytes_max: usize) -> Self {
        let name = Vec::new();
        let attribute = ReadAttribute::Other;
        Self {
            layout: PageLayout::new(bytes_max),
            base: LinkBase::new(base),
            has_base: false,
            title: String::new(),
            is_in_title: false,
            tag: StartTag { name, attribute, is_hidden: false, href: None, alt: None },
            skip: None,
            link_bytes_left: LINK_BYTES_MAX,
        }
    }

    /// Takes the next part of the page. Breaks if the text has reached its limit.
    fn take(&mut self, event: CallbackEvent<'_>) -> ControlFlow<()> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.name.clear();
                self.tag.name.extend_from_slice(name);
                self.tag.attribute = ReadAttribute::Other;
                (self.tag.is_hidden, self.tag.href, self.tag.alt) = (false, None, None);
            }
            CallbackEvent::AttributeName { name } => self.tag.begin_attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.take_value(value),
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => self.text(&words::lossy(value)),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        if self.layout.is_cut() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn text(&mut self, text: &str) {
        if self.skip.is_some() {
            return;
        }
        if !self.is_in_title {
            return self.layout.text(text);
        }
        for word in text.split_whitespace() {
            let blank = if self.title.is_empty() { "" } else { " " };
            let room = TITLE_BYTES_MAX.saturating_sub(self.title.len()).saturating_sub(blank.len());
            let word = words::beginning(word, room);
            if word.is_empty() {
                break;
            }
            self.title.push_str(blank);
            self.title.push_str(word);
        }
    }

    /// Handles the start tag that has been read.
    fn start(&mut self, self_closing: bool) {
        let element = PageElement::of(&self.tag.name);
        if let Some(skip) = &mut self.skip {
            if skip.goes_on_at_start(&self.tag.name, element) {
                return;
            }
            self.skip = None;
        }
        // Only elements of SVG can close themselves.
        let is_empty = self_closing && self.tag.name == b"svg";
        let is_hidden =
            self.tag.is_hidden && !matches!(self.tag.name.as_slice(), b"html" | b"body");
        let is_known_title = element == PageElement::Title && !self.title.is_empty();
        let is_dropped = matches!(element, PageElement::Dropped | PageElement::DroppedBlock);
        if is_hidden || is_dropped || is_known_title {
            if !is_empty && !is_void(&self.tag.name) {
                self.skip = Some(SkippedElement::new(&self.tag.name));
            }
            return if element.is_block() {
                self.layout.gap(Gap::Line)
            };
        }
        match element {
            PageElement::Title => self.is_in_title = true,
            PageElement::Base => self.set_base(),
            PageElement::Heading(level) => self.layout.begin_heading(level),
            PageElement::Block | PageElement::Table | PageElement::List => {
                self.layout.gap(Gap::Empty);
            }
            PageElement::Line => self.layout.gap(Gap::Line),
            PageElement::LineBreak => self.layout.line_break(),
            PageElement::Row => self.layout.begin_row(),
            PageElement::Cell => self.layout.begin_cell(),
            PageElement::Item => self.layout.begin_item(),
            PageElement::Pre => self.layout.begin_pre(),
            PageElement::Link => self.begin_link(),
            PageElement::Image => {
                let alt = self.tag.alt.take().unwrap_or_default();
                self.layout.text(alt.trim());
            }
            PageElement::Dropped | PageElement::DroppedBlock | PageElement::Inline => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        let element = PageElement::of(name);
        if let Some(skip) = &mut self.skip {
            if skip.goes_on_at_end(name, element) {
                return;
            }
            let is_its_own = skip.is_of(name);
            self.skip = None;
            if is_its_own {
                return if element.is_block() {
                    self.layout.gap(Gap::Line)
                };
            }
        }
        match element {
            PageElement::Title => self.is_in_title = false,
            PageElement::Heading(_) => self.layout.end_heading(),
            PageElement::Block => self.layout.gap(Gap::Empty),
            PageElement::Line | PageElement::DroppedBlock => self.layout.gap(Gap::Line),
            PageElement::LineBreak => self.layout.line_break(),
            PageElement::Table => self.layout.end_in_table(Gap::Empty),
            PageElement::Row => self.layout.end_in_table(Gap::Line),
            PageElement::Cell => self.layout.end_in_table(Gap::Space),
            PageElement::List => self.layout.end_item(Gap::Empty),
            PageElement::Item => self.layout.end_item(Gap::Line),
            PageElement::Pre => self.layout.end_pre(),
            PageElement::Link => self.layout.end_link(),
            PageElement::Base | PageElement::Image | PageElement::Dropped | PageElement::Inline => {
            }
        }
    }

    fn begin_link(&mut self) {
        self.layout.end_link();
        let href = self.tag.href.take();
        // A place in the same page is no other page.
        let href = href
            .as_deref()
            .map(str::trim)
            .filter(|href| !href.is_empty() && !href.starts_with('#'));
        let Some(href) = href else { return };
        let bytes = href.len().saturating_add(self.base.path_bytes());
        let Some(left) = self.link_bytes_left.checked_sub(bytes) else { return };
        self.link_bytes_left = left;
        if let Some(url) = self.base.url_of(href) {
            self.layout.begin_link(url);
        }
    }

    /// Sets the address to which links are relative, from the first `base` element.
    fn set_base(&mut self) {
        if let Some(href) = self.tag.href.take().filter(|_| !self.has_base) {
            self.has_base = true;
            if let Some(base) = self.base.joined(&href) {
                self.base = base;
            }
        }
    }
}

impl StartTag {
    fn begin_attribute(&mut self, name: &[u8]) {
        self.attribute = match name {
            b"hidden" => ReadAttribute::Hidden,
            b"aria-hidden" => ReadAttribute::AriaHidden,
            b"href" => ReadAttribute::Href,
            b"alt" => ReadAttribute::Alt,
            _ => ReadAttribute::Other,
        };
        self.is_hidden |= self.attribute == ReadAttribute::Hidden;
    }

    /// Takes the value of the attribute. If an attribute occurs twice, the first one wins.
    fn take_value(&mut self, value: &[u8]) {
        let target = match self.attribute {
            ReadAttribute::Href => &mut self.href,
            ReadAttribute::Alt => &mut self.alt,
            ReadAttribute::AriaHidden => {
                self.is_hidden |= value.eq_ignore_ascii_case(b"true");
                return;
            }
            ReadAttribute::Hidden | ReadAttribute::Other => return,
        };
        if target.is_none() && value.len() <= ATTRIBUTE_BYTES_MAX {
            *target = Some(words::lossy(value).into_owned());
        }
    }
}

/// Returns true for an element that has no content and no end tag.
fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"param"
            | b"source"
            | b"track"
            | b"wbr"
    )
}

#[cfg(test)]
mod tests;
