//! Token counts for Chat Completions upstreams: estimated here, or requested from the server's
//! tokenizer endpoint (`Profile::tokenizer`).
//!
//! An endpoint that accepts messages receives the messages and tools of the translated request, so
//! that the count matches a later request. An endpoint that accepts text receives all text of the
//! request; the tokens of the chat template are then estimated.

use super::write_request::thinking::TurnReasoning;
use super::write_request::write_request;
use crate::carry::marks::Marks;
use crate::config::Upstream;
use crate::error::Error;
use crate::history::Recipient;
use crate::json::{self, Writer};
use crate::model::Request;
use crate::model::own_tool::ToolsRunHere;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::profile::{Profile, Tokenizer};
use crate::protocols::clearing;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::{ClientRequest, RequestTexts, Routed};
use crate::protocols::count;
use crate::protocols::upstream::{CountRequest, Translated};
use crate::tokens;
use crate::tokens::counted::TokenCount;

/// Members of a Chat Completions request that a server's chat template reads.
const TEMPLATE_MEMBERS: [&str; 6] =
    ["model", "messages", "tools", "chat_template_kwargs", CONTINUES, "add_generation_prompt"];

/// Members of a Chat Completions request from which SGLang renders the prompt.
///
/// SGLang renders the prompt as for a chat request, with one exception: to continue a final
/// message, SGLang needs `add_generation_prompt: true`, while a chat request has `false`.
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

/// Returns the path of an upstream's tokenizer, or `None` if the upstream cannot count.
pub(super) fn path(upstream: &Upstream) -> Option<String> {
    let base = &upstream.base_path;
    match upstream.profile.tokenizer {
        Tokenizer::None => None,
        Tokenizer::InputTokens => Some(format!("{base}/chat/completions/input_tokens")),
        // The tokenizer's path is not a part of OpenAI's API, so the path stands beside `/v1`.
        Tokenizer::Messages | Tokenizer::Chat | Tokenizer::Prompt | Tokenizer::Content => {
            let root = base.strip_suffix("/v1").unwrap_or(base);
            Some(format!("{root}/tokenize"))
        }
    }
}

/// Estimates the input tokens of a request.
pub(super) fn estimate(client: &ClientRequest<'_>) -> Result<TokenCount, Error> {
    count::estimate(client, |request, upstream, marks, estimated| {
        sent_reasoning(request, &upstream.profile, marks, |text| estimated.add(text));
    })
}

/// Writes the token-counting request for the upstream that serves the request's model.
pub(super) fn write_count(client: &ClientRequest<'_>) -> Option<CountRequest> {
    // Warnings are discarded: the client gets warnings with the answer to the request itself.
    let mut warnings = Warnings::new(false);
    let translated = write_request(client, Purpose::Count, &[], &mut warnings).ok()?;
    // A request that a guard answers is sent to no upstream, so no upstream can count the tokens.
    let Translated::Send { upstream, body: translated, mut context } = translated else {
        return None;
    };
    context.ask_for_whole();
    let profile = &client.config.upstreams.get(&upstream)?.profile;
    let translated = std::str::from_utf8(&translated).ok()?;
    let mut out = Vec::with_capacity(translated.len());
    let mut json = Writer::new(&mut out);
    let mut beside = 0;
    json.begin_object();
    match profile.tokenizer {
        Tokenizer::None => return None,
        Tokenizer::Messages | Tokenizer::InputTokens => {
            count::copy(translated, &TEMPLATE_MEMBERS, &mut json)?;
        }
        Tokenizer::Chat => {
            count::copy(translated, &CHAT_MEMBERS, &mut json)?;
            if json::member(translated, CONTINUES) == Some("true") {
                json.key("add_generation_prompt").bool(true);
            }
        }
        Tokenizer::Prompt | Tokenizer::Content => {
            let (text, estimated) = text_of(client, profile, &context, &mut warnings)?;
            beside = estimated;
            if profile.tokenizer == Tokenizer::Prompt {
                count::copy(translated, &["model"], &mut json)?;
                json.key("prompt").text(&text);
            } else {
                json.key("content").text(&text);
            }
        }
    }
    json.end_object();
    let may_be_older = profile.tokenizer == Tokenizer::Chat;
    Some(CountRequest { upstream, body: out, beside, may_be_older, context })
}

/// Returns all text of a request, and an estimate of the tokens that are not visible in the text.
fn text_of(
    client: &ClientRequest<'_>,
    profile: &Profile,
    context: &RequestContext,
    warnings: &mut Warnings,
) -> Option<(String, u64)> {
    let mut texts = RequestTexts::default();
    let Routed { mut request, .. } = client.read(Purpose::Count, &mut texts, warnings).ok()?;
    clearing::clear(&mut request, profile);
    let (mut text, estimated) = tokens::text(&request);
    let marks = Marks {
        upstream: context.thinking.upstream_mark.clone(),
        model: context.thinking.model_mark.clone(),
    };
    sent_reasoning(&mut request, profile, &marks, |reasoning| {
        text.push_str(reasoning);
        text.push('\n');
    });
    Some((text, estimated))
}

/// Passes to `each` the reasoning of earlier turns that is sent back to the upstream identified by
/// `marks`. The messages are removed from the request.
fn sent_reasoning(
    request: &mut Request<'_>,
    profile: &Profile,
    marks: &Marks,
    mut each: impl FnMut(&str),
) {
    let runs = ToolsRunHere::default();
    let recipient = Recipient { profile, marks, keeps_ids: false, takes_items: false, runs };
    count::sent_reasoning(request, recipient, |blocks| {
        each(&TurnReasoning::of(blocks).sent_text(profile));
    });
}
