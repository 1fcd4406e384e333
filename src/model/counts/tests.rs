//! Tests of `counts.rs`.

use super::*;

fn counts(usage: Usage) -> Counts {
    Counts::of_nonzero(Some(usage), Estimate { input: 7, output: 10 })
}

#[test]
fn the_cache_is_not_counted_twice_and_never_below_zero() {
    let usage = Usage {
        prompt: Some(10),
        completion: Some(5),
        cache_read: Some(6),
        cache_written: Some(3),
        ..Usage::default()
    };
    assert_eq!(counts(usage).input, 1);
    assert_eq!(counts(Usage { cache_read: Some(40), ..usage }).input, 0);
    assert_eq!(counts(Usage { prompt: None, input: Some(10), ..usage }).input, 10);
}

#[test]
fn a_cache_that_the_total_has_beside_the_prompt_is_no_part_of_it() {
    for (prompt, cache_read, cache_written, total, input) in [
        (10, Some(5000), Some(200), Some(5260), 10),
        (6000, Some(5000), Some(0), Some(11_050), 6000),
        (6000, Some(5000), None, Some(11_050), 6000),
        (0, None, Some(200), Some(250), 0),
        // Cached tokens counted within the prompt, or totals that do not show how they were
        // counted.
        (6000, Some(5000), Some(200), Some(6050), 800),
        (6000, Some(5000), Some(200), Some(11_050), 800),
        (6000, Some(5000), None, None, 1000),
        // Thinking tokens that Google includes in the total alone.
        (6000, Some(5000), None, Some(6950), 1000),
    ] {
        let completion = Some(50);
        let prompt = Some(prompt);
        let usage =
            Usage { prompt, completion, total, cache_read, cache_written, ..Usage::default() };
        let found = counts(usage);
        assert_eq!(found.input, input, "{usage:?}");
        assert_eq!(found.output, if total == Some(6950) { 950 } else { 50 }, "{usage:?}");
        assert_eq!(found.cache_read, cache_read.unwrap_or(0));
    }
    let unknown =
        Usage { prompt: Some(10), cache_read: Some(6), total: Some(16), ..Usage::default() };
    assert_eq!(counts(unknown).input, 4);
}

#[test]
fn reasoning_is_added_only_where_the_total_says_so() {
    let usage = Usage {
        prompt: Some(10),
        completion: Some(5),
        total: Some(35),
        reasoning: Some(20),
        ..Usage::default()
    };
    assert_eq!((counts(usage).output, counts(usage).thinking), (25, Some(20)));
    let inside = Usage { completion: Some(25), ..usage };
    assert_eq!((counts(inside).output, counts(inside).thinking), (25, Some(20)));
    let unclear = Usage { total: Some(15), ..usage };
    assert_eq!((counts(unclear).output, counts(unclear).thinking), (5, Some(5)));
}

#[test]
fn thinking_that_only_the_total_has_is_output() {
    // Token counts of Google's endpoint.
    let usage =
        Usage { prompt: Some(20), completion: Some(198), total: Some(623), ..Usage::default() };
    assert_eq!((counts(usage).output, counts(usage).thinking), (603, None));
    let cached = Usage { cache_read: Some(15), ..usage };
    assert_eq!((counts(cached).input, counts(cached).output), (5, 603));
    for (cache_read, cache_written, prompt, reasoning) in [
        // Cached tokens counted beside the prompt.
        (Some(405), None, 20, None),
        (Some(10), Some(405), 500, None),
        (Some(5), Some(400), 500, None),
        (Some(30), None, 20, None),
        // Unknown number of prompt tokens.
        (None, None, 0, None),
        // Reported number of reasoning tokens, or a total that includes no thinking tokens.
        (None, None, 20, Some(0)),
        (None, None, 425, None),
        (None, None, 623, None),
    ] {
        let total = Some(if prompt == 500 { 500 + 198 + 405 } else { 623 });
        let prompt = Some(prompt);
        let usage = Usage { cache_read, cache_written, prompt, reasoning, total, ..usage };
        assert_eq!(counts(usage).output, 198, "{usage:?}");
    }
}

#[test]
fn what_is_missing_is_estimated() {
    let none = counts(Usage::default());
    assert_eq!((none.input, none.output, none.estimated), (7, 10, true));
    let half = counts(Usage { prompt: Some(3), ..Usage::default() });
    assert_eq!((half.input, half.output, half.estimated), (3, 10, true));
    let difference = counts(Usage { prompt: Some(3), total: Some(8), ..Usage::default() });
    assert_eq!((difference.input, difference.output, difference.estimated), (3, 5, false));
    // Servers that do not count tokens report zero, though no prompt and no answer has zero tokens.
    let zero = counts(Usage { prompt: Some(0), completion: Some(0), ..Usage::default() });
    assert_eq!((zero.input, zero.output, zero.estimated), (7, 10, true));
    let cached =
        Usage { prompt: Some(0), cache_read: Some(3), completion: Some(1), ..Usage::default() };
    assert_eq!((counts(cached).input, counts(cached).estimated), (0, false));
    let written = Usage { cache_read: None, cache_written: Some(3), ..cached };
    assert_eq!((counts(written).input, counts(written).estimated), (0, false));
    let messages = counts(Usage { input: Some(0), completion: Some(1), ..Usage::default() });
    assert_eq!((messages.input, messages.estimated), (7, true));
    for total in [2, 3] {
        let none = counts(Usage { prompt: Some(3), total: Some(total), ..Usage::default() });
        assert_eq!((none.output, none.estimated), (10, true), "{total}");
    }
}
