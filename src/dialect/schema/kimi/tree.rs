//! Tree of a schema in memory, so that each part of the text is parsed only once.

use crate::json::{self, Reader, Str, ValueKind};

pub(super) enum Tree<'a> {
    Object(Vec<(Str<'a>, Self)>),
    List(Vec<Self>),
    /// Value that is neither an object, an array nor a string, as JSON text.
    Other(&'a str),
}

impl<'a> Tree<'a> {
    pub(super) fn of(schema: &'a str) -> Self {
        // A schema that was just written can always be parsed.
        Self::read(&mut Reader::of(schema)).unwrap_or(Self::Other(schema))
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, json::Error> {
        Ok(match reader.kind()? {
            ValueKind::Object => {
                let mut members = Vec::new();
                reader.begin_object()?;
                while let Some(key) = reader.next_key()? {
                    members.push((key, Self::read(reader)?));
                }
                Self::Object(members)
            }
            ValueKind::Array => {
                let mut elements = Vec::new();
                reader.begin_array()?;
                while reader.next_element()? {
                    elements.push(Self::read(reader)?);
                }
                Self::List(elements)
            }
            _ => Self::Other(reader.skip()?),
        })
    }

    pub(super) fn members(&self) -> &[(Str<'a>, Self)] {
        if let Self::Object(members) = self { members } else { &[] }
    }

    pub(super) fn elements(&self) -> &[Self] {
        if let Self::List(elements) = self { elements } else { &[] }
    }

    /// Returns the member of an object with the given name; the last member, if several have this
    /// name.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.members().iter().rfind(|(key, _)| *key == *name).map(|(_, value)| value)
    }

    /// Returns the member of an object with the given name, if the member's value is a string.
    pub(super) fn text(&self, name: &str) -> Option<Str<'a>> {
        self.member(name)?.as_text()
    }

    pub(super) fn as_text(&self) -> Option<Str<'a>> {
        if let Self::Other(text) = self { json::string(text) } else { None }
    }
}
