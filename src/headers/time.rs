//! Times and durations in the formats of upstreams' headers and errors, and of the Messages API.

use crate::Millis;
use crate::text::words;

/// Returns the time at which a rate limit is reset, in RFC 3339 and whole seconds, rounded up.
pub(super) fn reset_time(text: &str, now: Millis) -> Option<String> {
    // Unix time of the year 2100; a later value is not a time.
    const SECONDS_MAX: u64 = 4_102_444_800;
    // Servers may send a point in time, in seconds or milliseconds: no waiting time is that long.
    const EPOCH_MIN: u64 = 1_000_000_000_000;
    if is_rfc3339(text) {
        return Some(text.to_owned());
    }
    let millis = match duration(text)? {
        millis if millis >= EPOCH_MIN.saturating_mul(1_000) => millis.div_ceil(1_000),
        millis if millis >= EPOCH_MIN => millis,
        millis => now.saturating_add(millis),
    };
    let seconds = millis.div_ceil(1_000);
    (seconds < SECONDS_MAX).then(|| rfc3339(seconds))
}

/// Returns a `retry-after` value in seconds, the form that all clients read. Java's SDK fails at a
/// date in the past, and other clients read no dates.
pub(super) fn retry_after(text: &str, now: Millis) -> Option<String> {
    if is_number(text) {
        return Some(text.to_owned());
    }
    let wait = match http_date(text) {
        Some(seconds) => seconds.saturating_mul(1_000).saturating_sub(now),
        None => duration(text)?,
    };
    Some(wait.div_ceil(1_000).to_string())
}

/// Returns true if a text is a decimal number, perhaps with a fraction.
pub(super) fn is_number(text: &str) -> bool {
    duration(text).is_some() && text.ends_with(|last: char| last.is_ascii_digit() || last == '.')
}

/// Converts an HTTP date such as `Wed, 21 Oct 2026 07:28:00 GMT` to seconds since the Unix epoch.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "MarAprMayJunJulAugSepOctNovDecJanFeb";
    // Days are counted from 1 March of the year 0, so that a leap day is the last day of a year.
    const EPOCH_DAYS: u64 = 719_469;
    let date = text.strip_suffix(" GMT")?.get(5..)?;
    let month = words::find(MONTHS, date.get(3..6)?)?;
    let month = month.is_multiple_of(3).then_some(month as u64 / 3)?;
    let number = |from, until| date.get(from..until)?.parse::<u64>().ok();
    let (day, year) = (number(0, 2)?, number(7, 11)?);
    let (hour, minute, second) = (number(12, 14)?, number(15, 17)?, number(18, 20)?);
    let year = year.checked_sub(u64::from(month >= 10))?;
    let leap_days = (year / 4).checked_sub(year / 100)?.saturating_add(year / 400);
    let before =
        year.saturating_mul(365).saturating_add(month.saturating_mul(153).saturating_add(2) / 5);
    let days = before.saturating_add(leap_days).saturating_add(day).checked_sub(EPOCH_DAYS)?;
    let minutes =
        days.saturating_mul(24).saturating_add(hour).saturating_mul(60).saturating_add(minute);
    Some(minutes.saturating_mul(60).saturating_add(second))
}

/// Converts a duration such as `6m0s`, `120ms`, `1h2m3.5s`, or plain seconds to milliseconds,
/// rounded up.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut millis = 0u64;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit() && c != '.');
        let (unit, after) = split_where(after, |c| c.is_ascii_digit() || c == '.' || c == ' ');
        // Factors from the unit to microseconds. Go, the origin of this notation, writes ns only
        // below one microsecond.
        let micros: u64 = match unit {
            "ns" => 0,
            "us" | "µs" | "μs" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            "" if after.is_empty() && rest == text => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return None,
        };
        let (whole, fraction) = words::split_once(number, ".").unwrap_or((number, ""));
        if whole.is_empty() || words::has_byte(fraction, b'.') {
            return None;
        }
        let mut part = whole.parse::<u64>().ok()?.saturating_mul(micros);
        let mut weight = micros;
        for digit in fraction.bytes() {
            weight /= 10;
            let digit = u64::from(digit.wrapping_sub(b'0'));
            part = part.saturating_add(digit.saturating_mul(weight));
        }
        // A duration below one microsecond still counts as more than zero.
        let some = u64::from(number.bytes().any(|byte| matches!(byte, b'1'..=b'9')));
        millis = millis.saturating_add(part.max(some).div_ceil(1_000));
        rest = words::trim_start(after, b" ");
    }
    (!text.is_empty()).then_some(millis)
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at_checked(text.find(is_end).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// Returns true if a text has the form of `2026-11-18T12:00:00Z`, with any offset or fraction.
fn is_rfc3339(text: &str) -> bool {
    let shape: String = text
        .chars()
        .take(19)
        .map(|letter| match letter {
            '0'..='9' => '0',
            't' => 'T',
            other => other,
        })
        .collect();
    let rest_allowed = |byte: u8| byte.is_ascii_digit() || b"zZ.:+-".contains(&byte);
    shape == "0000-00-00T00:00:00"
        && matches!(text.len(), 20..=40)
        && text.bytes().skip(19).all(rest_allowed)
}

/// Returns the RFC 3339 form, in UTC, of a time in seconds since the Unix epoch.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let (mut days, clock) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970u64;
    let leap = |year: u64| {
        let every_four = year.is_multiple_of(4) && !year.is_multiple_of(100);
        u64::from(every_four || year.is_multiple_of(400))
    };
    while let Some(rest) = days.checked_sub(leap(year).saturating_add(365)) {
        days = rest;
        year = year.saturating_add(1);
    }
    let mut month = 1u64;
    for length in [31, leap(year).saturating_add(28), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        let Some(rest) = days.checked_sub(length) else { break };
        days = rest;
        month = month.saturating_add(1);
    }
    let day = days.saturating_add(1);
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;
