//! Process `creole read-document`: reads one PDF from standard input, and writes its text to
//! standard output.
//!
//! Only the gateway starts this process. The text is written page by page, so that the pages before
//! a crash are not lost. If there is no text at all, the exit code gives the reason.

use std::io::{self, Read as _, Write as _};
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Args;
use creole::Unread;
use hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{Context, InterpreterCache, InterpreterSettings, interpret_page};

use super::page::Page;

#[derive(Debug, Args)]
pub(crate) struct ReadDocument {
    /// Most pages that are read
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pages_max: usize,
    /// Most text, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes_max: usize,
    /// Most time of the processor, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds_max: u64,
}

/// Maximum address space of this process, in bytes. The largest document that a request can contain
/// needs a tenth of it.
#[cfg(unix)]
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Exit codes of this process for documents without a readable text. Any other code except 0 means
/// a crash.
const CODES: [(u8, Unread); 4] = [
    (70, Unread::Encrypted),
    (71, Unread::Malformed),
    (72, Unread::NoText),
    (73, Unread::NoLetters),
];

/// Returns the reason for which a document could not be read, if `code` is an exit code of the
/// process `creole read-document`.
pub(super) fn unread(code: i32) -> Option<Unread> {
    CODES.iter().find(|(own, _)| i32::from(*own) == code).map(|(_, unread)| *unread)
}

/// Reads one document from standard input, and writes its text to standard output.
pub(crate) fn run(options: &ReadDocument) -> ExitCode {
    #[cfg(target_os = "linux")]
    if !ends_with_gateway() {
        return ExitCode::FAILURE;
    }
    bound(options.seconds_max);
    // The message of a panic would have no reader.
    panic::set_hook(Box::new(|_| {}));
    let mut document = Vec::new();
    if io::stdin().lock().read_to_end(&mut document).is_err() {
        return ExitCode::FAILURE;
    }
    let mut out = io::stdout().lock();
    let write = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok();
    let Err(unread) = read(document, options, write) else { return ExitCode::SUCCESS };
    let code = CODES.iter().find(|(_, reason)| *reason == unread);
    code.map_or(ExitCode::FAILURE, |(code, _)| ExitCode::from(*code))
}

/// Makes Linux end this process together with the gateway's thread that started it. Returns false
/// if the gateway is already gone.
#[cfg(target_os = "linux")]
fn ends_with_gateway() -> bool {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let gateway = getppid();
    // A system that cannot kill this process when the gateway ends still limits its processor time.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    getppid() == gateway
}

/// Limits the memory, time and files of this process. If a system does not know one of the limits,
/// the others still hold.
#[cfg(unix)]
fn bound(seconds_max: u64) {
    // If memory is scarce, Linux kills this process before the gateway.
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    use rustix::process::{Resource, Rlimit, nice, setrlimit};
    // Streams have priority over the reading of documents. A larger value would be too much beside
    // a model on the same processors.
    let _ = nice(3);
    let limits = [
        #[cfg(not(target_os = "openbsd"))] // it has none
        (Resource::As, MEMORY_BYTES_MAX),
        // The limit of processor time ends this process even if the gateway is gone.
        (Resource::Cpu, seconds_max.saturating_add(1)),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        // No further file may be opened; the three standard streams are already open.
        (Resource::Nofile, 0),
    ];
    for (resource, max) in limits {
        let _ = setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) });
    }
}

/// Ends this process when its time is over, even if the gateway is gone.
#[cfg(not(unix))]
fn bound(seconds_max: u64) {
    let end = std::time::Duration::from_secs(seconds_max.saturating_add(1));
    std::thread::spawn(move || {
        std::thread::sleep(end);
        std::process::exit(1);
    });
}

/// Number of letters found on the pages so far, and a flag for damaged pages.
#[derive(Default)]
struct FoundLetters {
    known: usize,
    unknown: usize,
    damaged: bool,
}

/// Passes the text of a document to `write`, page by page, until `write` returns false.
fn read(
    document: Vec<u8>,
    options: &ReadDocument,
    mut write: impl FnMut(&str) -> bool,
) -> Result<(), Unread> {
    let pdf = load(document)?;
    let cache = InterpreterCache::new();
    let (total, max) = (pdf.pages().len(), options.pages_max);
    let (mut room, mut found) = (options.bytes_max, FoundLetters::default());
    // Lines about pages wait here for the first page with text, so that a scan yields no such
    // lines.
    let mut waiting = String::new();
    for (number, page) in (1_usize..).zip(pdf.pages().iter().take(max)) {
        if room == 0 {
            write(&format!(
                "\n[page {number} and what follows are left out: the text is too long]\n"
            ));
            return Ok(());
        }
        let read = panic::catch_unwind(AssertUnwindSafe(|| text_of(page, &pdf, &cache, room)));
        let text = found.shown(number, total, read.ok());
        room = room.saturating_sub(text.len());
        waiting.push_str(&text);
        if found.known > 0 && !write(&mem::take(&mut waiting)) {
            return Ok(());
        }
    }
    if found.known == 0 {
        return Err(found.nothing());
    }
    if let Some(more) = total.checked_sub(max).filter(|more| *more > 0) {
        write(&format!(
            "\n[the last {more} of {total} pages are left out: this gateway reads {max}]\n"
        ));
    }
    Ok(())
}

fn load(document: Vec<u8>) -> Result<Pdf, Unread> {
    let loaded = panic::catch_unwind(|| Pdf::new(document));
    loaded.map_err(|_| Unread::Malformed)?.map_err(|error| match error {
        LoadPdfError::Decryption(
            DecryptionError::PasswordProtected | DecryptionError::UnsupportedAlgorithm,
        ) => Unread::Encrypted,
        _ => Unread::Malformed,
    })
}

fn text_of<'a>(
    page: &PdfPage<'a>,
    pdf: &'a Pdf,
    cache: &InterpreterCache<'a>,
    bytes_max: usize,
) -> Page {
    let mut read = Page::new(bytes_max);
    // The page's size does not matter, because nothing is drawn.
    let bounds = Rect::new(0.0, 0.0, 1.0, 1.0);
    let settings = InterpreterSettings::default();
    let mut context = Context::new(Affine::IDENTITY, bounds, cache, pdf.xref(), settings);
    let drawn = panic::catch_unwind(AssertUnwindSafe(|| {
        interpret_page(page, &mut context, &mut read);
    }));
    match drawn {
        // `Page` stops the parser by a panic once its text is full, because the parser knows no
        // other way.
        Err(reason) if !read.is_full() => panic::resume_unwind(reason),
        _ => read,
    }
}

impl FoundLetters {
    /// Returns the text that is written for a page. `page` is `None` if the parser failed on the
    /// page.
    fn shown(&mut self, number: usize, total: usize, page: Option<Page>) -> String {
        let Some(page) = page else {
            self.damaged = true;
            return format!("[page {number} of {total}: it cannot be read]\n");
        };
        self.unknown = self.unknown.saturating_add(page.unknown);
        if page.unknown > page.known {
            return format!(
                "[page {number} of {total}: its fonts do not say which letters they show]\n"
            );
        }
        if page.known == 0 {
            let what = if page.has_image { "an image without text" } else { "no text" };
            return format!("[page {number} of {total}: {what}]\n");
        }
        self.known = self.known.saturating_add(page.known);
        let end = if page.is_full() { "\n[the rest of this page is left out]" } else { "" };
        let images = if page.has_image { ", without its images" } else { "" };
        format!("[page {number} of {total}{images}]\n{}{end}\n", page.text.trim())
    }

    /// Returns the reason for which a document has no text.
    fn nothing(&self) -> Unread {
        match self {
            Self { unknown: 1.., .. } => Unread::NoLetters,
            Self { damaged: true, .. } => Unread::Malformed,
            _ => Unread::NoText,
        }
    }
}
