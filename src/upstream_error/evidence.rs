//! What a refusal is about, where no wording of it is known: evidence in the upstream's words and in the request that
//! was sent.
//!
//! The strongest is a path that leads to something in the request; then a complaint that a text was wanted; then a
//! name of the subject in the server's own words. Words that the server only repeats out of the request are none.

use std::cmp::Ordering;

use super::changes::{Loss, ROWS, Row, TOO_LONG, VETOES, WANTS_TEXT};
use super::quoted::own_words;
use super::refused::Refused;
use crate::error::{Reason, Rejection};
use crate::json;
use crate::text::words;

/// Most paths that are followed in a request.
const PATHS_MAX: usize = 4;

/// Longest path, in steps.
const STEPS_MAX: usize = 16;

/// Steps of a path that may lead nowhere: validators name branches and types within it.
const UNKNOWN_STEPS_MAX: usize = 4;

/// So many words in a row are a quotation where they stand in the request, too.
const QUOTED_WORDS: usize = 4;

/// How surely an upstream means a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// A path leads to its subject.
    Path,
    /// The server wants a text, and the change makes one.
    Form,
    /// The server's words name it.
    Name,
}

/// Finds the changes that a refusal may ask for, those first that lose least; in strict mode those that lose nothing.
/// `sent` is the request that was refused, as JSON. Takes time in proportion to it.
pub(crate) fn changes(rejection: &Rejection, sent: &str, strict: bool) -> Vec<(Evidence, Refused)> {
    if is_hopeless(rejection) {
        return Vec::new();
    }
    let own = own_words(&rejection.message);
    let is_vetoed = words::has_any(&own, VETOES);
    let paths = paths(rejection, sent);
    let wants_text = words::has_any(&own, WANTS_TEXT)
        || rejection.codes.iter().any(|code| WANTS_TEXT.contains(&&**code));
    let mut echoes = Echoes { message: rejection.message.to_ascii_lowercase(), sent, plain: None };
    // By names alone only where the request is said to be at fault.
    let may_name = !is_vetoed && matches!(rejection.status, 400 | 405 | 422 | 500 | 501);
    let has_tools = json::member(sent, "tools").is_some();
    // Of what is too long, ids can be shorter.
    let is_too_long = words::has_any(&own, TOO_LONG);
    let mut found: Vec<_> = ROWS
        .iter()
        .filter(|row| !(row.is_without_tools && has_tools))
        .filter(|row| !strict || row.loss == Loss::Nothing)
        .filter(|row| !is_too_long || row.change == Refused::Ids)
        .filter_map(|row| {
            let evidence = if paths.iter().any(|path| leads_to(path, row, wants_text)) {
                Evidence::Path
            } else if wants_text && row.makes_text && !is_vetoed {
                Evidence::Form
            } else if may_name && is_named(row, &own, &mut echoes) {
                Evidence::Name
            } else {
                return None;
            };
            Some((row.loss, evidence, row.change.clone()))
        })
        .collect();
    found.sort_by_key(|(loss, evidence, _)| (*loss, *evidence));
    found.into_iter().map(|(_, evidence, change)| (evidence, change)).collect()
}

/// Whether no change of the request could help, or its client will change it.
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
                // Clients mend these by themselves.
                | Reason::ClientsWords
                | Reason::AdaptiveThinking
                | Reason::SystemRole
                | Reason::ToolSchema(_)
                | Reason::EffortNamed
        )
    };
    let is_of_server = !matches!(rejection.status, 400 | 403 | 404 | 405 | 422 | 500 | 501);
    // Clients of the Messages API know both kinds of thinking, and send the other one.
    let is_of_clients = words::has_any(&rejection.message, &["thinking.type.", "adaptive"]);
    is_of_server || is_of_clients || rejection.reasons.iter().any(is_final)
}

/// A path in the request: names, and `*` for positions.
type Path = Vec<String>;

/// The paths that an error names and that lead somewhere in the request.
fn paths(rejection: &Rejection, sent: &str) -> Vec<Path> {
    let parameter = rejection.parameter.as_deref().into_iter();
    let is_separator = |letter: char| letter.is_whitespace() || "'\"`,;:()<>=".contains(letter);
    let in_words = rejection.message.split(is_separator).filter(|word| {
        word.contains(['.', '[', '/']) && !words::has(word, "//") && !words::has(sent, word)
    });
    let named = parameter.chain(in_words).filter_map(|path| resolved(path, sent));
    named.take(PATHS_MAX).collect()
}

/// The part of a path that leads somewhere in the request; nothing where its beginning does not.
fn resolved(path: &str, sent: &str) -> Option<Path> {
    let steps = path.split(['.', '[', ']', '/', '\'', '"']).filter(|step| !step.is_empty());
    let (mut value, mut found, mut unknown) = (sent, Path::new(), 0usize);
    for step in steps.take(STEPS_MAX) {
        let next = match value.as_bytes().first() {
            Some(b'{') => json::member(value, step).map(|value| (step, value)),
            Some(b'[') => {
                step.parse().ok().and_then(|at| json::elements(value).nth(at)).map(|it| ("*", it))
            }
            _ => None,
        };
        match next {
            Some((name, inside)) => {
                found.push(name.to_owned());
                value = inside;
            }
            // `body.messages`, `params.stream`, `messages.0.user.content.str`
            None if unknown < UNKNOWN_STEPS_MAX
                && !step.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                unknown = unknown.saturating_add(1);
            }
            None => break,
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Whether a path leads to the subject of a row, or into it. Where a text was wanted, it may also lead to what the
/// subject is a part of.
fn leads_to(path: &Path, row: &Row, wants_text: bool) -> bool {
    // A part of a list says nothing of the list.
    let is_list = row.makes_text && row.loss == Loss::Nothing;
    row.places.iter().any(|place| {
        let place: Vec<_> = place.split('.').collect();
        let is_same = place.iter().zip(path).all(|(wanted, name)| wanted == name);
        is_same
            && match path.len().cmp(&place.len()) {
                Ordering::Less => wants_text && row.makes_text,
                Ordering::Equal => true,
                Ordering::Greater => wants_text || !is_list,
            }
    })
}

/// Whether the server's own words name the subject of a row.
fn is_named(row: &Row, own: &str, echoes: &mut Echoes<'_>) -> bool {
    if !row.lacks.is_empty() && !words::has_any(own, row.lacks) {
        return false;
    }
    row.names.iter().any(|name| {
        let mut parts = name.split(" & ");
        parts.all(|part| {
            words::places(own, part).any(|at| is_word(own, at, part) && !echoes.has(own, at, part))
        })
    })
}

/// Whether a name stands at its place as a word of its own.
fn is_word(text: &str, at: usize, name: &str) -> bool {
    let is_letter =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let behind = behind.get(name.len()..).unwrap_or_default();
    let behind = behind.strip_prefix('s').unwrap_or(behind);
    !name.is_ascii()
        || !is_letter(before.as_bytes().last()) && !is_letter(behind.as_bytes().first())
}

/// What an error repeats of the request.
struct Echoes<'s> {
    /// The message, in lower case.
    message: String,
    sent: &'s str,
    /// The request in lower case, without quotes, with single spaces: made once something is looked for.
    plain: Option<String>,
}

impl Echoes<'_> {
    /// Whether a name at this place of the server's words is only repeated out of the request: with its neighbours, or
    /// quoted as it stands there.
    fn has(&mut self, own: &str, at: usize, name: &str) -> bool {
        let sent = self.sent;
        let is_value = |quote: char| {
            words::has(&self.message, &format!("{quote}{name}{quote}"))
                && words::has(&sent.to_ascii_lowercase(), &format!(":\"{name}\""))
        };
        if ['\'', '"', '`'].into_iter().any(is_value) {
            return true;
        }
        let plain = self.plain.get_or_insert_with(|| plain(sent));
        let (before, behind) = own.split_at_checked(at).unwrap_or_default();
        let before: Vec<_> = before.split_ascii_whitespace().rev().take(QUOTED_WORDS - 1).collect();
        let behind = behind.split_ascii_whitespace().take(QUOTED_WORDS);
        let own: Vec<_> = before.into_iter().rev().chain(behind).collect();
        own.windows(QUOTED_WORDS).any(|window| words::has(plain, &window.join(" ")))
    }
}

/// A JSON text in lower case, without quotes and escapes, and with single spaces.
fn plain(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut letters = json.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some('n' | 't' | 'r') => ' ',
                _ => continue,
            },
            '"' | '\'' | '`' => continue,
            letter if letter.is_whitespace() => ' ',
            letter => letter.to_ascii_lowercase(),
        };
        if letter != ' ' || !out.ends_with(' ') {
            out.push(letter);
        }
    }
    out
}
