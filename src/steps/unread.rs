//! Reasons why a document has no text.

/// Reason why a host has no text of a document
/// ([`Exchange::handle_document`](crate::Exchange::handle_document)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Encrypted PDF, which needs a password.
    Encrypted,
    /// Damaged document, or a document of another type.
    Malformed,
    /// PDF whose pages have no text, but images at most, for example a scan.
    NoText,
    /// PDF whose fonts do not map their glyphs to letters.
    NoLetters,
    /// Timeout while the host read the document.
    TooSlow,
    /// Timeout before the host could start to read the document.
    NoTime,
    /// Document beyond the configured number of documents.
    TooMany,
    /// Failure of the host, for which the document is not at fault.
    Failed,
}

impl Unread {
    /// Returns the reason's name for a warning.
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

    /// Returns the text that replaces the document in the prompt.
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
