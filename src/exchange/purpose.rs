//! What an upstream, or a server on the web, is called for; and how much is read of what is collected as a whole.

use super::count::Count;
use super::models::LIST_BYTES_MAX;
use crate::config::Settings;
use crate::model::request_context::RequestContext;
use crate::prepare::images::Images;
use crate::protocols::messages::models::ListFor;

/// An upstream's error body is read up to here; the rest would not be shown anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

/// Most of a judge's answer. It has few words, but a stream has much around each.
const VERDICTS_BYTES_MAX: usize = 4 << 20;

/// What an upstream is called for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// An answer to the client's request.
    Answer(Box<RequestContext>),
    /// A count of tokens.
    Count(Count, Box<RequestContext>),
    /// The names of its models.
    Models(ListFor),
    /// Verdicts on the calls of an answer.
    Verdicts(Box<RequestContext>),
    /// An image of the client's request.
    Image,
}

/// What is collected as a whole.
#[derive(Debug)]
pub(super) enum Collected {
    /// The error of an upstream that refuses the request.
    Refusal(Box<RequestContext>),
    Count(Count),
    Models(ListFor),
    Verdicts(Box<RequestContext>),
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
            Self::Verdicts(_) => VERDICTS_BYTES_MAX,
            Self::Image { .. } if (200..300).contains(&status) => {
                Images::bytes_read_max(&settings.fetch_images)
            }
            // Its status says all.
            Self::Image { .. } => 0,
        }
    }
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
