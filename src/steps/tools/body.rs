//! Request of the next round: the client's request with the answer up to now as its last message.
//!
//! The client sends the same blocks back in its next request, so both requests become the same
//! conversation for the upstream, and its prompt cache stays valid.

use std::borrow::Cow;
use std::ops::Range;

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
        let mut out = self.buffer(body);
        let mut has_choice = false;
        out.push(b'{');
        for (at, (key, value)) in json::members(body).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(key.raw().as_bytes());
            out.extend_from_slice(b"\":");
            let key = key.decode();
            has_choice |= key == "tool_choice";
            self.push_value(&key, value, &mut out);
        }
        self.push_end(has_choice, &mut out);
        out
    }

    /// Returns the client's request with the changes of the members at these places, which are in
    /// the order of the body. Returns `None` if the body has no such places.
    pub(super) fn written_at(
        &self,
        body: &str,
        places: &[(&'static str, Range<usize>)],
    ) -> Option<Vec<u8>> {
        let mut out = self.buffer(body);
        let mut copied = 0;
        for (name, place) in places {
            out.extend_from_slice(body.get(copied..place.start)?.as_bytes());
            self.push_value(name, body.get(place.clone())?, &mut out);
            copied = place.end;
        }
        let rest = body.get(copied..)?.trim_end().strip_suffix('}')?;
        out.extend_from_slice(rest.as_bytes());
        self.push_end(places.iter().any(|(name, _)| *name == "tool_choice"), &mut out);
        Some(out)
    }

    /// Returns an empty buffer with room for the request.
    fn buffer(&self, body: &str) -> Vec<u8> {
        let more = body.len().saturating_add(self.blocks.len()).saturating_add(256);
        Vec::with_capacity(more)
    }

    /// Appends the value of a member with the changes.
    fn push_value(&self, key: &str, value: &str, out: &mut Vec<u8>) {
        let blocks = words::utf8(self.blocks).unwrap_or_default();
        match (key, self.tool_choice, self.max_tokens) {
            ("messages", ..) if !blocks.is_empty() => self.push_messages(value, blocks, out),
            ("tool_choice", Some(choice), _) => out.extend_from_slice(choice.as_bytes()),
            ("max_tokens", _, Some(max_tokens)) => json::push_u64(out, max_tokens),
            ("thinking", ..) => out.extend_from_slice(self.thinking(value).as_bytes()),
            _ => out.extend_from_slice(value.as_bytes()),
        }
    }

    /// Appends the end of the request, with `tool_choice` if it is needed and was not written.
    fn push_end(&self, has_choice: bool, out: &mut Vec<u8>) {
        if let Some(choice) = self.tool_choice.filter(|_| self.needs_choice && !has_choice) {
            out.extend_from_slice(b",\"tool_choice\":");
            out.extend_from_slice(choice.as_bytes());
        }
        out.push(b'}');
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
    use crate::model::Request;
    use crate::observe::warning::Warnings;

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
    fn a_body_is_changed_at_its_places_as_it_is_without_them() {
        let thinking = r#","thinking":{"type":"enabled","budget_tokens":5000}"#;
        let bodies = [
            BODY.to_owned(),
            format!(
                r#"{{"model":"m","max_tokens":9000,"messages":[{{"role":"user","content":"a"}}],"tools":[]{thinking}}}"#
            ),
            r#"{"messages":[{"role":"user","content":"a"}],"max_tokens":9,"model":"m"}"#.to_owned(),
        ];
        let changes = [
            NextRequest { blocks: br#"{"type":"text","text":"a"}"#, ..Default::default() },
            NextRequest { tool_choice: Some("{}"), max_tokens: Some(3000), ..Default::default() },
            NextRequest { tool_choice: Some("{}"), needs_choice: true, ..Default::default() },
        ];
        for body in &bodies {
            let request = Request::read(body, &mut Warnings::new(false)).unwrap();
            let places = request.places.in_order(body).unwrap();
            for next in changes {
                let members = |written: Vec<u8>| {
                    let written = String::from_utf8(written).unwrap();
                    let all = json::members(&written);
                    let all = all.map(|(key, value)| (key.decode().into_owned(), value.to_owned()));
                    all.collect::<Vec<_>>()
                };
                let changed = members(next.written_at(body, &places).unwrap());
                assert_eq!(changed, members(next.written(body)), "{next:?} of {body}");
            }
        }
    }

    #[test]
    fn places_of_another_body_are_not_used() {
        let twice = r#"{"model":"m","max_tokens":9,"max_tokens":9,"messages":[]}"#;
        let request = Request::read(twice, &mut Warnings::new(false)).unwrap();
        assert_eq!(request.places.in_order(twice), None);
        let request = Request::read(BODY, &mut Warnings::new(false)).unwrap();
        assert!(request.places.in_order(BODY).is_some());
        assert_eq!(request.places.in_order(BODY.trim_end_matches('}')), None);
        assert_eq!(request.places.in_order(&" ".repeat(BODY.len())), None);
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
