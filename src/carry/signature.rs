//! Signature of a thinking block, in which Creole stores data that the upstream needs back. The
//! client returns the signature with the block.
//!
//! The Messages API has one opaque text in each thinking block, which clients return unchanged.
//! Creole writes into this text the name of the field in which the upstream sent its reasoning, and
//! data that the block does not show: hidden reasoning, encrypted items, and signatures of tool
//! calls.
//!
//! ```text
//! base64 of:  "TXS" 01 │ field, 1 byte │ FNV-1a-64 of the shown text, 8 bytes │ records …
//! record:     tag, 1 byte │ length, 4 bytes │ data             (numbers are big-endian)
//!             1  full reasoning, if the shown text is empty or shortened
//!             2  JSON of opaque items of the upstream
//!             3  signature of a tool call: the client's id of the call, 00, the value; before the
//!                value, its member's name and 00, unless that is `extra_content.google`
//!             4  identifier of the upstream that thought, if there are several, or of its model
//!             5  input of a tool call: the client's id of the call, 00, the object
//! ```
//!
//! The signature is neither secret nor a proof: it holds only data that the client was given. The
//! hash only shows if the client has changed the text.
//!
//! Some clients join all thinking blocks of an answer into one. LangChain4j joins their texts and
//! their signatures with line breaks; Prism concatenates the signatures. Each signature begins with
//! its own mark, in the place of a record, so joined signatures are read as one signature with all
//! records.

use crate::text::words;

/// Maximum length of a signature in bytes. Clients store signatures and send them with every
/// request.
const LENGTH_MAX: usize = 256 << 10;

/// First bytes of each of Creole's signatures; the last byte is the version.
const MARK: [u8; 4] = *b"TXS\x01";

/// First bytes of `MARK` in base64, by which foreign signatures are ruled out quickly.
const MARK_TEXT: &str = "VFhT";

/// Prefix of the identifier of a model; the identifier of an upstream has only digits.
pub const MODEL: &str = "m:";

const TAG_FULL_TEXT: u8 = 1;
const TAG_OPAQUE: u8 = 2;
const TAG_CALL: u8 = 3;
const TAG_UPSTREAM: u8 = 4;
const TAG_INPUT: u8 = 5;

/// Form in which the upstream sent its reasoning: a field of Chat Completions, or an item of
/// Responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureField {
    /// Field `reasoning_content` (DeepSeek, llama.cpp, SGLang, Moonshot, …).
    ReasoningContent,
    /// Field `reasoning` (vLLM, Groq, OpenRouter, Ollama).
    Reasoning,
    /// Field `reasoning_text`.
    ReasoningText,
    /// Field `reasoning_details`, a list of items (OpenRouter).
    ReasoningDetails,
    /// Field `content` with parts of type `thinking` (Mistral).
    Parts,
    /// Field `thinking`.
    Thinking,
    /// Field `content` in chunks marked as reasoning (Vertex AI, Databricks). No server accepts
    /// such reasoning back.
    Marked,
    /// Field `content`, between `<think>` and `</think>` (servers without a parser for reasoning).
    Inline,
    /// Item of the Responses API, which is sent back unchanged.
    Item,
}

impl SignatureField {
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

/// Member of a tool call in which a gateway puts the call's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignaturePlace {
    /// Member `extra_content.google`, as Google itself sends.
    Google,
    /// Member `extra_content.vertex` (Vertex AI through a gateway).
    Vertex,
    /// Member `function` of the call (Portkey).
    Function,
    /// Member of the call itself, beside `function`.
    Call,
}

/// Names of the members that can hold a call's signature. Google's own member, used by nearly all,
/// needs no name.
const PLACES: [(&str, SignaturePlace); 3] = [
    ("vertex", SignaturePlace::Vertex),
    ("function", SignaturePlace::Function),
    ("call", SignaturePlace::Call),
];

/// Returns the data of a record with a tool call's signature: the name of the member that held the
/// signature, a zero byte, and the signature. Google's own member has no name.
#[must_use]
pub(crate) fn placed(place: SignaturePlace, signature: &str) -> String {
    match PLACES.iter().find(|(_, known)| *known == place) {
        Some((name, _)) => [name, "\0", signature].concat(),
        None => signature.to_owned(),
    }
}

/// Splits a record that [`placed`] wrote into the member and the signature.
#[must_use]
pub(crate) fn place_of(record: &str) -> (SignaturePlace, &str) {
    let Some((name, signature)) = words::split_once(record, "\0") else {
        return (SignaturePlace::Google, record);
    };
    let place = PLACES.iter().find(|(known, _)| *known == name);
    (place.map_or(SignaturePlace::Google, |(_, place)| *place), signature)
}

/// Contents of a signature that Creole wrote, or of several signatures joined by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Field in which the reasoning is sent back to the upstream.
    pub field: SignatureField,
    /// Hash ([`fnv1a64`]) of the text that was shown to the client.
    pub hash: u64,
    /// Hashes of the second and later texts, if a client joined several blocks.
    pub joined: Vec<u64>,
    /// Full reasoning, if the shown text is empty or shortened.
    pub full_text: Option<String>,
    /// JSON array of opaque items of the upstream.
    pub opaque: Option<String>,
    /// Pairs of the client's id of a call, and the upstream's signature of that call.
    pub call_signatures: Vec<(String, String)>,
    /// Identifier of the upstream or model that wrote the reasoning; empty if unknown.
    pub upstream: String,
    /// Pairs of the client's id of a call, and the input of that call. Some clients lose inputs of
    /// calls beside a thinking block.
    pub call_inputs: Vec<(String, String)>,
}

/// Returns true if a signature begins like Creole's own, even if its end is damaged. No other
/// upstream can use a signature of Creole.
#[must_use]
pub fn is_own(text: &str) -> bool {
    let start = text.get(..8).and_then(unbase64);
    start.is_some_and(|data| data.starts_with(&MARK))
}

impl Signature {
    /// Creates a signature with no data but the field and the hash of the shown text.
    #[must_use]
    pub fn of(field: SignatureField, hash: u64) -> Self {
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

    /// Returns the signature's text for the client, and false if an important record was left out
    /// to stay below 256 KiB. Records come in order of importance, first those without which an
    /// upstream refuses the next turn.
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
            // Records of inputs may be left out: they only help clients that lose inputs.
            add_record(&mut data, TAG_INPUT, [id, "\0", input]);
        }
        (base64(&data), fits)
    }

    /// Reads a signature, or several signatures joined with or without white space. Returns `None`
    /// if any signature is not Creole's.
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
                    // Old and new value are JSON arrays.
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
                // The identifier of a model contains that of its upstream.
                TAG_UPSTREAM if signature.upstream.starts_with(MODEL) => {}
                TAG_UPSTREAM => signature.upstream = record.to_owned(),
                // A later version with the same mark may add tags.
                _ => {}
            }
            rest = after;
        }
        Some(signature)
    }

    /// Returns true if the signature holds opaque items or signatures of calls, which the upstream
    /// wants back besides the text.
    #[must_use]
    pub fn has_items(&self) -> bool {
        self.opaque.is_some() || !self.call_signatures.is_empty()
    }

    /// Returns true if the reasoning certainly comes from another origin than the given identifiers
    /// of an upstream and its model.
    #[must_use]
    pub fn is_of_another(&self, upstream: &str, model: &str) -> bool {
        let mark = if self.upstream.starts_with(MODEL) { model } else { upstream };
        !self.upstream.is_empty() && !mark.is_empty() && self.upstream != mark
    }

    /// Returns true if `shown`, the block's text, is the text that was signed, or is empty and the
    /// signature holds the reasoning.
    #[must_use]
    pub fn matches(&self, shown: &str) -> bool {
        let is_signed = match self.joined.is_empty() {
            true => fnv1a64(shown.as_bytes()) == self.hash,
            false => self.is_joined(shown.as_bytes()),
        };
        is_signed || (shown.is_empty() && self.full_text.is_some())
    }

    /// Returns true if a text consists of all signed texts in order. The texts are joined with line
    /// breaks, without them, or with line breaks between nonempty texts only.
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

/// Reads the field and the hash at the start of a signature, and returns the bytes after them.
fn begin(data: &[u8]) -> Option<(SignatureField, u64, &[u8])> {
    let (code, rest) = data.strip_prefix(&MARK)?.split_first()?;
    let (hash, rest) = rest.split_first_chunk()?;
    let field = SignatureField::ALL.into_iter().find(|field| field.code() == *code)?;
    Some((field, u64::from_be_bytes(*hash), rest))
}

/// Finds the text with this hash at the start of `text`, perhaps after line breaks, and returns the
/// bytes after that text. Takes time in proportion to the length of the found text.
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

/// Adds a record, whose data is given in parts, to the data of a signature. Returns false and adds
/// nothing if the record does not fit.
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

/// FNV-1a hash with 64 bits, of a text that is given in pieces.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Fnv {
    /// Creates the hash of an empty text.
    #[must_use]
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a piece of the text to the hash.
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

/// Encodes bytes in standard base64 with padding.
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
