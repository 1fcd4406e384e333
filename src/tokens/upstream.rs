//! A token count that the upstream makes: the request for its tokenizer, and the number in its answer.
//!
//! Each server has its own endpoint (`Profile::tokenizer`). An endpoint that takes messages gets those of
//! the translated request, with the tools, so that it counts what a later request would cost; one that
//! takes text gets all text of the request, and the tokens of the chat template are estimated.

use crate::config::{Config, CountTokens, Protocol, Upstream};
use crate::dialect::profile::Tokenizer;
use crate::headers::Header;
use crate::json::{self, Reader, Writer};
use crate::model::Request;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::protocols::Translated;
use crate::protocols::chat::write_request as request;
use crate::protocols::chat::write_request::Aim;
use crate::protocols::chat::write_request::thinking::Marks;
use crate::protocols::messages::relay;
use crate::text::surrogates;

/// The members of a Chat Completions request that a chat template reads.
const TEMPLATE_MEMBERS: [&str; 6] =
    ["model", "messages", "tools", "chat_template_kwargs", CONTINUES, "add_generation_prompt"];

/// The members that SGLang makes a prompt of. It renders them as for a chat, and a final message that is to be
/// continued only with `add_generation_prompt: true`, where the chat has `false`.
const CHAT_MEMBERS: [&str; 7] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "reasoning_effort",
    "chat_template_kwargs",
    CONTINUES,
];

const CONTINUES: &str = "continue_final_message";

/// An answer is flat; a deeper one is not a count.
const DEPTH_MAX: u32 = 16;

/// A count to ask of an upstream.
#[derive(Debug)]
pub(crate) struct Question {
    /// Its name in the configuration.
    pub upstream: String,
    /// The request for its tokenizer.
    pub body: Vec<u8>,
    /// Tokens that the tokenizer is not shown.
    pub beside: u64,
    /// Older versions of this server refuse it.
    pub may_be_older: bool,
    /// What is known of the request.
    pub context: Box<RequestContext>,
}

/// Where an upstream counts; nothing where it cannot, or is not to be asked.
#[must_use]
pub(crate) fn path(config: &Config, upstream: &Upstream) -> Option<String> {
    if config.settings.count_tokens != CountTokens::Upstream {
        return None;
    }
    let base = &upstream.base_path;
    if upstream.protocol == Protocol::Anthropic {
        return Some(format!("{base}/messages/count_tokens"));
    }
    match upstream.profile.tokenizer {
        Tokenizer::None => None,
        Tokenizer::InputTokens => Some(format!("{base}/chat/completions/input_tokens")),
        // Not a part of OpenAI's API, so it stands beside `/v1`.
        Tokenizer::Messages | Tokenizer::Chat | Tokenizer::Prompt | Tokenizer::Content => {
            let root = base.strip_suffix("/v1").unwrap_or(base);
            Some(format!("{root}/tokenize"))
        }
    }
}

/// The question for the upstream that serves the model of a request; nothing where it cannot be asked.
#[must_use]
pub(crate) fn question(body: &str, config: &Config, headers: &[Header]) -> Option<Question> {
    if config.settings.count_tokens != CountTokens::Upstream {
        return None;
    }
    let body = surrogates::without_halves(body);
    // The client asks for a number: what is told of the request itself goes with its answer.
    let mut warnings = Warnings::new(false);
    let native = relay::translate(&body, config, &mut warnings).ok()?;
    let is_native = native.is_some();
    let translated = match native {
        Some(translated) => translated,
        None => request::translate(&body, config, headers, Aim::Count, &mut warnings).ok()?,
    };
    // What a guard answers goes to no upstream, which could count it.
    let Translated::Send { upstream, body: translated, mut context } = translated else {
        return None;
    };
    context.stream = false;
    if is_native {
        return Some(Question {
            upstream,
            body: translated,
            beside: 0,
            may_be_older: false,
            context,
        });
    }
    let tokenizer = config.upstreams.get(&upstream)?.profile.tokenizer;
    let translated = std::str::from_utf8(&translated).ok()?;
    let mut out = Vec::with_capacity(translated.len());
    let mut json = Writer::new(&mut out);
    let mut beside = 0;
    json.begin_object();
    match tokenizer {
        Tokenizer::None => return None,
        Tokenizer::Messages | Tokenizer::InputTokens => {
            copy(translated, &TEMPLATE_MEMBERS, &mut json)?;
        }
        Tokenizer::Chat => {
            copy(translated, &CHAT_MEMBERS, &mut json)?;
            if json::member(translated, CONTINUES) == Some("true") {
                json.key("add_generation_prompt").bool(true);
            }
        }
        Tokenizer::Prompt | Tokenizer::Content => {
            let depth_max = config.settings.depth_max;
            let mut request = Request::read(&body, depth_max, &mut warnings).ok()?;
            let (mut text, estimated) = super::text(&request);
            beside = estimated;
            let upstream = config.upstreams.get(&upstream)?;
            let marks = Marks {
                upstream: context.upstream_mark.clone(),
                model: context.model_mark.clone(),
            };
            request::sent_reasoning(&mut request, &upstream.profile, &marks, |reasoning| {
                text.push_str(reasoning);
                text.push('\n');
            });
            if tokenizer == Tokenizer::Prompt {
                copy(translated, &["model"], &mut json)?;
                json.key("prompt").text(&text);
            } else {
                json.key("content").text(&text);
            }
        }
    }
    json.end_object();
    let may_be_older = tokenizer == Tokenizer::Chat;
    Some(Question { upstream, body: out, beside, may_be_older, context })
}

/// Copies these members of an object.
fn copy(object: &str, names: &[&str], json: &mut Writer<'_>) -> Option<()> {
    // What is nested deeper than a reader can go has no exact count and is estimated.
    let mut reader = Reader::of(object);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        let key = key.decode();
        if names.contains(&&*key) {
            json.key_text(&key).raw(value);
        }
    }
    Some(())
}

/// The number in a tokenizer's answer: `input_tokens`, `count`, or as many as there are `tokens`.
/// Nothing where there is none. No request is empty, so a server that says 0 did not understand.
#[must_use]
pub(crate) fn count_of(body: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(std::str::from_utf8(body).ok()?, DEPTH_MAX);
    let (mut said, mut listed) = (None, None);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        match &*key.decode() {
            "input_tokens" | "count" => said = reader.u64().ok(),
            "tokens" => {
                let mut tokens = 0_u64;
                reader.begin_array().ok()?;
                while reader.next_element().ok()? {
                    reader.skip().ok()?;
                    tokens = tokens.saturating_add(1);
                }
                listed = Some(tokens);
            }
            _ => {
                reader.skip().ok()?;
            }
        }
    }
    reader.end().ok()?;
    said.or(listed).filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_tokenizers_are_read_and_nothing_else_is_a_count() {
        for (answer, expected) in [
            (r#"{"count":7,"max_model_len":8192,"tokens":[1,2],"token_strs":null}"#, Some(7)),
            (r#"{"tokens":[1,2,3]}"#, Some(3)),
            (r#"{"tokens":[{"id":1,"piece":"a"},{"id":2,"piece":[195]}]}"#, Some(2)),
            (r#"{"object":"response.input_tokens","input_tokens":12}"#, Some(12)),
            (r#"{"input_tokens":12,"context_management":{"original_input_tokens":20}}"#, Some(12)),
            (r#"{"tokens":[]}"#, None),
            (r#"{"count":-1}"#, None),
            (r#"{"count":"7"}"#, None),
            (r#"{"error":{"message":"no"}}"#, None),
            (r#"{"count":7"#, None),
            ("[7]", None),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(count_of(answer.as_bytes()), expected, "{answer}");
        }
        assert_eq!(count_of(b"{\"count\":7,\"x\":\"\xff\"}"), None);
    }
}
