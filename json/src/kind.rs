//! Kinds of JSON values, with their names in error messages.

/// Kind of a JSON value, recognized by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Kind of an object, which begins with `{`.
    Object,
    /// Kind of an array, which begins with `[`.
    Array,
    /// Kind of a string, which begins with `"`.
    String,
    /// Kind of a number, which begins with `-` or a digit.
    Number,
    /// Kind of the booleans `true` and `false`.
    Bool,
    /// Kind of the value `null`.
    Null,
}

impl ValueKind {
    /// Returns the name of the kind in error messages, such as `a string`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Bool => "a boolean",
            Self::Null => "null",
        }
    }
}
