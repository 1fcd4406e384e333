//! A second try, where an upstream refuses what stays in the conversation, which would then be refused for ever:
//! how calls and results are paired although they were repaired, as each vendor has rules of its own, images
//! that its model or its library cannot see, or reasoning, which some servers give and do not take back. Or it refuses
//! `stream_options`, which each stream has, or `response_format`, which Claude Code sends for the title of each
//! session, or asks for fewer tokens than Claude Code does.

use super::request::without_mark;
use super::{Exchange, HeadState, Path, State, UpstreamRequest};
use crate::Millis;
use crate::asked::Asked;
use crate::config::Pairing;
use crate::error::{Error, Fault, Kind};
use crate::report::AnswerReport;
use crate::translate::error;
use crate::translate::{self, Refused, Translated};
use crate::warning::Warnings;
use crate::words;

/// What is counted.
const REFUSED: &str = "pairing_refused";
const IMAGES_REFUSED: &str = "images_refused";
const REASONING_REFUSED: &str = "reasoning_refused";
const RESPONSE_FORMAT_REFUSED: &str = "response_format_refused";
const MAX_TOKENS_REFUSED: &str = "max_tokens_refused";
const STREAM_OPTIONS_REFUSED: &str = "stream_options_refused";

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
                let asked = answer.asked();
                self.can_rebuild(asked)
                    || asked.has_images
                    || asked.has_reasoning
                    || asked.has_schema
            }),
        };
        may_refuse && self.can_ask_again()
    }

    /// Whether nothing was asked again, and the client has nothing yet.
    fn can_ask_again(&self) -> bool {
        // A conversation for an upstream that speaks Messages is sent as it is.
        !self.retried
            && self.speaks_chat()
            && self.client.path == Path::Messages
            && matches!(self.head, HeadState::Held(_))
    }

    /// The host keeps the client's body for [`Exchange::handle_retry`], and calls it as soon as the exchange
    /// [wants](Exchange::wants_retry) it.
    pub fn expect_retry(&mut self) {
        self.can_retry = true;
    }

    /// Whether [`Exchange::handle_retry`] is to be called now: the upstream refused how calls and results are paired,
    /// images, reasoning, `response_format`, the limit of the answer or `stream_options`, and what still comes of its
    /// response no longer matters. Never without [`Exchange::expect_retry`].
    #[must_use]
    pub fn wants_retry(&self) -> bool {
        matches!(self.state, State::Failed { .. })
    }

    /// The request to send instead of the one that was refused, once, without what offends the upstream; then a new
    /// head follows. `None` if there is no other: go on with [`Exchange::handle_response_end`].
    ///
    /// `body` is the client's body, as it was given to [`Exchange::handle_request`].
    pub fn handle_retry(&mut self, body: &[u8], now: Millis) -> Option<UpstreamRequest> {
        let State::Failed { asked, error } = &self.state else { return None };
        let mut warnings = Warnings::new(self.config.settings.strict);
        let body = std::str::from_utf8(without_mark(body)).ok()?;
        let (config, headers) = (&self.config, &self.client.headers);
        let (refused, code) = self.refused(asked, error)?;
        let translated = translate::request_without(refused, body, config, headers, &mut warnings);
        if let Refused::Calls(_) = refused {
            warnings.acted("pairing");
        }
        let Ok(Translated::Send { upstream, body, asked, .. }) = translated else { return None };
        warnings.add(code);
        self.retried = true;
        // Status, id and time of the first answer say nothing about the second.
        self.report.head_at = None;
        self.report.content_at = None;
        self.report.upstream_status = None;
        self.report.upstream_request_id = None;
        self.report.answer = AnswerReport::default();
        self.report.warnings = warnings;
        self.head = HeadState::Held(Vec::new());
        self.send(upstream, body, asked, None, now).ok()
    }

    /// Takes an error before which nothing came. It is kept if the upstream can be asked again, else it is told.
    pub(super) fn take_refusal(&mut self, asked: &Asked, error: Error) -> Result<(), Error> {
        if self.can_retry && self.can_ask_again() && self.refused(asked, &error).is_some() {
            let asked = Box::new(asked.clone());
            self.state = State::Failed { asked, error: Box::new(error) };
            return Ok(());
        }
        Err(self.told(asked, error))
    }

    /// What an error refuses of what was sent, and as what that is counted.
    fn refused<'e>(&self, asked: &Asked, error: &'e Error) -> Option<(Refused<'e>, &'static str)> {
        if self.can_rebuild(asked) && is_pairing(error) {
            Some((Refused::Calls(&error.message), REFUSED))
        } else if asked.has_images && is_images(asked, error) {
            Some((Refused::Images, IMAGES_REFUSED))
        } else if asked.has_reasoning && is_reasoning(error) {
            Some((Refused::Reasoning, REASONING_REFUSED))
        } else if asked.has_schema && is_response_format(error) {
            Some((Refused::ResponseFormat, RESPONSE_FORMAT_REFUSED))
        } else if let Some(most) = most_output(asked, error) {
            Some((Refused::MaxTokens(most), MAX_TOKENS_REFUSED))
        } else if wants_usage(asked) && is_stream_options(error) {
            Some((Refused::StreamOptions, STREAM_OPTIONS_REFUSED))
        } else {
            None
        }
    }

    /// What the client is told of an error for which the upstream is not asked again here. Of one of pairing the
    /// request is not at fault: the next replica, or the same server a moment later, may take it. Others are told as the
    /// client would say them.
    pub(super) fn told(&mut self, asked: &Asked, mut error: Error) -> Error {
        if !(self.can_rebuild(asked) && is_pairing(&error)) {
            if error.status == 400
                && let Some(message) = error::in_clients_words(&error.message, asked)
            {
                error.message = message;
            }
            return error;
        }
        if !self.retried {
            self.report.warnings.add(REFUSED);
        }
        self.report.warnings.acted("pairing");
        let message = format!("Upstream refuses the conversation's tool calls: {}", error.message);
        Error::new(Fault::Upstream, Kind::Overloaded, message).with_should_retry(true)
    }

    /// Whether there are calls, which can be told in words: all of them have their one result.
    fn can_rebuild(&self, asked: &Asked) -> bool {
        // A conversation for an upstream that speaks Messages is not rebuilt in words.
        let repairs = self
            .upstream()
            .is_some_and(|upstream| self.config.guards(upstream).pairing == Pairing::Repair);
        repairs && self.speaks_chat() && asked.shape.has_calls()
    }
}

/// Whether the upstream got `stream_options`.
fn wants_usage(asked: &Asked) -> bool {
    asked.stream && asked.profile.stream_usage
}

/// An error in an answer with status 200, if it says no status of its own. A server's own 502 is taken for the same.
const NO_STATUS: u16 = 502;

/// What a server lacks is some other server's 404 or 500. By now a 422 is a 400, and a 501 is a 500.
fn is_of_lack(error: &Error) -> bool {
    matches!(error.status, 400 | 404 | 500 | NO_STATUS)
}

/// An image that a tool gave, or that is older than the last question, comes again with each request. One that the
/// user has just given is the user's to mend.
fn is_images(asked: &Asked, error: &Error) -> bool {
    is_of_lack(error)
        && (error::is_images(&error.message)
            || !asked.has_new_image && error::is_one_image(&error.message))
}

fn is_response_format(error: &Error) -> bool {
    is_of_lack(error) && error::is_response_format(&error.message)
}

/// The most tokens that the model gives, where it was asked for more.
fn most_output(asked: &Asked, error: &Error) -> Option<u64> {
    error::most_output(&error.message).filter(|most| *most < asked.max_tokens)
}

/// A member that a server does not know is always the request's fault, though Python's servers may call it theirs.
fn is_of_member(error: &Error) -> bool {
    matches!(error.status, 400 | NO_STATUS)
        || error.status == 500 && words::has(&error.message, "unexpected keyword argument")
}

fn is_reasoning(error: &Error) -> bool {
    is_of_member(error) && error::is_reasoning(&error.message)
}

/// A server that names the member does not know it, or takes it in no stream.
fn is_stream_options(error: &Error) -> bool {
    is_of_member(error) && words::has_any(&error.message, &["stream_options", "include_usage"])
}

/// Templates raise errors of their own, which some servers call theirs: 500.
fn is_pairing(error: &Error) -> bool {
    matches!(error.status, 400 | 500 | NO_STATUS) && error::is_pairing(&error.message)
}
