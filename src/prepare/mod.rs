//! Preparations: what is done to a request before its upstream is called, and for which somebody else is asked first.
//!
//! A preparation finds blocks in the client's body that the upstream does not take, and says what is asked for them,
//! one question after the other. It takes what comes, and writes the body anew. All of it is pure:
//! `exchange::preparing` makes calls of the questions. From then on the exchange has the body as it was written, in
//! retries too.
//!
//! | file | what it does |
//! |---|---|
//! | `blocks` | the blocks of a body, and the body with others in their places |
//! | `address` | the address of an image, read so that every reader reads the same |
//! | `descriptions` | the preparation for images that the upstream's model does not see, and another one does |
//! | `documents` | the preparation for PDFs, where the upstream takes no files |
//! | `unread` | why a document has no text |
//! | `images` | the preparation for images on the web, of which the upstream takes no URLs |
//!
//! Preparations follow one another, each over the body that the one before has written: an image that was fetched can
//! be described by the next. Another one is a file here, and a variant of [`Preparation`] with an arm in each of its
//! methods. In `exchange::preparing` it has a place in the list, and arms in `timeout_ms`, `prepared` and
//! `take_nothing`. Where it asks somebody new, that is a variant of [`Question`], too.
//!
//! What cannot be fetched is refused with the path of its block, if the user has just given it: as the real API does.
//! Words stand in its place where the client sends it again with each request, which would be refused for ever. An
//! image that cannot be described stays: what comes then is decided as if nobody could describe it.

pub(crate) mod address;
pub(crate) mod blocks;
pub(crate) mod descriptions;
pub(crate) mod documents;
pub(crate) mod images;
mod unread;

pub use documents::DocumentText;
pub use unread::Unread;

use std::ops::Range;

use crate::error::Error;
use crate::observe::warning::Warnings;
use address::Address;
use descriptions::Descriptions;
use documents::Documents;
use images::Images;

/// A preparation that is under way.
pub(crate) enum Preparation {
    /// Reads documents.
    Documents(Documents),
    /// Fetches images from the web.
    Images(Images),
    /// Has images described by a model.
    Descriptions(Descriptions),
}

/// Question that a preparation asks somebody else.
pub(crate) enum Question<'p> {
    /// Asks the host for the text of the document whose base64 is in this range of the body.
    Document { data: Range<usize> },
    /// Asks for the image at this address; `is_private` allows an address in a private network.
    Image { address: &'p Address, is_private: bool },
    /// Asks a model for the description of the next image.
    Description,
}

impl Preparation {
    /// Returns the next question. It stays the same until its answer, or a failure, is taken.
    pub(crate) fn question(&self) -> Option<Question<'_>> {
        match self {
            Self::Documents(documents) => documents.question(),
            Self::Images(images) => images.question(),
            Self::Descriptions(descriptions) => descriptions.question(),
        }
    }

    /// Ends the fetching or describing of images, because the preparation's time is over.
    pub(crate) fn give_up(&mut self) {
        match self {
            // The host may know their texts: then they come at once.
            Self::Documents(_) => {}
            Self::Images(images) => images.give_up(),
            Self::Descriptions(descriptions) => descriptions.give_up(),
        }
    }

    /// Returns the number of bytes that the preparation keeps in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Documents(documents) => documents.held_bytes(),
            Self::Images(images) => images.held_bytes(),
            Self::Descriptions(descriptions) => descriptions.held_bytes(),
        }
    }

    /// Writes the body with what was prepared, once there are no more questions.
    ///
    /// # Errors
    /// The user has just given what could not be had.
    pub(crate) fn written(self, body: &str, warnings: &mut Warnings) -> Result<Vec<u8>, Error> {
        match self {
            Self::Documents(documents) => Ok(documents.written(body, warnings)),
            Self::Images(images) => images.written(body, warnings),
            Self::Descriptions(descriptions) => Ok(descriptions.written(body, warnings)),
        }
    }
}
