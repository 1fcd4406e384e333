//! Jobs for MCP servers: a list of tools, and a call of a tool. A job opens the session with its
//! server if no job before it did.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::answer::{self, Rpc};
use super::client::{McpMessage, question};
use super::era::{self, McpEra, McpFailure, ProbeMeaning};
use super::list::{ListReader, McpList};
use super::mirror;
use super::session::{McpSession, SessionStage, Sessions};
use crate::config::Settings;
use crate::headers::Header;
use crate::json::{self, Reader};
use crate::model::mcp::McpOutput;
use crate::model::mcp::McpTarget;
use crate::observe::report::Report;
use crate::steps::{Came, Nothing, Question, ReadLimits, See, WebAnswer};

/// Longest wait for a list of tools, in milliseconds.
pub(super) const LIST_MS: u64 = 10_000;

/// Maximum number of bytes to read of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Result of a message to an MCP server.
#[derive(Debug)]
pub(crate) enum McpOutcome {
    /// Output of a call of an MCP server's tool.
    Mcp(McpOutput),
    /// Result of a call as the MCP server sent it, as JSON text.
    McpResult(String),
    /// Tools of an MCP server, or the reason why the server did not list them.
    McpList(Result<McpList, McpFailure>),
}

/// Work for a list or a call: messages to an MCP server, one after another, and then the outcome.
pub(crate) trait McpJob {
    /// Returns the job's question; `None` if it cannot be asked before an earlier job has its
    /// answer.
    fn ask(&self, see: &See<'_>, shared: &Sessions) -> Option<Question<'static>>;

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits;

    /// Takes the answer. Returns the output, or `None` if the job has another question.
    fn take(
        &mut self,
        came: Came,
        shared: &mut Sessions,
        report: &mut Report,
    ) -> Option<McpOutcome>;

    fn timeout_ms(&self, settings: &Settings) -> u64;

    fn held_bytes(&self) -> usize;
}

/// Kind of a message that a job sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum SentKind {
    /// Message: the request for which the job was made.
    Request,
    /// Message: a list of tools, which shows the era of the server.
    Probe,
    /// Message: the first one of a handshake.
    Initialize,
    /// Message: the last one of a handshake.
    Initialized,
}

/// Messages of one job to its server: the handshake if it is due, and the job's own requests.
#[derive(Debug)]
struct McpTalk {
    target: Arc<McpTarget>,
    /// Number of jobs for the server before this one.
    ticket: u32,
    /// Number of the job's next JSON-RPC request.
    id: u64,
    /// True if a request was sent again, after the session was lost or the era was wrong.
    is_retried: bool,
    /// Kind of the message that was asked last, an [`SentKind`]. Other jobs may change the session
    /// before the answer comes.
    asked: AtomicU8,
}

/// Progress of a conversation, after an answer.
enum Talked {
    /// Progress: another message is due.
    GoesOn,
    Answered(Rpc),
    Failed(McpFailure),
}

impl McpTalk {
    fn new(target: Arc<McpTarget>, remembered: Option<McpEra>, sessions: &mut Sessions) -> Self {
        let ticket = sessions.enter(&target, remembered);
        let id = sessions.next_id();
        let asked = AtomicU8::new(SentKind::Request as u8);
        Self { target, ticket, id, is_retried: false, asked }
    }

    /// Returns the kind of message that is due; `None` if another job must open the session first.
    fn next(&self, session: &McpSession) -> Option<SentKind> {
        let asked = match session.stage {
            SessionStage::Open(_) => return Some(SentKind::Request),
            SessionStage::Unknown => SentKind::Probe,
            SessionStage::Initialize(_) => SentKind::Initialize,
            SessionStage::Notify(_) => SentKind::Initialized,
        };
        session.is_first(self.ticket).then_some(asked)
    }

    fn ask(&self, request: McpMessage<'_>, sessions: &Sessions) -> Option<Question<'static>> {
        let session = sessions.of(&self.target.name)?;
        let asked = self.next(session)?;
        let message = match (asked, session.stage) {
            (SentKind::Request, _) => request,
            (SentKind::Initialize, SessionStage::Initialize(version)) => {
                McpMessage::Initialize(version)
            }
            (SentKind::Initialized, _) => McpMessage::Initialized,
            _ => McpMessage::List { cursor: None },
        };
        self.asked.store(asked as u8, Ordering::Relaxed);
        Some(Question::Service(question(&self.target, session, message, self.id)))
    }

    fn was_asked(&self, kind: SentKind) -> bool {
        self.asked.load(Ordering::Relaxed) == kind as u8
    }

    /// Takes an answer. `is_list`: true if the job's own request is a list of tools.
    fn take(&mut self, came: Came, is_list: bool, sessions: &mut Sessions) -> Talked {
        let talked = match (came, sessions.of_mut(&self.target.name)) {
            (Came::Web(answer), Some(session)) => self.take_answer(answer, is_list, session),
            (Came::Nothing(Nothing::TimedOut), _) => Talked::Failed(McpFailure::TimedOut),
            _ => Talked::Failed(McpFailure::Unreachable),
        };
        match &talked {
            Talked::GoesOn => self.id = sessions.next_id(),
            Talked::Answered(_) => {}
            Talked::Failed(_) => self.end(sessions),
        }
        talked
    }

    fn take_answer(
        &mut self,
        answer: WebAnswer,
        is_list: bool,
        session: &mut McpSession,
    ) -> Talked {
        let WebAnswer { status, content_type, session_id, body, is_whole, .. } = answer;
        if matches!(status, 401 | 403) {
            return Talked::Failed(McpFailure::Credentials);
        }
        let rpc = answer::response(content_type.as_deref(), &body, self.id);
        if rpc.is_none() && !is_whole && (200..300).contains(&status) {
            return Talked::Failed(McpFailure::TooLarge);
        }
        if self.was_asked(SentKind::Initialized) {
            return match (200..300).contains(&status) {
                true => opened(session),
                false => Talked::Failed(McpFailure::of_status(status)),
            };
        }
        if self.was_asked(SentKind::Initialize) {
            return match era::negotiated(status, rpc.as_ref()) {
                Ok(version) => {
                    session.set_id(session_id);
                    session.stage = SessionStage::Notify(version);
                    Talked::GoesOn
                }
                // The server may be of another era than remembered.
                Err(_) if !session.is_sure && !self.is_retried => {
                    (session.stage, self.is_retried) = (SessionStage::Unknown, true);
                    Talked::GoesOn
                }
                Err(failure) => Talked::Failed(failure),
            };
        }
        let is_probe = self.was_asked(SentKind::Probe);
        let is_legacy = matches!(session.stage, SessionStage::Open(McpEra::Legacy(_)));
        if is_probe || is_list && !session.is_sure && !is_legacy {
            return self.take_probe((status, rpc), is_list, session);
        }
        if let Some(goes_on) = self.retried(status, rpc.as_ref(), session) {
            return goes_on;
        }
        match rpc {
            Some(Rpc::Result(_)) if !(200..300).contains(&status) => {
                Talked::Failed(McpFailure::of_status(status))
            }
            Some(rpc) => Talked::Answered(rpc),
            None => Talked::Failed(McpFailure::of_status(status)),
        }
    }

    /// Takes the answer to a request that shows the era of the server.
    fn take_probe(
        &self,
        (status, rpc): (u16, Option<Rpc>),
        is_list: bool,
        session: &mut McpSession,
    ) -> Talked {
        match (era::of_probe(status, rpc.as_ref()), rpc) {
            (ProbeMeaning::Modern, Some(rpc)) => {
                session.stage = SessionStage::Open(McpEra::Modern);
                session.is_sure = true;
                if is_list { Talked::Answered(rpc) } else { Talked::GoesOn }
            }
            (ProbeMeaning::Legacy(version), _) => {
                session.stage = SessionStage::Initialize(version);
                session.is_sure = true;
                Talked::GoesOn
            }
            (ProbeMeaning::Fails(failure), _) => Talked::Failed(failure),
            (ProbeMeaning::Modern, None) => Talked::Failed(McpFailure::NotMcp),
        }
    }

    /// Sends the request again, once, if the server has lost the session or is of another era than
    /// remembered. Such a server has not acted.
    fn retried(
        &mut self,
        status: u16,
        rpc: Option<&Rpc>,
        session: &mut McpSession,
    ) -> Option<Talked> {
        if self.is_retried || matches!(rpc, Some(Rpc::Result(_))) {
            return None;
        }
        match session.stage {
            SessionStage::Open(McpEra::Legacy(version)) if era::is_session_lost(status, rpc) => {
                // Another job may have opened the session anew since the request was sent.
                if !session.is_reopened {
                    session.reopen(version);
                }
            }
            SessionStage::Open(McpEra::Modern)
                if !session.is_sure && era::may_be_of_other_era(status) =>
            {
                session.stage = SessionStage::Unknown;
            }
            // The job before this one has found the session lost, and could not open it.
            SessionStage::Initialize(_) | SessionStage::Notify(_)
                if era::is_session_lost(status, rpc) => {}
            _ => return None,
        }
        self.is_retried = true;
        Some(Talked::GoesOn)
    }

    /// Ends the job, so that another job may open the session.
    fn end(&self, sessions: &mut Sessions) {
        if let Some(session) = sessions.of_mut(&self.target.name) {
            session.end_job();
        }
    }
}

/// Returns the limits for reading an answer. They depend only on the status, because the answers to
/// several jobs may come at the same time.
pub(super) fn read_limits(status: u16, settings: &Settings) -> ReadLimits {
    match (200..300).contains(&status) {
        true => {
            let bytes_max = settings.server_tools.answer_bytes_max;
            ReadLimits { bytes_max, is_half_enough: false }
        }
        false => ReadLimits { bytes_max: ERROR_BYTES_MAX, is_half_enough: true },
    }
}

/// Opens a session after its handshake.
fn opened(session: &mut McpSession) -> Talked {
    if let SessionStage::Notify(version) = session.stage {
        session.stage = SessionStage::Open(McpEra::Legacy(version));
        session.is_sure = true;
    }
    Talked::GoesOn
}

/// Job that asks an MCP server for its tools.
#[derive(Debug)]
pub(crate) struct McpListJob {
    talk: McpTalk,
    reader: ListReader,
}

impl McpListJob {
    /// Creates the job. `remembered`: the era of the server in an earlier exchange.
    pub(crate) fn new(
        target: Arc<McpTarget>,
        remembered: Option<McpEra>,
        settings: &Settings,
        shared: &mut Sessions,
    ) -> Self {
        let (tools, limits) = (&settings.server_tools.mcp, &settings.server_tools);
        let tools_max = usize::try_from(tools.tools_max).unwrap_or(usize::MAX);
        let reader = ListReader::new(tools_max, limits.answer_bytes_max);
        Self { talk: McpTalk::new(target, remembered, shared), reader }
    }
}

impl McpJob for McpListJob {
    fn ask(&self, _: &See<'_>, shared: &Sessions) -> Option<Question<'static>> {
        let cursor = self.reader.cursor.as_deref();
        self.talk.ask(McpMessage::List { cursor }, shared)
    }

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits {
        read_limits(status, settings)
    }

    fn take(
        &mut self,
        came: Came,
        shared: &mut Sessions,
        report: &mut Report,
    ) -> Option<McpOutcome> {
        let result = match self.talk.take(came, true, shared) {
            Talked::GoesOn => return None,
            Talked::Failed(failure) => return Some(McpOutcome::McpList(Err(failure))),
            Talked::Answered(Rpc::Error(error)) => Err(McpFailure::Rpc(error)),
            Talked::Answered(Rpc::Result(result)) => {
                let era = shared.era(&self.talk.target.name);
                let is_legacy = matches!(era, Some(McpEra::Legacy(_)));
                match self.reader.take_page(&result, is_legacy, &mut report.warnings) {
                    Some(list) => Ok(list),
                    None => {
                        self.talk.id = shared.next_id();
                        return None;
                    }
                }
            }
        };
        self.talk.end(shared);
        Some(McpOutcome::McpList(result))
    }

    fn timeout_ms(&self, _: &Settings) -> u64 {
        LIST_MS.min(self.talk.target.timeout_ms)
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }
}

/// Job that calls a tool of an MCP server.
pub(crate) struct McpCallJob {
    talk: McpTalk,
    tool: String,
    /// Arguments of the call, as the JSON text of an object.
    arguments: String,
    /// Headers that mirror arguments.
    mirrored: Vec<Header>,
    /// True if the outcome is the result as the server sent it.
    is_raw: bool,
}

// Arguments are data of users.
impl fmt::Debug for McpCallJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpCallJob").field("talk", &self.talk).finish_non_exhaustive()
    }
}

impl McpCallJob {
    /// Creates the job for a call of `tool`, whose schema is `schema`. `input`: the input as the
    /// model wrote it.
    ///
    /// # Errors
    /// The output of a call whose input is no object.
    pub(crate) fn new(
        target: Arc<McpTarget>,
        (tool, schema): (&str, &str),
        input: &str,
        remembered: Option<McpEra>,
        shared: &mut Sessions,
    ) -> Result<Self, McpOutput> {
        let input = input.trim();
        let arguments = if input.is_empty() { "{}" } else { input };
        // An input that is no JSON comes in this member.
        let is_wrong = json::member(arguments, "INVALID_JSON").is_some();
        if is_wrong || !Reader::of(arguments).is_object() {
            return Err(McpOutput::error("The input is not a JSON object."));
        }
        Ok(Self {
            talk: McpTalk::new(target, remembered, shared),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            mirrored: mirror::headers(schema, arguments),
            is_raw: false,
        })
    }

    /// Makes the result of the call the job's outcome as the server sends it.
    pub(crate) fn raw(self) -> Self {
        Self { is_raw: true, ..self }
    }
}

impl McpJob for McpCallJob {
    fn ask(&self, _: &See<'_>, shared: &Sessions) -> Option<Question<'static>> {
        let Self { tool, arguments, mirrored, .. } = self;
        self.talk.ask(McpMessage::Call { tool, arguments, mirrored }, shared)
    }

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits {
        read_limits(status, settings)
    }

    fn take(
        &mut self,
        came: Came,
        shared: &mut Sessions,
        report: &mut Report,
    ) -> Option<McpOutcome> {
        let server = &self.talk.target.name.clone();
        let output = match self.talk.take(came, false, shared) {
            Talked::GoesOn => return None,
            Talked::Failed(failure) => {
                return Some(McpOutcome::Mcp(McpOutput::failed(server, &failure)));
            }
            Talked::Answered(Rpc::Error(mut error)) => {
                // A server may quote the credential.
                if let Some(token) = self.talk.target.token.as_deref().filter(|it| !it.is_empty()) {
                    error.message = error.message.replace(token, "…");
                }
                McpOutput::failed(server, &McpFailure::Rpc(error))
            }
            Talked::Answered(Rpc::Result(result)) if self.is_raw => {
                self.talk.end(shared);
                return Some(McpOutcome::McpResult(result));
            }
            Talked::Answered(Rpc::Result(result)) => McpOutput::read(&result, &mut report.warnings),
        };
        self.talk.end(shared);
        Some(McpOutcome::Mcp(output))
    }

    fn timeout_ms(&self, _: &Settings) -> u64 {
        self.talk.target.timeout_ms
    }

    fn held_bytes(&self) -> usize {
        let mirrored = self.mirrored.iter().map(|(_, value)| value.len());
        mirrored.fold(self.arguments.len(), usize::saturating_add)
    }
}
