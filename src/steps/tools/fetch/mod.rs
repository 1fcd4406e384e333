//! Calls of `web_fetch`: the address is checked, the page is fetched with its redirections, and its
//! content becomes text.
//!
//! | file | contents |
//! |---|---|
//! | `address` | checks of an address |
//! | `prior` | addresses that the conversation names |
//! | `page` | kind, charset and text of a page |
//! | `html` | HTML as text |
//! | `element` | meanings of the elements of HTML |
//! | `skip` | elements that are left out |
//! | `layout` | lines and marks of the text |
//! | `link` | addresses of the links in a page |

mod address;
mod element;
mod html;
mod layout;
mod link;
mod page;
mod prior;
mod skip;

use super::job::{Begun, Job, OwnOutput, Work};
use crate::Millis;
use crate::config::{PriorContext, ServerTools, Settings, WebFetch};
use crate::headers::time;
use crate::json;
use crate::model::Request;
use crate::model::fetch::{FetchFailure, FetchTool, FetchedPage};
use crate::observe::report::Report;
use crate::observe::warning::Warnings;
use crate::steps::{Came, Nothing, Question, ReadLimits, See, Unread, WebAnswer, WebQuestion};
use address::PageAddress;

/// Media types of pages that can be read.
const ACCEPT: &str = "text/html, text/plain, text/markdown, application/json;q=0.9, */*;q=0.1";

/// Result of a call of `web_fetch`.
type FetchOutcome = Result<FetchedPage, FetchFailure>;

/// Settings of a call of `web_fetch`.
#[derive(Clone, Debug)]
struct FetchSetup {
    tool: FetchTool,
    settings: WebFetch,
    /// Maximum size of a page, in bytes.
    bytes_max: usize,
    /// Time of the call, as in RFC 3339.
    time: String,
    /// True if the host can read PDFs, of which only the text is kept.
    reads_pdf: bool,
}

/// Fetch of a page for one call.
#[derive(Debug)]
struct FetchJob {
    setup: FetchSetup,
    /// Address to fetch: the call's, or the target of the last redirection.
    address: PageAddress,
    /// Number of redirections followed.
    redirects: u32,
    /// PDF that the page is, which the host reads next.
    pdf: Option<Vec<u8>>,
}

/// Begins the fetch of a call with this input.
///
/// # Errors
/// The output for an input without an address that may be fetched.
pub(super) fn begin(tool: &FetchTool, input: &str, see: &See<'_>) -> Result<Begun, OwnOutput> {
    let failed = |failure| OwnOutput::Page(Err(failure), false);
    let mut setup = FetchSetup::new(tool, &see.config.settings.server_tools, see.now);
    if let Some(setup) = &mut setup {
        setup.reads_pdf = reads_pdf(see);
    }
    let job = FetchJob::new(input, setup.ok_or_else(|| failed(FetchFailure::Unavailable))?);
    let job = job.map_err(failed)?;
    let needs_name = job.setup.settings.prior_context == PriorContext::Required;
    if needs_name && !is_named(see.text().unwrap_or_default(), tool, &job.address) {
        return Err(failed(FetchFailure::UrlNotInPriorContext));
    }
    Ok(Begun { key: Some(job.address.url()), work: Work::Asks(Box::new(job)) })
}

/// Returns true if the host can read PDFs. Everything in a PDF but its text is lost, which strict
/// mode does not permit.
fn reads_pdf(see: &See<'_>) -> bool {
    let settings = &see.config.settings;
    see.can.read_documents && settings.read_documents.pages_max > 0 && !settings.strict
}

/// Returns true if the conversation in a request names an address.
fn is_named(body: &str, tool: &FetchTool, address: &PageAddress) -> bool {
    let request = Request::read(body, &mut Warnings::new(false));
    request.is_ok_and(|request| prior::is_named(&request, &tool.url_sources, address))
}

impl FetchJob {
    /// Reads and checks the input of a call. Whether the conversation names the address must be
    /// checked with [`prior::is_named`].
    ///
    /// # Errors
    /// The input has no URL, or the address is not allowed.
    fn new(input: &str, setup: FetchSetup) -> Result<Self, FetchFailure> {
        let url = Some(input).filter(|input| json::Reader::of(input).is_object());
        let url = url.and_then(|input| json::member(input, "url")).and_then(json::string);
        let url = url.ok_or(FetchFailure::InvalidToolInput)?.decode();
        let address = PageAddress::of_call(&url, &setup.settings.ports)?;
        if !setup.permits(&address) {
            return Err(FetchFailure::UrlNotAllowed);
        }
        Ok(Self { setup, address, redirects: 0, pdf: None })
    }

    /// Returns the request for the page.
    fn question(&self) -> Question<'static> {
        let user_agent = &self.setup.settings.user_agent;
        let default = concat!("Creole/", env!("CARGO_PKG_VERSION"));
        let user_agent = if user_agent.is_empty() { default } else { user_agent };
        Question::Web(WebQuestion {
            url: self.address.url(),
            may_be_private: false,
            accept: ACCEPT,
            user_agent: Some(user_agent.to_owned()),
            cluster: self.setup.settings.cluster.clone(),
        })
    }

    /// Takes the answer of the page's server. Returns the result of the call; `None` if a
    /// redirection must be followed, or a PDF must be read.
    fn take_answer(&mut self, came: Came) -> Option<FetchOutcome> {
        let answer = match came {
            Came::Web(answer) => answer,
            Came::Document(Ok(document)) => return Some(Ok(self.page_of_pdf(&document.text))),
            Came::Document(Err(reason)) => return Some(Err(failure_of(reason))),
            Came::Nothing(_) if self.pdf.is_some() => return Some(Err(FetchFailure::Unavailable)),
            Came::Nothing(Nothing::NotAllowed) => return Some(Err(FetchFailure::UrlNotAllowed)),
            _ => return Some(Err(FetchFailure::UrlNotAccessible)),
        };
        match answer.status {
            200..=299 if self.keeps_pdf(&answer) => {
                self.pdf = Some(answer.body);
                None
            }
            200..=299 => Some(self.read(&answer)),
            301 | 302 | 303 | 307 | 308 => {
                let location = answer.location.as_deref();
                let led = location.map_or(Err(FetchFailure::UrlNotAccessible), |location| {
                    self.redirect(location)
                });
                led.err().map(Err)
            }
            429 => Some(Err(FetchFailure::TooManyRequests)),
            _ => Some(Err(FetchFailure::UrlNotAccessible)),
        }
    }

    fn redirect(&mut self, location: &str) -> Result<(), FetchFailure> {
        if self.redirects >= self.setup.settings.redirects_max {
            return Err(FetchFailure::UrlNotAccessible);
        }
        let there = self.address.redirected(location, &self.setup.settings.ports);
        let there = there.filter(|there| self.setup.permits(there));
        self.address = there.ok_or(FetchFailure::UrlNotAllowed)?;
        self.redirects = self.redirects.saturating_add(1);
        Ok(())
    }

    /// Returns true if an answer is a PDF that the host can read.
    fn keeps_pdf(&self, answer: &WebAnswer) -> bool {
        let is_whole = answer.is_whole && answer.body.len() <= self.setup.bytes_max;
        let content_type = answer.content_type.as_deref();
        self.setup.reads_pdf && is_whole && page::is_pdf(&answer.body, content_type)
    }

    /// Returns the page for the text of a PDF.
    fn page_of_pdf(&self, text: &str) -> FetchedPage {
        self.page(None, page::cut(text, self.setup.text_bytes_max()))
    }

    fn page(&self, title: Option<String>, text: String) -> FetchedPage {
        FetchedPage {
            url: self.address.url(),
            title,
            text,
            retrieved_at: Some(self.setup.time.clone()),
            is_to_be_cited: self.setup.tool.citations,
        }
    }

    fn read(&self, answer: &WebAnswer) -> FetchOutcome {
        if answer.body.len() > self.setup.bytes_max {
            return Err(FetchFailure::ContentTooLarge);
        }
        if !answer.is_whole {
            return Err(FetchFailure::UrlNotAccessible);
        }
        let bytes_max = self.setup.text_bytes_max();
        let content_type = answer.content_type.as_deref();
        let (title, text) = page::read(&answer.body, content_type, self.address.web(), bytes_max)?;
        Ok(self.page(title, text))
    }
}

impl Job for FetchJob {
    fn ask(&self, _: &See<'_>) -> Option<Question<'static>> {
        Some(match &self.pdf {
            Some(pdf) => Question::Fetched(pdf.clone()),
            None => self.question(),
        })
    }

    fn limits(&self, status: u16, _: &Settings) -> ReadLimits {
        // One byte more than the limit shows that a page is larger. The body of an error or a
        // redirection is not needed.
        let bytes = self.setup.bytes_max.saturating_add(1);
        let bytes_max = if (200..300).contains(&status) { bytes } else { 0 };
        ReadLimits { bytes_max, is_half_enough: true }
    }

    fn take(&mut self, came: Came, _: &mut Report) -> Option<OwnOutput> {
        let is_first_denied =
            self.redirects == 0 && matches!(came, Came::Nothing(Nothing::NotAllowed));
        self.take_answer(came).map(|outcome| OwnOutput::Page(outcome, !is_first_denied))
    }

    fn timeout_ms(&self, _: &Settings) -> u64 {
        self.setup.settings.timeout_ms
    }

    fn held_bytes(&self) -> usize {
        let pdf = self.pdf.as_ref().map_or(0, Vec::len);
        self.address.url().len().saturating_add(pdf)
    }
}

/// Returns the failure of a fetch whose PDF has no text.
fn failure_of(reason: Unread) -> FetchFailure {
    match reason {
        Unread::TooSlow | Unread::NoTime | Unread::TooMany | Unread::Failed => {
            FetchFailure::Unavailable
        }
        Unread::Encrypted | Unread::Malformed | Unread::NoText | Unread::NoLetters => {
            FetchFailure::UnsupportedContentType
        }
    }
}

impl FetchSetup {
    /// Returns the settings of a call at the time `now`; `None` if no page is fetched.
    fn new(tool: &FetchTool, settings: &ServerTools, now: Millis) -> Option<Self> {
        let web_fetch = settings.web_fetch.clone()?;
        let bytes_max = web_fetch.bytes_max.min(settings.answer_bytes_max);
        let (tool, time) = (tool.clone(), time::rfc3339(now / 1000));
        Some(Self { tool, settings: web_fetch, bytes_max, time, reads_pdf: false })
    }

    /// Returns true if the lists of the client and of the operator permit an address.
    fn permits(&self, address: &PageAddress) -> bool {
        let (tool, settings) = (&self.tool, &self.settings);
        address.is_permitted(&tool.allowed_domains, &tool.blocked_domains)
            && address.is_permitted(&settings.allowed_domains, &settings.blocked_domains)
    }

    /// Returns the maximum size of a page's text, in bytes: 3.6 for each token.
    fn text_bytes_max(&self) -> usize {
        let tokens = u64::from(self.settings.content_tokens_max);
        let tokens = self.tool.max_content_tokens.map_or(tokens, |most| most.min(tokens));
        usize::try_from(tokens.saturating_mul(18) / 5).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests;
