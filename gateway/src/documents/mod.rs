//! Documents as text, for models that take no files.
//!
//! What reads PDFs is a large parser, and a PDF comes from anywhere. So this program runs itself
//! once more for each document, as `creole read-document` (`child`): without its environment, where
//! keys are, with little memory and time, and without files and sockets. A parser that crashes,
//! hangs or fills its memory does so there. The document goes in, and its text comes out.
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
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use creole::{Document, DocumentText, Owner, ReadDocuments, Unread};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

pub(crate) use child::{ReadDocument, run};
use known::{Key, Known};

use crate::fair_semaphore::{FairSemaphore, Permit};
use crate::log::rate_limit::RateLimit;

/// Time that the documents of one request may take on the first reader. A usual document takes a
/// tenth of it.
const FIRST_MAX: Duration = Duration::from_millis(400);

/// Number of first bytes in which a PDF must say that it is one: readers take one with something
/// before it, too.
const START_MAX: usize = 1024;

/// Divisor of the time for all documents of a request: one document gets a quarter, so that it does
/// not take the time of all others.
const SHARE: u64 = 4;

/// Number of bytes beside the text that are enough for what is said about pages.
const LINES_BYTES: usize = 1 << 20;

/// Lines behind the text of a document that was not read to its end.
const BROKE_OFF: &str = "[the rest of the document is left out: it could not be read]";
const TOO_SLOW: &str = "[the rest of the document is left out: reading it took too long]";

/// Readers of documents; all workers share them.
#[derive(Debug)]
pub(crate) struct Documents {
    /// The reader of usual documents: waiting for what is being read takes no longer than
    /// [`FIRST_MAX`].
    first: Arc<FairSemaphore>,
    /// The reader that goes on with documents that take longer.
    other: Arc<FairSemaphore>,
    known: Mutex<Known>,
    failed: Mutex<RateLimit>,
}

/// A document that is to be read.
#[derive(Debug)]
pub(crate) struct Wanted {
    document: Document,
    key: Key,
}

impl Wanted {
    /// Takes time for each byte of the document.
    pub(crate) fn new(document: Document, limits: &ReadDocuments) -> Self {
        let key = known::key(&document.bytes, limits);
        Self { document, key }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.document.bytes.len()
    }

    pub(crate) fn until(&self) -> creole::Millis {
        self.document.until
    }

    /// Returns true if the document says that it is a PDF.
    fn is_pdf(&self) -> bool {
        let bytes = &self.document.bytes;
        let start = bytes.get(..START_MAX).unwrap_or(bytes);
        start.windows(4).any(|bytes| bytes == b"%PDF")
    }
}

impl Documents {
    pub(crate) fn new() -> Self {
        let (first, other) = (FairSemaphore::new(1), FairSemaphore::new(1));
        Self { first, other, known: Mutex::default(), failed: Mutex::default() }
    }

    /// The text of a document. After `until` that is only one that is known. Whoever drops this
    /// ends the reading. `spent` is the time that documents of the same request took so far.
    ///
    /// # Errors
    /// It has none, or it cannot be read within the limits.
    pub(crate) async fn read(
        &self,
        wanted: Wanted,
        limits: &ReadDocuments,
        until: Instant,
        (owner, spent): (Owner, &mut Duration),
    ) -> Result<DocumentText, Unread> {
        // Nothing is started for what is none.
        if !wanted.is_pdf() {
            return Err(Unread::Malformed);
        }
        if let Some(text) = self.known().get(&wanted.key) {
            return text;
        }
        if until <= Instant::now() {
            return Err(Unread::NoTime);
        }
        let document = Bytes::from(wanted.document.bytes);
        if let Some(quick) = FIRST_MAX.checked_sub(*spent).filter(|quick| !quick.is_zero()) {
            let turn = timeout_at(until, self.first.begin(owner)).await;
            if let Some(text) = self.known().get(&wanted.key) {
                return text;
            }
            let Ok(Some(turn)) = turn else { return Err(Unread::NoTime) };
            let began = Instant::now();
            let end = began.checked_add(quick).unwrap_or(until);
            let read = read(document.clone(), limits, until.min(end), turn).await;
            *spent = spent.saturating_add(began.elapsed());
            if read.as_ref().map_or(true, |outcome| !outcome.is_late) {
                return self.outcome(wanted.key, read, true);
            }
        }
        let turn = timeout_at(until, self.other.begin(owner)).await;
        // Somebody else may have waited for the same, and been first.
        if let Some(text) = self.known().get(&wanted.key) {
            return text;
        }
        let Ok(Some(turn)) = turn else { return Err(Unread::NoTime) };
        let share = Duration::from_millis(limits.timeout_ms / SHARE);
        let end = Instant::now().checked_add(share).unwrap_or(until);
        let read = read(document, limits, until.min(end), turn).await;
        self.outcome(wanted.key, read, end <= until)
    }

    /// Keeps what came of a document. Without its share of the time a late one says nothing of the
    /// document.
    fn outcome(
        &self,
        key: Key,
        read: io::Result<Outcome>,
        had_share: bool,
    ) -> Result<DocumentText, Unread> {
        match read {
            Ok(outcome) => {
                let had_share = !outcome.is_late || had_share;
                if had_share {
                    self.known().put(key, &outcome);
                }
                match outcome.text {
                    Err(Unread::TooSlow) if !had_share => Err(Unread::NoTime),
                    text => text,
                }
            }
            Err(error) => {
                if self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_due() {
                    tracing::warn!("cannot read a document: {error}");
                }
                Err(Unread::Failed)
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(
    document: Bytes,
    limits: &ReadDocuments,
    until: Instant,
    turn: Permit,
) -> io::Result<Outcome> {
    let mut reading = Reading { child: Some(start(limits)?), turn: Some(turn) };
    let Some(child) = &mut reading.child else { return Err(io::Error::other("it has no process")) };
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("it has no pipes"));
    };
    // It reads all of its input before it writes; where it ends before that, its exit code says
    // why.
    let write = async move {
        let _ = input.write_all(&document).await;
    };
    let mut bytes = Vec::new();
    // It writes less than that.
    let max = ReadDocuments::TEXT_BYTES_MAX.saturating_add(LINES_BYTES) as u64;
    let came = &mut bytes;
    // The pipe is closed behind it, so that nobody waits with more.
    let read = async move { output.take(max).read_to_end(came).await };
    let ended = timeout_at(until, async {
        let _ = tokio::join!(write, read);
        child.wait().await
    });
    let ended = match ended.await {
        Ok(ended) => Some(ended?),
        Err(_) => {
            child.kill().await?;
            None
        }
    };
    Ok(Outcome::of(ended, &bytes))
}

/// A process that is ended with whoever waits for it.
struct Reading {
    child: Option<Child>,
    /// Turn of the document, kept until the process is gone.
    turn: Option<Permit>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        // Until somebody has waited for its end, the system keeps a place for it.
        if let (Some(mut child), Ok(runtime)) = (self.child.take(), Handle::try_current()) {
            let turn = self.turn.take();
            runtime.spawn(async move {
                let _ = child.kill().await;
                drop(turn);
            });
        }
    }
}

/// Starts this program with nothing that it does not need.
fn start(limits: &ReadDocuments) -> io::Result<Child> {
    let seconds = (limits.timeout_ms / SHARE).div_ceil(1000);
    let mut command = Command::new(program()?);
    command
        .arg("read-document")
        .arg(format!("--pages-max={}", limits.pages_max))
        .arg(format!("--bytes-max={}", ReadDocuments::TEXT_BYTES_MAX))
        .arg(format!("--seconds-max={seconds}"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What a parser says of a document has parts of it.
        .stderr(Stdio::null())
        .kill_on_drop(true);
    // In a group of its own, which Ctrl-C does not reach: the gateway ends what it has begun.
    #[cfg(unix)]
    command.arg0("creole").process_group(0);
    #[cfg(windows)]
    {
        /// Process creation flags, as Windows names them.
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
        // Programs there do not start without it.
        if let Some(root) = std::env::var_os("SystemRoot") {
            command.env("SystemRoot", root);
        }
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

/// Result of reading a document.
#[derive(Debug)]
struct Outcome {
    text: Result<DocumentText, Unread>,
    /// True if the same result comes whenever this document is read: neither time nor what else the
    /// machine does decided it.
    is_final: bool,
    /// True if the time was over before the document was read.
    is_late: bool,
}

impl Outcome {
    /// `ended`: nothing where the time was over.
    fn of(ended: Option<ExitStatus>, bytes: &[u8]) -> Self {
        let is_final = |text| Self { text, is_final: true, is_late: false };
        let why = match ended.map(|status| status.code()) {
            Some(Some(0)) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                return is_final(Ok(DocumentText::whole(text)));
            }
            Some(code) => match code.and_then(child::unread) {
                Some(unread) => return is_final(Err(unread)),
                // It ran into one of its limits, or somebody ended it.
                None => {
                    tracing::debug!("what read a document ended: {ended:?}");
                    Unread::Failed
                }
            },
            None => Unread::TooSlow,
        };
        // Whatever was being written when it ended is not whole.
        let lines = bytes.iter().rposition(|byte| *byte == b'\n').and_then(|end| bytes.get(..=end));
        let text = lines.map_or(Err(why), |lines| {
            let end = if why == Unread::TooSlow { TOO_SLOW } else { BROKE_OFF };
            let text = [&String::from_utf8_lossy(lines), end, "\n"].concat();
            Ok(DocumentText { text, is_cut: true })
        });
        Self { text, is_final: false, is_late: ended.is_none() }
    }
}
