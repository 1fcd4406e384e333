//! `/v1/models` in the format of the Messages API, written from the model map.
//!
//! With a model map, the upstream's list is not requested: clients may use other names, and Claude
//! Code waits three seconds at most. Without a model map, every name is sent to the upstream
//! unchanged, and the list is the upstream's.
//!
//! Claude Code shows only ids that contain `claude` or `anthropic`. So for Claude Code every other
//! name gets the prefix [`CLAUDE_CODE_ALIAS`], and the display name is the plain name.

use std::borrow::Cow;

use crate::config::{CLAUDE_CODE_ALIAS, Config, Upstream};
use crate::error::{Error, ErrorKind, Fault};
use crate::json::{self, Reader, Writer};
use crate::protocols::client::ListFor;
use crate::text::names::NameSet;
use crate::text::words;

/// Maximum number of listed models of an upstream: the rewritten list can be thirty times larger
/// than a list of short names.
const MODELS_MAX: usize = 1000;

/// Maximum length of a listed model's name, in bytes.
const ID_BYTES_MAX: usize = 256;

/// Member names of the context window's size at vLLM, `OpenRouter`, Groq, LM Studio and Mistral.
const WINDOW: [&str; 4] =
    ["max_model_len", "context_length", "context_window", "max_context_length"];

/// Member names of the context window in `meta` of llama.cpp: the size that is served, else the
/// size for which the model was trained.
const WINDOW_OF_META: [&str; 2] = ["n_ctx", "n_ctx_train"];

/// Member name of the answer's limit at Groq, and at `OpenRouter` in `top_provider`.
const OUTPUT: &str = "max_completion_tokens";

/// Start of the `user-agent` with which Claude Code requests the list of models. Claude Code sends
/// a different `user-agent` for messages.
const CLAUDE_CODE: &str = "claude-code/";

/// Returns the kind of client for a list of models, by the client's `user-agent`.
#[must_use]
pub(crate) fn list_for(user_agent: Option<&str>) -> ListFor {
    match user_agent {
        Some(agent) if agent.starts_with(CLAUDE_CODE) => ListFor::ClaudeCode,
        _ => ListFor::Anyone,
    }
}

/// Returns the id by which a model is listed.
fn listed_id(name: &str, list_for: ListFor) -> Cow<'_, str> {
    let is_shown = || words::has_any(&name.to_ascii_lowercase(), &["claude", "anthropic"]);
    match list_for {
        ListFor::ClaudeCode if !is_shown() => [CLAUDE_CODE_ALIAS, name].concat().into(),
        _ => name.into(),
    }
}

/// Entry in a list of models.
struct Listed<'n> {
    name: Cow<'n, str>,
    /// Number of tokens of the model's context window and of its answers; 0 if unknown.
    sizes: (u64, u64),
}

/// Rewrites an upstream's list of models, `{"data": [{"id": …}]}` or, at Together, a bare array.
/// Returns `None` if the body is not a list. Duplicate names are listed once.
#[must_use]
pub(crate) fn of_upstream(body: &[u8], list_for: ListFor) -> Option<Vec<u8>> {
    let body = std::str::from_utf8(body).ok()?;
    let is_bare = body.trim_start().starts_with('[');
    let mut reader = Reader::of(if is_bare { body } else { json::member(body, "data")? });
    let mut models = Vec::new();
    let mut known = NameSet::default();
    reader.begin_array().ok()?;
    while reader.next_element().ok()? {
        let model = reader.skip().ok()?;
        let Some(id) = json::member(model, "id").and_then(json::string) else { continue };
        let id = id.decode().into_owned();
        if id.is_empty() || id.len() > ID_BYTES_MAX || !known.add(id.clone()) {
            continue;
        }
        models.push(Listed { name: id.into(), sizes: told_sizes(model) });
        if models.len() >= MODELS_MAX {
            break;
        }
    }
    Some(page(&models, list_for))
}

/// Returns the maximum numbers of tokens of the context window and of an answer that an upstream
/// reports for a model.
fn told_sizes(model: &str) -> (u64, u64) {
    let number = |object: &str, name: &str| json::member(object, name)?.parse::<u64>().ok();
    let inside = |within: &str, name: &str| number(json::member(model, within)?, name);
    let window = WINDOW.iter().find_map(|name| number(model, name));
    let window = window.or_else(|| WINDOW_OF_META.iter().find_map(|name| inside("meta", name)));
    let output = number(model, OUTPUT).or_else(|| inside("top_provider", OUTPUT));
    (window.unwrap_or_default(), output.unwrap_or_default())
}

/// Lists the names of the model map, on one page. An entry with a `*` is listed by a name that
/// leads to its target: the model's name, or else the entry's prefix and the model's name.
#[must_use]
pub(crate) fn list(config: &Config, list_for: ListFor) -> Vec<u8> {
    let mut names: Vec<Cow<'_, str>> = config.models.names().map(Cow::from).collect();
    for (prefix, target) in config.models.wildcards() {
        let leads_there = |name: &str| {
            let is_target = |(upstream, model): (&Upstream, &str)| {
                model == target.model && [&upstream.name, ""].contains(&&*target.upstream)
            };
            config.route(name).is_some_and(is_target)
        };
        let model = Cow::from(&*target.model);
        let name = [Cow::from([prefix, &model].concat()), model];
        let name =
            name.into_iter().rev().find(|name| !target.model.is_empty() && leads_there(name));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    let models: Vec<_> =
        names.into_iter().map(|name| Listed { sizes: sizes(config, &name), name }).collect();
    page(&models, list_for)
}

fn page(models: &[Listed<'_>], list_for: ListFor) -> Vec<u8> {
    let mut body = Vec::new();
    let mut json = Writer::new(&mut body);
    json.begin_object();
    json.key("data").begin_array();
    for model in models {
        write(&mut json, &listed_id(&model.name, list_for), &model.name, model.sizes);
    }
    json.end_array();
    json.key("has_more").bool(false);
    for (key, model) in [("first_id", models.first()), ("last_id", models.last())] {
        json.key(key);
        match model {
            Some(model) => json.text(&listed_id(&model.name, list_for)),
            None => json.null(),
        };
    }
    json.end_object();
    body
}

/// Writes the description of one model, which may match an entry of the model map only by a prefix
/// or `*`. `id` is the model's id as written in the request's path, with URL escapes.
///
/// # Errors
/// No request for the model would have a route.
pub(crate) fn one(config: &Config, id: &str) -> Result<Vec<u8>, Error> {
    // SDKs escape the slashes and colons of an id in a path.
    let id = words::percent_decoded(id);
    if id.is_empty() || config.route(&id).is_none() {
        return Err(not_found(&id));
    }
    let mut body = Vec::new();
    write(&mut Writer::new(&mut body), &id, &id, sizes(config, &id));
    Ok(body)
}

/// Returns the error for a name that matches no entry of the model map. The message begins as in
/// Anthropic's API.
pub(crate) fn not_found(id: &str) -> Error {
    let message = format!("model: {id} (this gateway's \"models\" have no entry for it)");
    Error::new(Fault::Client, ErrorKind::NotFound, message)
}

/// Returns the maximum numbers of tokens of a prompt and of an answer from the configuration; 0 if
/// unknown.
fn sizes(config: &Config, id: &str) -> (u64, u64) {
    let target = config.models.target(id);
    let limit = config.route(id).map_or(0, |(upstream, _)| upstream.profile.max_tokens_max);
    let (input, output) =
        target.map_or((0, 0), |target| (target.max_input_tokens, target.max_tokens));
    (input, if output == 0 { limit } else { output })
}

fn write(json: &mut Writer<'_>, id: &str, name: &str, (input, output): (u64, u64)) {
    json.begin_object();
    json.kind("model");
    json.key("id").text(id);
    json.key("display_name").text(name);
    json.key("created_at").text("1970-01-01T00:00:00Z");
    json.key("lifecycle").text("active");
    json.key("line").null();
    for (key, tokens) in [("max_input_tokens", input), ("max_tokens", output)] {
        json.key(key);
        match tokens {
            0 => json.null(),
            known => json.u64(known),
        };
    }
    for unknown in ["capabilities", "deprecated_at", "retires_at"] {
        json.key(unknown).null();
    }
    json.end_object();
}

#[cfg(test)]
mod tests;
