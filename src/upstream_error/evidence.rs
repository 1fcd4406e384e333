//! Detection of the refused part of a request from the error message and the request, for errors
//! with unknown wordings.
//!
//! The strongest evidence is a path in the message that leads to a part of the request; then a
//! complaint that a text was expected; then a name of the part in the server's own words. Words
//! that the server only quotes from the request do not count.

mod echoes;

use std::cmp::Ordering;

use self::echoes::{Echoes, QUOTES, quoted};
use super::changes::{ChangeRow, Loss, rows};
use super::quoted::own_words;
use super::refused::Refused;
use super::wordings::{TEXT_TOO_LONG, VETOES, WANTS_TEXT};
use crate::error::{Reason, Rejection};
use crate::json;
use crate::text::words;

/// Maximum number of words of an error that are examined as possible paths.
const PATH_WORDS_MAX: usize = 16;

/// Maximum number of paths from an error that are looked up in the request.
const PATHS_MAX: usize = 4;

/// Maximum number of steps (names and indices) of a path.
const STEPS_MAX: usize = 16;

/// Maximum number of steps of a path that need not exist in the request: validators add names of
/// branches and types.
const UNKNOWN_STEPS_MAX: usize = 4;

/// Names that validators write before a path.
const ROOTS: [&str; 7] = ["body", "params", "parameter", "parameters", "request", "loc", "$"];

/// Strength of the evidence that an upstream demands a change, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// Path in the error message that leads to the part of the request which the change affects.
    Path,
    /// Complaint that a text was expected, for a change that produces a text.
    Form,
    /// Name of the part of the request which the change affects, in the server's own words.
    Name,
}

/// Returns the changes that a refusal may demand, ordered from the smallest loss. In strict mode,
/// only changes without loss are returned. `sent` is the refused request as JSON, which is read a
/// bounded number of times. If the request is gone, any plausible path is believed, and so is a
/// name outside of quotations; a later request must confirm the change.
pub(crate) fn changes(
    rejection: &Rejection,
    sent: Option<&str>,
    strict: bool,
) -> Vec<(Evidence, Refused)> {
    let own = own_words(&rejection.message);
    if is_hopeless(rejection) || is_vetoed(rejection, &own) {
        return Vec::new();
    }
    let paths = paths(rejection, sent);
    let mut echoes = Echoes::new(&rejection.message, &own, sent);
    let is_too_long = TEXT_TOO_LONG.any(&own);
    let is_text_code = rejection.codes.iter().any(|code| WANTS_TEXT.lists(code));
    let wants_text = !is_too_long && (is_text_code || WANTS_TEXT.any(&own));
    let wants_form = wants_text && (is_text_code || echoes.says_one_of(&WANTS_TEXT));
    // The missing end of a cut message may veto all changes. Other statuses are about rates, policy
    // or a router.
    let may_name = !rejection.message.ends_with('…')
        && matches!(rejection.status, 400 | 405 | 422 | 500 | 501);
    // A server fault (5xx) is weaker evidence about the request.
    let is_of_server = rejection.status >= 500;
    let tools = sent.and_then(|sent| json::member(sent, "tools"));
    let has_tools = tools.is_some_and(|tools| json::elements(tools).next().is_some());
    let can_be_shorter =
        |change: &Refused| matches!(change, Refused::Ids | Refused::Names | Refused::Descriptions);
    let mut found: Vec<_> = rows()
        .filter(|row| !(row.is_without_tools && has_tools))
        .filter(|row| !strict || row.loss == Loss::Nothing)
        .filter_map(|row| {
            let evidence = if paths.iter().any(|path| leads_to(path, row, wants_text)) {
                Evidence::Path
            } else if wants_form && row.makes_text && paths.is_empty() {
                Evidence::Form
            } else if may_name
                && (!is_of_server || row.loss < Loss::Ability)
                && is_named(row, &mut echoes)
            {
                Evidence::Name
            } else {
                return None;
            };
            // A text that is too long is left out only if a path in the error message leads to the
            // text.
            let can_be = !is_too_long || evidence == Evidence::Path || can_be_shorter(&row.change);
            can_be.then(|| (row.loss, evidence, row.change.clone()))
        })
        .collect();
    found.sort_by_key(|(loss, evidence, _)| (*loss, *evidence));
    found.into_iter().map(|(_, evidence, change)| (evidence, change)).collect()
}

/// Returns true if no change of the request avoids the error, such as a full context window or an
/// empty account.
pub(crate) fn is_final(rejection: &Rejection) -> bool {
    is_hopeless(rejection) || is_vetoed(rejection, &own_words(&rejection.message))
}

/// Returns true if the message or codes of an error belong to a problem that no change of the
/// request solves.
fn is_vetoed(rejection: &Rejection, own: &str) -> bool {
    VETOES.any(own) || rejection.codes.iter().any(|code| VETOES.any(&code.to_ascii_lowercase()))
}

/// Returns true if no change of the request could help, or if the client will change the request
/// itself.
fn is_hopeless(rejection: &Rejection) -> bool {
    let is_final = |reason: &Reason| {
        matches!(
            reason,
            Reason::GatewayKey
                | Reason::Unpaid { .. }
                | Reason::RateTooLow(_)
                | Reason::WrongAddress(_)
                | Reason::ContextTooLong(_)
                | Reason::AnswerTooLong { .. }
                | Reason::AnswerTooShort
                | Reason::Filter
                // Problems that clients repair by themselves.
                | Reason::ClientsWords
                | Reason::AdaptiveThinking
                | Reason::SystemRole
                | Reason::ToolSchema(_)
                | Reason::EffortNamed
        )
    };
    let is_of_server = !matches!(
        rejection.status,
        400 | 403..=405 | 413 | 415 | 422 | 424 | 429 | 451 | 500..=504
    );
    // Clients of the Messages API know both kinds of thinking, and switch to the other kind.
    let is_of_clients = words::has_any(&rejection.message, &["thinking.type.", "adaptive"]);
    is_of_server || is_of_clients || rejection.reasons.iter().any(is_final)
}

/// Path in the request: names, and `*` for array indices.
type RequestPath = Vec<String>;

/// Returns the paths in an error that exist in the request.
fn paths(rejection: &Rejection, sent: Option<&str>) -> Vec<RequestPath> {
    let follow = |path| sent.map_or_else(|| unresolved(path), |sent| resolved(path, sent));
    let parameter = rejection.parameter.as_deref().and_then(follow);
    let in_words = paths_in(&rejection.message, sent).filter_map(follow);
    parameter.into_iter().chain(in_words).take(PATHS_MAX).collect()
}

/// Returns the words of an error that look like paths, and are not quoted from the request.
fn paths_in<'m>(message: &'m str, sent: Option<&'m str>) -> impl Iterator<Item = &'m str> {
    let is_separator = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || QUOTES.contains(letter)
            || ",;:()<>=".contains(letter)
    };
    let words = message.split(is_separator).filter_map(|word| {
        let word = word.trim_end_matches(['.', '!', '?', '…']);
        let is_pointer = word.starts_with('/') && !word.starts_with("//");
        let is_path = word.trim_matches(['[', ']']).contains(['.', '[']) && !word.contains('/');
        (is_pointer || is_path).then_some(word)
    });
    // A path that also occurs in the request or in a quotation is a text of the user, and not of
    // the server.
    let quoted = quoted(message);
    words.take(PATH_WORDS_MAX).filter(move |word| match sent {
        Some(sent) => !words::has(sent, word),
        None => !quoted.iter().any(|text| text != word && words::has(text, word)),
    })
}

/// Returns the steps of a path in an error, without the names that validators write before the
/// path.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let steps = path.split(['.', '[', ']', '/', '\'', '"']).filter(|step| !step.is_empty());
    let mut steps = steps.take(STEPS_MAX).peekable();
    if steps.peek().is_some_and(|step| ROOTS.contains(step)) {
        steps.next();
    }
    steps
}

/// Returns the steps of a path in an error without looking them up, because the request is gone.
fn unresolved(path: &str) -> Option<RequestPath> {
    let name = |step: &str| match step.bytes().all(|byte| byte.is_ascii_digit()) {
        true => "*".to_owned(),
        false => step.to_owned(),
    };
    let found: RequestPath = steps(path).map(name).collect();
    (!found.is_empty()).then_some(found)
}

/// Returns the beginning of a path that exists in the request; `None` if even the first step does
/// not exist.
fn resolved(path: &str, sent: &str) -> Option<RequestPath> {
    let (mut value, mut found, mut unknown) = (sent, RequestPath::new(), 0usize);
    let mut steps = steps(path).peekable();
    while let Some(step) = steps.next() {
        // A path may have a block's type before its member:
        // `messages.0.content.0.text.cache_control`.
        let is_type =
            json::member(value, "type").and_then(json::string).is_some_and(|it| it == *step);
        if is_type && steps.peek().is_some_and(|next| json::member(value, next).is_some()) {
            continue;
        }
        let next = match value.as_bytes().first() {
            Some(b'{') => json::member(value, step).map(|value| (step, value)),
            Some(b'[') => {
                let element = step.parse().ok().and_then(|at| json::elements(value).nth(at));
                element.map(|element| ("*", element))
            }
            _ => None,
        };
        match next {
            Some((name, inside)) => {
                found.push(name.to_owned());
                value = inside;
            }
            // A path may have steps that do not exist: `messages.0.user.content.str`.
            None if found.len() > 1 && unknown < UNKNOWN_STEPS_MAX => {
                unknown = unknown.saturating_add(1);
            }
            None => break,
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Returns true if a path leads to the part of the request that a row affects, or into this part.
/// If a text was expected, the path may also lead to a value that contains the part.
fn leads_to(path: &RequestPath, row: &ChangeRow, wants_text: bool) -> bool {
    // A complaint about one element of a list does not demand a text in place of the whole list.
    let is_list = row.makes_text && row.loss == Loss::Nothing;
    listed(row.places).any(|place| {
        let place: Vec<_> = place.split('.').collect();
        let is_same = place.iter().zip(path).all(|(wanted, name)| wanted == name);
        is_same
            && match path.len().cmp(&place.len()) {
                Ordering::Less => wants_text && row.makes_text,
                Ordering::Equal | Ordering::Greater => wants_text || !is_list,
            }
    })
}

/// Returns true if the server's own words name the part of the request that a row affects.
fn is_named(row: &ChangeRow, echoes: &mut Echoes<'_>) -> bool {
    listed(row.names).any(|name| name.split(" & ").all(|part| echoes.names(part)))
        && (row.lacks.is_empty() || listed(row.lacks).any(|word| echoes.refuses(word)))
}

/// Returns the entries of a list in a row.
fn listed(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(" | ").filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests;
