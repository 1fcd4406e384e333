//! The configuration, from the Worker's variables and secrets.
//!
//! An isolate has 128 MB for everything. Limits that would be too large for it are lowered here, not
//! refused: the same document serves on all hosts.

use creole::Config;
use creole::config::Settings;

/// A body is in the isolate up to five times for a moment: as JavaScript's, as ours, as text with its
/// parts, translated, and as JavaScript's again.
const REQUEST_BYTES_MAX: usize = 8 << 20;
const RESPONSE_BYTES_MAX: usize = 8 << 20;
const WAITING_BYTES_MAX: usize = 8 << 20;
const EVENT_BYTES_MAX: usize = 4 << 20;
/// All requests of the isolate together.
const BUFFERED_BYTES_MAX: usize = 16 << 20;

/// Reads the configuration. `variable` gives the text of a variable or secret; a variable that is a
/// JSON object is given as its text.
///
/// # Errors
/// The text says what is wrong, and where.
pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Config, String> {
    let mut config = Config::from_variables(variable)?;
    lower(&mut config.settings);
    Ok(config)
}

fn lower(settings: &mut Settings) {
    for (setting, max) in [
        (&mut settings.request_bytes_max, REQUEST_BYTES_MAX),
        (&mut settings.response_bytes_max, RESPONSE_BYTES_MAX),
        (&mut settings.waiting_bytes_max, WAITING_BYTES_MAX),
        (&mut settings.event_bytes_max, EVENT_BYTES_MAX),
        (&mut settings.buffered_bytes_max, BUFFERED_BYTES_MAX),
    ] {
        *setting = (*setting).min(max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_lowered_to_what_an_isolate_bears() {
        let document = r#"{"request_bytes_max": 1000000, "response_bytes_max": 100000000}"#;
        let made = read(|name| match name {
            "CREOLE_CONFIG" => Some(document.to_owned()),
            "UPSTREAM_URL" => Some("https://a".to_owned()),
            _ => None,
        })
        .unwrap();
        assert_eq!(made.settings.request_bytes_max, 1_000_000);
        assert_eq!(made.settings.response_bytes_max, RESPONSE_BYTES_MAX);
        assert_eq!(made.settings.buffered_bytes_max, BUFFERED_BYTES_MAX);
    }
}
