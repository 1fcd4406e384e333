//! A response: all of an answer, or what is known of it so far.

use super::{error, filled, list, object, text};
use crate::json::{self, Error, Reader, Str, ValueKind};
use crate::model::usage::Usage;

/// A response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Response<'a> {
    /// The upstream's id of the answer.
    pub(crate) id: Option<Str<'a>>,
    /// The upstream's name of the model.
    pub(crate) model: Option<Str<'a>>,
    /// How far it is.
    pub(crate) status: Status,
    /// Why it is not complete.
    pub(crate) reason: Option<Str<'a>>,
    /// What failed.
    pub(crate) error: Option<&'a str>,
    /// Its items.
    pub(crate) output: Option<&'a str>,
    /// All its text once more; some gateways give it alone.
    pub(crate) output_text: Option<Str<'a>>,
    /// Reasoning of earlier turns that the model did not get.
    pub(crate) withheld: Option<&'a str>,
    /// Token counts.
    pub(crate) usage: Option<Usage>,
    /// The tier in which it was served.
    pub(crate) service_tier: Option<Str<'a>>,
    /// It says that it is a response.
    pub(crate) is_named: bool,
    /// It is an answer in Chat Completions.
    pub(crate) has_choices: bool,
    /// It is a message of the Messages API.
    pub(crate) is_message: bool,
    /// There is a member by which gateways tell what failed.
    pub(crate) complains: bool,
    /// An object in which the response may be.
    pub(crate) inside: Option<&'a str>,
}

/// How far a response is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    /// It does not say.
    #[default]
    Unsaid,
    /// It is complete.
    Completed,
    /// It was cut off.
    Incomplete,
    /// It failed, or was cancelled.
    Failed,
    /// It is not over.
    Running,
}

impl<'a> Response<'a> {
    /// Reads a response.
    ///
    /// # Errors
    /// `raw` is not a JSON object.
    // Long: a branch for each member, in one pass over the bytes of a response.
    pub(crate) fn read(raw: &'a str, depth_max: u32) -> Result<Self, Error> {
        let mut response = Self::default();
        let mut reader = Reader::new(raw, depth_max);
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

    /// Whether there is an answer in it, or an error.
    pub(crate) fn says_something(&self) -> bool {
        self.output.is_some() || self.output_text.is_some() || self.error.is_some() || self.is_named
    }
}

impl Status {
    /// By the response's `status`.
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
