//! Meanings of the elements of HTML for the text of a page.

/// Meaning of an element for the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageElement {
    /// Element of a line that is left out with its content.
    Dropped,
    /// Block that is left out with its content.
    DroppedBlock,
    Title,
    Base,
    Heading(usize),
    /// Block between empty lines.
    Block,
    /// Block that begins a line.
    Line,
    LineBreak,
    Table,
    Row,
    Cell,
    List,
    Item,
    Pre,
    Link,
    Image,
    /// Element of a line, or an unknown element.
    Inline,
}

impl PageElement {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"script" | b"style" | b"noscript" | b"template" | b"svg" | b"iframe" | b"noembed"
            | b"noframes" | b"button" | b"select" | b"textarea" => Self::Dropped,
            // Some servers put the whole page into a form.
            b"nav" | b"footer" => Self::DroppedBlock,
            b"title" => Self::Title,
            b"base" => Self::Base,
            b"h1" => Self::Heading(1),
            b"h2" => Self::Heading(2),
            b"h3" => Self::Heading(3),
            b"h4" => Self::Heading(4),
            b"h5" => Self::Heading(5),
            b"h6" => Self::Heading(6),
            b"p" | b"dl" | b"blockquote" => Self::Block,
            b"ul" | b"ol" | b"menu" => Self::List,
            b"div" | b"section" | b"article" | b"body" | b"main" | b"header" | b"aside"
            | b"address" | b"center" | b"details" | b"summary" | b"dialog" | b"fieldset"
            | b"legend" | b"figure" | b"figcaption" | b"hgroup" | b"hr" | b"dt" | b"dd"
            | b"caption" | b"thead" | b"tbody" | b"tfoot" | b"form" => Self::Line,
            b"br" => Self::LineBreak,
            b"table" => Self::Table,
            b"tr" => Self::Row,
            b"td" | b"th" => Self::Cell,
            b"li" => Self::Item,
            b"pre" | b"listing" | b"xmp" | b"plaintext" => Self::Pre,
            b"a" => Self::Link,
            b"img" => Self::Image,
            _ => Self::Inline,
        }
    }

    /// Returns true for an element before which a paragraph ends.
    pub(super) fn is_block(self) -> bool {
        !matches!(
            self,
            Self::Dropped
                | Self::Title
                | Self::Base
                | Self::LineBreak
                | Self::Link
                | Self::Image
                | Self::Inline
        )
    }
}
