//! Settings that concern the translation of answers.

use crate::config::{InvalidToolCall, Settings, ToolArguments, ToolStream};
use crate::model::request_context::RequestContext;

/// Limits of an answer, and rules for sending its tool calls.
#[derive(Clone, Debug)]
pub struct Rules {
    /// True if tool calls are sent only when they are complete.
    pub(crate) buffered: bool,
    pub(crate) invalid: InvalidToolCall,
    pub(crate) checks_inputs: bool,
    /// True if members that the client would refuse are removed from the inputs of tool calls.
    pub(crate) mends_inputs: bool,
    pub(crate) waiting_bytes_max: usize,
    pub(crate) response_bytes_max: usize,
    /// True if the client's message begins with the first chunk that has a choice, even if that
    /// only names a role.
    pub(crate) begins_early: bool,
}

impl Rules {
    /// Reads the rules for one request from the settings.
    #[must_use]
    pub fn of(settings: &Settings, context: &RequestContext) -> Self {
        // A call can be withheld only while nothing of it has been sent.
        let withholds = settings.invalid_tool_call == InvalidToolCall::Hold;
        Self {
            buffered: !context.stream || withholds || settings.tool_stream == ToolStream::Buffered,
            invalid: settings.invalid_tool_call,
            checks_inputs: settings.checks_inputs(),
            mends_inputs: settings.tool_arguments == ToolArguments::Mend,
            waiting_bytes_max: settings.waiting_bytes_max,
            response_bytes_max: settings.response_bytes_max,
            begins_early: false,
        }
    }
}
