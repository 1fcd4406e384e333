//! Tests of answers whose events come in any order, with the checks of [`crate::fuzz`].

use proptest::prelude::*;

use crate::fuzz;

/// Generates an event of one of few items, so that ids and indices collide.
fn event() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "output_text.delta",
        "output_text.done",
        "refusal.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_text.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "custom_tool_call_input.delta",
        "output_item.added",
        "output_item.done",
        "content_part.done",
        "output_text.annotation.added",
        "in_progress",
        "completed",
        "incomplete",
        "failed",
    ]);
    let texts = prop::sample::select(vec![
        "Hi",
        "END",
        " ",
        "E",
        "{}",
        "{\\\"a\\\":",
        "1}",
        "{\\\"a\\\":1}",
        "\\ud83d",
        "\\ude00",
        "<tool_call>{\\\"name\\\":\\\"w\\\"",
        "",
    ]);
    (kinds, texts, item(), 0u8..3, prop::option::of(0u8..3), any::<bool>()).prop_map(
        |(kind, text, item, id, index, is_named)| {
            let mut members = vec![format!("\"type\":\"response.{kind}\"")];
            if is_named {
                members.push(format!("\"item_id\":\"i{id}\""));
            }
            if let Some(index) = index {
                members.push(format!("\"output_index\":{index},\"content_index\":{index}"));
            }
            for name in ["delta", "text", "arguments"] {
                members.push(format!("\"{name}\":\"{text}\""));
            }
            members.push(format!("\"part\":{{\"type\":\"output_text\",\"text\":\"{text}\"}}"));
            members.push("\"annotation\":{\"type\":\"url_citation\",\"url\":\"u\"}".to_owned());
            members.push(format!("\"response\":{{\"output\":[{item}]}},\"item\":{item}"));
            format!("data: {{{}}}\n\n", members.join(","))
        },
    )
}

/// Generates an output item.
fn item() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "web_search_call",
        "brand_new",
    ]);
    (kinds, 0u8..3, prop::option::of(0u8..2), any::<bool>()).prop_map(
        |(kind, id, call, is_full)| {
            let call = call.map_or(String::new(), |call| format!("\"call_id\":\"c{call}\","));
            let full = match is_full {
                true => {
                    "\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}],\"arguments\":\"{}\",\
                     \"encrypted_content\":\"E\",\"summary\":[{\"type\":\"summary_text\",\
                     \"text\":\"Hm\"}],\"action\":{\"type\":\"search\",\"query\":\"q\"},"
                }
                false => "\"status\":\"incomplete\",",
            };
            format!("{{{call}{full}\"id\":\"i{id}\",\"name\":\"w\",\"type\":\"{kind}\"}}")
        },
    )
}

/// Generates deltas that differ only in their texts and numbers, as those of real servers do.
fn alike() -> impl Strategy<Value = Vec<String>> {
    let kinds = prop::sample::select(vec![
        "output_text",
        "refusal",
        "reasoning_summary_text",
        "reasoning_text",
        "function_call_arguments",
        "custom_tool_call_input",
    ]);
    let words = prop::collection::vec("[a-zé🎉 {}<>]{0,6}|\\\\n|\\\\ud83d|\\\\ude00", 1..6);
    (kinds, 0u8..3, words, any::<bool>()).prop_map(|(kind, id, words, is_padded)| {
        let event = |(number, word): (usize, &String)| {
            let padding = if is_padded { format!(",\"obfuscation\":\"{word}\"") } else { String::new() };
            format!(
                "\"type\":\"response.{kind}.delta\",\"sequence_number\":{number},\"item_id\":\"i{id}\",\
                 \"output_index\":{id},\"delta\":\"{word}\"{padding}"
            )
        };
        words.iter().enumerate().map(event).collect()
    })
}

proptest! {
    #[test]
    fn events_that_repeat_each_other_say_what_events_say_that_do_not(
        options in any::<u8>(),
        runs in prop::collection::vec(alike(), 0..6),
    ) {
        let added = (0..3).map(|id| format!(
            "\"type\":\"response.output_item.added\",\"output_index\":{id},\"item\":{{\"type\":\"function_call\",\
             \"id\":\"i{id}\",\"call_id\":\"c{id}\",\"name\":\"w\"}}"
        ));
        let end = "\"type\":\"response.completed\",\"response\":{}".to_owned();
        let events: Vec<String> = added.chain(runs.into_iter().flatten()).chain([end]).collect();
        let repeating: String = events.iter().map(|event| format!("data: {{{event}}}\n\n")).collect();
        // Each event gets a different unknown member, so that no event repeats another event.
        let unlike: String = events
            .iter()
            .enumerate()
            .map(|(at, event)| format!("data: {{\"number\":{at},{event}}}\n\n"))
            .collect();
        prop_assert_eq!(
            fuzz::said_in_responses(options, repeating.as_bytes()),
            fuzz::said_in_responses(options, unlike.as_bytes())
        );
    }

    #[test]
    fn any_byte_of_a_stream_may_be_another(
        options in any::<u8>(),
        stream in prop::sample::select(vec![
            include_str!("../../../../tests/fixtures/tool-calls-mixed-up/responses-parallel-calls-interleaved/upstream.sse"),
            include_str!("../../../../tests/fixtures/text-missing-or-doubled/responses-web-search-and-citations/upstream.sse"),
            include_str!("../../../../tests/fixtures/thinking-missing-or-doubled/responses-reasoning-with-summary/upstream.sse"),
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut data = vec![options];
        data.extend_from_slice(stream.as_bytes());
        for (at, byte) in changes {
            let at = at.index(data.len());
            data[at] = byte;
        }
        fuzz::responses(&data);
    }

    #[test]
    fn events_in_any_order_keep_the_grammar_however_they_are_cut(
        options in any::<u8>(),
        events in prop::collection::vec(event(), 0..12),
    ) {
        let mut data = vec![options];
        data.extend_from_slice(events.concat().as_bytes());
        fuzz::responses(&data);
    }
}

/// Tests a reasoning item whose encrypted text came with its beginning, and which never ended.
#[test]
fn a_message_begins_before_the_block_of_encrypted_reasoning_alone() {
    const EVENTS: &str = concat!(
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"i0\",",
        "\"type\":\"reasoning\",\"encrypted_content\":\"E\"}}\n\n",
        "data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"id\":\"i1\",",
        "\"type\":\"message\",\"status\":\"incomplete\"}]}}\n\n",
    );
    for options in 0..=u8::MAX {
        let data: Vec<u8> = [&[options], EVENTS.as_bytes()].concat();
        fuzz::responses(&data);
    }
}
