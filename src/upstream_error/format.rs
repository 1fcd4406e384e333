//! Errors that say that a model or server knows no way to hold its answer to a schema.

use super::says;
use crate::text::words::phrases;

/// What is sent, in lower case and without quotes.
const SUBJECTS: &str = phrases![
    "response_format",
    "response format",
    "json_schema",
    "json mode",
    "structured output",
    // Gemini's
    "response mime type",
    "json_object",
];

/// What is said of it.
const REFUSALS: &str = phrases![
    "not support",
    "unsupported",
    "supported values are",
    "unavailable",
    "not available",
    "not enabled",
    "enabled only",
    "cannot be combined",
    "input should be text",
    "must be json_schema or text",
    "not permitted",
    "not allowed",
    "unrecognized",
    "unknown",
    "unexpected keyword argument",
];

/// Words about what the client's schema says, another of which would be taken.
const OF_SCHEMAS: &str = phrases![
    "invalid schema",
    "invalid json schema",
    "in context=",
    "unsupported keyword",
    "json_schema.schema",
    "json_schema, schema",
    "moonshot flavored",
];

/// Whether an upstream's error message says that it refuses every `response_format` like this one.
pub(super) fn is_response_format(message: &str) -> bool {
    says(message, SUBJECTS, REFUSALS, OF_SCHEMAS)
}

#[cfg(test)]
mod tests;
