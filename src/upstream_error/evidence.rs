//! What a refusal is about, where no wording of it is known: evidence in the upstream's words and in the request that
//! was sent.
//!
//! The strongest is a path that leads to something in the request; then a complaint that a text was wanted; then a
//! name of the subject in the server's own words. Words that the server only repeats out of the request are none.

use std::cmp::Ordering;

use super::changes::{Loss, ROWS, Row};
use super::quoted::own_words;
use super::refused::Refused;
use super::wordings::{TEXT_TOO_LONG, VETOES, WANTS_TEXT};
use crate::error::{Reason, Rejection};
use crate::json;
use crate::text::words;

/// Most words of an error that are looked at for paths.
const PATH_WORDS_MAX: usize = 16;

/// Most paths that are followed in a request.
const PATHS_MAX: usize = 4;

/// Longest path, in steps.
const STEPS_MAX: usize = 16;

/// Steps of a path that may lead nowhere: validators name branches and types within it.
const UNKNOWN_STEPS_MAX: usize = 4;

/// What validators write in front of a path.
const ROOTS: [&str; 7] = ["body", "params", "parameter", "parameters", "request", "loc", "$"];

/// So many words in a row are a quotation where they stand in the request, too; at the end of the error one less.
const QUOTED_WORDS: usize = 4;

/// Letters beside a name without spaces around it that are compared with the request.
const QUOTED_LETTERS: usize = 4;

/// Most texts that are looked up in the request: what comes then is taken for a repetition.
const LOOKUPS_MAX: usize = 64;

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
/// `sent` is the request that was refused, as JSON: it is read a bounded number of times. Where it is gone, a path is
/// believed that could be one of a request, and so is a name outside of quotations: a later request must decide.
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
    let wants_text =
        WANTS_TEXT.any(&own) || rejection.codes.iter().any(|code| WANTS_TEXT.lists(code));
    let mut echoes = Echoes::new(&rejection.message, &own, sent);
    // A message that was cut may end in a veto. Other statuses are of rates, of policy or of a router.
    let may_name = !rejection.message.ends_with('…')
        && matches!(rejection.status, 400 | 405 | 422 | 500 | 501);
    // A server's own fault says less of the request.
    let is_of_server = rejection.status >= 500;
    let has_tools = sent.is_some_and(|sent| json::member(sent, "tools").is_some());
    // Of what is too long, ids can be shorter.
    let is_too_long = TEXT_TOO_LONG.any(&own);
    let mut found: Vec<_> = ROWS
        .iter()
        .filter(|row| !(row.is_without_tools && has_tools))
        .filter(|row| !strict || row.loss == Loss::Nothing)
        .filter(|row| !is_too_long || row.change == Refused::Ids)
        .filter_map(|row| {
            let evidence = if paths.iter().any(|path| leads_to(path, row, wants_text)) {
                Evidence::Path
            } else if wants_text && row.makes_text && paths.is_empty() {
                Evidence::Form
            } else if may_name
                && (!is_of_server || row.loss == Loss::Nothing)
                && is_named(row, &own, &mut echoes)
            {
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

/// Whether an error is of what no change of the request mends, such as a full window or an empty account.
pub(crate) fn is_final(rejection: &Rejection) -> bool {
    is_hopeless(rejection) || is_vetoed(rejection, &own_words(&rejection.message))
}

/// Whether words or codes are of what no change of the request mends.
fn is_vetoed(rejection: &Rejection, own: &str) -> bool {
    VETOES.any(own) || rejection.codes.iter().any(|code| VETOES.any(&code.to_ascii_lowercase()))
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
    let is_of_server = !matches!(
        rejection.status,
        400 | 403..=405 | 413 | 415 | 422 | 424 | 429 | 451 | 500..=504
    );
    // Clients of the Messages API know both kinds of thinking, and send the other one.
    let is_of_clients = words::has_any(&rejection.message, &["thinking.type.", "adaptive"]);
    is_of_server || is_of_clients || rejection.reasons.iter().any(is_final)
}

/// A path in the request: names, and `*` for positions.
type Path = Vec<String>;

/// The paths that an error names and that lead somewhere in the request.
fn paths(rejection: &Rejection, sent: Option<&str>) -> Vec<Path> {
    let follow = |path| sent.map_or_else(|| unresolved(path), |sent| resolved(path, sent));
    let parameter = rejection.parameter.as_deref().and_then(follow);
    let is_separator = |letter: char| letter.is_whitespace() || "'\"`,;:()<>=".contains(letter);
    let words = rejection.message.split(is_separator).filter_map(|word| {
        let word = word.trim_end_matches(['.', '!', '?', '…']);
        let is_pointer = word.starts_with('/') && !word.starts_with("//");
        let is_path = word.trim_matches(['[', ']']).contains(['.', '[']) && !word.contains('/');
        (is_pointer || is_path).then_some(word)
    });
    // A path that stands in the request, too, is a word of its user.
    let in_words = words
        .take(PATH_WORDS_MAX)
        .filter(|word| !sent.is_some_and(|sent| words::has(sent, word)))
        .filter_map(follow);
    parameter.into_iter().chain(in_words).take(PATHS_MAX).collect()
}

/// The steps of a path, without what validators write in front of it.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let steps = path.split(['.', '[', ']', '/', '\'', '"']).filter(|step| !step.is_empty());
    let mut steps = steps.take(STEPS_MAX).peekable();
    if steps.peek().is_some_and(|step| ROOTS.contains(step)) {
        steps.next();
    }
    steps
}

/// A path of a request that is gone, which may lead nowhere.
fn unresolved(path: &str) -> Option<Path> {
    let name = |step: &str| match step.bytes().all(|byte| byte.is_ascii_digit()) {
        true => "*".to_owned(),
        false => step.to_owned(),
    };
    let found: Path = steps(path).map(name).collect();
    (!found.is_empty()).then_some(found)
}

/// The part of a path that leads somewhere in the request; nothing where its beginning does not.
fn resolved(path: &str, sent: &str) -> Option<Path> {
    let (mut value, mut found, mut unknown) = (sent, Path::new(), 0usize);
    for step in steps(path) {
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
            // `messages.0.user.content.str`
            None if found.len() > 1 && unknown < UNKNOWN_STEPS_MAX => {
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
    // A complaint of one part of a list does not ask for a text in place of the list.
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

/// Whether the server's own words name the subject of a row.
fn is_named(row: &Row, own: &str, echoes: &mut Echoes<'_>) -> bool {
    (row.lacks.is_empty() || listed(row.lacks).any(|word| words::has(own, word)))
        && listed(row.names).any(|name| name.split(" & ").all(|part| echoes.names(part)))
}

/// The entries of a list of a row.
fn listed(list: &str) -> impl Iterator<Item = &str> {
    list.split(" | ").filter(|entry| !entry.is_empty())
}

/// The server's own words, and the request that they may repeat.
struct Echoes<'s> {
    /// The words, with spaces for signs.
    own: String,
    /// Texts that the error quotes, with spaces for signs.
    quoted: Vec<String>,
    /// Nothing where it is gone.
    sent: Option<&'s str>,
    /// The request in the form of the words: made once something is looked up.
    plain: Option<String>,
    lookups: usize,
}

impl<'s> Echoes<'s> {
    fn new(message: &str, own: &str, sent: Option<&'s str>) -> Self {
        let is_quote = |letter: char| "'\"`“”‘’「」".contains(letter);
        let quoted = message.split(is_quote).skip(1).step_by(2).map(plain).collect();
        Self { own: plain(own), quoted, sent, plain: None, lookups: 0 }
    }

    /// Whether the server's words have a name, and not only out of the request.
    fn names(&mut self, name: &str) -> bool {
        let own = std::mem::take(&mut self.own);
        let found = words::places(&own, name)
            .filter(|at| is_word(&own, *at, name))
            .any(|at| !self.is_repeated(&own, at, name));
        self.own = own;
        found
    }

    /// Whether a name at this place is only repeated: with its neighbours, or in a quotation.
    fn is_repeated(&mut self, own: &str, at: usize, name: &str) -> bool {
        let Some(sent) = self.sent else {
            return self.quoted.iter().any(|text| text != name && words::has(text, name));
        };
        let plain = self.plain.get_or_insert_with(|| plain(sent));
        let mut is_in = |request: &str, text: &str| {
            self.lookups = self.lookups.saturating_add(1);
            self.lookups > LOOKUPS_MAX || words::has(request, text)
        };
        for text in self.quoted.iter().filter(|text| words::has(text, name)) {
            // A member that the server names in quotes is no value.
            let is_value = text != name || is_in(sent, &format!(":\"{name}\""));
            if is_value && is_in(plain, text) {
                return true;
            }
        }
        let mut is_sent = |text: &str| is_in(plain, text);
        let (before, behind) = own.split_at_checked(at).unwrap_or_default();
        if !name.is_ascii() {
            let start = before.char_indices().rev().nth(QUOTED_LETTERS - 1).map_or(0, |(at, _)| at);
            let letters = name.chars().count().saturating_add(QUOTED_LETTERS);
            let end = behind.char_indices().nth(letters).map_or(behind.len(), |(at, _)| at);
            let end = at.saturating_add(end);
            let of_name = at..at.saturating_add(name.len());
            let around = [start..of_name.end, of_name.start..end];
            return around.into_iter().any(|place| own.get(place).is_some_and(&mut is_sent));
        }
        let before: Vec<_> =
            before.split(' ').rev().filter(|it| !it.is_empty()).take(QUOTED_WORDS - 1).collect();
        let behind: Vec<_> =
            behind.split(' ').filter(|it| !it.is_empty()).take(QUOTED_WORDS).collect();
        let words = match behind.len() {
            QUOTED_WORDS.. => QUOTED_WORDS,
            _ => QUOTED_WORDS - 1,
        };
        let all: Vec<_> = before.into_iter().rev().chain(behind).collect();
        all.windows(words).any(|window| is_sent(&window.join(" ")))
    }
}

/// Whether a name stands at its place as a word of its own, or as one in the plural.
fn is_word(text: &str, at: usize, name: &str) -> bool {
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let behind = behind.get(name.len()..).unwrap_or_default();
    let behind = behind.strip_prefix('s').unwrap_or(behind);
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| words::is_name_byte(*byte));
    !name.is_ascii() || !is_name(before.as_bytes().last()) && !is_name(behind.as_bytes().first())
}

/// A text in lower case, with single spaces for signs but `_`, and for escapes of JSON.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            letters.next();
        }
        let is_sign = letter.is_whitespace() || letter.is_ascii_punctuation() && letter != '_';
        let letter = if is_sign { ' ' } else { letter.to_ascii_lowercase() };
        if letter != ' ' || !out.ends_with(' ') {
            out.push(letter);
        }
    }
    out.truncate(out.trim_end().len());
    out
}
