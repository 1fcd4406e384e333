//! Decompression of upstream responses that are compressed although the request asked for
//! `identity`.
//!
//! Proxies in front of a model may compress a response, forget the header for it, or set the header
//! on a plain body. So the first bytes decide. The size of the output is limited by the size of the
//! input, so that a small response cannot unpack to an endless one.

use std::io::{self, Write as _};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use creole::Header;
use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};
use http_body::Body as _;
use hyper::body::Incoming;

/// Number of compressed bytes that are unpacked at one time. The output may be a thousand times as
/// large.
const STEP_BYTES: usize = 1 << 10;

/// Maximum ratio of output to input. Texts of models shrink to a tenth, and the similar chunks of a
/// stream to a fiftieth.
const RATIO_MAX: u64 = 200;

/// Number of output bytes for which the ratio is not checked, because a short response may be very
/// repetitive.
const ANY_RATIO_BYTES: u64 = 1 << 20;

/// Number of first bytes of a body that are enough to recognize its compression.
const MAGIC_BYTES: usize = 3;

/// Coding that the headers of an upstream's response name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Nothing,
    Gzip,
    Deflate,
}

/// Coding of a body, with the state of its decoder.
#[derive(Debug)]
enum Coding {
    /// Coding not known yet, because too few bytes have arrived.
    Unknown(Claim, Vec<u8>),
    Plain,
    Gzip(Member),
    Zlib(ZlibDecoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>),
    /// The compressed body has ended. Later bytes are padding or a line end, and are ignored.
    Over,
}

/// Current member of a gzip body, which may consist of several members.
#[derive(Debug)]
struct Member {
    decoder: GzDecoder<Vec<u8>>,
    /// True if a whole gzip member came before this member, and this member has produced no output.
    /// The bytes may then be no gzip member at all.
    is_doubtful: bool,
}

/// Reason for which a response body cannot be read further.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection to the upstream broke.
    Connection(hyper::Error),
    /// The bytes end before the compressed body is complete.
    Cut,
    /// The bytes are not valid in the recognized coding, or unpack to too much.
    Coding(io::Error),
}

/// Body of an upstream's response, decompressed.
#[derive(Debug)]
pub(crate) struct DecompressedBody {
    body: Incoming,
    coding: Coding,
    /// Received bytes that are not unpacked yet.
    rest: Bytes,
    ended: bool,
    read: u64,
    given: u64,
}

impl DecompressedBody {
    /// Returns the decompressed body, and removes `content-encoding` from the headers if the
    /// gateway can decode it, because the exchange reads the decoded bytes.
    pub(crate) fn new(body: Incoming, headers: &mut Vec<Header>) -> Self {
        let claim = claim(headers);
        if claim.is_some_and(|claim| claim != Claim::Nothing) {
            headers.retain(|(name, _)| name != "content-encoding");
        }
        // The exchange refuses a coding that the gateway cannot decode.
        let coding = claim.map_or(Coding::Plain, |claim| Coding::Unknown(claim, Vec::new()));
        Self { body, coding, rest: Bytes::new(), ended: false, read: 0, given: 0 }
    }

    /// Returns the next decompressed chunk; `None` at the end of the body.
    pub(crate) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            if let Some(piece) = self.unpacked().transpose() {
                return Poll::Ready(Some(piece));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => self.ended = true,
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(Broken::Connection(error)))),
            }
        }
    }

    /// Returns the unread part of the upstream's body, still compressed.
    pub(crate) fn into_body(self) -> Incoming {
        self.body
    }

    /// Unpacks the bytes of the body that have arrived, and returns the output that is ready.
    fn unpacked(&mut self) -> Result<Option<Bytes>, Broken> {
        if let Coding::Unknown(claim, first) = &mut self.coding {
            first.extend_from_slice(&self.rest);
            self.rest = Bytes::new();
            if first.len() < MAGIC_BYTES && !self.ended {
                return Ok(None);
            }
            let first = mem::take(first);
            self.coding = coding(*claim, &first);
            self.rest = first.into();
        }
        if matches!(self.coding, Coding::Plain) {
            let rest = mem::take(&mut self.rest);
            return Ok((!rest.is_empty()).then_some(rest));
        }
        loop {
            let step = self.rest.get(..STEP_BYTES).unwrap_or(&self.rest);
            let length = step.len();
            if step.is_empty() && !self.ended {
                return Ok(None);
            }
            let out = self.coding.write(step, self.ended).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Broken::Cut,
                _ => Broken::Coding(error),
            })?;
            self.rest.advance(length);
            self.read = self.read.saturating_add(length as u64);
            self.given = self.given.saturating_add(out.len() as u64);
            if self.given > ANY_RATIO_BYTES.max(self.read.saturating_mul(RATIO_MAX)) {
                let reason = "it unpacks to too much";
                return Err(Broken::Coding(io::Error::other(reason)));
            }
            if !out.is_empty() {
                return Ok(Some(out.into()));
            }
            if self.rest.is_empty() {
                return Ok(None);
            }
        }
    }
}

impl Coding {
    /// Unpacks bytes of the body. `is_end` is true if no more bytes will arrive.
    fn write(&mut self, bytes: &[u8], is_end: bool) -> io::Result<Vec<u8>> {
        let is_last = is_end && bytes.is_empty();
        let mut out = Vec::new();
        macro_rules! unpack {
            ($decoder:expr) => {{
                let is_over = take(&mut *$decoder, &mut &*bytes)?;
                if is_over || is_last {
                    $decoder.try_finish()?;
                } else {
                    // A stream's event must not wait for the next one.
                    $decoder.flush()?;
                }
                out = mem::take($decoder.get_mut());
                is_over
            }};
        }
        let is_over = match self {
            Self::Unknown(..) | Self::Plain => return Ok(bytes.to_vec()),
            Self::Over => false,
            Self::Gzip(member) => member.write(bytes, is_last, &mut out)?,
            Self::Zlib(decoder) => unpack!(decoder),
            Self::Deflate(decoder) => unpack!(decoder),
        };
        if is_over {
            *self = Self::Over;
        }
        Ok(out)
    }
}

impl Member {
    fn first() -> Self {
        Self { decoder: GzDecoder::new(Vec::new()), is_doubtful: false }
    }

    /// Unpacks this gzip member and the members that follow. Returns true if the body has ended,
    /// because no member follows.
    fn write(&mut self, mut bytes: &[u8], is_last: bool, out: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let taken = self.take(&mut bytes, is_last);
            let is_given = !self.decoder.get_ref().is_empty();
            out.append(self.decoder.get_mut());
            self.is_doubtful &= !is_given;
            match taken {
                Ok(false) => return Ok(false),
                Ok(true) => {
                    self.decoder = GzDecoder::new(Vec::new());
                    self.is_doubtful = true;
                }
                Err(_) if self.is_doubtful => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Unpacks this gzip member. Returns true if the member is complete and unread bytes follow.
    fn take(&mut self, bytes: &mut &[u8], is_last: bool) -> io::Result<bool> {
        let is_whole = take(&mut self.decoder, bytes)?;
        if is_whole || is_last {
            self.decoder.try_finish()?;
        } else {
            self.decoder.flush()?;
        }
        Ok(is_whole)
    }
}

/// Writes bytes to a decoder. Returns true if the compressed data ended before the end of the
/// bytes.
fn take(decoder: &mut impl io::Write, bytes: &mut &[u8]) -> io::Result<bool> {
    while !bytes.is_empty() {
        let count = decoder.write(bytes)?;
        if count == 0 {
            return Ok(true);
        }
        bytes.advance(count);
    }
    Ok(false)
}

/// Returns the coding that the `content-encoding` headers name, or `None` if the gateway cannot
/// decode the named coding.
fn claim(headers: &[Header]) -> Option<Claim> {
    let said = headers.iter().filter(|(name, _)| name == "content-encoding");
    let words = said.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let mut claim = Claim::Nothing;
    for word in words {
        let known = match word.to_ascii_lowercase().as_str() {
            "" | "identity" | "none" | "utf-8" | "utf8" => continue,
            "gzip" | "x-gzip" => Claim::Gzip,
            "deflate" => Claim::Deflate,
            _ => return None,
        };
        if claim != Claim::Nothing {
            return None;
        }
        claim = known;
    }
    Some(claim)
}

/// Returns the coding of a body, by its first bytes and the header.
fn coding(claim: Claim, first: &[u8]) -> Coding {
    match *first {
        // Neither JSON nor an event stream begins with the byte `0x1f`, as a gzip body does.
        [0x1f, 0x8b, 0x08, ..] => Coding::Gzip(Member::first()),
        // Neither JSON nor an event stream begins with an `x` and a byte that is no letter, as a
        // zlib body does.
        [0x78, 0x01 | 0x9c | 0xda, ..] => Coding::Zlib(ZlibDecoder::new(Vec::new())),
        [0x78, 0x5e, ..] if claim != Claim::Nothing => Coding::Zlib(ZlibDecoder::new(Vec::new())),
        // Servers and clients disagreed for long about what `deflate` is.
        _ if claim == Claim::Deflate && !is_text(first) => {
            Coding::Deflate(DeflateDecoder::new(Vec::new()))
        }
        _ => Coding::Plain,
    }
}

/// Returns true if a body begins like JSON, a web page or lines of an event stream.
fn is_text(first: &[u8]) -> bool {
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let begins = |text: &&str| text.as_bytes().iter().zip(first).all(|(text, byte)| text == byte);
    let texts =
        ["{\"", "{ ", "{\n", "{\r", "[{", "[\n", "[ ", "data", "event", "id:", "retry", ": "];
    first.is_empty() || texts.iter().any(begins) || first.starts_with(b"<")
}

#[cfg(test)]
mod tests;
