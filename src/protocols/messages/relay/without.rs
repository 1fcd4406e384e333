//! Rewriting of a request's body without the parts that the upstream refused, except for content of
//! its messages.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::carry::tool_id::Outgoing;
use crate::error::Error;
use crate::error::Parameter::{Sampling, ServiceTier, Thinking, ThinkingSwitch, TopK, User};
use crate::json::{self, rewrite_array, rewrite_object};
use crate::observe::warning::Warnings;
use crate::profile::IdStyle;
use crate::profile::effort;
use crate::text::words;
use crate::upstream_error::refused::{Refused, WindowSpace};

/// Members with contents of the client's own, such as schemas and inputs of calls, in which nothing
/// is left out.
const OF_CLIENTS: [&str; 3] = ["input", "input_schema", "input_examples"];

/// Result of rewriting a JSON member: the new value, or `None` to remove the member.
pub(super) type Rewritten<'b> = Result<Option<Cow<'b, str>>, Error>;

/// Rewriter of a request body, for one part that the upstream refused. The body is known to be
/// valid JSON.
pub(crate) struct Without<'r> {
    pub(crate) refused: &'r Refused,
    pub(crate) warnings: &'r mut Warnings,
}

/// Rewrites the member `name` of an object; the member is removed if `rewrite` returns `None`.
pub(super) fn with_member<'b>(
    object: &'b str,
    name: &str,
    mut rewrite: impl FnMut(&'b str) -> Rewritten<'b>,
) -> Result<Cow<'b, str>, Error> {
    rewrite_object(object, |key, value| match key == name {
        true => rewrite(value),
        false => Ok(Some(value.into())),
    })
}

/// Returns the JSON body without the member `name`.
pub(super) fn without_member<'b>(body: &'b str, name: &str) -> Result<Cow<'b, str>, Error> {
    with_member(body, name, |_| Ok(None))
}

/// Returns true if the request belongs to a server-side thread, whose server keeps tools and calls.
pub(super) fn is_of_thread(body: &str) -> bool {
    !matches!(json::member(body, "thread"), None | Some("null"))
}

/// Rewrites each block in the content of a message or a tool result with the function `block`.
pub(super) fn in_content<'b>(
    message: &'b str,
    block: &mut impl FnMut(&'b str) -> Rewritten<'b>,
) -> Rewritten<'b> {
    // A `content` that is a string has no elements, and stays unchanged.
    with_member(message, "content", |content| rewrite_array(content, &mut *block).map(Some))
        .map(Some)
}

impl Without<'_> {
    /// Returns the request body without the member that the upstream refused. The body stays
    /// unchanged if it lacks the member, or if the upstream would refuse the remaining body too.
    ///
    /// # Errors
    /// Strict mode allows no part to be left out.
    pub(crate) fn request<'b>(&mut self, body: &'b str) -> Result<Cow<'b, str>, Error> {
        if let Refused::MaxTokens(most) | Refused::Space(WindowSpace { answer: most, .. }) =
            self.refused
            && most / 2 < BUDGET_LEAST
            && json::member(body, "thinking").and_then(budget).is_some_and(|it| it > most / 2)
        {
            return Ok(body.into());
        }
        rewrite_object(body, |key, value| self.member(key, value))
    }

    /// Returns the request body in the form that the upstream accepts. Guards and the reading of
    /// the answer use the client's form, so this rewriting comes after the guards.
    ///
    /// # Errors
    /// Strict mode allows no part to be left out.
    pub(crate) fn form<'b>(&mut self, body: &'b str) -> Result<Cow<'b, str>, Error> {
        match self.refused {
            Refused::Streaming(stream) => other_kind(body, *stream),
            Refused::ForcedTool => self.unforced(body),
            Refused::ReasoningInEachTurn => with_member(body, "messages", |messages| {
                rewrite_array(messages, with_thinking).map(Some)
            }),
            // The server of a thread identifies calls by their own ids, which must stay.
            Refused::Ids if !is_of_thread(body) => {
                with_member(body, "messages", |messages| with_short_ids(messages).map(Some))
            }
            Refused::Extensions | Refused::CacheMarks => {
                let members = self.refused.members().collect();
                self.value_without(body, "", &members)
            }
            _ => Ok(body.into()),
        }
    }

    /// Returns a JSON value without the members `left_out`, given as pairs of the containing
    /// member's name (empty for any) and the member's own name. `within` is the name of the member
    /// that contains `value`.
    fn value_without<'b>(
        &mut self,
        value: &'b str,
        within: &str,
        left_out: &BTreeSet<(&str, &str)>,
    ) -> Result<Cow<'b, str>, Error> {
        match value.trim_start().as_bytes().first() {
            Some(b'{') => rewrite_object(value, |key, value| {
                if left_out.contains(&("", key)) || left_out.contains(&(within, key)) {
                    self.warnings.dropped(key)?;
                    return Rewritten::Ok(None);
                }
                if OF_CLIENTS.contains(&key) {
                    return Ok(Some(value.into()));
                }
                self.value_without(value, key, left_out).map(Some)
            }),
            Some(b'[') => rewrite_array(value, |element| {
                self.value_without(element, within, left_out).map(Some)
            }),
            _ => Ok(value.into()),
        }
    }

    /// Changes a forced `tool_choice` to `auto`. If one tool was forced, the other tools are
    /// removed, unless the conversation depends on them: it has references to tools or signed
    /// thinking of Claude.
    fn unforced<'b>(&mut self, body: &'b str) -> Result<Cow<'b, str>, Error> {
        let choice = json::member(body, "tool_choice").unwrap_or_default();
        let named = match text(choice, "type").as_deref() {
            Some("any") => None,
            Some("tool") => text(choice, "name"),
            _ => return Ok(body.into()),
        };
        self.warnings.dropped("tool_choice")?;
        let model = text(body, "model").unwrap_or_default();
        let is_bound = words::has(body, "\"tool_reference\"")
            || words::has(&model, "claude") && words::has(body, "\"signature\"");
        let is_offered = |tool: &str| text(tool, "name").is_none_or(|name| Some(name) == named);
        let tools = json::member(body, "tools").unwrap_or_default();
        let is_only = !is_bound && named.is_some() && json::elements(tools).any(is_offered);
        rewrite_object(body, |key, value| match key {
            "tool_choice" => rewrite_object(value, |key, value| match key {
                "type" => Ok(Some("\"auto\"".into())),
                _ => Ok((key != "name").then(|| value.into())),
            })
            .map(Some),
            "tools" if is_only => {
                rewrite_array(value, |tool| Ok(is_offered(tool).then(|| tool.into()))).map(Some)
            }
            _ => Ok(Some(value.into())),
        })
    }

    fn member<'b>(&mut self, key: &str, value: &'b str) -> Rewritten<'b> {
        match (self.refused, key) {
            (
                Refused::MaxTokens(most) | Refused::Space(WindowSpace { answer: most, .. }),
                "max_tokens",
            ) => {
                return Ok(Some(most.to_string().into()));
            }
            // Half of the tokens is left for the answer's text.
            (
                Refused::MaxTokens(most) | Refused::Space(WindowSpace { answer: most, .. }),
                "thinking",
            ) => {
                return lowered(value, most / 2);
            }
            (Refused::Effort(values), "output_config") => {
                let effort = json::member(value, "effort").and_then(json::string);
                let nearest = effort.and_then(|word| effort::nearest_of(word, values));
                if effort.is_some() && nearest.is_none() {
                    self.warnings.dropped("output_config.effort")?;
                }
                let rewritten = with_member(value, "effort", |_| {
                    Ok(nearest.map(|effort| json::quoted(effort.word()).into()))
                })?;
                return Ok((rewritten != "{}").then_some(rewritten));
            }
            // Clearing edits for thinking have no effect without thinking, and are refused.
            (Refused::Parameter(Thinking | ThinkingSwitch), "context_management") => {
                let without = without_clearing(value)?;
                if without.as_deref() != Some(value) {
                    self.warnings.dropped(key)?;
                }
                return Ok(without);
            }
            (Refused::Parameter(Thinking | ThinkingSwitch), "thinking")
            | (Refused::Parameter(Sampling), "temperature" | "top_p")
            | (Refused::Parameter(TopK), "top_k")
            | (Refused::Parameter(User), "metadata")
            | (Refused::Parameter(ServiceTier), "service_tier") => self.warnings.dropped(key)?,
            _ => return Ok(Some(value.into())),
        }
        Ok(None)
    }
}

/// Minimum thinking budget that the Messages API accepts, in tokens.
const BUDGET_LEAST: u64 = 1024;

fn budget(thinking: &str) -> Option<u64> {
    json::member(thinking, "budget_tokens")?.parse().ok()
}

/// Returns the decoded value of a string member of a JSON object.
pub(super) fn text<'b>(object: &'b str, name: &str) -> Option<Cow<'b, str>> {
    json::member(object, name).and_then(json::string).map(|text| text.decode())
}

/// Rewrites a request body to ask for a whole answer instead of a stream if `stream` is true, else
/// for a stream instead of a whole answer.
fn other_kind(body: &str, stream: bool) -> Result<Cow<'_, str>, Error> {
    if (json::member(body, "stream") == Some("true")) != stream {
        return Ok(body.into());
    }
    let whole = without_member(body, "stream")?;
    if stream {
        return Ok(whole);
    }
    let members = whole.trim_start().strip_prefix('{').unwrap_or_default();
    Ok(format!("{{\"stream\":true,{members}").into())
}

/// Replaces the ids of calls and results with ids of nine letters and digits.
fn with_short_ids(messages: &str) -> Result<Cow<'_, str>, Error> {
    // The whole history counts as one message, because this API accepts no duplicate ids.
    let mut ids = Outgoing::new(IdStyle::Mistral9, 0);
    let mut block = |block| {
        let name = match text(block, "type").as_deref() {
            Some("tool_use") => "id",
            Some("tool_result") => "tool_use_id",
            _ => return Ok(Some(block.into())),
        };
        with_member(block, name, |value| {
            let id = json::string(value).map(|id| json::quoted(ids.id(id.decode(), "")));
            Ok(Some(id.map_or_else(|| value.into(), Cow::Owned)))
        })
        .map(Some)
    };
    rewrite_array(messages, |message| in_content(message, &mut block))
}

/// Adds a blank thinking block to an assistant message without thinking.
fn with_thinking(message: &str) -> Rewritten<'_> {
    const BLANK: &str = r#"{"type":"thinking","thinking":" ","signature":""}"#;
    let content = json::member(message, "content").unwrap_or_default();
    let thinks = json::elements(content).any(|block| {
        matches!(text(block, "type").as_deref(), Some("thinking" | "redacted_thinking"))
    });
    if thinks || text(message, "role").as_deref() != Some("assistant") {
        return Ok(Some(message.into()));
    }
    let blocks = match json::string(content) {
        Some(_) => format!("[{BLANK},{{\"type\":\"text\",\"text\":{content}}}]"),
        None if json::elements(content).next().is_none() => return Ok(Some(message.into())),
        None => format!("[{BLANK},{}", content.trim_start().strip_prefix('[').unwrap_or_default()),
    };
    with_member(message, "content", |_| Ok(Some(blocks.clone().into()))).map(Some)
}

/// Lowers `budget_tokens` of a `thinking` object to at most `most` tokens.
fn lowered(thinking: &str, most: u64) -> Rewritten<'_> {
    let is_above = budget(thinking).is_some_and(|budget| budget > most);
    let lower = |value| Ok(Some(if is_above { most.to_string().into() } else { Cow::from(value) }));
    with_member(thinking, "budget_tokens", lower).map(Some)
}

/// Removes the `clear_thinking` edits from a `context_management` object.
fn without_clearing(management: &str) -> Rewritten<'_> {
    let clears = |edit: &&str| {
        let kind = json::member(edit, "type").and_then(json::string);
        kind.is_some_and(|kind| words::begins(kind.raw(), "clear_thinking"))
    };
    let edits = json::member(management, "edits").unwrap_or("[]");
    let kept = rewrite_array(edits, |edit| Rewritten::Ok((!clears(&edit)).then(|| edit.into())))?;
    let rewritten = with_member(management, "edits", |_| Ok((kept != "[]").then(|| kept.clone())))?;
    Ok((rewritten != "{}").then_some(rewritten))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(body: &str, marks: bool) -> String {
        let refused = &if marks { Refused::CacheMarks } else { Refused::Extensions };
        let warnings = &mut Warnings::new(false);
        Without { refused, warnings }.form(body).unwrap().into_owned()
    }

    #[test]
    fn extensions_are_left_out_and_what_clients_wrote_stays() {
        let body = r#" {"context_management": {"edits":[]}, "system":[{"text":"a","cache_control":{"type":"ephemeral","scope":"org","ttl":"1h"}}],
            "tools":[{"name":"scope","input_schema":{"caller":1},"defer_loading":true,"input_examples":[{"caller":1}]}],
            "messages":[{"content":[{"input":{"context_management":3},"caller":{"type":"direct"}},{"scope":4}]}]}"#;
        let expected = r#"{"system":[{"text":"a","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"scope","input_schema":{"caller":1}}],"messages":[{"content":[{"input":{"context_management":3}},{"scope":4}]}]}"#;
        assert_eq!(left(body, false), expected);
        assert!(!left(body, true).contains("cache_control"));
        let other = r#"{"messages": [ {"content":"cache_control"} ] , "x":1.0}"#;
        assert_eq!((left(other, false), left(other, true)), (other.to_owned(), other.to_owned()));
    }

    #[test]
    fn a_body_that_is_nested_as_deeply_as_can_be_is_read() {
        let nested = |inside: &str| format!("{}{inside}{}", "{\"a\":[".repeat(60), "]}".repeat(60));
        assert_eq!(left(&nested(r#"{"caller":1}"#), false), nested("{}"));
    }
}
