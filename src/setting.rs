//! How the values of the configuration are read: strictly, with the path of what is wrong.
//!
//! Two macros define each type together with its default, its reading and its list of names, so
//! that a key cannot exist in one of them only.

use crate::json::{Error, Reader, Writer, quoted};
use crate::text::words::position;

/// A value that can stand in the configuration.
pub(crate) trait Setting: Sized {
    /// What it looks like, for the schema.
    const TYPE: ValueType;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error>;

    /// Writes it as it would be read: defaults, for the schema.
    fn write(&self, json: &mut Writer<'_>);
}

/// What a number of the configuration may be: where it leaves no room, nothing works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The least, beside 0 where that is no limit.
    pub(crate) least: u64,
    /// Where there is one.
    pub(crate) most: Option<u64>,
    pub(crate) or_zero: bool,
}

impl Bounds {
    /// Those of a key, wherever it stands.
    pub(crate) fn of(key: &str) -> Self {
        let least = |least| Self { least, most: None, or_zero: false };
        match key {
            "depth_max" => Self { most: Some(128), ..least(8) },
            "no_progress_timeout_ms" | "ping_interval_ms" => least(10),
            _ if key.ends_with("_bytes_max") => least(1024),
            // Shorter ids cannot be told apart by hashes, and shorter names have no room for one.
            "max_id_length" => Self { or_zero: true, ..least(9) },
            "max_tool_name" => Self { or_zero: true, ..least(16) },
            _ => least(0),
        }
    }

    /// Whether the number `key` may be `value`.
    ///
    /// # Errors
    /// What was expected.
    pub(crate) fn check(key: &str, value: u64) -> Result<(), Error> {
        let Self { least, most, or_zero } = Self::of(key);
        let is_within = value >= least && most.is_none_or(|most| value <= most);
        if is_within || or_zero && value == 0 {
            return Ok(());
        }
        let reason = match most {
            Some(most) => format!("expected a number from {least} to {most}, but found {value}"),
            None if or_zero => format!("expected 0, or at least {least}, but found {value}"),
            None if key.ends_with("_ms") => {
                format!("expected at least {least} ms, but found {value}")
            }
            None => format!("expected at least {least} bytes, but found {value}"),
        };
        Err(Error::value(reason).in_key(key))
    }
}

/// What a value of the configuration looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `true` or `false`.
    Bool,
    /// A whole number that is not negative.
    Number,
    /// A text.
    Text,
    /// A list of these.
    List(&'static Self),
    /// One of these words, each with what it means.
    Words(&'static [(&'static str, &'static str)]),
    /// An object with these keys.
    Object(&'static [Field]),
    /// An object with any keys.
    Members,
}

/// A key of an object of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What its value looks like.
    pub value_type: ValueType,
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

impl Setting for u64 {
    const TYPE: ValueType = ValueType::Number;

    fn write(&self, json: &mut Writer<'_>) {
        json.u64(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        number(reader, Self::MAX)
    }
}

impl Setting for u32 {
    const TYPE: ValueType = ValueType::Number;

    fn write(&self, json: &mut Writer<'_>) {
        json.u64((*self).into());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        number(reader, Self::MAX.into())
    }
}

impl Setting for usize {
    const TYPE: ValueType = ValueType::Number;

    fn write(&self, json: &mut Writer<'_>) {
        json.u64(*self as u64);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        number(reader, Self::MAX as u64)
    }
}

/// Reads a whole number. `max` is what the machine can count to: 4 GiB in a filter.
fn number<T: TryFrom<u64>>(reader: &mut Reader<'_>, max: u64) -> Result<T, Error> {
    let found = reader.number()?;
    found.parse().ok().and_then(|number: u64| number.try_into().ok()).ok_or_else(|| {
        Error::value(format!("expected a whole number from 0 to {max}, but found {found}"))
    })
}

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
pub struct Members(Vec<(String, String)>);

impl Members {
    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The JSON of one of them.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Writes them into the object that is open, but for some.
    pub(crate) fn write_into(&self, but: &[&str], json: &mut Writer<'_>) {
        for (name, value) in self.0.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
            json.key_text(name).raw(value);
        }
    }
}

impl Setting for Members {
    const TYPE: ValueType = ValueType::Members;

    fn write(&self, json: &mut Writer<'_>) {
        json.begin_object();
        self.write_into(&[], json);
        json.end_object();
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut members = Self::default();
        reader.begin_object()?;
        while let Some(name) = reader.next_key()? {
            let (name, value) = (name.decode().into_owned(), reader.skip()?);
            if members.names().any(|known| known == name) {
                return Err(Error::value("expected each name once").in_key(&name));
            }
            members.0.push((name, value.to_owned()));
        }
        Ok(members)
    }
}

/// Reads an object. `read` takes a key, reads its value and says whether it knew the key; `known`
/// is what it knows, with white space between.
pub(crate) fn object<'a>(
    reader: &mut Reader<'a>,
    known: &str,
    read: &mut dyn FnMut(&str, &mut Reader<'a>) -> Result<bool, Error>,
) -> Result<(), Error> {
    reader.begin_object()?;
    // No object has many keys.
    let mut given = Vec::new();
    while let Some(key) = reader.next_key()? {
        let key = key.decode();
        if given.contains(&key) {
            return Err(Error::value("expected each name once").in_key(&key));
        }
        given.push(key.clone());
        match read(&key, reader) {
            Ok(true) => {}
            Ok(false) => return Err(unknown(known).in_key(&key)),
            Err(error) => return Err(error.in_key(&key)),
        }
    }
    Ok(())
}

/// What is said of a key that is none of these.
fn unknown(known: &str) -> Error {
    Error::value(format!("unknown key, expected one of {}", listed(known)))
}

/// Words as a message has them.
#[inline(never)]
fn listed(words: &str) -> String {
    words.trim_ascii_end().replace(' ', ", ")
}

/// Reads one of `words` and gives its position.
pub(crate) fn word(reader: &mut Reader<'_>, words: &str) -> Result<usize, Error> {
    let found = reader.string()?.decode();
    position(words, &found).ok_or_else(|| {
        let (known, found) = (listed(words), quoted(&found));
        Error::value(format!("expected one of {known}, but found {found}"))
    })
}

/// The place of a value, whatever its type.
pub(crate) trait Slot {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error>;
}

impl<T: Setting> Slot for T {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = Self::read(reader)?;
        Ok(())
    }
}

/// Reads the value of `key` into the slot that stands where `key` does among `keys`, if it is one of them.
pub(crate) fn fill(
    slots: &mut [&mut dyn Slot],
    keys: &str,
    key: &str,
    reader: &mut Reader<'_>,
) -> Result<bool, Error> {
    let at = position(keys, key);
    match at.and_then(|at| slots.get_mut(at)) {
        Some(slot) => slot.fill(reader).map(|()| true),
        None => Ok(false),
    }
}

/// Defines objects of the configuration: each key with its type, default and documentation.
macro_rules! keys {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident {
            $($(#[doc = $key_doc:literal])+ $key:ident: $type:ty = $default:expr;)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $key_doc])+ pub $key: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $name {
            /// The names of its keys, with a space behind each.
            pub const KEYS: &str = concat!($(stringify!($key), " "),+);

            /// Its keys, for the schema.
            pub const FIELDS: &[$crate::setting::Field] = &[$($crate::setting::Field {
                name: stringify!($key),
                doc: concat!($($key_doc),+),
                value_type: <$type as $crate::setting::Setting>::TYPE,
            }),+];

            /// Writes the value of each key.
            pub(crate) fn write_keys(&self, json: &mut $crate::json::Writer<'_>) {
                $(
                    json.key(stringify!($key));
                    $crate::setting::Setting::write(&self.$key, json);
                )+
            }

            /// Reads the value of `key`, if that is one of [`Self::KEYS`].
            pub(crate) fn read_key(
                &mut self,
                key: &str,
                reader: &mut $crate::json::Reader<'_>,
            ) -> Result<bool, $crate::json::Error> {
                $crate::setting::fill(&mut [$(&mut self.$key),+], Self::KEYS, key, reader)
            }

            /// Reads an object over the values that are here.
            pub(crate) fn read_over(
                &mut self,
                reader: &mut $crate::json::Reader<'_>,
            ) -> Result<(), $crate::json::Error> {
                $crate::setting::object(reader, Self::KEYS, &mut |key, reader| {
                    self.read_key(key, reader)
                })
            }
        }

        impl $crate::setting::Setting for $name {
            const TYPE: $crate::setting::ValueType = $crate::setting::ValueType::Object(Self::FIELDS);

            fn write(&self, json: &mut $crate::json::Writer<'_>) {
                json.begin_object();
                self.write_keys(json);
                json.end_object();
            }

            fn read(
                reader: &mut $crate::json::Reader<'_>,
            ) -> Result<Self, $crate::json::Error> {
                let mut value = Self::default();
                value.read_over(reader)?;
                Ok(value)
            }
        }
    )+};
}

/// Defines sets of words of the configuration.
macro_rules! word_enum {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $word_doc:literal])+ $word:ident = $text:literal,)+ }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $word_doc])+ $word,)+
        }

        impl $name {
            /// All of them, as they are written, with a space behind each.
            pub const WORDS: &str = concat!($($text, " "),+);

            /// As it is written.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }
        }

        impl $crate::setting::Setting for $name {
            const TYPE: $crate::setting::ValueType =
                $crate::setting::ValueType::Words(&[$(($text, concat!($($word_doc),+))),+]);

            fn write(&self, json: &mut $crate::json::Writer<'_>) {
                json.text(self.word());
            }

            fn read(
                reader: &mut $crate::json::Reader<'_>,
            ) -> Result<Self, $crate::json::Error> {
                const ALL: &[$name] = &[$($name::$word),+];
                let at = $crate::setting::word(reader, Self::WORDS)?;
                ALL.get(at).copied().ok_or_else(|| $crate::json::Error::value("unknown word"))
            }
        }
    )+};
}

pub(crate) use {keys, word_enum};

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Setting>(text: &str) -> Result<T, String> {
        T::read(&mut Reader::new(text, 8)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_error_of_a_number_says_what_was_found_and_how_large_it_may_be() {
        for found in ["1.5", "-1", "5000000000", "1e3"] {
            let expected =
                format!("expected a whole number from 0 to 4294967295, but found {found}");
            assert_eq!(read::<u32>(found), Err(expected));
        }
        assert_eq!(read::<u32>("4294967295"), Ok(u32::MAX));
        assert_eq!(read::<u64>("5000000000"), Ok(5_000_000_000));
        assert!(read::<usize>("-1").is_err_and(|error| error.ends_with(", but found -1")));
        assert!(read::<u64>("\"1\"").is_err_and(|error| error.ends_with("but found a string")));
    }
}
