//! Questions to the user on a terminal, and the answers that are remembered for a folder.

use std::cell::RefCell;
use std::env;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dialoguer::console::{Term, truncate_str};
use dialoguer::theme::ColorfulTheme;
use dialoguer::{Confirm, FuzzySelect};
use serde_json::{Map, Value, json};
use tokio::runtime;

use crate::CommandFailed;
use crate::private_files;

/// Columns of a line of the menu that are not the item's own.
const FRAME: usize = 4;

/// Maximum number of items that are shown at one time.
const ROWS_MAX: usize = 12;

/// Menu on the terminal of this process.
#[derive(Debug)]
pub(super) struct Menu {
    /// Answers in this folder, by question.
    answers: RefCell<Map<String, Value>>,
    /// True once nothing is asked any more.
    is_over: Arc<AtomicBool>,
    /// File with the answers of all folders; `None` if they cannot be remembered.
    file: Option<PathBuf>,
}

impl Menu {
    /// Returns the menu; `None` without a terminal, or if the user wants no questions. If
    /// `asks_again` is true, earlier answers do not count.
    pub(super) fn on_terminal(yes: bool, asks_again: bool) -> Option<Self> {
        if yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let file = private_files::state_folder().ok().map(|state| state.join("answers.json"));
        let known = file.as_deref().map(|file| fs::read_to_string(file).unwrap_or_default());
        let known = known.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let own = known.and_then(|known| known.get(folder()).and_then(Value::as_object).cloned());
        let answers = own.filter(|_| !asks_again).unwrap_or_default();
        let is_over = Arc::default();
        let ended = Arc::clone(&is_over);
        // Without the thread, Ctrl-C ends the process too, but leaves the cursor hidden.
        let _ = thread::Builder::new().name("menu".to_owned()).spawn(move || end_at_ctrl_c(&ended));
        Some(Self { answers: RefCell::new(answers), is_over, file })
    }

    /// Returns the index of the item that the user chooses, now or earlier in this folder.
    ///
    /// # Errors
    /// The user chooses none, or the terminal fails.
    pub(super) fn choose(&self, question: &str, items: &[String]) -> Result<usize, CommandFailed> {
        let earlier =
            self.answers.borrow().get(question).and_then(Value::as_str).map(str::to_owned);
        if let Some(index) = items.iter().position(|item| Some(item) == earlier.as_ref()) {
            super::say(&format!("{question}: as last time in this folder; --ask asks again"));
            return Ok(index);
        }
        let term = Term::stderr();
        let columns = usize::from(term.size().1).saturating_sub(FRAME).max(1);
        let shown: Vec<_> = items.iter().map(|item| truncate_str(item, columns, "…")).collect();
        let theme = ColorfulTheme::default();
        let select = FuzzySelect::with_theme(&theme).with_prompt(question).items(&shown);
        let chosen = select.default(0).max_length(ROWS_MAX).report(false).interact_on_opt(&term);
        let none = || CommandFailed::Run("nothing was chosen".to_owned());
        let index = chosen.map_err(failed)?.ok_or_else(none)?;
        if let Some(item) = items.get(index) {
            self.remember(question, item);
        }
        Ok(index)
    }

    /// Asks a question whose answer is yes if the user presses Enter alone.
    pub(super) fn confirm(question: &str) -> Result<bool, CommandFailed> {
        let theme = ColorfulTheme::default();
        let confirm = Confirm::with_theme(&theme).with_prompt(question).default(true);
        Ok(confirm.interact_on_opt(&Term::stderr()).map_err(failed)?.unwrap_or_default())
    }

    fn remember(&self, question: &str, answer: &str) {
        let mut answers = self.answers.borrow_mut();
        answers.insert(question.to_owned(), json!(answer));
        let Some(file) = &self.file else { return };
        // The file is read again, because another process may have written it meanwhile.
        let known = fs::read_to_string(file).unwrap_or_default();
        let mut known: Map<String, Value> = serde_json::from_str(&known).unwrap_or_default();
        known.insert(folder(), Value::Object(answers.clone()));
        if let Err(error) = private_files::replace(file, &Value::Object(known).to_string()) {
            super::say(&format!("the answer is not remembered: {}: {error}", file.display()));
        }
    }
}

impl Drop for Menu {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Ends the process at Ctrl-C with a visible cursor, which a menu hides. Once the menu is over, the
/// client decides what Ctrl-C means.
fn end_at_ctrl_c(is_over: &AtomicBool) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let pressed = runtime.and_then(|runtime| runtime.block_on(tokio::signal::ctrl_c()));
    if pressed.is_ok() && !is_over.load(Ordering::Relaxed) {
        let _ = Term::stderr().show_cursor();
        process::exit(130);
    }
}

/// Returns the current folder, as a key.
fn folder() -> String {
    env::current_dir().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(error: dialoguer::Error) -> CommandFailed {
    let term = Term::stderr();
    let _ = term.show_cursor().and_then(|()| term.write_line(""));
    let dialoguer::Error::IO(error) = error;
    match error.kind() {
        io::ErrorKind::Interrupted => CommandFailed::Run("interrupted".to_owned()),
        _ => CommandFailed::Run(format!("cannot ask: {error}; --yes asks nothing")),
    }
}
