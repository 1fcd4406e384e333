//! Upstream calls of an exchange: for the client's answer (a round), for a token count or for a
//! list of models (auxiliary calls).

use super::ask::Asker;
use super::count::Count;
use super::models::LIST_TIMEOUT_MS;
use super::retry::Refusal;
use super::round::{Round, RoundRequest};
use super::seam::{Call, CallId, To, request_too_large};
use super::state::DueCall;
use super::steps::Prepared;
use super::{Client, Exchange, Path, Pings};
use crate::Millis;
use crate::config::Protocol;
use crate::error::{Error, ErrorKind, Fault};
use crate::model::request_context::RequestContext;
use crate::observe::report::{Cause, Outcome};
use crate::protocols::client::ListFor;
use crate::protocols::{self, AnswerWriter, CountRequest, Translated};
use crate::text::words;

impl Exchange {
    /// Returns a call that is due: a step's question, the first call of the upstream, a retry
    /// without the part that the upstream refused, or the repeat of a later round.
    pub fn poll_call(&mut self, now: Millis) -> Option<Call> {
        let due = self.state.take_due()?;
        if self.steps.is_behind() {
            return self.ask_behind(now);
        }
        if self.steps.is_between() {
            return self.ask_between(now);
        }
        let refusal = match due {
            DueCall::Repeat => return self.next_round(now),
            DueCall::Again(refusal) => Some(refusal),
            DueCall::First | DueCall::Ask => None,
        };
        let mut body = std::mem::take(&mut self.client.body);
        let call = match refusal {
            Some(refusal) => self.next_call(*refusal, &body, now),
            None => self.first_call(&mut body, now).unwrap_or_else(|error| {
                self.refuse(&error);
                None
            }),
        };
        let may_need = self.may_call_again() || self.steps.goes_on();
        if self.steps.is_before() || call.is_some() && may_need {
            self.client.body = body;
        }
        call
    }

    /// Prepares and translates the client's request, and sends it.
    fn first_call(&mut self, body: &mut Vec<u8>, now: Millis) -> Result<Option<Call>, Error> {
        // A body rewritten by a step may be slightly larger than the client may send.
        let is_new = !self.steps.has_begun();
        if is_new && body.len() > self.config.settings.request_bytes_max {
            return Err(request_too_large());
        }
        if let Path::Models(list_for) = self.client.path {
            return Ok(self.list_models(list_for, now));
        }
        let prepared = self.prepare(body, now);
        if let Some(call) = self.prepared(prepared, body)? {
            return Ok(call);
        }
        let text = text_of(body)?;
        self.note_session(text);
        if self.client.path == Path::COUNT {
            return self.count_tokens(text, now);
        }
        let mut warnings = self.report.warnings.clone();
        let translated = self.translated(&[], text, &mut warnings);
        if !self.steps.waits_for(&translated) {
            self.report.warnings = warnings;
            return self.send_first(text, translated, now);
        }
        match self.prepare_translated(body, now).transpose() {
            None => {
                self.report.warnings = warnings;
                self.send_first(text_of(body)?, translated, now)
            }
            Some(prepared) => {
                // The request is translated again, and takes the memory of the first translation.
                drop(translated);
                match self.prepared(prepared, body)? {
                    Some(call) => Ok(call),
                    None => self.first_call(body, now),
                }
            }
        }
    }

    /// Returns the call to return after the steps before the upstream call; `None` if the steps are
    /// done.
    fn prepared(
        &mut self,
        prepared: Result<Prepared, Error>,
        body: &[u8],
    ) -> Result<Option<Option<Call>>, Error> {
        match prepared {
            Ok(Prepared::Done) => Ok(None),
            Ok(Prepared::Asks(call)) => Ok(Some(Some(call))),
            Ok(Prepared::Waits) => Ok(Some(None)),
            Err(error) => {
                self.note_refused(words::utf8(body).unwrap_or_default());
                Err(error)
            }
        }
    }

    /// Sends the translated request, or the answer that needs no upstream.
    fn send_first(
        &mut self,
        text: &str,
        mut translated: Result<Translated, Error>,
        now: Millis,
    ) -> Result<Option<Call>, Error> {
        if self.steps.is_answered {
            translated = translated.map(Translated::without_model);
        }
        match translated {
            Ok(Translated::Send { upstream, body, context }) => {
                let request = RoundRequest { upstream, body, context };
                let request = self.without_remembered(text, request, now);
                self.note(&request.context);
                self.begin_behind(text, &request.context, now);
                self.begin_rounds(&request.context, now);
                self.report.upstream.clone_from(&request.upstream);
                self.call(request, None, now).map(Some)
            }
            Ok(Translated::Answer { context, text: own, stop_reason }) => {
                self.note(&context);
                self.note_upstream(&context.model);
                self.begin_behind(text, &context, now);
                self.begin_rounds(&context, now);
                let made_by = (self.ids, self.take_writer(context.stream));
                let settings = &self.config.settings;
                let mut answer =
                    protocols::answer_of_round(Protocol::Openai, context, settings, made_by);
                answer.write_own(&own, stop_reason, &mut self.output.body);
                self.hold_end(0);
                if answer.is_stream() {
                    self.begin_stream()
                } else {
                    self.begin_message(None)
                }
                self.report.answer = answer.report().clone();
                self.count_bytes(self.output.body.len());
                self.end(Outcome::Answered, 200);
                Ok(None)
            }
            Err(error) => {
                self.note_refused(text);
                Err(error)
            }
        }
    }

    /// Builds the call that follows an upstream's refusal. If no changed request can be sent, the
    /// client gets the upstream's error.
    fn next_call(&mut self, refusal: Refusal, body: &[u8], now: Millis) -> Option<Call> {
        if let Some(request) =
            words::utf8(body).and_then(|text| self.without_refused(&refusal, text))
        {
            return self.call(request, None, now).map_err(|error| self.refuse(&error)).ok();
        }
        if self.report.upstream_status.is_some_and(|status| status >= 400) {
            self.report.failed_by.get_or_insert(Cause::UpstreamRefused);
        }
        self.settle(Err(refusal.error), self.output.body.len(), now);
        None
    }

    /// Builds the upstream call for the client's answer, or for a token count if `count` is given.
    pub(super) fn call(
        &mut self,
        request: RoundRequest,
        count: Option<Count>,
        now: Millis,
    ) -> Result<Call, Error> {
        let RoundRequest { upstream, body, context } = request;
        let Some(target) = self.config.upstreams.get(&upstream) else {
            let message = "No such upstream is configured.";
            return Err(Error::new(Fault::Operator, ErrorKind::Api, message));
        };
        let (protocol, path) = (target.protocol, self.upstream_path(target));
        let headers = self.upstream_headers(target, context.upstream_stream)?;
        self.report.upstream_model.clone_from(&context.upstream_model);
        let bytes = &mut self.report.upstream_request_bytes;
        *bytes = bytes.saturating_add(body.len());
        // Counting takes no long time, and a count can be estimated.
        let is_whole = !context.stream || self.can.later_answers_whole && self.is_later_call();
        let is_patient = count.is_none() && (is_whole || self.can.ping == Pings::Sent);
        let pings = self.can.ping != Pings::No;
        let timeout_ms = self.config.settings.first_byte_after_ms(pings, is_patient);
        let id = self.state.open_call();
        match count {
            Some(count) => {
                self.begin_ask(id, Asker::Count(count, protocol, context), timeout_ms, now);
            }
            None => {
                self.watchdog.start(timeout_ms, now);
                self.begin_round(id, protocol, context);
            }
        }
        Ok(Call { id, to: To::Upstream(upstream), path, headers, body })
    }

    /// Returns true if the next call for the client's answer is not the upstream's first.
    fn is_later_call(&self) -> bool {
        self.later.is_some() || self.report.retries > 0
    }

    /// Takes the writer of the client's message, which is made for the first round.
    fn take_writer(&mut self, stream: bool) -> Box<dyn AnswerWriter> {
        self.writer.take().unwrap_or_else(|| self.client.protocol.writer(stream, self.ids))
    }

    /// Begins the round of an upstream call whose timeout is already running.
    pub(super) fn begin_round(
        &mut self,
        id: CallId,
        protocol: Protocol,
        context: Box<RequestContext>,
    ) {
        let (config, ping) = (self.config.clone(), self.can.ping);
        let protocols = (protocol, self.client.protocol);
        let mut writer = self.take_writer(context.stream);
        writer.begin_round();
        self.state.call(Round::new(id, config, protocols, self.ids, ping, (context, writer)));
    }

    /// Builds the call of the upstream's tokenizer, or answers with an estimate.
    fn count_tokens(&mut self, text: &str, now: Millis) -> Result<Option<Call>, Error> {
        let estimate = match protocols::estimate(self.client.protocol, text, &self.config) {
            Ok(estimate) => estimate,
            Err(error) => {
                self.note_refused(text);
                return Err(error);
            }
        };
        let Client { protocol, headers, .. } = &self.client;
        let question = protocols::count_request(*protocol, text, &self.config, headers);
        if let Some(CountRequest { upstream, body, beside, may_be_older, context }) = question {
            self.note(&context);
            // The new tool results come again with the request that is counted.
            self.report.counts.new_results = 0;
            self.report.upstream.clone_from(&upstream);
            let count = Count { estimate, beside, may_be_older };
            return self.call(RoundRequest { upstream, body, context }, Some(count), now).map(Some);
        }
        self.report.warnings.add("count_estimated");
        self.end(Outcome::Answered, 200);
        self.answer_json(&self.client.protocol.write_count(estimate));
        Ok(None)
    }

    /// Builds the call that lists the upstream's models. If the upstream cannot be called, answers
    /// with an empty list.
    fn list_models(&mut self, list_for: ListFor, now: Millis) -> Option<Call> {
        let upstream = self.config.first_upstream();
        let headers = upstream.and_then(|upstream| self.upstream_headers(upstream, false).ok());
        let (Some(upstream), Some(mut headers)) = (upstream, headers) else {
            self.answer_json(&self.client.protocol.write_models(&self.config, list_for));
            self.end(Outcome::Answered, 200);
            return None;
        };
        let (path, upstream) = (self.upstream_path(upstream), upstream.name.clone());
        // A request for a list of models has no body.
        headers.retain(|(name, _)| name != "content-type");
        self.report.upstream.clone_from(&upstream);
        let id = self.state.open_call();
        self.begin_ask(id, Asker::Models(list_for), LIST_TIMEOUT_MS, now);
        Some(Call { id, to: To::Upstream(upstream), path, headers, body: Vec::new() })
    }
}

/// Returns the text of a request body.
///
/// # Errors
/// The body is not UTF-8.
fn text_of(body: &[u8]) -> Result<&str, Error> {
    let message = "The request body is not valid JSON: it is not UTF-8";
    words::utf8(body).ok_or_else(|| Error::invalid(message))
}
