//! Parsing of tool calls, and of streamed fragments of tool calls, in an answer.

use crate::carry::signature::SignaturePlace;
use crate::json::{Error, Reader, Str, ValueKind};
use crate::protocols::chat::wire::{filled, number, text};

/// Tool call of an answer, or a streamed fragment of a tool call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToolCall<'a> {
    /// Index of the call within its choice.
    pub index: Option<u64>,
    /// The server's id of the call.
    pub id: Option<Str<'a>>,
    /// Name of the called function, or a fragment of the name.
    pub name: Option<Str<'a>>,
    /// Input (arguments) of the call, or a fragment of the input.
    pub arguments: Arguments<'a>,
    /// True if the input is plain text for a custom tool and not JSON.
    pub custom: bool,
    /// Google's `thought_signature`, without which Gemini refuses the call's result.
    pub signature: Option<CallSignature<'a>>,
}

/// Google's signature of a tool call, with the member of the JSON that held the signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSignature<'a> {
    /// Member in which the signature was received, and in which the signature must be sent back.
    pub place: SignaturePlace,
    /// Value of `thought_signature`, as the server sent the signature.
    pub text: Str<'a>,
}

/// Input of a tool call, in the form in which the server sent the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Arguments<'a> {
    /// No input: the entry of `tool_calls` has no arguments.
    #[default]
    None,
    /// Input as JSON text in a string, the form that the API defines.
    Text(Str<'a>),
    /// Input as a JSON value instead of a string.
    Json(&'a str),
}

impl<'a> ToolCall<'a> {
    /// Returns true if the entry of `tool_calls` has no id, name, arguments or signature.
    ///
    /// Some servers write an empty list as an empty object, and some send an entry with only an
    /// `index` in each delta.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.id.is_none()
            && self.name.is_none()
            && self.arguments == Arguments::None
            && self.signature.is_none()
    }

    pub(crate) fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), Error> {
        let call = self;
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "index" => call.index = number(reader)?,
                "id" => call.id = named(reader)?,
                "extra_content" => call.signature = read_extra(reader)?.0.or(call.signature),
                "thought_signature" => call.sign(SignaturePlace::Call, reader)?,
                "function" | "custom" => {
                    let custom = key.raw() == "custom";
                    if reader.object_or_skip()? {
                        while let Some(key) = reader.next_key()? {
                            call.member(key, custom, reader)?;
                        }
                    }
                }
                // Members of a `function_call`, or of a call from a server that leaves out
                // `function`.
                _ => call.member(key, false, reader)?,
            }
        }
        Ok(())
    }

    fn member(&mut self, key: Str<'_>, custom: bool, reader: &mut Reader<'a>) -> Result<(), Error> {
        match key.raw() {
            "name" => self.name = named(reader)?.or(self.name),
            "thought_signature" => self.sign(SignaturePlace::Function, reader)?,
            "input" if custom => {
                self.custom = true;
                if let Some(input) = text(reader)? {
                    self.arguments = Arguments::Text(input);
                }
            }
            // Arguments are called `parameters` by Llama models, `input` by the Messages API, and
            // `args` by LangChain.
            "parameters" | "input" | "args" | "arguments_json"
                if self.arguments != Arguments::None =>
            {
                reader.skip()?;
            }
            "arguments" | "parameters" | "input" | "args" | "arguments_json" => {
                match reader.kind()? {
                    ValueKind::String => {
                        if let Some(arguments) = text(reader)? {
                            self.arguments = Arguments::Text(arguments);
                        }
                    }
                    ValueKind::Null => drop(reader.skip()?),
                    _ => self.arguments = Arguments::Json(reader.skip()?),
                }
            }
            _ => drop(reader.skip()?),
        }
        Ok(())
    }

    fn sign(&mut self, place: SignaturePlace, reader: &mut Reader<'a>) -> Result<(), Error> {
        let signature = filled(reader)?.map(|text| CallSignature { place, text });
        self.signature = signature.or(self.signature);
        Ok(())
    }
}

/// Reads the id or the name of a tool call. A blank string and the string `null`, which some
/// servers write for an absent value, count as absent.
fn named<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(filled(reader)?.filter(|text| text.raw() != "null"))
}

/// Reads the `extra_content` of a tool call or a delta. Returns the signature of the tool call, and
/// true if the content of the delta is reasoning.
pub(crate) fn read_extra<'a>(
    reader: &mut Reader<'a>,
) -> Result<(Option<CallSignature<'a>>, bool), Error> {
    let (mut signature, mut is_thought) = (None, false);
    if !reader.object_or_skip()? {
        return Ok((None, false));
    }
    while let Some(key) = reader.next_key()? {
        let place = match key.raw() {
            "google" => SignaturePlace::Google,
            "vertex" => SignaturePlace::Vertex,
            _ => {
                reader.skip()?;
                continue;
            }
        };
        if !reader.object_or_skip()? {
            continue;
        }
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "thought_signature" => {
                    signature =
                        filled(reader)?.map(|text| CallSignature { place, text }).or(signature);
                }
                "thought" => is_thought = reader.skip()? == "true",
                _ => drop(reader.skip()?),
            }
        }
    }
    Ok((signature, is_thought))
}
