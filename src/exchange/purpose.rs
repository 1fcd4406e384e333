//! What an upstream, or a server on the web, is called for; and how much is read of what is collected as a whole.

use super::End;
use super::count::Count;
use super::models::LIST_BYTES_MAX;
use crate::config::Settings;
use crate::model::request_context::RequestContext;
use crate::prepare::images::Images;
use crate::protocols::messages::models::ListFor;

/// An upstream's error body is read up to here; the rest would not be shown anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

/// Most of an answer to a request of Creole's own. It has few words, but a stream has much around each.
const OWN_BYTES_MAX: usize = 4 << 20;

/// What an upstream is called for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// An answer to the client's request.
    Answer(Box<RequestContext>),
    /// A count of tokens.
    Count(Count, Box<RequestContext>),
    /// The names of its models.
    Models(ListFor),
    /// Something that Creole itself asks a model.
    Own(Own, Box<RequestContext>),
    /// An image of the client's request.
    Image,
}

/// What Creole itself asks a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Verdicts on the calls of an answer.
    Verdicts,
    /// What an image of the client's request shows.
    Description,
}

/// What is collected as a whole.
#[derive(Debug)]
pub(super) enum Collected {
    /// The error of an upstream that refuses the request.
    Refusal(Box<RequestContext>),
    Count(Count),
    Models(ListFor),
    Own(Own, Box<RequestContext>),
    /// `location`: where a redirection leads.
    Image {
        location: Option<String>,
    },
}

impl Collected {
    /// How much of it is read.
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

/// What a model answered that Creole itself had asked.
#[derive(Debug)]
pub(super) struct OwnAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) context: Box<RequestContext>,
    pub(super) end: End,
}

/// What a server answered that was asked for an image.
#[derive(Debug)]
pub(super) struct ImageAnswer {
    pub(super) status: u16,
    /// Where a redirection leads.
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether it ended as it should.
    pub(super) is_whole: bool,
}
