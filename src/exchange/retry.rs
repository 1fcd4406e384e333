//! A second try, where an upstream refuses what stays in the conversation, which would then be refused for ever:
//! how calls and results are paired although they were repaired, as each vendor has rules of its own, images or PDFs
//! that its model or its library cannot see, or reasoning, which some servers give and do not take back. Or it refuses
//! a parameter that the client sends with each request, or its value: see [`Refused`].
//!
//! A server may refuse one thing after the other, and each is left out once.

use super::request::without_mark;
use super::{Exchange, HeadState, Path, State, UpstreamRequest};
use crate::config::Pairing;
use crate::error::{Error, ErrorKind, Fault};
use crate::model::request_context::RequestContext;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;
use crate::protocols::{Refused, Translated};
use crate::text::words::{self, phrases};
use crate::{Millis, protocols, upstream_error as error};

/// Most requests beside the first. Four parameters are refused by some models: `max_tokens`, `temperature`, `stop` and
/// `parallel_tool_calls`.
const RETRIES_MAX: usize = 4;

/// A request for an upstream.
#[derive(Debug)]
pub(super) struct SentRequest {
    /// Its name in the configuration.
    pub(super) upstream: String,
    pub(super) body: Vec<u8>,
    pub(super) context: Box<RequestContext>,
}

impl SentRequest {
    pub(super) fn of(translated: Result<Translated, Error>) -> Option<Self> {
        match translated.ok()? {
            Translated::Send { upstream, body, context } => Some(Self { upstream, body, context }),
            Translated::Answer { .. } => None,
        }
    }
}

/// What an error refuses of what was sent, unless that is left out already.
pub(super) type Recognise = fn(&Exchange, &Error, &RequestContext) -> Option<Refused>;

impl Exchange {
    /// Whether [`Exchange::handle_retry`] could still want the request's body, so that a host may
    /// drop it in time.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        let may_refuse = match &self.state {
            // With its status a server says that it does not take `stream_options` or so high a limit of the answer,
            // which every request has.
            State::Waiting { .. } | State::Refused { .. } | State::Failed { .. } => true,
            state => state.answer().is_some_and(|answer| {
                let context = answer.context();
                self.can_rebuild(context)
                    || context.has_images
                    || context.has_documents
                    || context.has_reasoning
                    || context.has_schema
            }),
        };
        may_refuse && self.can_ask_again()
    }

    /// Whether not too much was refused, and the client has nothing yet.
    fn can_ask_again(&self) -> bool {
        self.retries < RETRIES_MAX
            && self.client.path == Path::Messages
            && matches!(self.head, HeadState::Held(_))
    }

    /// The host keeps the client's body for [`Exchange::handle_retry`], and calls it as soon as the exchange
    /// [wants](Exchange::wants_retry) it.
    pub fn expect_retry(&mut self) {
        self.recognise = Some(Self::refused_by);
        self.keeps_body = true;
    }

    /// Whether [`Exchange::handle_retry`] is to be called now: the upstream refused what can be left out, and what
    /// still comes of its response no longer matters. Never without [`Exchange::expect_retry`].
    #[must_use]
    pub fn wants_retry(&self) -> bool {
        matches!(self.state, State::Failed { .. })
    }

    /// The request to send instead of the one that was refused, without what offends the upstream; then a new
    /// head follows, which may refuse something else. `None` if there is no other: go on with
    /// [`Exchange::handle_response_end`].
    ///
    /// `body` is the client's body, as it was given to [`Exchange::handle_request`].
    pub fn handle_retry(&mut self, body: &[u8], now: Millis) -> Option<UpstreamRequest> {
        let State::Failed { refused: new, scope, .. } = &self.state else { return None };
        let mut warnings = Warnings::new(self.config.settings.strict);
        let body = std::str::from_utf8(without_mark(body)).ok()?;
        let mut refused = self.refused.clone();
        refused.push(new.clone());
        let sent = self.without(&refused, body, &mut warnings)?;
        // What was not sent cannot be left out.
        let before = self.without(&self.refused, body, &mut Warnings::new(false));
        if before.is_some_and(|before| before.body == sent.body) {
            return None;
        }
        if let Some(scope) = scope {
            self.memorize(scope.clone(), new);
        }
        self.refused = refused;
        self.retries = self.retries.saturating_add(1);
        self.note_refused_in(&mut warnings);
        // Status, id and time of the first answer say nothing about the second.
        self.report.head_at = None;
        self.report.content_at = None;
        self.report.upstream_status = None;
        self.report.upstream_request_id = None;
        self.report.answer = AnswerReport::default();
        self.report.warnings = warnings;
        self.head = HeadState::Held(Vec::new());
        self.send(sent, None, now).ok()
    }

    /// The request without what was refused.
    fn without(
        &self,
        refused: &[Refused],
        body: &str,
        warnings: &mut Warnings,
    ) -> Option<SentRequest> {
        let (config, headers) = (&self.config, &self.client.headers);
        SentRequest::of(protocols::request_without(refused, body, config, headers, warnings))
    }

    /// Names what was refused.
    pub(super) fn note_refused_in(&self, warnings: &mut Warnings) {
        for refused in &self.refused {
            let (code, name) = refused.code();
            warnings.add_named(code, name);
            if let Refused::Calls(_) = refused {
                warnings.acted("pairing");
            }
        }
    }

    /// Takes an error before which nothing came. It is kept if the upstream can be asked again, else it is told.
    pub(super) fn take_refusal(
        &mut self,
        context: &RequestContext,
        error: Error,
    ) -> Result<(), Error> {
        let refused = self.recognise.and_then(|recognise| recognise(self, &error, context));
        let Some(refused) = refused else { return Err(self.explained(context, error)) };
        let scope = self.sort_of_lasting(context, &error, &refused);
        if self.keeps_body && self.can_ask_again() {
            let error = self.explained(context, error);
            self.state = State::Failed { error, refused, scope };
            return Ok(());
        }
        let Some(scope) = scope else { return Err(self.explained(context, error)) };
        self.memorize(scope, &refused);
        if !matches!(self.head, HeadState::Held(_)) {
            return Err(self.explained(context, error));
        }
        let (code, name) = refused.code();
        self.report.warnings.add_named(code, name);
        let message = format!("Upstream refuses what is left out from now on: {}", error.message);
        Err(Error::new(Fault::Upstream, ErrorKind::Overloaded, message).with_should_retry(true))
    }

    /// What an error refuses of what was sent, unless that is left out already.
    fn refused_by(&self, error: &Error, context: &RequestContext) -> Option<Refused> {
        let refused = if self.can_rebuild(context) && is_pairing(error) {
            Refused::Calls(error.message.clone())
        } else if context.parameters.silent_calls
            && let Some(content) = refused_content(context, error).filter(|it| self.is_new(it))
        {
            // Words that a server says of images, too. So nothing is lost, and images follow if that does not help.
            content
        } else if context.has_images && is_images(context, error) {
            Refused::Images
        } else if context.has_documents && is_of_lack(error) && error::is_documents(&error.message)
        {
            Refused::Documents
        } else if context.has_schema && is_response_format(error) {
            Refused::ResponseFormat
        } else {
            return self.refused_of_all(error, context);
        };
        self.unless_known(refused, context)
    }

    /// What the upstream refuses of every request to this model, by its error.
    pub(super) fn refused_of_all(
        &self,
        error: &Error,
        context: &RequestContext,
    ) -> Option<Refused> {
        let refused = if context.has_reasoning && is_reasoning(error) {
            Refused::Reasoning
        } else if let Some(room) = error::room(&error.message, context) {
            Refused::Room(room)
        } else if let Some(most) = most_output(context, error) {
            Refused::MaxTokens(most)
        } else if wants_usage(context) && is_stream_options(error) {
            Refused::StreamOptions
        } else if is_neighbours(error) {
            Refused::Neighbours
        } else if let Some(refused) = refused_stops(context, error) {
            refused
        } else if let Some(refused) = refused_content(context, error) {
            refused
        } else {
            let parameter = error.parameter.as_deref();
            error::refused_parameter(&error.message, parameter).filter(|_| is_of_member(error))?
        };
        self.unless_known(refused, context)
    }

    fn unless_known(&self, refused: Refused, context: &RequestContext) -> Option<Refused> {
        let is_sent = match self.speaks_chat() {
            true => refused.may_be_in(context),
            false => refused.is_of_messages(),
        };
        (is_sent && self.is_new(&refused)).then_some(refused)
    }

    fn is_new(&self, refused: &Refused) -> bool {
        !self.refused.contains(refused) && !self.remembered.contains(refused)
    }

    /// What the client is told of an error for which the upstream is not asked again here. Of one of pairing the
    /// request is not at fault: the next replica, or the same server a moment later, may take it. Others are told as
    /// the client would say them.
    pub(super) fn explained(&mut self, context: &RequestContext, mut error: Error) -> Error {
        if !(self.can_rebuild(context) && is_pairing(&error)) {
            if error.status == 400
                && let Some(message) =
                    error::in_clients_words(&error.message, error.parameter.as_deref(), context)
            {
                error.message = message;
            }
            return error;
        }
        let refused = Refused::Calls(String::new());
        if self.is_new(&refused) {
            self.report.warnings.add(refused.code().0);
        }
        self.report.warnings.acted("pairing");
        let message = format!("Upstream refuses the conversation's tool calls: {}", error.message);
        Error::new(Fault::Upstream, ErrorKind::Overloaded, message).with_should_retry(true)
    }

    /// Whether there are calls, which can be told in words: all of them have their one result.
    fn can_rebuild(&self, context: &RequestContext) -> bool {
        // A conversation for an upstream that speaks Messages is not rebuilt in words.
        let repairs = self
            .upstream()
            .is_some_and(|upstream| self.config.guards(upstream).pairing == Pairing::Repair);
        repairs && self.speaks_chat() && context.counts.has_calls()
    }
}

/// Whether the upstream got `stream_options`.
fn wants_usage(context: &RequestContext) -> bool {
    context.stream && context.profile.stream_usage
}

/// An error in an answer with status 200, if it says no status of its own. A server's own 502 is taken for the same.
const NO_STATUS: u16 = 502;

/// What a server lacks is some other server's 404 or 500. By now a 422 is a 400, and a 501 is a 500.
fn is_of_lack(error: &Error) -> bool {
    matches!(error.status, 400 | 404 | 500 | NO_STATUS)
}

/// An image that a tool gave, or that is older than the last question, comes again with each request. One that the
/// user has just given is the user's to mend.
fn is_images(context: &RequestContext, error: &Error) -> bool {
    is_of_lack(error)
        && (error::is_images(&error.message)
            || !context.has_new_image
                && error::is_one_image(&error.message, error.parameter.as_deref(), context))
}

fn is_response_format(error: &Error) -> bool {
    is_of_lack(error) && error::is_response_format(&error.message)
}

/// The most tokens that the model gives, where it was asked for more.
fn most_output(context: &RequestContext, error: &Error) -> Option<u64> {
    error::most_output(&error.message).filter(|most| *most < context.max_tokens)
}

/// A member that a server does not know is always the request's fault, though Python's servers may call it theirs.
fn is_of_member(error: &Error) -> bool {
    matches!(error.status, 400 | NO_STATUS)
        || error.status == 500 && words::has(&error.message, "unexpected keyword argument")
}

/// What is refused of the client's stop sequences.
fn refused_stops(context: &RequestContext, error: &Error) -> Option<Refused> {
    let sent = context.stop_sequences.len();
    error::refused_stops(&error.message, error.parameter.as_deref(), sent)
        .filter(|_| is_of_member(error))
}

/// What is refused of messages with calls alone.
fn refused_content(context: &RequestContext, error: &Error) -> Option<Refused> {
    let has_calls = context.counts.has_calls() && is_of_template(error);
    has_calls.then(|| error::refused_content(&error.message)).flatten()
}

fn is_reasoning(error: &Error) -> bool {
    is_of_member(error) && error::is_reasoning(&error.message)
}

/// A server that names the member does not know it, or takes it in no stream.
fn is_stream_options(error: &Error) -> bool {
    is_of_member(error)
        && words::has_one_of(&error.message, phrases!["stream_options", "include_usage"])
}

/// Templates raise errors of their own, which some servers call theirs: 500.
fn is_of_template(error: &Error) -> bool {
    matches!(error.status, 400 | 500 | NO_STATUS)
}

fn is_neighbours(error: &Error) -> bool {
    is_of_template(error) && error::is_turns(&error.message)
}

fn is_pairing(error: &Error) -> bool {
    is_of_template(error) && error::is_pairing(&error.message)
}
