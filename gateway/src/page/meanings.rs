//! Meanings of warnings and guards for the web page, from the core's table.

use creole::observe::meanings::{GUARDS, WARNINGS};

/// Returns the meaning of a warning, or of a guard written as `guard NAME`; empty if the code is
/// unknown.
pub(super) fn of(code: &str) -> &'static str {
    let (table, code) = match code.strip_prefix("guard ") {
        Some(guard) => (GUARDS, guard),
        None => (WARNINGS, code),
    };
    table.iter().find(|row| row.code == code).map_or("", |row| row.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_and_a_warning_have_meanings_and_other_codes_none() {
        assert!(of("guard stall").contains("silent"));
        assert!(of("usage_estimated").contains("estimated"));
        assert_eq!(of("stall"), "");
    }
}
