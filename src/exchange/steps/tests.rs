//! Toy step, in one file and one row: it asks a server on the web for a word, and puts the word
//! into the request.

use std::sync::Arc;

use super::{StepRow, Steps};
use crate::config::{Config, Settings};
use crate::error::Error;
use crate::observe::report::Report;
use crate::steps::{Came, Change, Nothing, Question, ReadLimits, See, Step, WebQuestion};
use crate::{Call, Cancel, End, Exchange, HostCan, To};

/// Step that puts a word from the web in place of `WORD`.
struct Toy {
    word: Option<String>,
}

const TOY: &[StepRow] = &[StepRow::first(begin)];

fn begin(see: &See<'_>, _: &mut Report) -> Option<Box<dyn Step>> {
    // A real step also checks that the operator allowed the address.
    if !see.can.fetch {
        return None;
    }
    see.text()?.contains("WORD").then(|| Box::new(Toy { word: None }) as Box<dyn Step>)
}

impl Step for Toy {
    fn timeout_ms(&self, _: &Settings) -> u64 {
        1_000
    }

    fn questions_left(&self) -> usize {
        usize::from(self.word.is_none())
    }

    fn ask<'s>(&self, _: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        let url = "https://words.example/one".to_owned();
        let accept = "text/plain";
        let question = WebQuestion {
            url,
            may_be_private: false,
            accept,
            user_agent: None,
            cluster: String::new(),
        };
        (ahead < self.questions_left()).then_some(Question::Web(question))
    }

    fn limits(&self, _: usize, _: u16, _: &Settings) -> ReadLimits {
        ReadLimits { bytes_max: 9, is_half_enough: true }
    }

    fn take(&mut self, came: Came, _: &mut Report) {
        let word = match came {
            Came::Web(answer) => String::from_utf8_lossy(&answer.body).into_owned(),
            Came::Nothing(Nothing::TimedOut) => "late".to_owned(),
            _ => "nothing".to_owned(),
        };
        self.word = Some(word);
    }

    fn done(self: Box<Self>, see: &See<'_>, _: &mut Report) -> Result<Change, Error> {
        let word = self.word.unwrap_or_default();
        Ok(Change::Body(see.text().unwrap_or_default().replace("WORD", &word).into_bytes()))
    }

    fn held_bytes(&self) -> usize {
        self.word.as_ref().map_or(0, String::len)
    }
}

const BODY: &[u8] =
    br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Say WORD"}]}"#;

fn exchange() -> Exchange {
    let config = Config::from_json(r#"{"upstreams": {"local": {"key": "none"}}}"#, |_| None);
    let can = HostCan { ask_again: true, fetch: true, ..HostCan::default() };
    let mut exchange = Exchange::new(Arc::new(config.unwrap()), 1, can);
    exchange.steps = Steps::new(TOY);
    exchange.handle_request_head("POST", "/v1/messages", &[]);
    exchange.handle_request_body(BODY.to_vec(), 0);
    exchange
}

/// Polls the call of the upstream, and returns its body.
fn sent(exchange: &mut Exchange) -> String {
    let call = exchange.poll_call(2).unwrap();
    assert_eq!(call.path, "/v1/chat/completions");
    String::from_utf8(call.body).unwrap()
}

#[test]
fn a_step_is_one_file_and_one_row() {
    let mut exchange = exchange();
    let Call { id, to: To::Web(fetch), .. } = exchange.poll_call(0).unwrap() else { panic!() };
    assert_eq!(fetch.url, "https://words.example/one");
    assert!(exchange.poll_call(0).is_none(), "the question is open");
    exchange.handle_call_head(id, 200, &[], 1);
    exchange.handle_call_body(id, b"hello", 1);
    exchange.handle_call_end(id, End::Complete, 1);
    assert!(sent(&mut exchange).contains("Say hello"));
}

#[test]
fn what_is_longer_than_the_limits_of_a_step_is_cut_however_it_comes() {
    let text = b"hello, world";
    for cut in 0..text.len() {
        let mut exchange = exchange();
        let id = exchange.poll_call(0).unwrap().id;
        exchange.handle_call_head(id, 200, &[], 1);
        exchange.handle_call_body(id, &text[..cut], 1);
        exchange.handle_call_body(id, &text[cut..], 1);
        assert_eq!(exchange.poll_cancel(), Some((id, Cancel::Cut)), "nobody reads the rest");
        assert_eq!(exchange.poll_cancel(), None);
        assert!(sent(&mut exchange).contains("Say hello, wo\""), "cut at {cut}");
    }
}

#[test]
fn a_step_is_given_up_at_its_time() {
    let mut exchange = exchange();
    exchange.poll_call(0).unwrap();
    assert_eq!(exchange.poll_timeout(), Some(1_000));
    exchange.handle_timeout(1_000);
    assert!(sent(&mut exchange).contains("Say late"));
}
