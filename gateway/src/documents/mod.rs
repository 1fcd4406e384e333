//! Extraction of text from documents (PDF), for models that cannot read files.
//!
//! PDFs need a large parser, and a PDF may come from an attacker. So this program runs itself again
//! for each document, as `creole read-document` (`child`). The child process has no environment,
//! which may contain keys, little memory and time, and no files and sockets. If the parser crashes,
//! hangs or fills its memory, only the child process is affected. The child reads the document and
//! writes its text.
//!
//! | file | what it does |
//! |---|---|
//! | `child` | the process that reads one document |
//! | `page` | extraction of the text of one page |
//! | `known` | cache of recently read texts: clients send a document again with each request |

mod child;
mod known;
mod page;

use std::io;
use std::mem;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use creole::{Call, DocumentText, Millis, Owner, ReadDocuments, To, Unread};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

pub(crate) use child::{ReadDocument, run};
use known::{Key, Known};

use crate::fair_semaphore::{FairSemaphore, Permit};
use crate::log::rate_limit::RateLimit;

/// Maximum time that the documents of one request may use the first reader. A usual document needs
/// a tenth of it.
const FIRST_MAX: Duration = Duration::from_millis(400);

/// Number of first bytes in which the PDF signature must appear. PDF readers accept other bytes
/// before the signature.
const START_MAX: usize = 1024;

/// Divisor: one document may use at most this part of the time for all documents of a request.
const SHARE: u64 = 4;

/// Maximum number of bytes of all lines that are added to a document's text to name its pages.
const LINES_BYTES: usize = 1 << 20;

/// Lines that are added after the text of a document that was not read to its end.
const BROKE_OFF: &str = "[the rest of the document is left out: it could not be read]";
const TOO_SLOW: &str = "[the rest of the document is left out: reading it took too long]";

/// Readers of documents, shared by all workers.
#[derive(Debug)]
pub(crate) struct Documents {
    /// Permit of the reader for usual documents. A wait for a document in progress lasts at most
    /// [`FIRST_MAX`].
    first: Arc<FairSemaphore>,
    /// Permit of the reader for documents that need longer.
    other: Arc<FairSemaphore>,
    known: Mutex<Known>,
    failed: Mutex<RateLimit>,
}

/// A document whose text is wanted.
#[derive(Debug)]
pub(crate) struct WantedText {
    document: Vec<u8>,
    until: Millis,
    key: Key,
}

impl WantedText {
    /// Takes the document out of an exchange's call for the reader of documents, and hashes the
    /// document, which takes time for each byte. Returns `None` for a call to a server.
    pub(crate) fn of(call: &mut Call, limits: &ReadDocuments) -> Option<Self> {
        let To::Document { until } = call.to else { return None };
        let document = mem::take(&mut call.body);
        let key = known::key(&document, limits);
        Some(Self { document, until, key })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.document.len()
    }

    pub(crate) fn until(&self) -> Millis {
        self.until
    }

    /// Returns true if the document has the signature of a PDF.
    fn is_pdf(&self) -> bool {
        let bytes = &self.document;
        let start = bytes.get(..START_MAX).unwrap_or(bytes);
        start.windows(4).any(|bytes| bytes == b"%PDF")
    }
}

impl Documents {
    pub(crate) fn new() -> Self {
        let (first, other) = (FairSemaphore::new(1), FairSemaphore::new(1));
        Self { first, other, known: Mutex::default(), failed: Mutex::default() }
    }

    /// Returns the number of documents that wait for a reader, and of those that are read.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let ((first_waiting, first), (waiting, other)) = (self.first.counts(), self.other.counts());
        (first_waiting.saturating_add(waiting), first.saturating_add(other))
    }

    /// Returns the text of a document. After `until`, only a cached text is returned. Dropping the
    /// future ends the child process. `spent` is the time that documents of the same request have
    /// used so far.
    ///
    /// # Errors
    /// The document has no text, or it cannot be read within the limits.
    pub(crate) async fn read(
        &self,
        wanted: WantedText,
        limits: &ReadDocuments,
        until: Instant,
        (owner, spent): (Owner, &mut Duration),
    ) -> Result<DocumentText, Unread> {
        // No process is started for a document that is no PDF.
        if !wanted.is_pdf() {
            return Err(Unread::Malformed);
        }
        if let Some(text) = self.known().get(&wanted.key) {
            return text;
        }
        if until <= Instant::now() {
            return Err(Unread::NoTime);
        }
        let document = Bytes::from(wanted.document);
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
        // Another request may have had the same document read during the wait.
        if let Some(text) = self.known().get(&wanted.key) {
            return text;
        }
        let Ok(Some(turn)) = turn else { return Err(Unread::NoTime) };
        let share = Duration::from_millis(limits.timeout_ms / SHARE);
        let end = Instant::now().checked_add(share).unwrap_or(until);
        let read = read(document, limits, until.min(end), turn).await;
        self.outcome(wanted.key, read, end <= until)
    }

    /// Caches the result of reading a document. A timeout is not cached if the document did not get
    /// its full share of the time.
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
    // The child reads all of its input before it writes. If it ends earlier, its exit code says
    // why.
    let write = async move {
        let _ = input.write_all(&document).await;
    };
    let mut bytes = Vec::new();
    // The child process writes fewer bytes than this maximum for its output.
    let max = ReadDocuments::TEXT_BYTES_MAX.saturating_add(LINES_BYTES) as u64;
    let came = &mut bytes;
    // The pipe is closed after the read, so that the child does not wait to write more.
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

/// Child process that is killed if the future waiting for it is dropped.
struct Reading {
    child: Option<Child>,
    /// Permit of the document reader, kept until the process has ended.
    turn: Option<Permit>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        // The system keeps an entry for the process until its end has been waited for.
        if let (Some(mut child), Ok(runtime)) = (self.child.take(), Handle::try_current()) {
            let turn = self.turn.take();
            runtime.spawn(async move {
                let _ = child.kill().await;
                drop(turn);
            });
        }
    }
}

/// Starts the process `creole read-document`, without the gateway's environment variables.
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
        // The parser's messages may quote the document.
        .stderr(Stdio::null())
        .kill_on_drop(true);
    // The child has its own process group, which Ctrl-C does not reach: the gateway ends the child.
    #[cfg(unix)]
    command.arg0("creole").process_group(0);
    #[cfg(windows)]
    {
        /// Process creation flags, as Windows names them.
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
        // Programs on Windows do not start without the variable `SystemRoot`.
        if let Some(root) = std::env::var_os("SystemRoot") {
            command.env("SystemRoot", root);
        }
    }
    command.spawn()
}

/// Returns the path of this program, even if another version has replaced its file.
fn program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

/// Result of reading a document in a child process.
#[derive(Debug)]
struct Outcome {
    text: Result<DocumentText, Unread>,
    /// True if reading this document again gives the same result. It is false if time limits or the
    /// machine's load decided the result.
    is_final: bool,
    /// True if the time was over before the document was read to its end.
    is_late: bool,
}

impl Outcome {
    /// Returns the result for a child process that ended with `ended`; `None` if the time was over.
    fn of(ended: Option<ExitStatus>, bytes: &[u8]) -> Self {
        let is_final = |text| Self { text, is_final: true, is_late: false };
        let why = match ended.map(|status| status.code()) {
            Some(Some(0)) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                return is_final(Ok(DocumentText::whole(text)));
            }
            Some(code) => match code.and_then(child::unread) {
                Some(unread) => return is_final(Err(unread)),
                // The child ran into one of its limits, or was killed.
                None => {
                    tracing::debug!("what read a document ended: {ended:?}");
                    Unread::Failed
                }
            },
            None => Unread::TooSlow,
        };
        // The line that was being written when the child ended is incomplete.
        let lines = bytes.iter().rposition(|byte| *byte == b'\n').and_then(|end| bytes.get(..=end));
        let text = lines.map_or(Err(why), |lines| {
            let end = if why == Unread::TooSlow { TOO_SLOW } else { BROKE_OFF };
            let text = [&String::from_utf8_lossy(lines), end, "\n"].concat();
            Ok(DocumentText { text, is_cut: true })
        });
        Self { text, is_final: false, is_late: ended.is_none() }
    }
}
