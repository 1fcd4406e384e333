//! Documents as text, for models that take no files.
//!
//! What reads PDFs is a large parser, and a PDF comes from anywhere. So this program runs itself once more for each
//! document, as `creole read-document` (`child`): without its environment, where keys are, with little memory and time,
//! and without files and sockets. A parser that crashes, hangs or fills its memory does so there. The document goes in,
//! and its text comes out.
//!
//! | file | what it does |
//! |---|---|
//! | `child` | the program that reads one document |
//! | `page` | the text of one page |
//! | `known` | texts that were read of late: clients send a conversation, and its documents, again with each request |

mod child;
mod known;
mod page;

use std::io;
use std::num::NonZero;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use creole::{ReadDocuments, Unread};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

pub(crate) use child::run;
use known::Known;

/// Most documents that are read at one time, whatever the number of processors: each may take the memory of its limit.
const AT_ONCE_MAX: usize = 2;

/// Where a PDF says at the latest that it is one, in bytes: readers take one with something before it, too.
const START_MAX: usize = 1024;

/// Enough for what is said about pages.
const LINES_BYTES: usize = 1 << 20;

/// Behind what came of a document that was not read to its end.
const BROKE_OFF: &str = "\n[the rest of the document is left out: it could not be read]\n";
const TOO_SLOW: &str = "\n[the rest of the document is left out: reading it took too long]\n";

/// What reads documents; all workers share one.
#[derive(Debug)]
pub(crate) struct Documents {
    turns: Semaphore,
    known: Mutex<Known>,
}

impl Documents {
    pub(crate) fn new(processors: NonZero<usize>) -> Self {
        let at_once = processors.get().min(AT_ONCE_MAX);
        Self { turns: Semaphore::new(at_once), known: Mutex::default() }
    }

    /// The text of a document. Whoever drops this ends the reading.
    ///
    /// # Errors
    /// It has none, or it cannot be read within the limits.
    pub(crate) async fn read(
        &self,
        document: Vec<u8>,
        limits: &ReadDocuments,
        until: Instant,
    ) -> Result<String, Unread> {
        // Nothing is started for what is none.
        let start = document.get(..START_MAX).unwrap_or(&document);
        if !start.windows(4).any(|bytes| bytes == b"%PDF") {
            return Err(Unread::Malformed);
        }
        let key = known::key(&document, limits);
        if let Some(text) = self.known().get(&key) {
            return text;
        }
        let Ok(Ok(_turn)) = timeout_at(until, self.turns.acquire()).await else {
            return Err(Unread::TooSlow);
        };
        let ended = read(document, limits, until).await.unwrap_or_else(|error| {
            tracing::warn!("cannot start this program to read a document: {error}");
            Outcome { text: Err(Unread::Failed), is_final: false }
        });
        if ended.is_final {
            self.known().put(key, ended.text.clone());
        }
        ended.text
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(document: Vec<u8>, limits: &ReadDocuments, until: Instant) -> io::Result<Outcome> {
    let mut reading = Reading(Some(start(limits)?));
    let Some(child) = &mut reading.0 else { return Err(io::Error::other("it has no process")) };
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("it has no pipes"));
    };
    // It reads all of its input before it writes; where it ends before that, its exit code says why.
    let write = async move {
        let _ = input.write_all(&document).await;
    };
    let mut text = Vec::new();
    // It writes less than that: the last page may be a little more than there was room for.
    let max = limits.text_bytes_max.saturating_mul(2).saturating_add(LINES_BYTES);
    let mut output = (&mut output).take(max as u64);
    let ended = timeout_at(until, async {
        let _ = tokio::join!(write, output.read_to_end(&mut text));
        child.wait().await
    });
    let ended = match ended.await {
        Ok(ended) => Some(ended?),
        Err(_) => {
            child.kill().await?;
            None
        }
    };
    Ok(outcome(ended, String::from_utf8_lossy(&text).into_owned()))
}

/// A process that is ended with whoever waits for it.
struct Reading(Option<Child>);

impl Drop for Reading {
    fn drop(&mut self) {
        // Until somebody has waited for its end, the system keeps a place for it.
        if let (Some(mut child), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { child.kill().await });
        }
    }
}

/// Starts this program with nothing that it does not need.
fn start(limits: &ReadDocuments) -> io::Result<Child> {
    let seconds = limits.timeout_ms.div_ceil(1000);
    let mut command = Command::new(program()?);
    command
        .arg("read-document")
        .arg(format!("--pages-max={}", limits.pages_max))
        .arg(format!("--bytes-max={}", limits.text_bytes_max))
        .arg(format!("--seconds-max={seconds}"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What a parser says of a document has parts of it.
        .stderr(Stdio::null())
        .kill_on_drop(true);
    // Programs there do not start without it.
    #[cfg(windows)]
    if let Some(root) = std::env::var_os("SystemRoot") {
        command.env("SystemRoot", root);
    }
    command.spawn()
}

/// This program, also where another version has taken its place on the disk.
fn program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

/// What came of a document.
struct Outcome {
    text: Result<String, Unread>,
    /// It comes again whenever the same document is read: neither time nor what else the machine does decided it.
    is_final: bool,
}

/// `ended`: nothing where the time was over.
fn outcome(ended: Option<ExitStatus>, mut text: String) -> Outcome {
    let is_final = |text| Outcome { text, is_final: true };
    let why = match ended.map(|status| status.code()) {
        Some(Some(0)) => return is_final(Ok(text)),
        Some(code) => match code.and_then(child::unread) {
            Some(unread) => return is_final(Err(unread)),
            // It ran into one of its limits, or somebody ended it.
            None => Unread::Malformed,
        },
        None => Unread::TooSlow,
    };
    // The pages before are whole.
    let text = if text.is_empty() {
        Err(why)
    } else {
        text.push_str(if why == Unread::TooSlow { TOO_SLOW } else { BROKE_OFF });
        Ok(text)
    };
    Outcome { text, is_final: false }
}
