//! Writing to the host's streams, as fast as the receiver reads.

use wasip2::io::streams::{InputStream, OutputStream, StreamError};

/// Maximum number of bytes that are read from a stream at one time.
pub(crate) const PIECE_BYTES_MAX: u64 = 64 << 10;

/// Error: the input or the output stream did not end as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    From,
    To,
}

/// Writes as many bytes as the stream accepts now, and returns the bytes left over.
pub(crate) fn write_some<'b>(to: &OutputStream, bytes: &'b [u8]) -> Result<&'b [u8], Broken> {
    let room = usize::try_from(to.check_write().map_err(|_| Broken::To)?).unwrap_or(usize::MAX);
    let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
    if !now.is_empty() {
        to.write(now).map_err(|_| Broken::To)?;
    }
    Ok(later)
}

/// Writes all bytes to a stream, and waits while the stream is full.
pub(crate) fn write_all(to: &OutputStream, mut bytes: &[u8]) -> Result<(), Broken> {
    while !bytes.is_empty() {
        let later = write_some(to, bytes)?;
        if later.len() == bytes.len() {
            to.subscribe().block();
        }
        bytes = later;
    }
    Ok(())
}

/// Copies everything from one stream to another.
pub(crate) fn splice(from: &InputStream, to: &OutputStream) -> Result<(), Broken> {
    loop {
        match from.blocking_read(PIECE_BYTES_MAX) {
            Ok(piece) => write_all(to, &piece)?,
            Err(StreamError::Closed) => return Ok(()),
            Err(StreamError::LastOperationFailed(_)) => return Err(Broken::From),
        }
    }
}
