//! Reasons why a document has no text.

/// Reason why a host has no text of a document
/// ([`Exchange::handle_document`](crate::Exchange::handle_document)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The document is encrypted with a password.
    Encrypted,
    /// The document is damaged, or of another type.
    Malformed,
    /// The pages have no text, but images at most, such as those of a scanner.
    NoText,
    /// The pages have text, but their fonts do not say which letters they show.
    NoLetters,
    /// The reading took longer than it may.
    TooSlow,
    /// There was no time to begin reading.
    NoTime,
    /// The configuration does not allow as many documents.
    TooMany,
    /// The host could not read it, and the document is not at fault.
    Failed,
}

impl Unread {
    /// Returns the name of the reason in a warning.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Encrypted => "encrypted",
            Self::Malformed => "malformed",
            Self::NoText => "no_text",
            Self::NoLetters => "no_letters",
            Self::TooSlow => "too_slow",
            Self::NoTime => "no_time",
            Self::TooMany => "too_many",
            Self::Failed => "failed",
        }
    }

    /// Returns the text that the model reads in the document's place.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Encrypted => "[document omitted: the PDF is encrypted with a password]",
            Self::Malformed => "[document omitted: it is damaged, or no PDF]",
            Self::NoText => {
                "[document omitted: the PDF has no text, only images, such as those of a scanner]"
            }
            Self::NoLetters => {
                "[document omitted: the fonts of the PDF do not say which letters they show]"
            }
            Self::TooSlow => "[document omitted: reading the PDF took too long]",
            Self::NoTime => "[document omitted: this gateway had no time to read the PDF]",
            Self::TooMany => {
                "[document omitted: this request has more PDFs than this gateway reads]"
            }
            Self::Failed => "[document omitted: this gateway could not read the PDF]",
        }
    }
}
