//! Questions to the user on a terminal, and the answers that are remembered for a folder.

use std::cell::RefCell;
use std::env;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use dialoguer::console::{Term, truncate_str};
use dialoguer::theme::ColorfulTheme;
use dialoguer::{Confirm, FuzzySelect};
use serde_json::{Map, Value, json};

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
        Some(Self { answers: RefCell::new(answers), file })
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

/// Returns the current folder, as a key.
fn folder() -> String {
    env::current_dir().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(error: dialoguer::Error) -> CommandFailed {
    CommandFailed::Run(format!("cannot ask: {error}; --yes asks nothing"))
}
