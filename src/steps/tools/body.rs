//! Request of the next round: the client's request with the answer up to now as its last message.
//!
//! The client sends the same blocks back in its next request, so both requests become the same
//! conversation for the upstream, and its prompt cache stays valid.

use std::borrow::Cow;

use crate::json;
use crate::text::words;

/// Changes of a request for the next round of its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NextRequest<'c> {
    /// Blocks of the assistant's message that is added, as JSON between the brackets.
    pub(super) blocks: &'c [u8],
    /// True if the last message is the beginning of the same answer, which the blocks continue.
    pub(super) is_begun: bool,
    /// New value of `tool_choice`, as JSON.
    pub(super) tool_choice: Option<&'c str>,
    /// True if `tool_choice` is also written if the request has none.
    pub(super) needs_choice: bool,
    /// Number of output tokens that are left for the answer.
    pub(super) max_tokens: Option<u64>,
}

impl NextRequest<'_> {
    /// Returns the client's request with the changes. The members keep their order.
    pub(super) fn written(&self, body: &str) -> Vec<u8> {
        let blocks = words::utf8(self.blocks).unwrap_or_default();
        let more = body.len().saturating_add(blocks.len()).saturating_add(256);
        let mut out = Vec::with_capacity(more);
        let mut has_choice = false;
        out.push(b'{');
        for (at, (key, value)) in json::members(body).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(key.raw().as_bytes());
            out.extend_from_slice(b"\":");
            let max_tokens = self.max_tokens.filter(|_| key == "max_tokens");
            if key == "messages" && !blocks.is_empty() {
                self.push_messages(value, blocks, &mut out);
            } else if let Some(choice) = self.tool_choice.filter(|_| key == "tool_choice") {
                has_choice = true;
                out.extend_from_slice(choice.as_bytes());
            } else if let Some(max_tokens) = max_tokens {
                json::push_u64(&mut out, max_tokens);
            } else if key == "thinking" {
                out.extend_from_slice(self.thinking(value).as_bytes());
            } else {
                out.extend_from_slice(value.as_bytes());
            }
        }
        if let Some(choice) = self.tool_choice.filter(|_| self.needs_choice && !has_choice) {
            out.extend_from_slice(b",\"tool_choice\":");
            out.extend_from_slice(choice.as_bytes());
        }
        out.push(b'}');
        out
    }

    /// Returns the member `thinking` with a budget below the number of tokens that are left, as the
    /// Messages API demands.
    fn thinking<'t>(&self, value: &'t str) -> Cow<'t, str> {
        let budget = json::member(value, "budget_tokens").and_then(|it| it.parse::<u64>().ok());
        let (Some(budget), Some(left)) = (budget, self.max_tokens) else { return value.into() };
        if budget < left {
            return value.into();
        }
        let half = left / 2;
        if half < BUDGET_MIN {
            return r#"{"type":"disabled"}"#.into();
        }
        let written = |json: &mut json::Writer<'_>| {
            json.begin_object();
            for (key, value) in json::members(value) {
                if key == "budget_tokens" {
                    json.key("budget_tokens").u64(half);
                } else {
                    json.key_str(key).raw(value);
                }
            }
            json.end_object();
        };
        json::written(written).into()
    }

    /// Appends the array of messages with the blocks as a message of the assistant, or at the end
    /// of the last message.
    fn push_messages(&self, messages: &str, blocks: &str, out: &mut Vec<u8>) {
        let inside = messages.trim_end().strip_suffix(']').unwrap_or(messages);
        // The last message was written here, without white space.
        if let Some(begun) = inside.strip_suffix("]}").filter(|_| self.is_begun) {
            out.extend_from_slice(begun.as_bytes());
            out.push(b',');
            out.extend_from_slice(blocks.as_bytes());
            return out.extend_from_slice(b"]}]");
        }
        push_message(inside, blocks, out);
    }
}

/// Smallest budget for thinking that the Messages API accepts.
const BUDGET_MIN: u64 = 1024;

/// Appends the messages `inside` of an array, a message of the assistant, and the array's end.
fn push_message(inside: &str, blocks: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(inside.as_bytes());
    if !inside.trim_end().ends_with('[') {
        out.push(b',');
    }
    out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":[");
    out.extend_from_slice(blocks.as_bytes());
    out.extend_from_slice(b"]}]");
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{ "model" : "m", "messages": [{"role":"user","content":"[]"}] ,"max_tokens":100,"tool_choice":{"type":"any"}}"#;

    fn written(request: NextRequest<'_>) -> String {
        String::from_utf8(request.written(BODY)).unwrap()
    }

    #[test]
    fn the_blocks_of_the_answer_come_last_and_all_else_stays() {
        let next = NextRequest { blocks: br#"{"type":"text","text":"a"}"#, ..Default::default() };
        assert_eq!(
            written(next),
            r#"{"model":"m","messages":[{"role":"user","content":"[]"},{"role":"assistant","content":[{"type":"text","text":"a"}]}],"max_tokens":100,"tool_choice":{"type":"any"}}"#
        );
    }

    #[test]
    fn choice_and_tokens_are_replaced_where_they_stand() {
        let next = NextRequest {
            tool_choice: Some(r#"{"type":"auto"}"#),
            max_tokens: Some(40),
            ..Default::default()
        };
        assert_eq!(
            written(next),
            r#"{"model":"m","messages":[{"role":"user","content":"[]"}],"max_tokens":40,"tool_choice":{"type":"auto"}}"#
        );
        let none = NextRequest {
            tool_choice: Some(r#"{"type":"none"}"#),
            needs_choice: true,
            ..Default::default()
        };
        let body = r#"{"messages":[]}"#;
        let out = String::from_utf8(none.written(body)).unwrap();
        assert_eq!(out, r#"{"messages":[],"tool_choice":{"type":"none"}}"#);
    }
}
