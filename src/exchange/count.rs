//! Token counts: estimated here, or asked of the upstream's tokenizer. An upstream that cannot count
//! costs the client nothing but the exactness of the number.

use super::retry::SentRequest;
use super::{Body, Exchange, Head, HeadState, Reply, State, UpstreamRequest};
use crate::error::Error;
use crate::observe::report::Outcome;
use crate::protocols::CountRequest;
use crate::tokens::counted::count_of;
use crate::upstream_error;
use crate::{Millis, protocols};

/// A count that an upstream was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// What is said where it does not answer.
    estimate: u64,
    /// Tokens that its tokenizer was not shown.
    beside: u64,
    /// Older versions of this server refuse the question.
    may_be_older: bool,
}

impl Count {
    /// Whether an answer with this status may hold a count, or says that the upstream has no such endpoint, does not
    /// understand the question, or is not well. Other statuses are errors of a request like any other.
    pub(super) fn takes(self, status: u16) -> bool {
        matches!(status, 200..300 | 404 | 405 | 500..)
            || self.may_be_older && matches!(status, 400 | 422)
    }
}

impl Exchange {
    /// Answers a request for a count, or gives the question for the upstream.
    pub(super) fn count_tokens(
        &mut self,
        text: &str,
        now: Millis,
    ) -> Result<UpstreamRequest, Reply> {
        let estimate = match protocols::count_tokens(text, &self.config) {
            Ok(estimate) => estimate,
            Err(error) => {
                self.note_refused(text);
                return Err(self.refuse(&error));
            }
        };
        let question = protocols::count_request(text, &self.config, &self.client.headers);
        if let Some(CountRequest { upstream, body, beside, may_be_older, context }) = question {
            self.note(&context);
            // They come with the request that is counted.
            self.report.counts.new_results = 0;
            self.report.upstream.clone_from(&upstream);
            let count = Some(Count { estimate, beside, may_be_older });
            return self.send(SentRequest { upstream, body, context }, count, now);
        }
        self.report.warnings.add("count_estimated");
        self.end(Outcome::Answered, 200);
        Err(self.json_reply(body_of(estimate)))
    }

    /// The tokenizer's answer is over.
    pub(super) fn end_count(
        &mut self,
        count: Count,
        answer: Option<&[u8]>,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head> {
        let counted = answer.and_then(count_of);
        let tokens = match counted {
            Some(tokens) => tokens.saturating_add(count.beside),
            None => count.estimate,
        };
        if counted.is_none() || count.beside > 0 {
            self.report.warnings.add("count_estimated");
        }
        self.finish(Outcome::Answered, 200, now);
        let held = matches!(self.head, HeadState::Held(_));
        let head = held.then(|| self.make_head(200, Body::Json));
        let body = body_of(tokens);
        self.count_bytes(body.len());
        out.extend_from_slice(&body);
        head
    }

    /// Ends a question that has an answer without the upstream: a tokenizer that cannot be reached, or is silent, is
    /// like one that is not there, and a list of models may be empty. Other exchanges go on.
    pub(super) fn end_unanswered(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        if matches!(self.state, State::Listing { .. }) {
            return self.end_list(now, out);
        }
        let State::Waiting { count: Some(count), .. } = self.state else { return None };
        self.end_count(count, None, now, out)
    }
}

/// Whether the body of an answer is worth reading. How it ended does not matter: what was cut off is no JSON.
pub(super) fn readable(status: u16, body: &[u8]) -> Option<&[u8]> {
    (200..300).contains(&status).then_some(body)
}

/// The error of an upstream that has the endpoint and not the model. Another 404 is of one without a tokenizer.
pub(super) fn unknown_model(status: u16, body: &[u8]) -> Option<Error> {
    (status == 404).then(|| upstream_error::unknown_model(body)).flatten()
}

fn body_of(tokens: u64) -> Vec<u8> {
    format!("{{\"input_tokens\":{tokens}}}").into_bytes()
}
