//! Meanings of warnings and guards, in a line each. `docs/troubleshooting.md` says more of each of
//! them.

/// Meanings by their codes.
const MEANINGS: &[(&str, &str)] = &[
    ("answer_empty", "the model stopped without text, a call or reasoning"),
    ("answer_only_reasoning", "the model thought and stopped without text or a call"),
    ("answered_locally", "no model was asked: the configuration wants this answered here"),
    ("beginning_missing", "a user message was put before a history without one"),
    ("choice_dropped", "the upstream gave several answers; the first was kept"),
    ("content_dropped", "content of an unknown kind was left out of the answer"),
    ("count_estimated", "the token count is an estimate"),
    ("document_cut", "a PDF was read only in part, and the model is told so"),
    ("document_not_read", "a PDF could not be read; the model is told why"),
    ("document_read", "the model takes no files, and got the text of a PDF"),
    ("documents_refused", "the upstream refused PDFs; it was asked again without them"),
    ("dropped", "a field or tool that the upstream has no counterpart for was left out"),
    ("empty_text", "empty texts were left out"),
    (
        "extension_refused",
        "the upstream refused extensions of the Messages API; it was asked again without them",
    ),
    ("finish_reason_unknown", "an unknown finish reason became end_turn"),
    ("guards_skipped", "a request too new to be read was sent without a check of its turns"),
    ("image_described", "the model sees no images, and read another one's description"),
    ("image_in_text", "the text of a result was an image, which the model got as one"),
    ("image_not_fetched", "an image of the history could not be fetched, and the model was told"),
    ("images_refused", "the upstream refused images; it was asked again without them"),
    ("judge_failed", "the judge of tool calls gave no verdict"),
    ("late_tool_fragment", "a piece of a call came after the call was complete"),
    ("max_tokens_lowered", "the model gives fewer tokens; the upstream was asked for fewer"),
    ("max_tokens_refused", "the upstream gives fewer tokens; it was asked again for fewer"),
    ("media_type_corrected", "an image was of another type than its client said, and got its own"),
    ("output_item_dropped", "an image, a search of files or a call of an MCP server was left out"),
    ("own_thinking", "thinking that Creole signed was left out"),
    ("pairing_refused", "the upstream refused calls and results; it was asked again without them"),
    ("parallel_cut", "the client allows one call; the first of several was kept"),
    ("parameter_refused", "the upstream refused a parameter; it was asked again without it"),
    ("prefill", "the last message is the assistant's; many models start a new answer"),
    ("reasoning_as_text", "the answer was reasoning alone, which is said once more as text"),
    ("reasoning_item_late", "encrypted reasoning came too late; the next turn is sent without it"),
    (
        "reasoning_refused",
        "the upstream refused reasoning of earlier turns; it was asked again without it",
    ),
    ("reasoning_withheld", "the upstream kept reasoning of earlier turns from the model"),
    ("repaired", "the upstream broke the Messages protocol, which was repaired"),
    (
        "response_format_refused",
        "the upstream refused response_format; the schema went into the prompt",
    ),
    ("signature_too_long", "reasoning was too long for a signature; it will not be sent back"),
    ("stream_options_refused", "the upstream refused stream_options; tokens are estimated"),
    (
        "stream_refused",
        "the upstream refused a stream, or an answer without one; it gave the other",
    ),
    ("text_conflict", "the upstream said a text again, otherwise; what came in pieces counts"),
    (
        "system_moved_to_top",
        "a later system message went into the system prompt; no cached prompt fits",
    ),
    ("thinking_modified", "the client changed a thinking block; its text was not sent back"),
    ("thinking_without_budget", "thinking without a budget was read as adaptive"),
    ("tool_call_cut_off", "the answer ended inside of a call, which was left out"),
    ("tool_argument_mended", "an argument that the client would refuse was left out of a call"),
    (
        "tool_call_missing",
        "the upstream announced a call that did not come: look at its tool parser",
    ),
    ("tool_call_withheld", "a call with an invalid input was left out"),
    ("tool_failing", "a tool failed over and over, and the model was told"),
    ("tool_input_conflict", "the upstream sent different inputs for one call"),
    ("tool_input_invalid", "an input that is not valid JSON reached the client, marked as such"),
    ("tool_input_not_object", "the input of a call in the history was no object and was made one"),
    ("tool_input_repaired", "an input that was not valid JSON was repaired"),
    ("tool_input_violates_schema", "an input does not fit the tool's schema"),
    ("tool_name_conflict", "the model changed the name of a call; the first was kept"),
    ("tool_name_repaired", "the model spelt a tool's name otherwise; the real name was sent"),
    ("tool_reference_unresolved", "a reference to a tool that is gone was left out"),
    ("tool_repeating", "a call gave the same result over and over, and the model was told"),
    ("tool_result_duplicate", "of several results of one call the last was kept"),
    ("tool_result_missing", "a call without a result got a result that says so"),
    ("tool_result_moved", "a result stood in another turn and was put behind its call"),
    ("tool_result_orphan", "a result without a call became text"),
    ("tool_unknown", "the model called a tool that does not exist"),
    ("tool_use_duplicate", "of two calls with one id the first was kept"),
    ("tool_withheld", "the circuit breaker left a tool out of the request"),
    ("unknown_block", "a content block of an unknown type was left out"),
    ("unknown_field", "a field that Creole does not know was left out"),
    ("unknown_tool_type", "a tool of an unknown type was taken for the nearest known one"),
    ("upstream_encoding", "the upstream's error was compressed and could not be read"),
    ("upstream_event_dropped", "an event of the upstream was left out"),
    ("upstream_json_repaired", "an event that was not quite JSON was repaired"),
    ("usage_estimated", "the upstream sent no usage; tokens are estimated"),
    ("vision_failed", "the model that describes images did not; a text says that one was left out"),
    ("window_smaller", "the client believes in a larger window than the model has"),
    ("withheld_tool_called", "the model called a withheld tool; the client did not get the call"),
    ("guard breaker", "a tool that failed or repeated itself was stopped"),
    ("guard pairing", "calls and results did not fit together and were repaired"),
    ("guard stall", "the upstream was silent for too long"),
    ("guard tool_turns", "the limit of turns with tool calls was reached"),
];

/// Returns the meaning of a code; empty where it is not known.
pub(super) fn of(code: &str) -> &'static str {
    let known = MEANINGS.iter().find(|(known, _)| *known == code);
    known.map_or("", |(_, meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of documents is compared with the sources by other tests.
    #[test]
    fn every_warning_and_guard_of_the_documents_has_a_meaning_on_the_page() {
        let page = std::fs::read_to_string(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/troubleshooting.md"),
        )
        .unwrap();
        let (_, warnings) = page.split_once("\n## Warnings\n").unwrap();
        let mut codes: Vec<String> = warnings
            .lines()
            .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
            .collect();
        assert!(codes.len() > 40, "{codes:?}");
        codes.extend(["pairing", "breaker", "tool_turns", "stall"].map(|it| format!("guard {it}")));
        let lost: Vec<&String> = codes.iter().filter(|code| of(code).is_empty()).collect();
        assert!(lost.is_empty(), "without a meaning: {lost:?}");
        let known = |code: &str| codes.iter().any(|known| known == code);
        let gone: Vec<_> = MEANINGS.iter().filter(|(code, _)| !known(code)).collect();
        assert!(gone.is_empty(), "not in the documents: {gone:?}");
    }
}
