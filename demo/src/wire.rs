//! Formatting of a plan for Chat Completions: one JSON body, or the chunks of a stream.

use serde_json::{Map, Value, json};

use crate::fault;
use crate::pieces::tokens;
use crate::plan::{self, CREATED, Call, Plan};

/// Values needed to format an answer, streamed or not.
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) prompt_tokens: usize,
    /// True if the request has `stream_options.include_usage`.
    pub(crate) include_usage: bool,
}

impl fault::FaultForm for Head {
    fn body(&self, plan: &Plan) -> String {
        completion(plan, self)
    }

    fn events(&self, plan: &Plan) -> Vec<String> {
        chunks(plan, self).iter().map(|chunk| format!("data: {chunk}")).collect()
    }

    fn failed_body(&self) -> String {
        fault::overloaded()
    }

    fn failed_events(&self, _sent: usize) -> Vec<String> {
        vec![format!("data: {}", fault::overloaded())]
    }
}

/// Returns the body of an answer that is not streamed.
fn completion(plan: &Plan, head: &Head) -> String {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let content = if plan.text.is_empty() && (!plan.calls.is_empty() || plan.refusal.is_some()) {
        Value::Null
    } else {
        plan.text.as_str().into()
    };
    message.insert("content".to_owned(), content);
    message.insert("refusal".to_owned(), json!(plan.refusal));
    if let Some((field, reasoning)) = &plan.reasoning {
        message.insert((*field).to_owned(), reasoning.as_str().into());
    }
    if !plan.calls.is_empty() {
        let calls: Vec<Value> = plan.calls.iter().map(whole_call).collect();
        message.insert("tool_calls".to_owned(), calls.into());
    }
    let mut body = json!({
        "id": head.id, "object": "chat.completion", "created": CREATED, "model": head.model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": plan.finish
        }],
        "system_fingerprint": "fp_demo"
    });
    if let (false, Some(body)) = (plan.triggers.no_usage, body.as_object_mut()) {
        body.insert("usage".to_owned(), usage(plan, head));
    }
    body.to_string()
}

fn whole_call(call: &Call) -> Value {
    let (id, name, arguments) = (&call.id, &call.name, &call.arguments);
    if call.custom {
        return json!({"id": id, "type": "custom", "custom": {"name": name, "input": arguments}});
    }
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Returns the `data` of each event of a streamed answer, including `[DONE]`.
fn chunks(plan: &Plan, head: &Head) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({
            "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish
        });
        outer(head, &json!([choice]), head.include_usage.then_some(Value::Null))
    };
    let mut chunks =
        vec![chunk(json!({"role": "assistant", "content": "", "refusal": null}), None)];
    if let Some((field, reasoning)) = &plan.reasoning {
        let deltas = tokens(reasoning);
        chunks.extend(deltas.iter().map(|token| chunk(json!({ *field: token }), None)));
    }
    chunks.extend(tokens(&plan.text).iter().map(|token| chunk(json!({"content": token}), None)));
    if let Some(refusal) = &plan.refusal {
        chunks.extend(tokens(refusal).iter().map(|token| chunk(json!({"refusal": token}), None)));
    }
    chunks.extend(
        call_deltas(plan).into_iter().map(|delta| chunk(json!({ "tool_calls": [delta] }), None)),
    );
    chunks.push(chunk(json!({}), Some(plan.finish)));
    if head.include_usage && !plan.triggers.no_usage {
        chunks.push(outer(head, &json!([]), Some(usage(plan, head))));
    }
    chunks.push("[DONE]".to_owned());
    chunks
}

fn outer(head: &Head, choices: &Value, usage: Option<Value>) -> String {
    let mut chunk = json!({
        "id": head.id, "object": "chat.completion.chunk", "created": CREATED, "model": head.model,
        "system_fingerprint": "fp_demo", "choices": choices
    });
    if let (Some(usage), Some(chunk)) = (usage, chunk.as_object_mut()) {
        chunk.insert("usage".to_owned(), usage);
    }
    chunk.to_string()
}

/// Returns the `tool_calls` entries of a stream, one for each chunk. A call begins with its name
/// and no arguments; the arguments follow in parts. Interleaved calls alternate.
fn call_deltas(plan: &Plan) -> Vec<Value> {
    let per_call = plan.calls.iter().enumerate().map(|(index, call)| {
        let (id, name) = (&call.id, &call.name);
        let (kind, text) =
            if call.custom { ("custom", "input") } else { ("function", "arguments") };
        let open = json!({"index": index, "id": id, "type": kind, kind: {"name": name, text: ""}});
        let bits = tokens(&call.arguments);
        let bits = bits.iter().map(|bit| json!({"index": index, kind: {text: bit}}));
        std::iter::once(open).chain(bits).collect::<Vec<_>>()
    });
    let per_call: Vec<_> = per_call.collect();
    if plan.triggers.interleave {
        plan::in_turn(per_call)
    } else {
        per_call.into_iter().flatten().collect()
    }
}

/// Returns the token counts of an answer: in total, and of its reasoning.
pub(crate) fn counts(plan: &Plan) -> (usize, usize) {
    let reasoning = plan.reasoning.as_ref().map_or(0, |(_, text)| tokens(text).len());
    let calls = plan.calls.iter().map(|call| tokens(&call.arguments).len().saturating_add(4)).sum();
    let refusal = plan.refusal.as_deref().map_or(0, |text| tokens(text).len());
    let output: usize = [reasoning, tokens(&plan.text).len(), calls, refusal].iter().sum();
    (output, reasoning)
}

fn usage(plan: &Plan, head: &Head) -> Value {
    let (output, reasoning) = counts(plan);
    let total = head.prompt_tokens.saturating_add(output);
    json!({
        "prompt_tokens": head.prompt_tokens, "completion_tokens": output, "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_text_in_order() {
        for text in [
            "",
            "Hello there, wonderfully long word.",
            "日本語のとても長い文章です",
            &"x ".repeat(90_000),
        ] {
            let tokens = tokens(text);
            assert_eq!(tokens.concat(), text);
            assert!(tokens.iter().all(|token| !token.is_empty()));
            assert!(tokens.len() <= 4400, "{}", tokens.len());
        }
        assert_eq!(tokens("Hello there, you."), ["Hello", " there,", " you."]);
    }
}
