//! Declarations of the configuration's values, and strict reading of them, with the path of what is
//! wrong.
//!
//! Two macros define each type in one place: key, type, default, bounds and documentation. Reading,
//! checking, the JSON Schema and the tables of the documentation are made from that one
//! declaration.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use crate::json::{Error, Reader, Writer, quoted};

/// A value that can stand in the configuration.
pub(crate) trait Setting: Sized {
    /// The form of the value, for the schema.
    const TYPE: ValueType;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error>;

    /// Writes the value as it would be read, for the defaults in the schema. Values that no
    /// document can name write nothing.
    fn write(&self, _json: &mut Writer<'_>) {}

    /// Returns the value as a number, which [`Bounds`] can limit; `None` if it is no number.
    fn number(&self) -> Option<u64> {
        None
    }
}

/// The form of a value of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueType {
    /// `true` or `false`.
    Bool,
    /// A whole number that is not negative.
    Number,
    /// Text of any content.
    Text,
    /// Fixed text.
    Const(&'static str),
    /// List of values of one type.
    List(&'static Self),
    /// Word of a list, in which each word has its meaning.
    Words(&'static [(&'static str, &'static str)]),
    /// Name of a list of names that need no explanation.
    Names(&'static [&'static str]),
    /// Value of any type of a list.
    AnyOf(&'static [Self]),
    /// Object with the keys of a list.
    Object(&'static [Field]),
    /// Object with some keys of another object, which is described elsewhere.
    Overrides(&'static [Field]),
    /// Object that names a secret of the host, with the keys of a list.
    Secret(&'static [Field]),
    /// Object with values of one type, by names that the operator chose.
    Map(&'static Self),
    /// An object with any members.
    Members,
}

/// A key of an object of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// Name of the key in its object.
    pub(crate) name: &'static str,
    /// Purpose of the configuration key, as the documentation says it.
    pub(crate) doc: &'static str,
    /// The form of the key's value.
    pub(crate) value_type: ValueType,
    /// The numbers that the key takes.
    pub(crate) bounds: Bounds,
    /// The key's default as JSON; empty if the documentation shows no default.
    pub(crate) default: fn() -> String,
}

/// Range of the numbers that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Any number.
    Any,
    /// A minimum, with the unit of the number.
    AtLeast(u64, &'static str),
    /// 0, which is no limit, or a minimum.
    ZeroOrAtLeast(u64),
    /// Range from the first number to the second.
    Between(u64, u64),
}

impl Bounds {
    /// # Errors
    /// The numbers that were expected.
    fn check(self, value: u64) -> Result<(), Error> {
        let expected = match self {
            Self::AtLeast(least, unit) if value < least => format!("at least {least} {unit}"),
            Self::ZeroOrAtLeast(least) if value > 0 && value < least => {
                format!("0, or at least {least}")
            }
            Self::Between(least, most) if value < least || value > most => {
                format!("a number from {least} to {most}")
            }
            _ => return Ok(()),
        };
        Err(Error::value(format!("expected {expected}, but found {value}")))
    }
}

/// Reads the value of a key.
pub(crate) fn read_within<T: Setting>(reader: &mut Reader<'_>, bounds: Bounds) -> Result<T, Error> {
    let value = T::read(reader)?;
    value.number().map_or(Ok(()), |number| bounds.check(number))?;
    Ok(value)
}

impl Setting for bool {
    const TYPE: ValueType = ValueType::Bool;

    fn write(&self, json: &mut Writer<'_>) {
        json.bool(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.bool()
    }
}

/// Implements [`Setting`] for types of numbers. The largest number is that of the machine: 4 GiB in
/// a filter.
macro_rules! number {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            const TYPE: ValueType = ValueType::Number;

            fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
                let found = reader.number()?;
                found.parse().map_err(|_| {
                    let max = Self::MAX;
                    let expected = format!("expected a whole number from 0 to {max}, but found {found}");
                    Error::value(expected)
                })
            }

            fn write(&self, json: &mut Writer<'_>) {
                json.u64(*self as u64);
            }

            fn number(&self) -> Option<u64> {
                Some(*self as u64)
            }
        }
    )+};
}

number!(u32, u64, usize);

impl Setting for String {
    const TYPE: ValueType = ValueType::Text;

    fn write(&self, json: &mut Writer<'_>) {
        json.text(self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(reader.string()?.decode().into_owned())
    }
}

impl<T: Setting> Setting for Vec<T> {
    const TYPE: ValueType = ValueType::List(&T::TYPE);

    fn write(&self, json: &mut Writer<'_>) {
        json.begin_array();
        self.iter().for_each(|value| value.write(json));
        json.end_array();
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut values = Self::new();
        reader.begin_array()?;
        while reader.next_element()? {
            values.push(T::read(reader).map_err(|error| error.at_index(values.len()))?);
        }
        Ok(values)
    }
}

/// Members of an object that Creole does not read, each with its name and its JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnreadMembers(Vec<(String, String)>);

impl UnreadMembers {
    /// Returns the names of the members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the JSON of the member `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Writes the members into the object that is open, except those named in `but`.
    pub(crate) fn write_into(&self, but: &[&str], json: &mut Writer<'_>) {
        for (name, value) in self.0.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
            json.key_text(name).raw(value);
        }
    }
}

impl Setting for UnreadMembers {
    const TYPE: ValueType = ValueType::Members;

    fn write(&self, json: &mut Writer<'_>) {
        json.begin_object();
        self.write_into(&[], json);
        json.end_object();
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        read_named(reader, |reader| reader.skip().map(str::to_owned)).map(Self)
    }
}

impl<T: Setting> Setting for Option<T> {
    const TYPE: ValueType = T::TYPE;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        T::read(reader).map(Some)
    }

    fn write(&self, json: &mut Writer<'_>) {
        if let Some(value) = self {
            value.write(json);
        }
    }
}

/// Values by names that the operator chose, in their order in the document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named<T>(pub(crate) Vec<(String, T)>);

impl<T: Setting> Setting for Named<T> {
    const TYPE: ValueType = ValueType::Map(&T::TYPE);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        read_named(reader, T::read).map(Self)
    }
}

/// Reads an object with any names, each once.
fn read_named<T>(
    reader: &mut Reader<'_>,
    read: impl Fn(&mut Reader<'_>) -> Result<T, Error>,
) -> Result<Vec<(String, T)>, Error> {
    let mut all = Vec::new();
    let mut names = BTreeSet::new();
    reader.begin_object()?;
    while let Some(name) = reader.next_key()? {
        let name = name.decode().into_owned();
        let value = read(reader).map_err(|error| error.in_key(&name))?;
        if !names.insert(name.clone()) {
            return Err(twice(&name));
        }
        all.push((name, value));
    }
    Ok(all)
}

/// Object whose keys are known.
pub(crate) trait Keys: Default {
    const FIELDS: &[Field];

    /// Reads the value of `key`. Returns false if there is no such key.
    fn read_key(&mut self, key: &str, reader: &mut Reader<'_>) -> Result<bool, Error>;

    /// Reads an object, and replaces the values of the keys in it.
    fn read_over(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        read_object(reader, Self::FIELDS, |key, reader| self.read_key(key, reader))
    }
}

impl<T: Keys> Setting for T {
    const TYPE: ValueType = ValueType::Object(T::FIELDS);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut value = Self::default();
        value.read_over(reader)?;
        Ok(value)
    }
}

/// Part of a `T`: some of its keys, as JSON, to be read over a whole `T` later.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Overrides<T> {
    json: String,
    of: PhantomData<T>,
}

impl<T: Keys> Overrides<T> {
    /// Replaces the keys of `value` that the JSON has.
    pub(crate) fn apply(&self, value: &mut T) -> Result<(), Error> {
        value.read_over(&mut Reader::of(&self.json))
    }
}

impl<T: Keys> Setting for Overrides<T> {
    const TYPE: ValueType = ValueType::Overrides(T::FIELDS);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self { json: reader.skip()?.to_owned(), of: PhantomData })
    }
}

/// Beginning of the message about an unknown key.
pub(crate) const UNKNOWN_KEY: &str = "unknown key";

/// Minimum similarity, from 0 to 1, of a known key that is meant by a misspelled one.
const MEANT: f64 = 0.85;

/// Reads an object. `read` takes a key, reads its value, and returns false for an unknown key;
/// `known`: the keys for the message about an unknown key.
pub(crate) fn read_object<'a>(
    reader: &mut Reader<'a>,
    known: &[Field],
    mut read: impl FnMut(&str, &mut Reader<'a>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut given = BTreeSet::new();
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let key = key.decode();
        if !given.insert(key.clone()) {
            return Err(twice(&key));
        }
        if !read(&key, reader).map_err(|error| error.in_key(&key))? {
            return Err(Error::value(unknown_key(known, &key)).in_key(&key));
        }
    }
    Ok(())
}

/// Returns the message about the key `found`, which is none of `known`, with the nearest known key.
fn unknown_key(known: &[Field], found: &str) -> String {
    let found = found.to_ascii_lowercase().replace('-', "_");
    let similar = |field: &Field| (strsim::jaro_winkler(field.name, &found), field.name);
    let nearest = known.iter().map(similar).max_by(|(one, _), (other, _)| one.total_cmp(other));
    let meant = nearest.filter(|(similarity, _)| *similarity >= MEANT);
    let meant = match meant {
        Some((_, name)) => format!("; did you mean {name}? Expected"),
        None => ", expected".to_owned(),
    };
    let known: Vec<&str> = known.iter().map(|field| field.name).collect();
    format!("{UNKNOWN_KEY}{meant} one of {}", known.join(", "))
}

fn twice(name: &str) -> Error {
    Error::value("expected each name once").in_key(name)
}

/// Returns the error that the text `found` is none of `known`.
pub(crate) fn unknown_word(known: &[&str], found: &str) -> Error {
    Error::value(format!("expected one of {}, but found {}", known.join(", "), quoted(found)))
}

/// Defines objects of the configuration: each key with its type, default, documentation, and bounds
/// where it has some.
macro_rules! keys {
    (@bounds) => { $crate::setting::Bounds::Any };
    (@bounds $bounds:expr) => { $bounds };
    ($(
        $(#[doc = $doc:literal])+
        $visible:vis $name:ident {
            $($(#[doc = $key_doc:literal])+ $key:ident: $type:ty = $default:expr $(, $bounds:expr)?;)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        $visible struct $name {
            $($(#[doc = $key_doc])+ pub $key: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::setting::Keys for $name {
            const FIELDS: &[$crate::setting::Field] = &[$($crate::setting::Field {
                name: stringify!($key),
                doc: concat!($($key_doc),+),
                value_type: <$type as $crate::setting::Setting>::TYPE,
                bounds: $crate::setting::keys!(@bounds $($bounds)?),
                default: || {
                    let default: $type = $default;
                    $crate::json::written(|json| $crate::setting::Setting::write(&default, json))
                },
            }),+];

            fn read_key(
                &mut self,
                key: &str,
                reader: &mut $crate::json::Reader<'_>,
            ) -> Result<bool, $crate::json::Error> {
                use $crate::setting::{keys, read_within};
                match key {
                    $(stringify!($key) => {
                        self.$key = read_within(reader, keys!(@bounds $($bounds)?))?;
                    })+
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    )+};
}

/// Defines sets of words of the configuration.
macro_rules! word_enum {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident { $(
            $(#[doc = $word_doc:literal])+ $(#[cfg($built:meta)])? $word:ident = $text:literal,
        )+ }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $word_doc])+ $(#[cfg($built)])? $word,)+
        }

        impl $name {
            /// Returns the word that stands for this value in a document.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $($(#[cfg($built)])? Self::$word => $text,)+
                }
            }
        }

        impl $crate::setting::Setting for $name {
            const TYPE: $crate::setting::ValueType =
                $crate::setting::ValueType::Words(&[$($(#[cfg($built)])? ($text, concat!($($word_doc),+))),+]);

            fn read(
                reader: &mut $crate::json::Reader<'_>,
            ) -> Result<Self, $crate::json::Error> {
                match &*reader.string()?.decode() {
                    $($(#[cfg($built)])? $text => Ok(Self::$word),)+
                    found => Err($crate::setting::unknown_word(&[$($text),+], found)),
                }
            }

            fn write(&self, json: &mut $crate::json::Writer<'_>) {
                json.text(self.word());
            }
        }
    )+};
}

pub(crate) use {keys, word_enum};

#[cfg(test)]
mod tests;
