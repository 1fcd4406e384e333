//! Client requests that need no model, and that Creole answers itself if configured.

use super::client_request::ClientRequest;
use crate::StopReason;
use crate::config::LocalAnswer;
use crate::json::{self, Writer};
use crate::model::{Block, Request, Role};
use crate::observe::warning::Warnings;

/// Maximum length of a probe's text, in bytes: clients send "quota" or "Hi".
const PROBE_BYTES_MAX: usize = 32;

/// Maximum length of a conversation's title, in characters. Clients show titles of about this
/// length.
const TITLE_LETTERS_MAX: usize = 50;

/// Answer made by Creole without an upstream call.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) text: String,
    pub(crate) stop_reason: StopReason,
}

/// Returns the answer to a request that needs no model, if configured.
pub(crate) fn answer(
    client: &ClientRequest<'_>,
    request: &Request<'_>,
    warnings: &mut Warnings,
) -> Option<Local> {
    let wanted = &client.config.settings.answer_locally;
    if wanted.is_empty() || !request.tools.is_empty() || !request.stop_sequences.is_empty() {
        return None;
    }
    let is_wanted = |word| wanted.contains(&word);
    let (word, local) = if is_wanted(LocalAnswer::QuotaProbe) && is_probe(request) {
        (
            LocalAnswer::QuotaProbe,
            Local { text: "OK".to_owned(), stop_reason: StopReason::MaxTokens },
        )
    } else if is_wanted(LocalAnswer::Title) && wants_title(request) {
        (LocalAnswer::Title, Local { text: title(request)?, stop_reason: StopReason::EndTurn })
    } else {
        return None;
    };
    warnings.add_named("answered_locally", word.word());
    Some(local)
}

/// Returns true if a request is a probe of the client's quota: one short text, with `max_tokens` 1.
fn is_probe(request: &Request<'_>) -> bool {
    let [message] = request.messages.as_slice() else { return false };
    let is_word = matches!(message.content.as_slice(),
        [Block::Text(text)] if text.text.raw().len() <= PROBE_BYTES_MAX);
    let asks_for_one = request.max_tokens == Some(1) && request.output_schema.is_none();
    asks_for_one && message.role == Role::User && is_word
}

/// Returns true if a request only asks for a title of the conversation: the JSON schema of the
/// answer is an object with the single member `title`.
fn wants_title(request: &Request<'_>) -> bool {
    let Some(schema) = request.output_schema else { return false };
    let properties = json::member(schema, "properties").unwrap_or_default();
    let mut members = json::members(properties);
    let is_title = members.next().is_some_and(|(name, member)| {
        name == "title" && json::member(member, "type") == Some("\"string\"")
    });
    is_title && members.next().is_none() && request.messages.len() == 1
}

/// Returns a JSON object with the beginning of the user's text as the title, or `None` without
/// plain text.
fn title(request: &Request<'_>) -> Option<String> {
    let message = request.messages.first().filter(|message| message.role == Role::User)?;
    let texts = message.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.decode()),
        _ => None,
    });
    // Lines that begin with a tag were inserted by the client.
    let line = texts.into_iter().find_map(|text| {
        let mut lines = text.lines().map(str::trim);
        lines.find(|line| !line.is_empty() && !line.starts_with('<')).map(str::to_owned)
    })?;
    let end = line.char_indices().nth(TITLE_LETTERS_MAX).map(|(at, _)| at);
    let mut title = end.and_then(|end| line.get(..end)).unwrap_or(&line);
    if title.len() < line.len() {
        title = title.rsplit_once(' ').map_or(title, |(whole, _)| whole);
    }
    let mut out = Vec::new();
    Writer::new(&mut out).begin_object().key("title").text(title.trim_end()).end_object();
    String::from_utf8(out).ok()
}
