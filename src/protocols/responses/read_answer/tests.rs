//! Answers of events in any order: see [`crate::fuzz`], whose checks these are.

use proptest::prelude::*;

use crate::fuzz;

/// An event of few items, so that their names and places collide.
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

/// An item.
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

proptest! {
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
