//! Parser of a response object: a whole answer, or the known part of an answer.

use super::{error, filled, list, object, text};
use crate::json::{self, Error, Reader, Str, ValueKind};
use crate::model::usage::Usage;

/// Parsed members of a response object of the Responses API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Response<'a> {
    /// Upstream's id of the answer.
    pub(crate) id: Option<Str<'a>>,
    /// Upstream's name of the model.
    pub(crate) model: Option<Str<'a>>,
    /// Status of the answer, from `status`.
    pub(crate) status: Status,
    /// Reason why the answer is not complete.
    pub(crate) reason: Option<Str<'a>>,
    /// Raw JSON of the upstream's error.
    pub(crate) error: Option<&'a str>,
    /// JSON list of the output items.
    pub(crate) output: Option<&'a str>,
    /// Text of all messages again; some gateways send no other content.
    pub(crate) output_text: Option<Str<'a>>,
    /// JSON list of earlier reasoning that the upstream withheld from the model.
    pub(crate) withheld: Option<&'a str>,
    /// Token counts of the answer.
    pub(crate) usage: Option<Usage>,
    /// Service tier in which the upstream processed the request.
    pub(crate) service_tier: Option<Str<'a>>,
    /// True if the member `object` has the value `response`.
    pub(crate) is_named: bool,
    /// True if the object is an answer in Chat Completions.
    pub(crate) has_choices: bool,
    /// True if the object is a message of the Messages API.
    pub(crate) is_message: bool,
    /// True if the object has a non-empty member in which gateways report failures: `message`,
    /// `detail`, `msg` or `errors`.
    pub(crate) complains: bool,
    /// Object in which a gateway may have wrapped the response: `response`, `data` or `result`.
    pub(crate) inside: Option<&'a str>,
}

/// Status of a response of the Responses API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    /// Status that is missing or unknown.
    #[default]
    Unsaid,
    /// Status of an answer that is complete.
    Completed,
    /// Status of an answer that was cut off.
    Incomplete,
    /// Status of an answer that failed or was cancelled.
    Failed,
    /// Status of an answer that is still being written or is queued.
    Running,
}

impl<'a> Response<'a> {
    /// Parses a response object from its JSON text.
    ///
    /// # Errors
    /// Fails if `raw` is not a JSON object.
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
    /// Returns the status for a value of `status`.
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
