//! Error response to an invalid request, with the original API's messages.

use serde_json::Value;

use super::Checked;

/// Refusal of a request: an error object and an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) kind: &'static str,
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        let kind = "invalid_request_error";
        Self { status: 400, message: message.into(), kind, param: None, code: None }
    }

    pub(super) fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Returns the error object of the refusal as JSON.
    pub(crate) fn json(&self) -> String {
        let (message, kind) = (&self.message, self.kind);
        let error = serde_json::json!({
            "error": {"message": message, "type": kind, "param": self.param, "code": self.code}
        });
        error.to_string()
    }
}

pub(super) fn one_of(value: &str, path: &str, supported: &[&str]) -> Checked {
    if supported.contains(&value) {
        return Ok(());
    }
    let quoted: Vec<String> = supported.iter().map(|word| format!("'{word}'")).collect();
    let list = match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, [one])) => format!("{one} and {last}"),
        Some((last, rest)) => format!("{}, and {last}", rest.join(", ")),
        None => String::new(),
    };
    let message = format!("Invalid value: '{value}'. Supported values are: {list}.");
    Err(Refusal::invalid(message).at(path).code("invalid_value"))
}

pub(super) fn missing(path: &str) -> Refusal {
    Refusal::invalid(format!("Missing required parameter: '{path}'."))
        .at(path)
        .code("missing_required_parameter")
}

pub(super) fn empty_array(path: &str) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty \
         array instead."
    ))
    .at(path)
    .code("empty_array")
}

pub(super) fn long_array(path: &str, most: usize, found: usize) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': array too long. Expected an array with maximum length {most}, but got an \
         array with length {found} instead."
    ))
    .at(path)
    .code("array_above_max_length")
}

pub(super) fn long_string(path: &str, most: usize, found: usize) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': string too long. Expected a string with maximum length {most}, but got a \
         string with length {found} instead."
    ))
    .at(path)
    .code("string_above_max_length")
}

pub(super) fn below(path: &str, least: i64, found: i64) -> Refusal {
    Refusal::invalid(format!(
        "Invalid '{path}': integer below minimum value. Expected a value >= {least}, but got {found} \
         instead."
    ))
    .at(path)
    .code("integer_below_min_value")
}

pub(super) fn wrong_type(path: &str, expected: &str, found: &Value) -> Refusal {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Refusal::invalid(format!(
        "Invalid type for '{path}': expected {expected}, but got {found} instead."
    ))
    .at(path)
    .code("invalid_type")
}
