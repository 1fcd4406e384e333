//! Tests of `time.rs`.

use super::*;
use proptest::prelude::*;

#[test]
fn waiting_times_are_read_in_all_their_forms() {
    for (text, millis) in [
        ("1s", Some(1_000)),
        ("6m0s", Some(360_000)),
        ("120ms", Some(120)),
        ("1h2m3.5s", Some(3_723_500)),
        ("7.66s", Some(7_660)),
        ("2m59.56s", Some(179_560)),
        ("1d1h", Some(90_000_000)),
        ("500us", Some(1)),
        ("12ns", Some(1)),
        ("0s", Some(0)),
        ("60", Some(60_000)),
        ("0.25", Some(250)),
        ("1m 30s", Some(90_000)),
        ("", None),
        ("s", None),
        ("-1s", None),
        ("1.2.3s", None),
        (".5s", None),
        ("1x", None),
        ("5m3", None),
        ("soon", None),
        ("99999999999999999999s", None),
    ] {
        assert_eq!(duration(text), millis, "{text}");
    }
}

#[test]
fn a_reset_is_a_time_and_never_too_early() {
    let now = 1_700_000_000_001;
    for (text, time) in [
        ("0s", "2023-11-14T22:13:21Z"),
        ("999ms", "2023-11-14T22:13:21Z"),
        ("1s", "2023-11-14T22:13:22Z"),
        ("2023-11-14T22:20:00.5+00:00", "2023-11-14T22:20:00.5+00:00"),
        ("1700000100", "2023-11-14T22:15:00Z"),
        ("1700000100000", "2023-11-14T22:15:00Z"),
    ] {
        assert_eq!(reset_time(text, now).as_deref(), Some(time), "{text}");
    }
    assert_eq!(reset_time("2023-11-14T22:20:00Z\r\nx: y", now), None);
    assert_eq!(reset_time("99999999999999999s", now), None);
}

#[test]
fn a_wait_is_a_number_of_seconds() {
    let now = 1_792_567_679_500;
    for (text, seconds) in [
        ("7", Some("7")),
        ("0.25", Some("0.25")),
        ("Wed, 21 Oct 2026 07:28:00 GMT", Some("1")),
        ("Wed, 21 Oct 2026 08:28:01 GMT", Some("3602")),
        ("Sun, 29 Feb 2032 00:00:00 GMT", Some("169057921")),
        ("Fri, 01 Jan 2027 00:00:00 GMT", Some("6193921")),
        ("Tue, 20 Oct 2026 07:28:00 GMT", Some("0")),
        ("1m30s", Some("90")),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2026", None),
        ("Wed, 21 arA 2026 07:28:00 GMT", None),
        ("Wed, 21 Oct 0000 07:28:00 GMT", None),
    ] {
        assert_eq!(retry_after(text, now).as_deref(), seconds, "{text}");
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    for (seconds, time) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (1_709_210_096, "2024-02-29T12:34:56Z"),
        (4_102_444_799, "2099-12-31T23:59:59Z"),
    ] {
        assert_eq!(rfc3339(seconds), time);
    }
}

proptest! {
    #[test]
    fn later_is_later(left in 0u64..4_000_000_000, right in 0u64..4_000_000_000) {
        prop_assert_eq!(left.cmp(&right), rfc3339(left).cmp(&rfc3339(right)));
    }
}
