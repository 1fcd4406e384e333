//! Masking of unknown credentials in error messages, such as OpenAI's
//! `Incorrect API key provided: sk-…`. Text that looks like a credential becomes `***` before a
//! client or a log gets it.

use crate::text::words;

/// Prefixes of API keys of known providers.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk-",
    "pk_",
    "rk_",
    "gsk_",
    "xai-",
    "aiza",
    "hf_",
    "nvapi-",
    "r8_",
    "ghp_",
    "gho_",
    "github_pat_",
    "fw_",
    "tgp_",
    "pplx-",
    "csk-",
    "akia",
    "eyj",
];

/// Words after which a credential is expected.
const STRONG: &[&str] = &[
    "apikey",
    "api_key",
    "api-key",
    "x-api-key",
    "bearer",
    "authorization",
    "secret",
    "password",
    "credential",
    "credentials",
    "access_token",
    "access-token",
    "auth_token",
    "basic",
];

/// Words before `key` and `token` by which these mean a credential.
const QUALIFIERS: &[&str] = &[
    "api",
    "access",
    "secret",
    "auth",
    "subscription",
    "incorrect",
    "invalid",
    "your",
    "bearer",
    "wrong",
    "bad",
    "provided",
];

/// Number of words after an announcing word that are searched for a credential:
/// `Incorrect API key provided: …`.
const REACH: u8 = 3;

/// Returns the text with `***` in place of everything that looks like a credential.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = "";
    // `reach`: number of further words that may be a credential; `sure`: true if the words before
    // certainly announce a credential.
    let (mut reach, mut sure) = (0u8, false);
    loop {
        let start = rest.find(is_word).unwrap_or(rest.len());
        let (gap, from) = rest.split_at_checked(start).unwrap_or((rest, ""));
        out.push_str(gap);
        if from.is_empty() {
            return out;
        }
        let end = from.find(|letter| !is_word(letter)).unwrap_or(from.len());
        let (whole, after) = from.split_at_checked(end).unwrap_or((from, ""));
        // A full stop belongs to the sentence, and not to the possible credential before it.
        let word = words::trim_end(whole, b".");
        if looks_like_key(word) || (reach > 0 && could_be_key(word, sure)) {
            out.push_str("***");
            out.push_str(whole.get(word.len()..).unwrap_or_default());
        } else {
            out.push_str(whole);
        }
        let is =
            |names: &[&str], word: &str| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        if is(STRONG, word) {
            (reach, sure) = (REACH, true);
        } else if is(&["key", "token"], word) {
            (reach, sure) = (REACH, is(QUALIFIERS, previous));
        } else {
            reach = reach.saturating_sub(1);
        }
        previous = word;
        rest = after;
    }
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '*' | '.' | '+' | '~' | '/')
}

/// Returns true if a word begins like an API key of a known provider, even inside of a path.
fn looks_like_key(word: &str) -> bool {
    word.split('/').any(begins_like_key)
}

fn begins_like_key(word: &str) -> bool {
    let Some(prefix) = PREFIXES.iter().find(|prefix| words::begins(word, prefix)) else {
        return false;
    };
    // Prefixes without a separator may also begin ordinary words.
    let longest_word = if prefix.ends_with(['-', '_']) { 6 } else { 18 };
    word.len() > longest_word
}

/// Returns true if a word may be an API key, by its position and because it is no natural word.
/// `sure`: the words before it certainly announce a credential.
fn could_be_key(word: &str, sure: bool) -> bool {
    // A URL is no key: "You can find your API key at https://…".
    if word.starts_with("//") {
        return false;
    }
    let has = |is: fn(u8) -> bool| word.bytes().any(is);
    let digits = has(|byte| byte.is_ascii_digit()) || has(|byte| byte == b'*');
    if !sure {
        return word.len() >= 16 && digits;
    }
    let odd = digits || has(|byte| matches!(byte, b'-' | b'_' | b'+' | b'~'));
    word.len() >= 20 || (word.len() >= 6 && odd && !STRONG.contains(&word))
}
