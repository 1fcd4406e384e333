//! Texts on standard output and standard error. The macros of the standard library would panic
//! where nobody reads.

use std::io::{self, Write};

use creole::text::harmless;

use crate::Failed;

/// Writes a [harmless] text and ends its line.
pub(crate) fn say(mut out: impl Write, line: &str) -> Result<(), Failed> {
    let written = writeln!(out, "{}", harmless::lines(line));
    written.map_err(|error| Failed::Run(format!("cannot write: {error}")))
}

/// Writes to standard output, all at once.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(harmless::lines(text).as_bytes()).and_then(|()| stdout.flush());
}
