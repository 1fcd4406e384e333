//! Runner for the steps of an exchange, such as fetching images or judging an answer, and the table
//! of steps. The questions and results of each step are in `src/steps/`.
//!
//! Steps before the call run one after another. The step after the answer holds the answer's end,
//! and asks its questions once the answer is complete.

mod late;
mod overdue;

use std::ops::Range;
use std::sync::Arc;

use super::ask::Asker;
use super::memory::Refusals;
use super::seam::{Call, CallId, Cancel, HostCan, To};
use super::window::Window;
use super::{Client, Exchange, Path};
use crate::Millis;
use crate::config::{Config, CountTokens, Settings, Upstream};
use crate::error::Error;
use crate::ids::Ids;
use crate::json;
use crate::model::event::ServerResult;
use crate::model::request_context::RequestContext;
use crate::observe::report::{Outcome, Report};
use crate::observe::warning::Warnings;
use crate::protocols::{AnswerWriter, Refused};
use crate::steps::tools::mcp::AnswerSessions;
use crate::steps::{
    Between, Came, Can, Change, DocumentText, Hold, Nothing, Opening, OpeningBlock, Question,
    ReadLimits, See, Step, Unread,
};
use crate::steps::{descriptions, documents, images, tools, verdicts};
use crate::text::{base64, words};

/// Steps before the upstream call, in their order.
const BEFORE: &[StepRow] = &[
    StepRow { is_for_counts: true, ..StepRow::first(documents::begin) },
    // Steps on images do not run for counts: the token estimate already includes their results.
    StepRow::first(images::begin),
    StepRow::first(descriptions::begin),
    StepRow { comes_first: tools::mcp::comes_first, ..StepRow::first(tools::mcp::begin_lists) },
    StepRow { comes_first: |_| false, ..StepRow::first(tools::begin_pending) },
];

/// Function that begins the step between the rounds of an answer.
pub(super) const BETWEEN: BeginBetween = tools::begin;

/// Function that returns the writer of an answer with a step between its rounds.
pub(super) const WRITER: MakeWriter = tools::writer;

/// Function that begins the step after an answer.
const BEHIND: BeginBehind = verdicts::begin;

/// Row in the table of steps before the upstream call.
pub(super) struct StepRow {
    /// Function that begins a step, if the request needs the step. The function costs next to
    /// nothing where the configuration does not use the step.
    pub(super) begin: fn(&See<'_>, &mut Report) -> Option<Box<dyn Step>>,
    /// True if the step also runs before a count of tokens.
    pub(super) is_for_counts: bool,
    /// Function that returns false if the step, and those behind it, need not begin before the
    /// request was translated once. The translation shows for nothing that most requests need none
    /// of them, where each step had to search the whole body.
    pub(super) comes_first: fn(&See<'_>) -> bool,
}

impl StepRow {
    /// Returns the row of a step that begins before the request is translated.
    pub(super) const fn first(begin: fn(&See<'_>, &mut Report) -> Option<Box<dyn Step>>) -> Self {
        Self { begin, is_for_counts: false, comes_first: |_| true }
    }
}

type BeginBetween = fn(&See<'_>, &RequestContext) -> Option<Box<dyn Between>>;
type MakeWriter = fn(&See<'_>, &RequestContext, Vec<OpeningBlock>) -> Box<dyn AnswerWriter>;
type BeginBehind = fn(&See<'_>, &RequestContext, &mut Report) -> Option<Box<dyn Hold>>;

/// Progress of the steps of one exchange.
pub(super) struct Steps {
    rows: &'static [StepRow],
    /// Number of table rows processed: their steps have begun or had nothing to do.
    begun: usize,
    /// True if the steps begin that wait for a translation.
    is_translated: bool,
    pub(super) current: Option<Running>,
    /// Step between the rounds of the answer, while a round is running.
    pub(super) between: Option<Box<dyn Between>>,
    /// Sessions with MCP servers.
    pub(super) sessions: AnswerSessions,
    /// Blocks of steps with which the client's message begins.
    pub(super) opening: Vec<OpeningBlock>,
    /// True if the blocks are the whole answer, and no model is asked.
    pub(super) is_answered: bool,
    /// Step that holds the end of the answer until the answer is complete.
    hold: Option<Box<dyn Hold>>,
    /// Warnings of the request and its steps, for later upstream requests.
    warnings: Option<Box<Warnings>>,
}

/// Progress of the steps before the upstream call, after a poll.
pub(super) enum Prepared {
    /// Progress: a step asks a question, for which this call must be made.
    Asks(Call),
    /// Progress: a step waits for answers to its open questions.
    Waits,
    /// Progress: all steps are done.
    Done,
}

/// Step that is running.
pub(super) struct Running {
    step: Box<dyn Step>,
    window: Window,
    when: When,
    began: Millis,
    until: Millis,
    /// Parts that upstreams refused in the step's own requests.
    refused: Vec<Refused>,
}

/// Time in an exchange at which a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Time before the first upstream call.
    Before,
    /// Time between two rounds of the answer.
    Between,
    /// Time behind the answer, whose end is held back.
    Behind,
}

impl Default for Steps {
    fn default() -> Self {
        Self::new(BEFORE)
    }
}

impl Steps {
    pub(super) fn new(rows: &'static [StepRow]) -> Self {
        Self {
            rows,
            begun: 0,
            is_translated: false,
            current: None,
            between: None,
            sessions: AnswerSessions::default(),
            opening: Vec::new(),
            is_answered: false,
            hold: None,
            warnings: None,
        }
    }

    /// Returns the number of bytes that the exchange's steps keep in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let held = |running: &Running| {
            running.step.held_bytes().saturating_add(running.window.held_bytes())
        };
        let current = self.current.as_ref().map_or(0, held);
        let between = self.between.as_ref().map_or(0, |step| step.held_bytes());
        let opening = self.opening.iter().map(|block| block.held_bytes());
        let current = opening.fold(current.saturating_add(between), usize::saturating_add);
        self.hold.as_ref().map_or(current, |hold| current.saturating_add(hold.held_bytes()))
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// Returns the warnings of the steps, with which each later upstream request begins.
    pub(super) fn warnings(&self, is_strict: bool) -> Warnings {
        self.warnings.as_deref().cloned().unwrap_or_else(|| Warnings::new(is_strict))
    }

    /// Returns true if a step before the upstream call is running.
    pub(super) fn is_before(&self) -> bool {
        self.runs(When::Before)
    }

    /// Returns true if the answer is complete and the step after the answer is running.
    pub(super) fn is_behind(&self) -> bool {
        self.runs(When::Behind)
    }

    /// Returns true if the step between two rounds of the answer is running.
    pub(super) fn is_between(&self) -> bool {
        self.runs(When::Between)
    }

    /// Returns true if another round of the answer may follow, which needs the client's body.
    pub(super) fn goes_on(&self) -> bool {
        self.between.is_some() || self.is_between()
    }

    fn runs(&self, when: When) -> bool {
        self.current.as_ref().is_some_and(|running| running.when == when)
    }

    /// Returns the time at which the running step is abandoned.
    pub(super) fn until(&self) -> Option<Millis> {
        self.current.as_ref().map(|running| running.until)
    }

    /// Returns the time at which a question of the running step is abandoned, by the question's
    /// call.
    pub(super) fn call_until(&self, id: CallId) -> Option<Millis> {
        self.current.as_ref()?.window.until_of(id)
    }

    /// Lets the running step give all calls of server tools a result.
    pub(super) fn settle(&mut self) {
        if let Some(running) = &mut self.current {
            running.step.settle();
        }
    }

    /// Returns the next result of the running step's calls.
    pub(super) fn next_result(&mut self) -> Option<ServerResult<'_>> {
        self.current.as_mut()?.step.next_result()
    }

    /// Returns the limits for reading an answer with this HTTP status to a question of the running
    /// step, by the question's call.
    pub(super) fn limits(
        &self,
        id: CallId,
        status: u16,
        settings: &Settings,
    ) -> Option<ReadLimits> {
        let Running { step, window, .. } = self.current.as_ref()?;
        Some(step.limits(window.place(id)?, status, settings))
    }

    /// Returns the parts that upstreams refused in the running step's requests.
    pub(super) fn refused(&self) -> &[Refused] {
        self.current.as_ref().map_or(&[], |running| &running.refused)
    }

    /// Returns the list of parts that upstreams refused in the running step's requests.
    pub(super) fn refused_mut(&mut self) -> Option<&mut Vec<Refused>> {
        self.current.as_mut().map(|running| &mut running.refused)
    }

    /// Returns true if the running step needs no further answer.
    fn is_settled(&self) -> bool {
        self.current.as_ref().is_none_or(|running| running.step.questions_left() == 0)
    }

    fn is_holding(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.is_holding())
    }
}

impl Exchange {
    /// Runs the steps before the upstream call until a step has a question or waits for answers, or
    /// all steps are done. Steps may rewrite `body`, the client's request, into a form that the
    /// upstream accepts.
    pub(super) fn prepare(&mut self, body: &mut Vec<u8>, now: Millis) -> Result<Prepared, Error> {
        loop {
            if let Some(running) = &mut self.steps.current {
                if now >= running.until && !running.step.is_timed_by_host() {
                    self.fail_questions(Nothing::TimedOut);
                }
                if let Some(call) = self.ask_next(body, now) {
                    return Ok(Prepared::Asks(call));
                }
                if self.is_waiting() {
                    return Ok(Prepared::Waits);
                }
                match self.end_step(body, (&[], now))? {
                    Some(Change::Body(written)) => *body = written,
                    Some(Change::Opening(Opening { body: written, blocks, step, is_whole })) => {
                        *body = written;
                        self.steps.is_answered = is_whole;
                        self.steps.opening.extend(blocks);
                        self.steps.between = step;
                    }
                    _ => {}
                }
                self.steps.warnings = Some(Box::new(self.report.warnings.clone()));
            }
            let Some(row) = self.next_row(now) else { return Ok(Prepared::Done) };
            self.begin_step(row, body, now)?;
        }
    }

    /// Returns the next row of the table that applies to this request.
    fn next_row(&mut self, now: Millis) -> Option<&'static StepRow> {
        let is_for = match self.client.path {
            Path::ANSWER => |_: &StepRow| true,
            Path::COUNT if self.config.settings.count_tokens != CountTokens::Off => {
                |row: &StepRow| row.is_for_counts
            }
            Path::COUNT | Path::Models(_) => return None,
        };
        loop {
            let row = self.steps.rows.get(self.steps.begun)?;
            if !self.steps.is_translated {
                let see = see(&self.config, self.can, self.ids, &self.client, b"", None, now);
                if !(row.comes_first)(&see) {
                    return None;
                }
            }
            self.steps.begun = self.steps.begun.saturating_add(1);
            if is_for(row) {
                return Some(row);
            }
        }
    }

    fn begin_step(&mut self, row: &StepRow, body: &[u8], now: Millis) -> Result<(), Error> {
        let mut see = see(&self.config, self.can, self.ids, &self.client, body, None, now);
        see = sharing(see, self.refusals.as_ref(), &self.steps);
        let Some(step) = (row.begin)(&see, &mut self.report) else { return Ok(()) };
        let route = see.text().and_then(|text| see.route(text)).map(|(upstream, _)| upstream);
        // Do not spend tokens on a request that its upstream would get without a credential.
        if let Err(error) = route.map_or(Ok(()), |upstream| self.check_credential(upstream)) {
            // Token counts are made without a credential, too.
            return if self.client.path == Path::COUNT { Ok(()) } else { Err(error) };
        }
        self.steps.current = Some(self.run(step, When::Before, now));
        Ok(())
    }

    pub(super) fn run(&self, step: Box<dyn Step>, when: When, now: Millis) -> Running {
        let until = now.saturating_add(step.timeout_ms(&self.config.settings));
        let (window, refused) = (Window::default(), Vec::new());
        Running { step, window, when, began: now, until, refused }
    }

    fn check_credential(&self, upstream: &Upstream) -> Result<(), Error> {
        self.upstream_headers(upstream, false).map(|_| ())
    }

    /// Returns the call for the next question of the running step, if another call may be open.
    pub(super) fn ask_next(&mut self, body: &[u8], now: Millis) -> Option<Call> {
        let config = self.config.clone();
        let mut from = 0;
        loop {
            let running = self.steps.current.as_mut()?;
            let began = Some(running.began);
            let place = running.window.next(from, self.can.calls_at_once)?;
            let see = see(&config, self.can, self.ids, &self.client, body, began, now);
            let Some(question) = running.step.ask(&see, place) else {
                if place >= running.step.questions_left() {
                    return None;
                }
                running.window.wait_at(place);
                from = place.saturating_add(1);
                continue;
            };
            let timeout_ms = running.step.question_timeout_ms(place, &config.settings);
            let until = running.until.min(now.saturating_add(timeout_ms));
            let id = self.state.open_call();
            let until = running.window.open(place, id, until);
            let first_until = running.window.until().unwrap_or(until);
            if now >= until && !running.step.is_timed_by_host() {
                self.state.end_call(id);
                self.take_came(id, Came::Nothing(Nothing::TimedOut));
                continue;
            }
            let made = match question {
                Question::Document(data) => {
                    Some((document_call(id, document_at(body, data), until), Asker::Document))
                }
                Question::Fetched(document) => {
                    Some((document_call(id, document, until), Asker::Document))
                }
                Question::Web(question) => Some((Call::web(id, question), Asker::Web(None))),
                Question::Service(question) => {
                    let asker = Asker::Web(question.message_id);
                    Some((Call::service(id, question), asker))
                }
                Question::Model(question) => self.model_call(id, &question),
            };
            if let Some((call, asker)) = made {
                self.begin_ask(id, asker, first_until.saturating_sub(now), now);
                if self.may_ask_more() {
                    self.state.make_ask_due();
                }
                return Some(call);
            }
            self.state.end_call(id);
            self.take_came(id, Came::Nothing(Nothing::Unwritten));
        }
    }

    /// Returns true if the running step has another question that may be asked at the same time.
    fn may_ask_more(&self) -> bool {
        self.steps.current.as_ref().is_some_and(|Running { step, window, .. }| {
            let next = window.next(0, self.can.calls_at_once);
            next.is_some_and(|place| place < step.questions_left())
        })
    }

    /// Returns true if the running step needs the answers to its open questions.
    pub(super) fn is_waiting(&self) -> bool {
        !self.steps.is_settled() && !self.state.asks().is_empty()
    }

    /// Ends the running step, and returns its change to the request or the answer.
    /// `said`: the blocks of the round before the step.
    pub(super) fn end_step(
        &mut self,
        body: &[u8],
        (said, now): (&[u8], Millis),
    ) -> Result<Option<Change>, Error> {
        let Some(Running { step, began, .. }) = self.steps.current.take() else { return Ok(None) };
        self.state.end_asks(Cancel::Cut);
        let mut see = see(&self.config, self.can, self.ids, &self.client, body, Some(began), now);
        see.said = said;
        see = sharing(see, self.refusals.as_ref(), &self.steps);
        step.done(&see, &mut self.report).map(Some)
    }

    /// Takes the answer to a question of the running step. The step gets the answers in the order
    /// of its questions.
    fn take_came(&mut self, id: CallId, came: Came) {
        let Some(Running { step, window, .. }) = &mut self.steps.current else { return };
        window.answer(id, came);
        while step.questions_left() > 0
            && let Some((came, until)) = window.take_answer()
        {
            let left = step.questions_left();
            step.take(came, &mut self.report);
            if step.questions_left() == left {
                window.put_back(until);
            }
        }
    }

    /// Handles the answer to a question of the running step.
    pub(super) fn handle_came(&mut self, id: CallId, came: Came, now: Millis) {
        self.take_came(id, came);
        self.tell_results(now);
        self.go_on(now);
    }

    /// Marks the question of a call as unasked, so that another call asks it with a changed
    /// request.
    pub(super) fn ask_again(&mut self, id: CallId, now: Millis) {
        if let Some(running) = &mut self.steps.current {
            running.window.ask_again(id);
        }
        self.go_on(now);
    }

    /// Asks the question of a call again after an upstream had too many requests, if the question
    /// was asked beside others. From now on the step asks one question at a time.
    pub(super) fn ask_again_alone(&mut self, id: CallId, now: Millis) -> bool {
        let Some(running) = &mut self.steps.current else { return false };
        if !running.window.narrow(id) {
            return false;
        }
        self.ask_again(id, now);
        true
    }

    /// Handles the text of a document that the exchange had the host read
    /// ([`To::Document`](super::To::Document)), or the reason why the document has no text.
    pub fn handle_document(&mut self, id: CallId, came: Result<DocumentText, Unread>) {
        self.state.end_call(id);
        if self.state.ask_mut(id).is_some_and(|ask| ask.is_of_host()) {
            self.state.take_ask(id);
            self.handle_came(id, Came::Document(came), 0);
        }
    }

    /// Makes the next question of the running step due, or the end of the step. A step after the
    /// answer that needs no further answer ends at once: a host that never polls for another call
    /// must not keep the client waiting.
    fn go_on(&mut self, now: Millis) {
        if !self.is_waiting() || self.may_ask_more() {
            self.state.make_ask_due();
        }
        if self.steps.is_behind() && self.steps.is_settled() {
            self.end_behind(now);
        }
    }

    /// Begins the step after the answer, which reads all bytes written for the client from now on.
    /// `body` is the client's request.
    pub(super) fn begin_behind(&mut self, body: &str, context: &RequestContext, now: Millis) {
        let see = see(&self.config, self.can, self.ids, &self.client, body.as_bytes(), None, now);
        self.steps.hold = BEHIND(&see, context, &mut self.report);
    }

    /// Holds back the end of the answer, if the bytes written after index `from` contain the end
    /// and the step needs to run first.
    pub(super) fn hold_end(&mut self, from: usize) {
        if let Some(hold) = &mut self.steps.hold {
            hold.hold(&mut self.output.body, from, &mut self.report);
        }
    }

    /// Ends a complete answer, or makes the first question of the step after the answer due.
    pub(super) fn end_answer(&mut self, now: Millis) {
        if self.begin_between(now) {
            return;
        }
        if self.steps.is_holding()
            && !self.is_ended()
            && let Some(step) = self.steps.hold.take()
        {
            self.report = self.report();
            self.steps.current = Some(self.run(step, When::Behind, now));
            self.state.make_ask_due();
            return;
        }
        self.finish(Outcome::Answered, 200, now);
    }

    /// Returns the call for the next question of the step after the answer; without a question,
    /// ends the answer.
    pub(super) fn ask_behind(&mut self, now: Millis) -> Option<Call> {
        let call = self.ask_next(b"", now);
        if call.is_none() && !self.is_waiting() {
            self.end_behind(now);
        }
        call
    }

    /// Sends the end of the answer to the client, as rewritten by the step after the answer.
    fn end_behind(&mut self, now: Millis) {
        let before = self.output.body.len();
        if let Ok(Some(Change::End(end))) = self.end_step(b"", (&[], now)) {
            self.output.body.extend_from_slice(&end);
        }
        self.send_end(before, now);
    }

    /// Sends the end of the answer, which is in the output after index `before`.
    pub(super) fn send_end(&mut self, before: usize, now: Millis) {
        if self.output.is_held() && !self.output.body.is_empty() {
            let id = self.report.answer.upstream_id.clone();
            if self.report.stream { self.begin_stream() } else { self.begin_message(id) }
        }
        self.count_bytes_since(before);
        self.watchdog.sent(now);
        self.end_answer(now);
    }
}

/// Returns the call by which the host reads a document.
fn document_call(id: CallId, document: Vec<u8>, until: Millis) -> Call {
    let (path, headers) = (String::new(), Vec::new());
    Call { id, to: To::Document { until }, path, headers, body: document }
}

/// Returns the bytes of a document, whose base64 data is a JSON string at the range `data` in the
/// body.
fn document_at(body: &[u8], data: Range<usize>) -> Vec<u8> {
    let data = words::utf8(body).and_then(|body| body.get(data)).and_then(json::string);
    data.and_then(|data| base64::decode(&data.decode())).unwrap_or_default()
}

/// Returns the view of an exchange that steps receive.
pub(super) fn see<'s>(
    config: &'s Config,
    can: HostCan,
    ids: Ids,
    client: &'s Client,
    body: &'s [u8],
    began: Option<Millis>,
    now: Millis,
) -> See<'s> {
    let can = Can {
        ask_models: can.ask_again,
        fetch: can.fetch && can.ask_again,
        read_documents: can.read_documents,
        ask_services: can.run_tools(),
    };
    See {
        config,
        can,
        ids,
        protocol: client.protocol,
        headers: &client.headers,
        body,
        said: &[],
        began,
        now,
        memory: None,
        sessions: None,
    }
}

/// Adds the parts to a view that steps of one exchange, and of several, share.
pub(super) fn sharing<'s>(
    see: See<'s>,
    refusals: Option<&'s Arc<Refusals>>,
    steps: &'s Steps,
) -> See<'s> {
    let memory = refusals.map(|refusals| refusals.tools());
    See { memory, sessions: Some(&steps.sessions), ..see }
}

#[cfg(test)]
mod tests;
