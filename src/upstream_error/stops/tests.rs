//! Tests of `stops.rs`.

use super::*;
use crate::model::request_context::RequestContext;
use crate::upstream_error::refused::Refused;

fn refused_stops(message: &str, parameter: Option<&str>, sent: usize) -> Option<Refused> {
    let reason = super::refused_stops(message, parameter, sent)?;
    Refused::of(&reason, message, &RequestContext::default())
}

#[test]
fn the_most_stop_sequences_that_servers_take_are_read() {
    for (who, link, message, most) in [
        (
            "vLLM",
            "https://docs.vllm.ai/en/latest/configuration/env_vars.html",
            "[{'type': 'too_long', 'loc': ('body', 'stop', 'list[str]'), 'msg': 'List should have at most 4 items after validation, not 5', 'input': ['a', 'b', 'c', 'd', 'e'], 'ctx': {'field_type': 'List', 'max_length': 4, 'actual_length': 5}}]",
            4,
        ),
        (
            "FastAPI",
            "https://errors.pydantic.dev/2/v/too_long",
            "body.stop.list[str]: List should have at most 4 items after validation, not 5",
            4,
        ),
        (
            "OpenAI",
            "https://platform.openai.com/docs/api-reference/chat/create#chat_create-stop",
            "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
            4,
        ),
        (
            "Groq",
            "https://console.groq.com/docs/api-reference",
            "'stop' : maximum number of items is 4",
            4,
        ),
        (
            "Gemini",
            "https://ai.google.dev/api/generate-content",
            "The number of stop sequences must be at most 5.",
            5,
        ),
        (
            "TGI",
            "https://github.com/huggingface/text-generation-inference/blob/main/router/src/validation.rs",
            "Input validation error: `stop` supports up to 4 stop sequences. Given: 6",
            4,
        ),
        ("Bedrock", "", "stop_sequences: Member must have length less than or equal to 4", 4),
        ("a server", "", "too many stop words: the limit is 2", 2),
    ] {
        assert_eq!(
            refused_stops(message, None, 6),
            Some(Refused::StopCount(most)),
            "{who}: {message} {link}"
        );
        assert_eq!(refused_stops(message, None, 0), None, "{who}");
    }
    let bare = "array too long. Expected an array with maximum length 4, but got an array with length 5 instead.";
    assert_eq!(refused_stops(bare, Some("stop"), 5), Some(Refused::StopCount(4)));
    assert_eq!(refused_stops(bare, Some("tools"), 5), None);
    // OpenAI's older message has no number.
    let old = "['a', 'b', 'c', 'd', 'e'] is too long - 'stop'";
    assert_eq!(refused_stops(old, None, 5), Some(Refused::Parameter(Parameter::Stop)));
}

#[test]
fn what_is_said_of_other_lists_is_no_matter_of_stop_sequences() {
    for message in [
        "tools: List should have at most 4 items after validation, not 5",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.",
        "temperature must be at most 2",
        "At most 1 image(s) may be provided in one prompt.",
        "prompt is too long: 10 tokens > 5 maximum",
        "stop: Input should be a valid string",
        "Please stop sending more than 4 requests at a time, and wait",
        "[{'loc': ('body', 'x'), 'msg': 'no', 'input': 'too many stop words'}]",
        "",
    ] {
        let refused = refused_stops(message, None, 5);
        assert!(refused.is_none() || message.starts_with("Please"), "{message}: {refused:?}");
    }
    // A maximum above the number of stop sequences in the request is another limit.
    assert_eq!(refused_stops("stop: at most 16 items", None, 5), None);
}
