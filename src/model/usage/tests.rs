//! Tests of `usage.rs`.

use super::*;

fn read(text: &str) -> Option<Usage> {
    Usage::read(&mut Reader::new(text, 8)).unwrap()
}

#[test]
fn counts_that_are_null_or_of_another_type_are_unknown() {
    assert_eq!(read("null"), None);
    assert_eq!(read("{}"), None);
    assert_eq!(read("[]"), None);
    let usage = read(r#"{"prompt_tokens":10.0,"completion_tokens":null,"total_tokens":{}}"#);
    assert_eq!(usage, Some(Usage { prompt: Some(10), ..Usage::default() }));
}

#[test]
fn what_was_written_to_a_cache_has_many_names() {
    for name in
        ["cache_write_tokens", "caching_tokens", "cache_creation_tokens", "cached_creation_tokens"]
    {
        let usage = format!(r#"{{"prompt_tokens":9,"prompt_tokens_details":{{"{name}":3}}}}"#);
        assert_eq!(read(&usage).unwrap().cache_written, Some(3), "{name}");
    }
}

#[test]
fn a_later_report_replaces_an_earlier_one_and_is_never_added() {
    let first = read(r#"{"prompt_tokens":10,"completion_tokens":1,"cached_tokens":4}"#);
    let second = read(r#"{"prompt_tokens":10,"completion_tokens":5}"#).unwrap().after(first);
    assert_eq!((second.completion, second.cache_read), (Some(5), None));
    let third = read(r#"{"completion_tokens":6}"#).unwrap().after(Some(second));
    assert_eq!((third.prompt, third.completion), (Some(10), Some(6)));
}

#[test]
fn a_zero_replaces_no_count_that_is_known() {
    let after = |later: &str, earlier: &str| {
        let usage = read(later).unwrap().after(read(earlier));
        (usage.prompt.or(usage.input), usage.completion)
    };
    let tokens = |prompt: u64, completion: u64| {
        format!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}"#)
    };
    for (earlier, later, expected) in [
        ((10, 1), (0, 5), (10, 5)),
        ((10, 5), (10, 0), (10, 5)),
        ((10, 5), (0, 0), (10, 5)),
        ((0, 0), (10, 5), (10, 5)),
        ((0, 0), (0, 5), (0, 5)),
    ] {
        let found = after(&tokens(later.0, later.1), &tokens(earlier.0, earlier.1));
        assert_eq!(found, (Some(expected.0), Some(expected.1)), "{earlier:?} {later:?}");
    }
    // All of the prompt was in the cache.
    let cached = r#"{"input_tokens":0,"cache_read_input_tokens":9,"output_tokens":5}"#;
    assert_eq!(after(cached, r#"{"input_tokens":9,"output_tokens":1}"#), (Some(0), Some(5)));
}

#[test]
fn input_tokens_of_the_messages_api_are_without_the_cache() {
    let usage = read(r#"{"input_tokens":10,"cache_read_input_tokens":6}"#).unwrap();
    assert_eq!((usage.input, usage.prompt, usage.cache_read), (Some(10), None, Some(6)));
    let usage = read(r#"{"input_tokens":10,"input_tokens_details":{"cached_tokens":6}}"#);
    assert_eq!(usage.unwrap().prompt, Some(10));
}
