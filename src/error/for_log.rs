//! Reason of an error for the log, in Creole's own words, without text that comes from a client or
//! an upstream.

use super::{Error, ErrorCause};
use crate::text::words;

/// Maximum length of an error's reason in the log, in bytes.
const REASON_BYTES_MAX: usize = 300;

/// Words that Creole itself puts in quotes. Any other quoted text comes from a request.
const OWN_WORDS: [&str; 8] =
    ["user", "assistant", "system", "object", "adaptive", "enabled", "disabled", "models"];

impl Error {
    /// Returns the error's reason in Creole's own words, if there are any. Examples are the path of
    /// the bad value in a request and the expected type, or a path that an upstream does not serve.
    /// Quotes of a request and the upstream's message are left out.
    #[must_use]
    pub(crate) fn reason_for_log(&self) -> Option<String> {
        let own = match &*self.0 {
            ErrorCause::Rejected { rejection, .. } => {
                return Some(rejection.reason_for_log(&self.message));
            }
            ErrorCause::Client { details, .. } | ErrorCause::Operator { details } => {
                &*details.message
            }
            // Text behind a colon may come from the upstream.
            ErrorCause::Upstream { details, .. } => match &*details.message {
                message if words::begins(message, "upstream could not") => message,
                message => words::before(message, b":"),
            },
        };
        Some(without_values(own)).filter(|reason| !reason.is_empty())
    }
}

/// Returns a text without values in single or double quotes. Names in backticks stay, because they
/// are names of the API.
fn without_values(text: &str) -> String {
    let mut out = String::new();
    let mut rest = words::beginning(text, REASON_BYTES_MAX);
    while let Some(at) = rest.find(['\'', '"']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let quote = from.get(..1).unwrap_or_default();
        let inside = from.get(1..).unwrap_or_default();
        // An apostrophe in a word such as `upstream's` is no quote.
        let is_apostrophe = before.ends_with(char::is_alphanumeric);
        out.push_str(before);
        if is_apostrophe {
            out.push_str(quote);
            rest = inside;
            continue;
        }
        // A value may contain quotes, so the value ends at the last quote.
        let (value, after) = inside.rsplit_once(quote).unwrap_or((inside, ""));
        let (first, behind) = inside.split_once(quote).unwrap_or((value, after));
        if OWN_WORDS.contains(&first) {
            out.push_str(quote);
            out.push_str(first);
            out.push_str(quote);
            rest = behind;
            continue;
        }
        out.push('…');
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fault};

    fn told(message: &str) -> String {
        Error::invalid(message).reason_for_log().unwrap()
    }

    #[test]
    fn the_log_has_the_place_and_what_was_expected_and_no_value() {
        for (message, expected) in [
            (
                "max_tokens: expected a number, but found a string",
                "max_tokens: expected a number, but found a string",
            ),
            (
                "messages[0].content[0]: Input tag 'canary' found using 'type' does not match",
                "messages[0].content[0]: Input tag … does not match",
            ),
            (
                "messages[0].role: Input should be 'user', 'assistant' or 'system'",
                "messages[0].role: Input should be 'user', 'assistant' or 'system'",
            ),
            (
                "tool_choice.name: Tool 'it's \"my' canary' not found",
                "tool_choice.name: Tool … not found",
            ),
            (
                "content-encoding: expected identity, but found \"canary",
                "content-encoding: expected identity, but found …",
            ),
            ("`max_tokens` must be greater", "`max_tokens` must be greater"),
        ] {
            assert_eq!(told(message), expected);
        }
    }

    #[test]
    fn what_an_upstream_said_is_not_repeated() {
        let of = |message: &str| Error::misbehaved(message).reason_for_log();
        assert_eq!(of("Upstream stopped: canary").as_deref(), Some("Upstream stopped"));
        let unreachable = "Upstream could not be reached: the connection was refused";
        assert_eq!(of(unreachable).as_deref(), Some(unreachable));
        assert!(Error::new(Fault::Upstream, ErrorKind::Api, "").reason_for_log().is_none());
    }
}
