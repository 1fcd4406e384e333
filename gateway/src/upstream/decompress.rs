//! Answers that come compressed although the request asked for `identity`.
//!
//! Proxies in front of a model compress what they like, forget to say so, or say so of a plain
//! body. The first bytes tell. What comes out is bounded by what came in, so that a small answer
//! cannot unpack to an endless one.

use std::io::{self, Write as _};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use creole::Header;
use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};
use http_body::Body as _;
use hyper::body::Incoming;

/// Number of compressed bytes that are unpacked at one time: a thousand times as much may come of
/// them.
const STEP_BYTES: usize = 1 << 10;

/// Texts of models shrink to a tenth, and chunks of a stream, which are all alike, to a fiftieth.
const RATIO_MAX: u64 = 200;

/// Number of bytes that may come out whatever the ratio: short answers can be all alike.
const ANY_RATIO_BYTES: u64 = 1 << 20;

/// Number of first bytes that are enough to tell the coding.
const MAGIC_BYTES: usize = 3;

/// Coding that an upstream's headers name for its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Nothing,
    Gzip,
    Deflate,
}

/// Coding of a body, with the state of unpacking it.
#[derive(Debug)]
enum Coding {
    /// The bytes that came are too few to tell the coding.
    Unknown(Claim, Vec<u8>),
    Plain,
    Gzip(Member),
    Zlib(ZlibDecoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>),
    /// The compressed body has ended. Whatever still comes is padding, or a line end of a server's.
    Over,
}

/// The member of a gzip body that is unpacked; others may follow it.
#[derive(Debug)]
struct Member {
    decoder: GzDecoder<Vec<u8>>,
    /// True if a whole member came before this one, and nothing has come of this one. Then these
    /// bytes may be no member at all.
    is_doubtful: bool,
}

/// Reason for which a body cannot be read on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection broke.
    Connection(hyper::Error),
    /// The bytes end before the compressed body does.
    Cut,
    /// The bytes are not what they were taken for, or unpack to too much.
    Coding(io::Error),
}

/// An upstream's body, unpacked.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Incoming,
    coding: Coding,
    /// Bytes that came and were not unpacked.
    rest: Bytes,
    ended: bool,
    read: u64,
    given: u64,
}

impl Answer {
    /// Takes what can be undone here out of the headers: the exchange reads what comes out.
    pub(crate) fn new(body: Incoming, headers: &mut Vec<Header>) -> Self {
        let claim = claim(headers);
        if claim.is_some_and(|claim| claim != Claim::Nothing) {
            headers.retain(|(name, _)| name != "content-encoding");
        }
        // What cannot be undone is for the exchange to refuse.
        let coding = claim.map_or(Coding::Plain, |claim| Coding::Unknown(claim, Vec::new()));
        Self { body, coding, rest: Bytes::new(), ended: false, read: 0, given: 0 }
    }

    /// The next piece; `None` at the end.
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

    /// Returns the unread rest of the body, as it comes.
    pub(crate) fn into_body(self) -> Incoming {
        self.body
    }

    /// Unpacks the bytes that have come, and returns as much of the text as is ready.
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
    /// Unpacks. `is_end`: nothing more will come.
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

    /// Unpacks, also members that follow. `true`: the body is over, because no member follows.
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

    /// Unpacks this member. Returns true if the member is whole and bytes are left behind it.
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

/// Has a decoder take bytes. `true`: what was packed has ended before them.
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
/// decode it.
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

/// Returns the coding of a body, by its first bytes.
fn coding(claim: Claim, first: &[u8]) -> Coding {
    match *first {
        // Neither JSON nor a stream begins with this byte.
        [0x1f, 0x8b, 0x08, ..] => Coding::Gzip(Member::first()),
        // Nor with an `x` and what is no letter.
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
