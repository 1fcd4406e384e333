//! Purpose of a call to an upstream or a server on the web, and limits of the bodies that are
//! collected as a whole.

use super::End;
use super::count::Count;
use super::models::LIST_BYTES_MAX;
use crate::config::Settings;
use crate::model::request_context::RequestContext;
use crate::prepare::images::Images;
use crate::protocols::messages::models::ListFor;

/// Maximum number of bytes that are read of an upstream's error body; more would not be shown
/// anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

/// Maximum number of bytes that are read of an answer to a request of Creole's own. The answer has
/// few words, but a stream has much around each.
const OWN_BYTES_MAX: usize = 4 << 20;

/// Purpose of a call.
#[derive(Debug)]
pub(super) enum Purpose {
    /// An answer to the client's request.
    Answer(Box<RequestContext>),
    /// A count of tokens.
    Count(Count, Box<RequestContext>),
    /// The names of the upstream's models.
    Models(ListFor),
    /// Something that Creole itself asks a model.
    Own(Own, Box<RequestContext>),
    /// An image of the client's request.
    Image,
}

/// Question of Creole's own for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Verdicts on the calls of an answer.
    Verdicts,
    /// A description of an image of the client's request.
    Description,
}

/// Body that is collected as a whole before it is read, by what was asked for.
#[derive(Debug)]
pub(super) enum Collected {
    /// The error of an upstream that refuses the request.
    Refusal(Box<RequestContext>),
    Count(Count),
    Models(ListFor),
    Own(Own, Box<RequestContext>),
    /// An image. `location`: the address to which a redirection leads.
    Image {
        location: Option<String>,
    },
}

impl Collected {
    /// Returns the maximum number of body bytes to read.
    pub(super) fn bytes_max(&self, status: u16, settings: &Settings) -> usize {
        match self {
            Self::Refusal(_) => ERROR_BODY_BYTES_MAX,
            Self::Count(_) => settings.response_bytes_max,
            Self::Models(_) => LIST_BYTES_MAX,
            Self::Own(..) => OWN_BYTES_MAX,
            Self::Image { .. } if (200..300).contains(&status) => {
                Images::bytes_read_max(&settings.fetch_images)
            }
            // Its status says all.
            Self::Image { .. } => 0,
        }
    }
}

/// Answer of a model to a question of Creole's own.
#[derive(Debug)]
pub(super) struct OwnAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) context: Box<RequestContext>,
    pub(super) end: End,
}

/// Answer of a server that was asked for an image.
#[derive(Debug)]
pub(super) struct ImageAnswer {
    pub(super) status: u16,
    /// Address to which a redirection leads.
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
    /// True if the body ended as HTTP says it should.
    pub(super) is_whole: bool,
}
