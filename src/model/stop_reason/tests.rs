//! Tests of `stop_reason.rs`.

use super::*;

#[test]
fn the_first_row_that_fits_decides() {
    let facts = EndFacts { has_block: true, ..EndFacts::default() };
    let call = EndFacts { has_tool_use: true, ..facts };
    let refused = EndFacts { refused: true, ..call };
    let at_stop = EndFacts { at_stop_sequence: true, ..facts };
    for (word, facts, expected) in [
        (Some("stop"), facts, "end_turn"),
        (None, facts, "end_turn"),
        (Some("tool_calls"), facts, "end_turn"),
        (Some("function_call"), call, "tool_use"),
        (Some("stop"), call, "tool_use"),
        (Some("eos"), call, "tool_use"),
        (Some("length"), call, "max_tokens"),
        (Some("MAX_TOKENS"), facts, "max_tokens"),
        (Some("model_length"), call, "model_context_window_exceeded"),
        (Some("ERROR_LIMIT"), facts, "model_context_window_exceeded"),
        (Some("token_limit"), facts, "max_tokens"),
        (Some("content_filter"), call, "refusal"),
        (Some("sensitive"), facts, "refusal"),
        (Some("content_filter: RECITATION"), facts, "refusal"),
        (Some("content_filter: PROHIBITED_CONTENT"), EndFacts::default(), "refusal"),
        (Some("MAX_TOKENS: 8192"), facts, "max_tokens"),
        (Some("length"), refused, "refusal"),
        (Some("stop"), at_stop, "stop_sequence"),
        (Some("length"), at_stop, "max_tokens"),
        (Some("stop"), EndFacts { has_tool_use: true, ..at_stop }, "tool_use"),
        (Some("FINISH_REASON_MAX_TOKENS"), facts, "max_tokens"),
        (Some("FINISH_REASON_SAFETY"), facts, "refusal"),
        (Some("BLOCKLIST"), facts, "refusal"),
        (Some("SPII"), facts, "refusal"),
        (Some("IMAGE_SAFETY"), facts, "refusal"),
        (Some("ERROR_TOXIC"), facts, "refusal"),
        (Some("MALFORMED_FUNCTION_CALL"), facts, "end_turn"),
        (Some("whatever"), call, "tool_use"),
    ] {
        let facts = EndFacts { finish_reason: word, ..facts };
        assert_eq!(of(facts).map(StopReason::word), Ok(expected), "{facts:?}");
    }
}

#[test]
fn an_unknown_word_without_content_is_an_error() {
    let silent = EndFacts { finish_reason: Some("MALFORMED_FUNCTION_CALL"), ..EndFacts::default() };
    assert_eq!(of(silent).unwrap_err().message, "Upstream stopped: MALFORMED_FUNCTION_CALL");
}
