//! What a refusal is about, where no wording of it is known: evidence in the upstream's words and in the request that
//! was sent.
//!
//! The strongest is a path that leads to something in the request; then a complaint that a text was wanted; then a
//! name of the subject in the server's own words. Words that the server only repeats out of the request are none.

use std::cmp::Ordering;

use super::changes::{Loss, ROWS, Row};
use super::quoted::own_words;
use super::refused::Refused;
use super::wordings::{Part, TEXT_TOO_LONG, VETOES, WANTS_TEXT};
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

/// So many words in a row are a quotation where they stand in the request, too; at the end of the error one less, and
/// around words for what is wrong one more.
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
    let mut echoes = Echoes::new(&rejection.message, &own, sent);
    let is_text_code = rejection.codes.iter().any(|code| WANTS_TEXT.lists(code));
    let wants_text = is_text_code || WANTS_TEXT.any(&own);
    let wants_form = is_text_code || wants_text && echoes.wants_text();
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
            } else if wants_form && row.makes_text && paths.is_empty() {
                Evidence::Form
            } else if may_name
                && (!is_of_server || row.loss == Loss::Nothing)
                && is_named(row, &mut echoes)
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
    let is_separator = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || QUOTES.contains(letter)
            || ",;:()<>=".contains(letter)
    };
    let words = rejection.message.split(is_separator).filter_map(|word| {
        let word = word.trim_end_matches(['.', '!', '?', '…']);
        let is_pointer = word.starts_with('/') && !word.starts_with("//");
        let is_path = word.trim_matches(['[', ']']).contains(['.', '[']) && !word.contains('/');
        (is_pointer || is_path).then_some(word)
    });
    // A path that stands in the request, too, is a word of its user; so is one in a quotation.
    let quoted = quoted(&rejection.message);
    let in_words = words
        .take(PATH_WORDS_MAX)
        .filter(|word| match sent {
            Some(sent) => !words::has(sent, word),
            None => !quoted.iter().any(|text| text != word && words::has(text, word)),
        })
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
fn is_named(row: &Row, echoes: &mut Echoes<'_>) -> bool {
    (row.lacks.is_empty() || listed(row.lacks).any(|word| echoes.refuses(word)))
        && listed(row.names).any(|name| name.split(" & ").all(|part| echoes.names(part)))
}

/// The entries of a list of a row.
fn listed(list: &str) -> impl Iterator<Item = &str> {
    list.split(" | ").filter(|entry| !entry.is_empty())
}

/// Signs around a quotation.
const QUOTES: &str = "'\"`“”‘’「」";

/// The server's own words, and the request that they may repeat.
struct Echoes<'s> {
    /// The whole error, with spaces for signs.
    all: String,
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
        let quoted = quoted(message).into_iter().map(|text| plain(text, false)).collect();
        let (all, own) = (plain(message, false), plain(own, false));
        Self { all, own, quoted, sent, plain: None, lookups: 0 }
    }

    /// Whether the server's words have a name, and not only out of the request.
    fn names(&mut self, name: &str) -> bool {
        self.says(name, QUOTED_WORDS, is_word)
    }

    /// Whether the server's words have this for what is wrong, as a part of longer words too.
    fn refuses(&mut self, word: &str) -> bool {
        self.says(&plain(word, false), QUOTED_WORDS + 1, |_, _, _| true)
    }

    /// Whether the server's words say that a text was wanted.
    fn wants_text(&mut self) -> bool {
        WANTS_TEXT.phrases(Part::Alone).any(|phrase| self.refuses(phrase))
    }

    /// Whether these words stand in those of the server, and not only out of the request: so many in a row are.
    fn says(&mut self, word: &str, length: usize, stands: fn(&str, usize, &str) -> bool) -> bool {
        let own = std::mem::take(&mut self.own);
        let found = words::places(&own, word)
            .filter(|at| stands(&own, *at, word))
            .any(|at| !self.is_repeated(&own, at, word, length));
        self.own = own;
        found
    }

    /// Whether words at this place are only repeated: with all others, with their neighbours, or in a quotation.
    fn is_repeated(&mut self, own: &str, at: usize, name: &str, length: usize) -> bool {
        let Some(sent) = self.sent else {
            return self.quoted.iter().any(|text| text != name && words::has(text, name));
        };
        let plain = self.plain.get_or_insert_with(|| plain(sent, true));
        let mut is_found = |is_in: &dyn Fn() -> bool| {
            self.lookups = self.lookups.saturating_add(1);
            self.lookups > LOOKUPS_MAX || is_in()
        };
        let mut quoted = self.quoted.iter().filter(|text| words::has(text, name));
        let is_quoted = quoted.any(|text| {
            // A member that the server names in quotes is no value.
            let is_value = text != name || is_found(&|| has_value(sent, name));
            is_value && is_found(&|| words::has(plain, text))
        });
        let mut is_sent = |text: &str| is_found(&|| words::has(plain, text));
        if is_quoted || is_sent(&self.all) {
            return true;
        }
        let end = at.saturating_add(name.len());
        let before = own.get(..at).unwrap_or_default();
        let behind = own.get(end..).unwrap_or_default();
        if !name.is_ascii() {
            let start = before.char_indices().nth_back(QUOTED_LETTERS - 1).map(|(at, _)| at);
            let last = behind.char_indices().nth(QUOTED_LETTERS - 1);
            let last =
                last.map(|(at, letter)| end.saturating_add(at).saturating_add(letter.len_utf8()));
            let around = [start.map(|start| start..end), last.map(|last| at..last)];
            let mut around = around.into_iter().flatten().filter_map(|place| own.get(place));
            return around.any(is_sent);
        }
        // A name may be a part of a word.
        let start = before.rfind(' ').map_or(0, |at| at.saturating_add(1));
        let end = behind.find(' ').map_or(own.len(), |at| end.saturating_add(at));
        let named = own.get(start..end).unwrap_or_default().split(' ');
        let more = length.saturating_sub(named.clone().count());
        let before = own.get(..start).unwrap_or_default().split_whitespace().rev();
        let behind = own.get(end..).unwrap_or_default().split_whitespace();
        let is_end = behind.clone().nth(more.saturating_sub(1)).is_none();
        let more = more.saturating_sub(usize::from(is_end)).max(1);
        let window = named.clone().count().saturating_add(more);
        let mut all: Vec<_> = before.take(more).collect();
        all.reverse();
        all.extend(named.chain(behind.take(more)));
        all.windows(window).any(|window| is_sent(&window.join(" ")))
    }
}

/// The texts between quotes, of which those within a word are none.
fn quoted(message: &str) -> Vec<&str> {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let marks = message.char_indices().filter(|(at, letter)| {
        let before = at.checked_sub(1).and_then(|at| message.as_bytes().get(at));
        let behind = message.as_bytes().get(at.saturating_add(1));
        QUOTES.contains(*letter) && !(is_letter(before) && is_letter(behind))
    });
    let (mut found, mut open) = (Vec::new(), None);
    for (at, mark) in marks {
        match open {
            None => {
                let closing = match mark {
                    '“' => '”',
                    '‘' => '’',
                    '「' => '」',
                    mark => mark,
                };
                open = Some((at.saturating_add(mark.len_utf8()), closing));
            }
            Some((start, closing)) if closing == mark => {
                found.extend(message.get(start..at));
                open = None;
            }
            Some(_) => {}
        }
    }
    found
}

/// Whether a text stands as a value, and not only as a key, in a request.
fn has_value(sent: &str, text: &str) -> bool {
    let text = format!("\"{text}\"");
    let is_key = |at: usize| sent.as_bytes().get(at.saturating_add(text.len())) == Some(&b':');
    words::places(sent, &text).any(|at| !is_key(at))
}

/// Whether a name stands at its place as a word of its own, or as one in the plural.
fn is_word(text: &str, at: usize, name: &str) -> bool {
    let (before, behind) = text.split_at_checked(at).unwrap_or_default();
    let behind = behind.get(name.len()..).unwrap_or_default();
    let behind = behind.strip_prefix('s').unwrap_or(behind);
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| words::is_name_byte(*byte));
    !name.is_ascii() || !is_name(before.as_bytes().last()) && !is_name(behind.as_bytes().first())
}

/// A text in lower case, without quotes and with single spaces for other signs but `_`. `is_json`: letters of it are
/// written with a backslash before them.
fn plain(text: &str, is_json: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(mut letter) = letters.next() {
        if letter == '\\' && is_json {
            letter = match letters.next() {
                Some(quote @ ('"' | '\\')) => quote,
                Some('u') => letters.nth(3).map_or(' ', |_| ' '),
                _ => ' ',
            };
        }
        if letter == '\\' || QUOTES.contains(letter) {
            continue;
        }
        let is_sign = letter.is_whitespace()
            || letter.is_control()
            || letter.is_ascii_punctuation() && letter != '_';
        let letter = if is_sign { ' ' } else { letter.to_ascii_lowercase() };
        if letter != ' ' || !(out.is_empty() || out.ends_with(' ')) {
            out.push(letter);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests;
