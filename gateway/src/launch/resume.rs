//! Command that goes on with the session of a client after it has ended.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use super::clients::Client;

/// Returns the command: the `arguments` of this process up to those of the client, which are
/// replaced by the client's flag for its last session. Returns `None` if an address may have a key,
/// and standard error may be the log of a script.
pub(super) fn command(
    client: &Client,
    arguments: impl Iterator<Item = OsString>,
) -> Option<String> {
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let program = program(&arguments.next().unwrap_or_default());
    let own: Vec<String> = arguments.take_while(|argument| argument != "--").collect();
    let may_have_key = |word: &String| word.contains("://") && word.contains(['?', '@']);
    if own.iter().any(may_have_key) && !io::stderr().is_terminal() {
        return None;
    }
    let words = std::iter::once(program).chain(own);
    let quoted = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
    Some(format!("{quoted} -- {}", client.resume))
}

/// Returns the word by which a shell finds this program.
fn program(called: &str) -> String {
    const NAME: &str = "creole";
    let is_path = Path::new(called).components().count() > 1;
    let own = || std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    match which::which(NAME) {
        Ok(_) => NAME.to_owned(),
        Err(_) if is_path => called.to_owned(),
        Err(_) => own().unwrap_or_else(|_| NAME.to_owned()),
    }
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
        let program = if which::which("creole").is_ok() { "creole" } else { "'/a b/creole'" };
        assert_eq!(shown, format!("{program} launch claude --model \"it's\" -- --continue"));
        assert!(of(&["./creole", "launch", "claude"]).ends_with("launch claude -- --continue"));
    }
}
