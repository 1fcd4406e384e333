//! Interpretation of an error by its codes, numbers and message together, regardless of its status.

use super::error_body::ErrorBody;
use super::wordings::{
    BAD_KEY, CERTAINLY_TOO_LONG, CODES_400, CODES_401, CODES_402, CODES_403, CODES_404, CODES_413,
    CODES_429, CODES_503, CODES_504, FILTER_CODES, FILTERED, INVALID_PROMPT, INVALID_PROMPT_CODES,
    KEY_CODES, LIMITED, MODEL_CODES, NO_PATH, NO_PATH_WORDS, NOT_THERE, OF_MODEL, PhraseRole,
    RATES, RETRY_AFTER, TOO_LARGE, UNKNOWN_MODEL, UNPAID, UNPAID_CODES, USED_UP, WANTS_TLS,
    WINDOW_CODES, Wordings,
};
use super::{images, window};
use crate::headers::time::duration;
use crate::model::request_context::RequestContext;
use crate::text::words;

/// HTTP statuses that error codes stand for.
static STATUSES: [(u16, &Wordings); 9] = [
    (400, &CODES_400),
    (401, &CODES_401),
    (402, &CODES_402),
    (403, &CODES_403),
    (404, &CODES_404),
    (413, &CODES_413),
    (429, &CODES_429),
    (503, &CODES_503),
    (504, &CODES_504),
];

/// Maximum length of a text that says nothing but that a path does not exist, in bytes.
const NO_PATH_BYTES_MAX: usize = 500;

/// Maximum length of a message that is assumed to have only the server's own words, in bytes. A
/// longer message quotes other text.
const OWN_WORDS_BYTES_MAX: usize = 512;

/// Maximum length of a text that says nothing but that a model does not exist, or that TLS is
/// expected, in bytes.
const MODEL_BYTES_MAX: usize = 200;

impl ErrorBody {
    /// Returns true if an error with the status of a server fault says that the conversation is too
    /// long. llama.cpp detects this only while it answers, and routers replace the status of other
    /// servers. Servers that are loading or out of memory may also mention a window.
    pub(super) fn is_too_long(&self) -> bool {
        let text = window::lowered(&self.message);
        self.has_code(&WINDOW_CODES)
            || self.prompt_tokens > self.context_tokens && self.context_tokens.is_some()
            || CERTAINLY_TOO_LONG.says(&text)
            || window::names_a_long_conversation(&text)
                && !CERTAINLY_TOO_LONG.has(PhraseRole::Other, &text)
    }

    /// Returns true if the provider's filter refused the prompt.
    pub(super) fn is_content_filter(&self) -> bool {
        self.has_code(&FILTER_CODES)
        // Ark's codes name the checked text before `sensitivecontentdetected`, and the kind of
        // content after it.
        || self.codes.iter().any(|code| words::has(code, "sensitivecontentdetected"))
        // MiniMax's codes for a refused prompt and for a refused answer.
        || matches!(self.base_resp, 1026 | 1027)
        || FILTERED.any(&self.own_words())
        || self.has_code(&INVALID_PROMPT_CODES) && INVALID_PROMPT.any(&self.message)
    }

    /// Returns true if the error is a rate limit per minute, even if its code means an empty
    /// account.
    pub(super) fn is_limited(&self) -> bool {
        LIMITED.any(&self.own_words())
    }

    /// Returns true if the request body has too many bytes. Too many tokens, or an image that is
    /// too large, do not count.
    pub(super) fn is_too_large(&self) -> bool {
        TOO_LARGE.says(&self.own_words())
    }

    /// Returns true if the upstream does not know the model.
    pub(super) fn is_unknown_model(&self) -> bool {
        let text = self.own_words();
        self.has_code(&MODEL_CODES) || text.len() <= MODEL_BYTES_MAX && UNKNOWN_MODEL.any(&text)
    }

    /// Returns true if the error says nothing but that a path does not exist: a page of a router,
    /// or an empty body.
    pub(super) fn is_no_path(&self, model: &str) -> bool {
        // No server reports a missing model on a web page.
        if self.is_page {
            return true;
        }
        let text = super::without_quotes(&self.message);
        let is_of_model = |text: &str| {
            OF_MODEL.any(text) || model.len() > 2 && words::has(text, &model.to_ascii_lowercase())
        };
        if is_of_model(&text)
            || is_of_model(&self.rest.to_ascii_lowercase())
            || self.codes.iter().any(|code| is_of_model(code))
        {
            return false;
        }
        let is_routers = |word: &str| {
            word.bytes().all(|byte| byte.is_ascii_digit()) || NO_PATH_WORDS.lists(word)
        };
        text.len() <= NO_PATH_BYTES_MAX
            && (text.split(|letter: char| !letter.is_ascii_alphanumeric()).all(is_routers)
                && text.is_ascii()
                || NO_PATH.any(&text))
    }

    /// Returns true if the error says that a path does not exist, with an unrelated status such as
    /// LM Studio's 200.
    pub(super) fn names_no_path(&self) -> bool {
        let text = super::without_quotes(&self.message);
        text.len() <= NO_PATH_BYTES_MAX && NO_PATH.any(&text) && !OF_MODEL.any(&text)
    }

    /// Returns true if the server expects TLS, and got plain HTTP.
    pub(super) fn wants_tls(&self) -> bool {
        let text = self.own_words();
        text.len() <= MODEL_BYTES_MAX && WANTS_TLS.any(&text)
    }

    /// Returns true if an error with the status 404 is about the model, whose name is in the
    /// message, as with vLLM.
    pub(super) fn lacks_model(&self) -> bool {
        let text = self.own_words();
        let says = text.len() <= MODEL_BYTES_MAX
            && words::names(&text, "model").next().is_some()
            && NOT_THERE.any(&text);
        says || self.is_unknown_model()
    }

    /// Returns true if the account has no credit left, although the status is that of a rate limit
    /// or a bad request. Waiting does not help.
    pub(super) fn is_unpaid(&self) -> bool {
        // Codes such as `insufficient_quota`, `insufficient_user_quota` and `insufficient_balance`.
        let lacks = |code: &String| {
            // A code with a space is a sentence.
            !words::has_byte(code, b' ')
                && words::has(code, "insufficient")
                && words::has_any(code, &["quota", "balance", "credit"])
        };
        if self.is_limited() {
            return false;
        }
        let text = self.own_words();
        self.codes.iter().any(lacks)
            || self.has_code(&UNPAID_CODES)
            // Many servers have no code for an empty account.
            || UNPAID.any(&text)
            || USED_UP.any(&text)
                && self.retry_after().is_none()
                && !RATES.any(&text)
                && !words::has(&text, "try again")
    }

    /// Returns the beginning of the message up to the first possible quotation of a request or
    /// answer, in lower case.
    fn own_words(&self) -> String {
        let text = words::beginning(&self.message, OWN_WORDS_BYTES_MAX);
        let end = text.bytes().position(|byte| matches!(byte, b'{' | b'\n'));
        text.get(..end.unwrap_or(text.len())).unwrap_or_default().to_ascii_lowercase()
    }

    /// Returns true if the error has one of these codes.
    pub(super) fn has_code(&self, codes: &Wordings) -> bool {
        self.codes.iter().any(|code| codes.lists(code))
    }

    /// Returns true if the API key is wrong, which Google and xAI report as a bad request.
    pub(super) fn is_bad_key(&self) -> bool {
        let text = self.message.to_ascii_lowercase();
        self.has_code(&KEY_CODES)
            || BAD_KEY.phrases(PhraseRole::Alone).any(|start| text.starts_with(start))
    }

    /// Returns true if the error refuses one image, or the number of images.
    pub(super) fn is_one_image(&self, status: u16, context: &RequestContext) -> bool {
        let parameter = self.parameter.as_deref();
        if status == 415 {
            // The words `media type` belong to the name of status 415, and are no sign of an image.
            let message = self.message.to_ascii_lowercase().replace("media type", "type");
            return images::is_one_image(&message, parameter, context);
        }
        images::is_one_image(&self.message, parameter, context)
    }

    /// Returns the number of seconds after which a retry may succeed.
    pub(super) fn retry_after(&self) -> Option<u64> {
        let text = self.message.to_ascii_lowercase();
        let complaint = || {
            let mut words = RETRY_AFTER.phrases(PhraseRole::After);
            let (_, after) = words.find_map(|word| words::split_once(&text, word))?;
            let mut parts = after.split_ascii_whitespace();
            let number = words::trim_end(parts.next()?, b".,");
            let is_bare = number.ends_with(|last: char| last.is_ascii_digit());
            let factor = match if is_bare { parts.next()? } else { "" } {
                unit if unit.is_empty() || unit.starts_with("second") => 1,
                unit if unit.starts_with("minute") => 60,
                unit if unit.starts_with("hour") => 3600,
                _ => return None,
            };
            Some(duration(number)?.saturating_mul(factor))
        };
        Some(self.retry_after.or_else(complaint)?.div_ceil(1_000))
    }

    /// Returns the status that the error's code stands for, if the error has no numeric status.
    pub(super) fn status_of_codes(&self) -> Option<u16> {
        let of_minimax = match self.base_resp {
            1001 => Some(504),
            1002 | 1039 | 1041 => Some(429),
            1004 | 2049 => Some(401),
            1026 | 1027 | 2013 => Some(400),
            1008 | 2056 => Some(502),
            _ => None,
        };
        let of_account = || match self.is_limited() {
            true => Some(429),
            false => self.is_unpaid().then_some(402),
        };
        of_minimax
            .or_else(of_account)
            .or_else(|| self.codes.iter().find_map(|code| status_of(code)))
    }

    /// Returns true if the error remains until somebody pays, although SDKs retry its status.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(self.base_resp, 1008 | 2056)
    }
}

fn status_of(code: &str) -> Option<u16> {
    // Codes such as DashScope's `Throttling.RateQuota` and Bedrock's `ThrottlingException`.
    if code.starts_with("throttling") {
        return Some(429);
    }
    STATUSES.iter().find(|(_, codes)| codes.lists(code)).map(|(status, _)| *status)
}
