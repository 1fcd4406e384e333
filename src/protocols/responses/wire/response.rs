//! Reader of a response: a whole answer, or the known part of one.

use super::{error, filled, list, object, text};
use crate::json::{self, Error, Reader, Str, ValueKind};
use crate::model::usage::Usage;

/// Members of a response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Response<'a> {
    /// Id of the answer at the upstream.
    pub(crate) id: Option<Str<'a>>,
    /// Name of the model at the upstream.
    pub(crate) model: Option<Str<'a>>,
    /// Status of the answer.
    pub(crate) status: Status,
    /// Reason why the answer is not complete.
    pub(crate) reason: Option<Str<'a>>,
    /// Error of the upstream, as it was written.
    pub(crate) error: Option<&'a str>,
    /// List of the items.
    pub(crate) output: Option<&'a str>,
    /// Text of all messages once more; some gateways give nothing else.
    pub(crate) output_text: Option<Str<'a>>,
    /// List of reasoning of earlier turns that the model did not get.
    pub(crate) withheld: Option<&'a str>,
    /// Token counts of the answer.
    pub(crate) usage: Option<Usage>,
    /// Tier in which the request was served.
    pub(crate) service_tier: Option<Str<'a>>,
    /// True if the object says that it is a response.
    pub(crate) is_named: bool,
    /// True if the object is an answer in Chat Completions.
    pub(crate) has_choices: bool,
    /// True if the object is a message of the Messages API.
    pub(crate) is_message: bool,
    /// True if there is a member by which gateways tell what failed: `message`, `detail`, `msg` or
    /// `errors`.
    pub(crate) complains: bool,
    /// Object that a gateway may have put around the response: `response`, `data` or `result`.
    pub(crate) inside: Option<&'a str>,
}

/// Status of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    /// Response without a status that is known.
    #[default]
    Unsaid,
    /// Answer that is complete.
    Completed,
    /// Answer that was cut off.
    Incomplete,
    /// Answer that failed or was cancelled.
    Failed,
    /// Answer that is still being written, or waits to be.
    Running,
}

impl<'a> Response<'a> {
    /// Reads a response.
    ///
    /// # Errors
    /// `raw` is not a JSON object.
    // Long: a branch for each member, in one pass over the bytes of a response.
    pub(crate) fn read(raw: &'a str) -> Result<Self, Error> {
        let mut response = Self::default();
        let mut reader = Reader::of(raw);
        let reader = &mut reader;
        let mut has_content = false;
        let mut kind = None;
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "id" => response.id = filled(reader)?,
                "object" => {
                    response.is_named |=
                        reader.string_or_skip()?.is_some_and(|it| it == "response");
                }
                "type" => kind = filled(reader)?,
                "model" => response.model = filled(reader)?,
                "status" => {
                    let status = reader.string_or_skip()?;
                    response.status = status.map_or(Status::Unsaid, |it| Status::of(it.raw()));
                }
                "incomplete_details" => {
                    let details = object(reader)?;
                    let reason = details.and_then(|it| json::member(it, "reason"));
                    response.reason = reason.and_then(json::string).filter(|it| !it.is_blank());
                }
                "error" => response.error = error(reader)?,
                "output" => match reader.kind()? {
                    ValueKind::String => response.output_text = text(reader)?,
                    _ => response.output = list(reader)?,
                },
                "output_text" => response.output_text = text(reader)?,
                "input_transformations" => response.withheld = list(reader)?,
                "usage" => response.usage = Usage::read(reader)?,
                "service_tier" => response.service_tier = filled(reader)?,
                "choices" => response.has_choices |= list(reader)?.is_some(),
                "content" => has_content |= list(reader)?.is_some(),
                "message" | "detail" | "msg" | "errors" => {
                    response.complains |= error(reader)?.is_some();
                }
                "response" | "data" | "result" => {
                    let inside = object(reader)?;
                    response.inside = response.inside.or(inside);
                }
                _ => drop(reader.skip()?),
            }
        }
        reader.end()?;
        let is_of_messages = kind.map_or(has_content, |kind| kind == "message" || kind == "error");
        response.is_message = is_of_messages && response.output.is_none() && !response.is_named;
        Ok(response)
    }

    /// Returns true if the object has an answer or an error.
    pub(crate) fn says_something(&self) -> bool {
        self.output.is_some() || self.output_text.is_some() || self.error.is_some() || self.is_named
    }
}

impl Status {
    /// Returns the status that this word of the wire stands for.
    fn of(word: &str) -> Self {
        match word {
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" | "cancelled" => Self::Failed,
            "in_progress" | "queued" => Self::Running,
            _ => Self::Unsaid,
        }
    }
}
