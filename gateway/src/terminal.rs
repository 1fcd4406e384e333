//! Output on standard output and standard error. Unlike the macros of the standard library, it does
//! not panic if the output is closed.

use std::io::{self, Write};

use creole::text::harmless;

use crate::CommandFailed;

/// Writes a [harmless] text and a line end. Harmless means: without control characters for the
/// terminal.
pub(crate) fn say(mut out: impl Write, line: &str) -> Result<(), CommandFailed> {
    let written = writeln!(out, "{}", harmless::lines(line));
    written.map_err(|error| CommandFailed::Run(format!("cannot write: {error}")))
}

/// Writes a text to standard output at once, and ignores errors.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(harmless::lines(text).as_bytes()).and_then(|()| stdout.flush());
}
