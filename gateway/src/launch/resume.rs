//! Command that goes on with the session of a client after it has ended.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};

use super::clients::Client;

/// Returns the command: the `arguments` of this process up to those of the client, which are
/// replaced by the client's flag for its last session. Returns `None` if an address may have a key,
/// and standard error may be the log of a script.
pub(super) fn command(
    client: &Client,
    arguments: impl Iterator<Item = OsString>,
) -> Option<String> {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let own: Vec<String> = arguments.take_while(|argument| argument != "--").collect();
    let may_have_key = |word: &String| word.contains("://") && word.contains(['?', '@']);
    if own.iter().any(may_have_key) && !io::stderr().is_terminal() {
        return None;
    }
    let own: Vec<String> = own.iter().map(|word| quoted(word)).collect();
    Some(format!("{} -- {}", own.join(" "), client.resume))
}

/// Returns a word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    if cfg!(windows) {
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_.:/\\=".contains(letter);
        return if word.chars().all(is_plain) { word.to_owned() } else { format!("\"{word}\"") };
    }
    // Arguments of a process cannot have the NUL, which alone is an error.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::clients::named;

    #[test]
    #[cfg(unix)]
    fn the_command_has_the_flags_of_this_run_and_not_the_clients_arguments() {
        let of = |arguments: &[&str]| {
            command(named("claude").unwrap(), arguments.iter().map(OsString::from)).unwrap()
        };
        let shown = of(&["/a b/creole", "launch", "claude", "--model", "it's", "--", "-p", "--"]);
        assert_eq!(shown, "'/a b/creole' launch claude --model \"it's\" -- --continue");
        assert!(of(&["./creole", "launch", "claude"]).ends_with("launch claude -- --continue"));
    }
}
