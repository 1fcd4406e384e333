//! Translation of `tool_choice` to the upstream's form.

use std::borrow::Cow;

use super::function::Function;
use crate::error::Error;
use crate::json::Writer;
use crate::model::tool::{ChoiceMode, ToolChoice};
use crate::observe::warning::Warnings;
use crate::profile::{Profile, ToolChoiceAny, ToolChoiceNamed, ToolChoiceNone};

/// Value of `tool_choice` in the upstream's request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum SentChoice {
    /// No `tool_choice` is sent.
    #[default]
    Absent,
    /// Value `auto`: the model decides.
    Auto,
    /// Value `none`: the model must not call functions.
    Forbidden,
    /// Value that forces a call of some function; holds the upstream's keyword.
    Any(&'static str),
    /// Value that forces a call of one function; holds the upstream's name of the function.
    Function(String),
}

impl SentChoice {
    /// Translates the client's `choice`, and removes functions that must not be sent with the
    /// translated choice.
    pub(super) fn new(
        choice: Option<&ToolChoice<'_>>,
        functions: &mut Vec<Function<'_>>,
        history_has_calls: bool,
        profile: &Profile,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let Some(choice) = choice else { return Ok(Self::Absent) };
        match &choice.mode {
            ChoiceMode::Auto | ChoiceMode::None if functions.is_empty() => Ok(Self::Absent),
            ChoiceMode::Auto => Ok(Self::Auto),
            ChoiceMode::None => {
                // A server may garble its answer if it has tools that it must not use; but some
                // servers refuse a history with tool calls if there are no tools.
                if profile.tool_choice_none == ToolChoiceNone::OmitTools && !history_has_calls {
                    functions.clear();
                    return Ok(Self::Absent);
                }
                Ok(Self::Forbidden)
            }
            ChoiceMode::Any if functions.is_empty() => Err(Error::invalid(
                "tool_choice: tool_choice may only be specified while providing tools",
            )),
            ChoiceMode::Any => Self::force_any(profile, warnings),
            ChoiceMode::Tool(name) => {
                let named = functions
                    .iter()
                    .position(|function| function.toolset.is_none() && function.name == *name);
                let Some(position) = named else {
                    return Err(Error::invalid(format!(
                        "tool_choice.name: Tool '{name}' not found in provided tools"
                    )));
                };
                if profile.tool_choice_named == ToolChoiceNamed::OnlyTool {
                    functions.swap(0, position);
                    functions.truncate(1);
                    return Self::force_any(profile, warnings);
                }
                let outgoing = functions.get(position).map(|function| &function.outgoing);
                Ok(Self::Function(outgoing.map(Cow::to_string).unwrap_or_default()))
            }
        }
    }

    fn force_any(profile: &Profile, warnings: &mut Warnings) -> Result<Self, Error> {
        let any = Self::any(profile);
        if any == Self::Auto {
            warnings.dropped("tool_choice")?;
        }
        Ok(any)
    }

    /// Returns the choice that forces a call of any function, or the nearest choice that the
    /// upstream supports.
    pub(super) fn any(profile: &Profile) -> Self {
        match profile.tool_choice_any {
            ToolChoiceAny::Required => Self::Any("required"),
            ToolChoiceAny::Any => Self::Any("any"),
            ToolChoiceAny::Auto => Self::Auto,
        }
    }

    /// Writes the member `tool_choice` in the form of the Responses API, unless the choice is
    /// `Absent`.
    pub(super) fn write_flat(&self, json: &mut Writer<'_>) {
        match self {
            Self::Function(name) => {
                json.key("tool_choice").begin_object().kind("function");
                json.key("name").text(name).end_object();
            }
            word => word.write(json),
        }
    }

    /// Writes the member `tool_choice` in the form of Chat Completions, unless the choice is
    /// `Absent`.
    pub(super) fn write(&self, json: &mut Writer<'_>) {
        let word = match self {
            Self::Absent => return,
            Self::Auto => "auto",
            Self::Forbidden => "none",
            Self::Any(word) => word,
            Self::Function(name) => {
                json.key("tool_choice").begin_object().kind("function");
                json.key("function").begin_object().key("name").text(name).end_object();
                json.end_object();
                return;
            }
        };
        json.key("tool_choice").text(word);
    }
}
