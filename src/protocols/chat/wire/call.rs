//! A tool call of an answer, or a fragment of one.

use crate::carry::signature::SignaturePlace;
use crate::json::{Error, Reader, Str, ValueKind};
use crate::protocols::chat::wire::{filled, number, text};

/// A tool call, or a fragment of one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToolCall<'a> {
    /// Index of the call within its choice.
    pub index: Option<u64>,
    /// The server's id of the call.
    pub id: Option<Str<'a>>,
    /// The name of the function, or a fragment of it.
    pub name: Option<Str<'a>>,
    /// The input, or a fragment of it.
    pub arguments: Arguments<'a>,
    /// The input is text for a custom tool and not JSON.
    pub custom: bool,
    /// Google's `thought_signature`, without which Gemini refuses the call's result.
    pub signature: Option<Signature<'a>>,
}

/// Google's signature of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature<'a> {
    /// Member in which the signature came, and in which it must go back.
    pub place: SignaturePlace,
    /// The signature.
    pub text: Str<'a>,
}

/// The input of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Arguments<'a> {
    /// Input that is absent from this entry.
    #[default]
    None,
    /// JSON text in a string, as the format wants it.
    Text(Str<'a>),
    /// A JSON value of its own.
    Json(&'a str),
}

impl<'a> ToolCall<'a> {
    /// Returns true if the entry says nothing: some servers write an empty list as an empty object,
    /// and some send each delta with an entry that has a number and no more.
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
                // `function_call`, and servers that leave out `function`.
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
            // `parameters` is what Llama models call it, `input` the Messages API, and `args`
            // LangChain.
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
        let signature = filled(reader)?.map(|text| Signature { place, text });
        self.signature = signature.or(self.signature);
        Ok(())
    }
}

/// Reads an id or a name. Some servers write the word `null` where there is none.
fn named<'a>(reader: &mut Reader<'a>) -> Result<Option<Str<'a>>, Error> {
    Ok(filled(reader)?.filter(|text| text.raw() != "null"))
}

/// Reads what stands in `extra_content`: the signature of a call, and whether the content is
/// reasoning.
pub(crate) fn read_extra<'a>(
    reader: &mut Reader<'a>,
) -> Result<(Option<Signature<'a>>, bool), Error> {
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
                    signature = filled(reader)?.map(|text| Signature { place, text }).or(signature);
                }
                "thought" => is_thought = reader.skip()? == "true",
                _ => drop(reader.skip()?),
            }
        }
    }
    Ok((signature, is_thought))
}
