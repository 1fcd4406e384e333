//! Tests of `figures.rs`.

use super::*;
use creole::observe::report::AnswerReport;

#[test]
fn numbers_are_short() {
    let shown = [0, 999, 1_000, 12_149, 99_949, 99_950, 999_499, 3_400_000].map(count);
    assert_eq!(shown, ["0", "999", "1.0k", "12.1k", "99.9k", "100k", "999k", "3.4M"]);
    let shown = [0, 999, 1_000, 59_949, 59_950, 185_000].map(time);
    assert_eq!(shown, ["0 ms", "999 ms", "1.0 s", "59.9 s", "0 min 59 s", "3 min 5 s"]);
    assert_eq!([4.23, 9.99, 43.4].map(speed), ["4.2/s", "10.0/s", "43/s"]);
}

#[test]
fn a_text_ends_no_line_moves_no_cursor_and_turns_no_words_around() {
    assert_eq!(text("a\u{1b}[31m\n\u{9b}\u{2028}\u{202e}b\u{7f}"), "a�[31m����b�");
    assert_eq!(text("qwen3-coder:30b/模型"), "qwen3-coder:30b/模型");
    let long = text(&"x".repeat(1000));
    assert_eq!(long, format!("{}…", "x".repeat(LETTERS_MAX)));
}

fn report(stream: bool) -> Report {
    Report {
        stream,
        status: 200,
        outcome: Outcome::Answered,
        requested_at: 1_000,
        content_at: Some(1_500),
        answer: AnswerReport {
            input_tokens: 10,
            cache_read_tokens: 90,
            output_tokens: 100,
            ..AnswerReport::default()
        },
        ..Report::default()
    }
}

#[test]
fn the_speed_of_a_stream_counts_from_its_first_content() {
    let request = LoggedRequest { began: 900, ..LoggedRequest::default() };
    let figures = Figures::of(&request, &report(true), 2_500);
    assert_eq!((figures.first_ms, figures.duration_ms), (Some(600), 1_600));
    assert_eq!((figures.input_tokens, figures.speed), (100, Some(100.0)));
    let figures = Figures::of(&request, &report(false), 3_000);
    assert_eq!(figures.speed, Some(50.0));
    // The demo model, or a proxy that keeps everything until the end, gives no speed.
    assert_eq!(Figures::of(&request, &report(true), 1_505).speed, None);
}

#[test]
fn a_request_that_passed_has_its_upstreams_status() {
    let passed = Some((201, "a".to_owned()));
    let request = LoggedRequest { passed, ..LoggedRequest::default() };
    assert_eq!(Figures::of(&request, &Report::default(), 9).status, 201);
    assert_eq!(Figures::of(&LoggedRequest::default(), &Report::default(), 9).status, 499);
}
