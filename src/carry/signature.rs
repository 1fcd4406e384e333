//! The signature of a thinking block: what the upstream needs back, carried by the client.
//!
//! The Messages API has one opaque text in each thinking block that clients return unchanged. In
//! there goes the name of the field in which the upstream gave its reasoning, and whatever cannot
//! be seen in the block: reasoning that is not shown, encrypted items, signatures of tool calls.
//!
//! ```text
//! base64 of:  "TXS" 01 │ field, 1 byte │ FNV-1a-64 of the shown text, 8 bytes │ records …
//! record:     tag, 1 byte │ length, 4 bytes │ data             (numbers are big-endian)
//!             1  the full reasoning, where the shown text is empty or shortened
//!             2  JSON of opaque items of the upstream
//!             3  signature of a tool call: the client's id of the call, 00, the value; where the value did not come
//!                in `extra_content.google`, the name of its place and 00 are before it
//!             4  the mark of the upstream that thought, where there are several, or of its model
//!             5  input of a tool call: the client's id of the call, 00, the object
//! ```
//!
//! It is no secret and proves nothing: it holds only what the client was given. The hash tells
//! whether the client has changed the text, no more.
//!
//! Some clients make one thinking block of all in an answer. LangChain4j joins their texts with a
//! line break, and their signatures as well; Prism writes the signatures one behind another. Since
//! each begins with its mark, where a record could, they are read as one that has the records of
//! all.

use crate::text::words;

/// Longest signature, in bytes of its text. Clients store it and send it with every request.
const LENGTH_MAX: usize = 256 << 10;

/// First bytes of every signature of ours; the last one is the version.
const MARK: [u8; 4] = *b"TXS\x01";

/// The first bytes of `MARK` in base64, by which a foreign signature is known at once.
const MARK_TEXT: &str = "VFhT";

/// Start of a model's mark; the mark of an upstream has digits only.
pub const MODEL: &str = "m:";

const TAG_FULL_TEXT: u8 = 1;
const TAG_OPAQUE: u8 = 2;
const TAG_CALL: u8 = 3;
const TAG_UPSTREAM: u8 = 4;
const TAG_INPUT: u8 = 5;

/// Form in which the reasoning came: a field of Chat Completions, or an item of Responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `reasoning_content` (DeepSeek, llama.cpp, SGLang, Moonshot, …)
    ReasoningContent,
    /// `reasoning` (vLLM, Groq, OpenRouter, Ollama)
    Reasoning,
    /// `reasoning_text`
    ReasoningText,
    /// `reasoning_details`, a list of items (OpenRouter)
    ReasoningDetails,
    /// `content` with parts of type `thinking` (Mistral)
    Parts,
    /// `thinking`
    Thinking,
    /// `content` that is marked as reasoning (Vertex AI, Databricks). No server takes it back.
    Marked,
    /// `content`, between `<think>` and `</think>` (servers without a parser for reasoning)
    Inline,
    /// An item of Responses. It goes back as it came, whatever of it was shown.
    Item,
}

impl Field {
    const ALL: [Self; 9] = [
        Self::ReasoningContent,
        Self::Reasoning,
        Self::ReasoningText,
        Self::ReasoningDetails,
        Self::Parts,
        Self::Thinking,
        Self::Marked,
        Self::Inline,
        Self::Item,
    ];

    /// Returns the field's name in messages and deltas, or the type of the item.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::ReasoningText => "reasoning_text",
            Self::ReasoningDetails => "reasoning_details",
            Self::Thinking => "thinking",
            Self::Parts | Self::Marked | Self::Inline => "content",
            Self::Item => "reasoning",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::ReasoningContent => 1,
            Self::Reasoning => 2,
            Self::ReasoningText => 3,
            Self::ReasoningDetails => 4,
            Self::Parts => 5,
            Self::Thinking => 6,
            Self::Marked => 7,
            Self::Inline => 8,
            Self::Item => 9,
        }
    }
}

/// Place where a gateway puts the signature of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignaturePlace {
    /// `extra_content.google`, as at Google itself.
    Google,
    /// `extra_content.vertex` (Vertex AI behind a gateway).
    Vertex,
    /// `function` (Portkey).
    Function,
    /// The call itself, beside `function`.
    Call,
}

/// The names of the places where the signature of a call can be. Google's own, where nearly all
/// are, has none.
const PLACES: [(&str, SignaturePlace); 3] = [
    ("vertex", SignaturePlace::Vertex),
    ("function", SignaturePlace::Function),
    ("call", SignaturePlace::Call),
];

/// Returns a call's signature as the record has it: behind the name of its place and 00.
#[must_use]
pub(crate) fn placed(place: SignaturePlace, signature: &str) -> String {
    match PLACES.iter().find(|(_, known)| *known == place) {
        Some((name, _)) => [name, "\0", signature].concat(),
        None => signature.to_owned(),
    }
}

/// Splits a record that [`placed`] wrote into the place and the signature.
#[must_use]
pub(crate) fn place_of(record: &str) -> (SignaturePlace, &str) {
    let Some((name, signature)) = words::split_once(record, "\0") else {
        return (SignaturePlace::Google, record);
    };
    let place = PLACES.iter().find(|(known, _)| *known == name);
    (place.map_or(SignaturePlace::Google, |(_, place)| *place), signature)
}

/// Contents of a signature of ours, or of several that a client joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Field in which the reasoning goes back.
    pub field: Field,
    /// [`fnv1a64`] of the text that the client was shown.
    pub hash: u64,
    /// Hashes of the texts after the first, where a client joined several.
    pub joined: Vec<u64>,
    /// The full reasoning, where the shown text is empty or shortened.
    pub full_text: Option<String>,
    /// JSON of opaque items of the upstream.
    pub opaque: Option<String>,
    /// The client's ids of calls, and the upstream's signatures of them.
    pub call_signatures: Vec<(String, String)>,
    /// The mark of the upstream that thought, or nothing.
    pub upstream: String,
    /// The client's ids of calls and their inputs, for clients that lose them beside a thinking
    /// block.
    pub call_inputs: Vec<(String, String)>,
}

/// Whether a signature begins as ours do, whatever became of the rest: no other upstream can use
/// it.
#[must_use]
pub fn is_own(text: &str) -> bool {
    let start = text.get(..8).and_then(unbase64);
    start.is_some_and(|data| data.starts_with(&MARK))
}

impl Signature {
    /// Makes a signature that says no more than what was shown.
    #[must_use]
    pub fn of(field: Field, hash: u64) -> Self {
        Self {
            field,
            hash,
            joined: Vec::new(),
            full_text: None,
            opaque: None,
            call_signatures: Vec::new(),
            upstream: String::new(),
            call_inputs: Vec::new(),
        }
    }

    /// Returns the text for the client, and whether it holds everything that matters. Records that
    /// would make it longer than 256 KiB are left out; the ones without which an upstream refuses
    /// the next turn come first.
    #[must_use]
    pub fn encode(&self) -> (String, bool) {
        let mut data = MARK.to_vec();
        data.push(self.field.code());
        data.extend_from_slice(&self.hash.to_be_bytes());
        let mut fits = true;
        if !self.upstream.is_empty() {
            fits &= add_record(&mut data, TAG_UPSTREAM, ["", "", &self.upstream]);
        }
        for (id, value) in &self.call_signatures {
            fits &= add_record(&mut data, TAG_CALL, [id, "\0", value]);
        }
        if let Some(items) = &self.opaque {
            fits &= add_record(&mut data, TAG_OPAQUE, ["", "", items]);
        }
        if let Some(text) = &self.full_text {
            fits &= add_record(&mut data, TAG_FULL_TEXT, ["", "", text]);
        }
        for (id, input) in &self.call_inputs {
            // These may be left out: they only help clients that lose inputs.
            add_record(&mut data, TAG_INPUT, [id, "\0", input]);
        }
        (base64(&data), fits)
    }

    /// Reads a signature, or several with white space or nothing between them. Returns `None` if
    /// one is not ours.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        if !text.starts_with(MARK_TEXT) {
            return None;
        }
        let data = unbase64(text)?;
        let (field, hash, mut rest) = begin(&data)?;
        let mut signature = Self::of(field, hash);
        while let Some((tag, after)) = rest.split_first() {
            if let Some((_, hash, after)) = begin(rest) {
                signature.joined.push(hash);
                rest = after;
                continue;
            }
            let (length, after) = after.split_first_chunk()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (record, after) = after.split_at_checked(length)?;
            let record = std::str::from_utf8(record).ok()?;
            match *tag {
                TAG_FULL_TEXT => {
                    signature.full_text.get_or_insert_default().push_str(record);
                }
                TAG_OPAQUE => match &mut signature.opaque {
                    // Both are arrays.
                    Some(items) => {
                        items.pop();
                        items.push(',');
                        items.push_str(record.get(1..).unwrap_or_default());
                    }
                    None => signature.opaque = Some(record.to_owned()),
                },
                TAG_CALL | TAG_INPUT => {
                    let (id, value) = words::split_once(record, "\0")?;
                    let calls = match *tag {
                        TAG_CALL => &mut signature.call_signatures,
                        _ => &mut signature.call_inputs,
                    };
                    calls.push((id.to_owned(), value.to_owned()));
                }
                // A model's mark has that of its upstream in it.
                TAG_UPSTREAM if signature.upstream.starts_with(MODEL) => {}
                TAG_UPSTREAM => signature.upstream = record.to_owned(),
                // Of a later version that kept the mark.
                _ => {}
            }
            rest = after;
        }
        Some(signature)
    }

    /// Returns true if the signature holds something besides the text that the upstream wants back.
    #[must_use]
    pub fn has_items(&self) -> bool {
        self.opaque.is_some() || !self.call_signatures.is_empty()
    }

    /// Returns true if the reasoning is known to come from another upstream than the one with the
    /// mark `upstream`, or from another model than the one with the mark `model`.
    #[must_use]
    pub fn is_of_another(&self, upstream: &str, model: &str) -> bool {
        let mark = if self.upstream.starts_with(MODEL) { model } else { upstream };
        !self.upstream.is_empty() && !mark.is_empty() && self.upstream != mark
    }

    /// Returns true if `shown`, the block's text, is the one that was signed, or the signature
    /// itself holds the reasoning.
    #[must_use]
    pub fn matches(&self, shown: &str) -> bool {
        let is_signed = match self.joined.is_empty() {
            true => fnv1a64(shown.as_bytes()) == self.hash,
            false => self.is_joined(shown.as_bytes()),
        };
        is_signed || (shown.is_empty() && self.full_text.is_some())
    }

    /// Returns true if a text is all the signed texts, one after another: with a line break behind
    /// each, behind each but the empty ones, or behind none.
    fn is_joined(&self, mut text: &[u8]) -> bool {
        let mut breaks_max = 0usize;
        for hash in std::iter::once(&self.hash).chain(&self.joined) {
            if *hash != Fnv::new().finish() {
                let Some(rest) = behind(text, *hash, breaks_max) else { return false };
                text = rest;
                breaks_max = 0;
            }
            breaks_max = breaks_max.saturating_add(1);
        }
        text.len() <= breaks_max && text.iter().all(|byte| *byte == b'\n')
    }
}

/// Reads the field and the hash at the start of a signature, and returns what follows them.
fn begin(data: &[u8]) -> Option<(Field, u64, &[u8])> {
    let (code, rest) = data.strip_prefix(&MARK)?.split_first()?;
    let (hash, rest) = rest.split_first_chunk()?;
    let field = Field::ALL.into_iter().find(|field| field.code() == *code)?;
    Some((field, u64::from_be_bytes(*hash), rest))
}

/// Returns what follows the text with this hash at the start of `text`, perhaps behind line breaks.
/// Takes time in proportion to what it passes.
fn behind(text: &[u8], hash: u64, breaks_max: usize) -> Option<&[u8]> {
    let breaks = text.iter().take(breaks_max).take_while(|byte| **byte == b'\n').count();
    // A text can begin with line breaks of its own.
    let mut found = [0, breaks.min(1), breaks].map(|start| (start, Fnv::new()));
    for (at, byte) in text.iter().enumerate() {
        for (_, known) in found.iter_mut().filter(|(start, _)| *start <= at) {
            known.update(&[*byte]);
        }
        if found.iter().any(|(_, known)| known.finish() == hash) {
            return text.get(at.saturating_add(1)..);
        }
    }
    None
}

/// Adds a record whose data comes in parts, if it fits. Says whether it did.
fn add_record(data: &mut Vec<u8>, tag: u8, parts: [&str; 3]) -> bool {
    let length = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()));
    let total = data.len().saturating_add(5).saturating_add(length);
    match u32::try_from(length) {
        Ok(length) if base64_length(total) <= LENGTH_MAX => {
            data.push(tag);
            data.extend_from_slice(&length.to_be_bytes());
            parts.iter().for_each(|part| data.extend_from_slice(part.as_bytes()));
            true
        }
        _ => false,
    }
}

/// FNV-1a with 64 bits, of a text that comes in pieces.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Fnv {
    /// Starts with the hash of an empty text.
    #[must_use]
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        for byte in piece {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the hash of all pieces so far.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }
}

impl Default for Fnv {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the 64-bit FNV-1a hash of a text.
#[must_use]
pub fn fnv1a64(data: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.update(data);
    hash.finish()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Encodes in standard base64 with padding.
fn base64(data: &[u8]) -> String {
    let mut text = String::with_capacity(base64_length(data.len()));
    for group in data.chunks(3) {
        let byte = |at| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (at, shift) in [18u32, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS.get((bits.wrapping_shr(shift) & 63) as usize);
            // A group of n bytes has n + 1 digits.
            text.push(if at <= group.len() { digit.map_or('=', |d| char::from(*d)) } else { '=' });
        }
    }
    text
}

/// Decodes standard base64, with or without padding, or several encoded texts in a row.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut data = Vec::with_capacity(text.len());
    let parts = text.split_ascii_whitespace().map(|part| words::trim_end(part, b"="));
    for group in parts.flat_map(|part| part.as_bytes().chunks(4)) {
        let last = group.iter().rposition(|digit| *digit != b'=')?;
        let group = group.get(..=last)?;
        let mut bits = 0u32;
        for at in 0..4 {
            let value = match group.get(at) {
                Some(digit @ b'A'..=b'Z') => digit.wrapping_sub(b'A'),
                Some(digit @ b'a'..=b'z') => digit.wrapping_sub(b'a').wrapping_add(26),
                Some(digit @ b'0'..=b'9') => digit.wrapping_sub(b'0').wrapping_add(52),
                Some(b'+') => 62,
                Some(b'/') => 63,
                Some(_) => return None,
                None => 0,
            };
            bits = (bits << 6) | u32::from(value);
        }
        let [_, first, second, third] = bits.to_be_bytes();
        let bytes = [first, second, third];
        data.extend_from_slice(bytes.get(..group.len().checked_sub(1).filter(|n| *n > 0)?)?);
    }
    Some(data)
}

#[cfg(test)]
mod tests;
