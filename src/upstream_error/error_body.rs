//! Parser for error bodies of upstreams: message, codes and numbers, in many different shapes.
//!
//! ```text
//! {"error": {"message": …, "code": …}}    OpenAI and most      {"detail": [{"loc": …, "msg": …}]}  FastAPI
//! {"error": "…", "code": "…"}             xAI, Ollama          {"base_resp": {"status_code": …}}   MiniMax
//! {"message": …, "type": …}               Mistral, old vLLM    {"errors": [{"message": …}]}        Cloudflare
//! [{"error": …}]                          Gemini               {"choices": [{"error": …}]}         OpenRouter
//! ```

mod values;

use super::page;
use crate::headers::time::duration;
use crate::json::{self, Reader, ValueKind};
use crate::model::usage::number;
use crate::text::words;
use values::{complaint, is_sentence, members};

/// Maximum number of bytes of an error message that are searched, because the searches take more
/// than linear time.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Maximum depth of nested objects in an error. Gateways embed the error of the next gateway as a
/// string, which counts as a further level.
const DEPTH_MAX: usize = 8;

/// Names of members that hold an error message, or an object or list with one; best names first.
const NAMES: [&str; 7] = [
    "error Error err exception fault choices x_groq",
    "message Message",
    "detail",
    "msg error_msg errmsg error_message errorMessage error_description faultstring",
    "errors",
    // Names at NVIDIA's gateway, Writer and FastChat.
    "title statusDescription description text",
    // Names of Azure's reason, at NVIDIA's gateway, and at MiniMax.
    "innererror requestStatus base_resp",
];

/// Names of members that hold an error code.
const CODES: &str =
    "code type status status_code statusCode error_code error_type errorType errcode StatusCode";

/// Maximum number of error codes that are logged.
const PLAIN_CODES_MAX: usize = 4;

/// Returns true if an error code is a single word or number, and not a sentence that may quote a
/// request.
fn is_plain_code(code: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    (1..=64).contains(&code.len()) && code.bytes().all(is_letter)
}

/// Path of a text in an error body: the rank of the member's name at each level. A text with a
/// lower path is more likely the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct JsonPath {
    path: [u8; DEPTH_MAX],
    depth: usize,
}

impl JsonPath {
    /// Creates the path of a text inside of `depth` nested objects.
    fn inside(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    fn at(mut self, order: u8) -> Self {
        if let Some(level) = self.path.get_mut(self.depth) {
            *level = order;
            self.depth = self.depth.saturating_add(1);
        }
        self
    }
}

/// Message, codes and numbers parsed from an upstream's error body.
#[derive(Debug, Default)]
pub(super) struct ErrorBody {
    /// Message of the error, trimmed; empty if there is none.
    pub(super) message: String,
    /// HTTP status stated in the body: a number from 400 to 599.
    pub(super) status: Option<u16>,
    /// Number of tokens of the prompt: llama.cpp's `n_prompt_tokens`.
    pub(super) prompt_tokens: Option<u64>,
    /// Number of tokens of the context window: llama.cpp's `n_ctx`.
    pub(super) context_tokens: Option<u64>,
    /// Values of all members called `code`, `type` or the like, in lower case.
    pub(super) codes: Vec<String>,
    /// Codes that are a single word or number, and may be logged.
    pub(super) plain_codes: Vec<String>,
    /// MiniMax's `base_resp.status_code`, which is no HTTP status; 0 if there is none.
    pub(super) base_resp: u64,
    /// Value of `details.error_code`, which some clients act on.
    pub(super) error_code: Option<String>,
    /// True if the error body is a web page.
    pub(super) is_page: bool,
    /// Time to wait before a retry, in milliseconds; Gemini sends it in the body instead of a
    /// header.
    pub(super) retry_after: Option<u64>,
    /// Path at which the message was found; a text with a lower path replaces the message.
    place: Option<JsonPath>,
    /// Message of the server behind a router: OpenRouter's `metadata.raw`, Databricks'
    /// `external_model_error`.
    raw: String,
    /// First sentence in a member called `reason` or `param`. Elastic and Xiaomi use these members,
    /// and a vague message.
    reason: String,
    /// Name of the refused parameter, from a member called `param`.
    pub(super) parameter: Option<String>,
    /// Sentences in members with unknown names, in which routers hide the messages of other
    /// servers. Only searched, never shown.
    pub(super) rest: String,
}

impl ErrorBody {
    /// Parses a whole error body, the value of its member `error`, or plain text.
    pub(super) fn read(text: &str) -> Self {
        let text = words::bare(text);
        // The body may be a single event of a stream.
        let is_event = text.starts_with("data:") || text.starts_with("event:");
        let data = text.lines().find_map(|line| line.strip_prefix("data:"));
        let mut error_body = Self::read_json(data.filter(|_| is_event).unwrap_or(text), 0);
        let raw = std::mem::take(&mut error_body.raw);
        if !raw.is_empty() {
            let inner = error_body.merge(&raw, 1);
            error_body.append(inner);
        }
        let reason = std::mem::take(&mut error_body.reason);
        if error_body.message.is_empty() || is_sentence(&reason) {
            error_body.append(reason);
        }
        let end = words::beginning(&error_body.message, MESSAGE_BYTES_MAX).len();
        words::truncate(&mut error_body.message, end);
        // A message such as `Throttling: too many requests` begins with a code.
        if let Some((word, _)) = words::split_once(&error_body.message, ":") {
            error_body.codes.push(word.to_ascii_lowercase());
        }
        error_body
    }

    /// Creates an error from a code alone, with a message made of the code.
    pub(super) fn of_code(code: &str, message: String) -> Self {
        Self { message, codes: vec![code.to_owned()], ..Self::default() }
    }

    /// Adds a text to the message, and cuts the joined text at the limit, because searches in
    /// longer texts would be slow.
    fn append(&mut self, mut text: String) {
        for text in [&mut text, &mut self.message] {
            let end = words::beginning(text, MESSAGE_BYTES_MAX).len();
            words::truncate(text, end);
        }
        if self.message.is_empty() {
            self.message = text;
        } else if !words::has(&self.message, &text) {
            self.message.push_str(": ");
            self.message.push_str(&text);
        }
    }

    /// Parses a JSON body or, if the text is no JSON, plain text. `depth`: the number of objects
    /// around the text.
    fn read_json(text: &str, depth: usize) -> Self {
        let mut error_body = Self::default();
        // A body that was cut off still has the members before the cut.
        let mut reader = Reader::of(text);
        let result =
            error_body.value(&mut reader, JsonPath::inside(depth)).and_then(|()| reader.end());
        if result.is_err() && error_body.message.is_empty() {
            error_body.message = page::text_of(text);
            error_body.is_page = page::is_page(text);
        }
        error_body
    }

    /// Parses an error embedded in a string, and returns its message.
    fn merge(&mut self, text: &str, depth: usize) -> String {
        let inner = Self::read_json(text, depth);
        self.status = self.status.or(inner.status);
        self.prompt_tokens = self.prompt_tokens.or(inner.prompt_tokens);
        self.context_tokens = self.context_tokens.or(inner.context_tokens);
        self.retry_after = self.retry_after.or(inner.retry_after);
        self.codes.extend(inner.codes);
        self.plain_codes.extend(inner.plain_codes);
        self.add_rest(&inner.rest);
        if self.raw.is_empty() {
            self.raw = inner.raw;
        }
        if !is_sentence(&self.reason) {
            self.reason = inner.reason;
        }
        self.parameter = self.parameter.take().or(inner.parameter);
        inner.message
    }

    fn value(&mut self, reader: &mut Reader<'_>, place: JsonPath) -> Result<(), json::Error> {
        match reader.kind()? {
            ValueKind::String => self.take(&reader.string()?.decode(), place),
            ValueKind::Object => self.object(reader, place)?,
            ValueKind::Array => {
                reader.begin_array()?;
                while reader.next_element()? {
                    self.value(reader, place)?;
                }
            }
            ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                reader.skip()?;
            }
        }
        Ok(())
    }

    /// Sets the message to a text found at `place`, unless the current message has a better path.
    /// The text found may be embedded JSON.
    fn take(&mut self, text: &str, place: JsonPath) {
        let text = text.trim();
        if !self.is_better(text, place) {
            return;
        }
        let is_json = text.starts_with(['{', '[']) && place.depth < DEPTH_MAX - 1;
        if is_json {
            let inner = self.merge(text, place.depth.saturating_add(1));
            self.take_plain(&inner, place);
        } else {
            self.take_plain(text, place);
        }
    }

    /// Sets the message to a text found at `place`, unless the current message has a better path.
    /// The text found is not parsed as JSON.
    fn take_plain(&mut self, text: &str, place: JsonPath) {
        let text = text.trim();
        if self.is_better(text, place) {
            self.place = Some(place);
            text.clone_into(&mut self.message);
        }
    }

    fn is_better(&self, text: &str, place: JsonPath) -> bool {
        !text.is_empty() && self.place.is_none_or(|best| place < best)
    }

    fn object(&mut self, reader: &mut Reader<'_>, place: JsonPath) -> Result<(), json::Error> {
        if place.depth == DEPTH_MAX {
            reader.skip()?;
            return Ok(());
        }
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let key = key.decode();
            let known = NAMES.iter().zip(1..).find(|(names, _)| words::is_among(names, &key));
            let inner = known.map(|(_, order)| place.at(order));
            match (&*key, inner) {
                ("detail", Some(place)) => self.detail(reader, place)?,
                ("base_resp", Some(place)) => self.base_resp(reader, place)?,
                ("choices", Some(place)) => self.choices(reader, place)?,
                (_, Some(place)) => self.value(reader, place)?,
                ("metadata", _) => self.metadata(reader)?,
                // Databricks puts the error of the server behind it into `external_model_error` or
                // `external_model_message`.
                ("external_model_error" | "external_model_message", _) => self.raw(reader)?,
                ("details", _) => self.details(reader, place.depth)?,
                (key @ ("reason" | "param"), _) if reader.kind()? == ValueKind::String => {
                    let text = reader.string()?.decode();
                    let is_taken = key == "reason" || is_sentence(&text);
                    if is_taken && !is_sentence(&self.reason) {
                        text.trim().clone_into(&mut self.reason);
                    }
                    if key == "param" && !is_taken {
                        self.parameter = Some(text.into_owned());
                    }
                }
                (key, _) if words::is_among(CODES, key) => self.code(reader)?,
                // Hugging Face sends `estimated_time` until a model is loaded.
                ("retry_after" | "retryAfter" | "estimated_time", _)
                    if matches!(reader.kind()?, ValueKind::Number) =>
                {
                    self.retry_after = duration(reader.number()?);
                }
                ("n_prompt_tokens", _) => self.prompt_tokens = number(reader)?,
                ("n_ctx", _) => self.context_tokens = number(reader)?,
                (key, _) => self.other(reader, key, place.depth)?,
            }
        }
        Ok(())
    }

    /// Reads a member with an unknown name. Members that repeat the request or the model's output
    /// (Groq's `failed_generation`) are ignored.
    fn other(
        &mut self,
        reader: &mut Reader<'_>,
        key: &str,
        depth: usize,
    ) -> Result<(), json::Error> {
        let key = key.to_ascii_lowercase();
        let is_quoted = key.starts_with("request")
            || ["prompt", "messages", "input", "body", "tools"].contains(&key.as_str())
            || words::has_any(&key, &["generation", "output", "completion", "content"]);
        match reader.kind()? {
            ValueKind::String if !is_quoted => {
                let text = reader.string()?.decode();
                if key == "retrydelay" {
                    self.retry_after = duration(text.trim());
                } else if is_sentence(&text) {
                    self.add_rest(&text);
                }
            }
            ValueKind::Object if !is_quoted && depth < DEPTH_MAX => {
                reader.begin_object()?;
                while let Some(key) = reader.next_key()? {
                    self.other(reader, &key.decode(), depth.saturating_add(1))?;
                }
            }
            ValueKind::Array if !is_quoted && depth < DEPTH_MAX => {
                reader.begin_array()?;
                while reader.next_element()? {
                    self.other(reader, "", depth.saturating_add(1))?;
                }
            }
            _ => {
                reader.skip()?;
            }
        }
        Ok(())
    }

    fn add_rest(&mut self, text: &str) {
        let bytes = MESSAGE_BYTES_MAX.saturating_sub(self.rest.len());
        self.rest.push_str(words::beginning(text, bytes));
        if !text.is_empty() {
            self.rest.push_str("; ");
        }
    }

    /// Reads FastAPI's `detail`: a text, or a list of complaints with their paths in the request.
    fn detail(&mut self, reader: &mut Reader<'_>, place: JsonPath) -> Result<(), json::Error> {
        if reader.kind()? != ValueKind::Array {
            return self.value(reader, place);
        }
        let mut all = String::new();
        reader.begin_array()?;
        while reader.next_element()? {
            let item = if reader.kind()? == ValueKind::Object {
                complaint(reader)?
            } else {
                Self::read_json(reader.skip()?, DEPTH_MAX - 1).message
            };
            if !item.is_empty() {
                all.push_str(if all.is_empty() { "" } else { "; " });
                all.push_str(&item);
            }
        }
        self.take_plain(&all, place);
        Ok(())
    }

    fn code(&mut self, reader: &mut Reader<'_>) -> Result<(), json::Error> {
        let code = match reader.kind()? {
            ValueKind::String => reader.string()?.decode().trim().to_ascii_lowercase(),
            // Servers in Lua write a code as `400.0`.
            ValueKind::Number => number(reader)?.unwrap_or_default().to_string(),
            _ => {
                reader.skip()?;
                return Ok(());
            }
        };
        let status = code.parse::<u64>().ok().and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|status| (400..600).contains(status));
        self.status = self.status.or(status);
        if self.plain_codes.len() < PLAIN_CODES_MAX && is_plain_code(&code) {
            self.plain_codes.push(code.clone());
        }
        self.codes.push(code);
        Ok(())
    }

    fn base_resp(&mut self, reader: &mut Reader<'_>, place: JsonPath) -> Result<(), json::Error> {
        let mut text = String::new();
        members(reader, &mut |key, reader| {
            match (key, reader.kind()?) {
                ("status_code", _) => self.base_resp = number(reader)?.unwrap_or_default(),
                ("status_msg", ValueKind::String) => text = reader.string()?.decode().into_owned(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if self.base_resp != 0 {
            self.take(&text, place);
        }
        Ok(())
    }

    /// Reads the error in a choice, where OpenRouter reports an error in the middle of an answer.
    fn choices(&mut self, reader: &mut Reader<'_>, place: JsonPath) -> Result<(), json::Error> {
        if reader.kind()? != ValueKind::Array {
            reader.skip()?;
            return Ok(());
        }
        reader.begin_array()?;
        while reader.next_element()? {
            members(reader, &mut |key, reader| {
                if key == "error" {
                    self.value(reader, place)?;
                }
                Ok(key == "error")
            })?;
        }
        Ok(())
    }

    fn metadata(&mut self, reader: &mut Reader<'_>) -> Result<(), json::Error> {
        members(reader, &mut |key, reader| {
            match key {
                "raw" => self.raw(reader)?,
                "error_type" => self.code(reader)?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    fn raw(&mut self, reader: &mut Reader<'_>) -> Result<(), json::Error> {
        match reader.kind()? {
            ValueKind::String => reader.string()?.decode().trim().clone_into(&mut self.raw),
            ValueKind::Object => reader.skip()?.clone_into(&mut self.raw),
            _ => {
                reader.skip()?;
            }
        }
        Ok(())
    }

    /// Reads the Messages API's `details`. Only a single word is used, because anything else could
    /// be a credential.
    fn details(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<(), json::Error> {
        if reader.kind()? != ValueKind::Object {
            return self.other(reader, "", depth);
        }
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            if key != *"error_code" || reader.kind()? != ValueKind::String {
                self.other(reader, &key.decode(), depth)?;
                continue;
            }
            let code = reader.string()?.decode();
            let is_letter = |byte: u8| byte == b'_' || byte.is_ascii_lowercase();
            let is_word = (1..=64).contains(&code.len()) && code.bytes().all(is_letter);
            self.error_code = is_word.then(|| code.into_owned());
        }
        Ok(())
    }
}
