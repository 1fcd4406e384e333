//! Output of test stages, filtered for the reader.
//!
//! Lines about passed tests are left out, because thousands of them would hide one failure. Counts,
//! failures and measurements remain.

use std::io::{self, BufRead as _, BufReader, Read};

/// Maximum number of lines that are shown again for a failed stage.
const LINES_OF_A_FAILURE: usize = 120;

/// Printed lines of one test stage.
#[derive(Default)]
pub(super) struct Output(Vec<String>);

impl Output {
    /// Prints a text, without the lines about passed tests.
    pub(super) fn show(&mut self, text: &str) {
        for line in text.lines().filter(|line| says_something(line)) {
            println!("{line}");
            self.0.push(line.to_owned());
        }
    }

    /// Prints the stage's last lines again, because test programs report failed tests at their end.
    pub(super) fn print_end(&self) {
        for line in self.0.iter().skip(self.0.len().saturating_sub(LINES_OF_A_FAILURE)) {
            println!("{line}");
        }
    }
}

/// Returns the lines of an output. Invalid UTF-8 is replaced.
pub(super) fn lines(from: impl Read) -> impl Iterator<Item = io::Result<String>> {
    let lines = BufReader::new(from).split(b'\n');
    lines.map(|line| Ok(String::from_utf8_lossy(&line?).trim_end_matches('\r').to_owned()))
}

/// Returns true if a line contains more than the name of a passed test.
fn says_something(line: &str) -> bool {
    let passed = line.starts_with("test ") && line.ends_with(" ... ok") || line.starts_with("ok ");
    // Lines that the test harness prints around its tests.
    let frame = line.is_empty()
        || line == "successes:"
        || line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    !passed && !frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_say_no_more_than_that_a_test_passed_are_left_out() {
        for line in ["test a::b ... ok", "ok a_text_answer", "", "running 1 test", "successes:"] {
            assert!(!says_something(line), "{line}");
        }
        for line in [
            "test a::b ... FAILED",
            "test a ... ok (27.4 s)",
            "not ok a_text_answer",
            "test result: ok. 1 passed; 0 failed",
            "thread 'a' panicked at b.rs:1:2:",
            "3 passed, 1 failed",
        ] {
            assert!(says_something(line), "{line}");
        }
    }

    #[test]
    fn lines_of_an_output_are_read_whatever_its_bytes_are() {
        let read: Vec<String> = lines(&b"a\r\n\xffb\nc"[..]).map(Result::unwrap).collect();
        assert_eq!(read, ["a", "\u{fffd}b", "c"]);
    }
}
