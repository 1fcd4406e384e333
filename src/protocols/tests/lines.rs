//! A protocol of lines: `ASK text` goes up; `SAY text`, `CALL name {json}` and `STOP` come back.

use crate::StopReason;
use crate::answer::{AnswerReader, AnswerState, Ending, ReaderOutput};
use crate::carry::tool_id;
use crate::config::{Settings, Upstream};
use crate::error::{Error, Parameter};
use crate::json;
use crate::model::event::{CallKind, CallStart, Event, Stop};
use crate::model::request_context::{Refusable, RequestContext};
use crate::model::{Block, Request};
use crate::observe::warning::Warnings;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::{ClientRequest, RequestTexts};
use crate::protocols::{CountRequest, Refused, TokenCount, Translated, UpstreamProtocol};

/// Upstreams that speak lines.
pub(crate) struct Lines;

impl UpstreamProtocol for Lines {
    fn endpoint(&self) -> &'static str {
        "lines"
    }

    fn write_request(
        &self,
        client: &ClientRequest<'_>,
        refused: &[Refused],
        warnings: &mut Warnings,
    ) -> Result<Translated, Error> {
        let mut texts = RequestTexts::default();
        let routed = client.read(Purpose::Answer, &mut texts, warnings)?;
        let request = &routed.request;
        let mut body = String::new();
        let is_cold = refused.contains(&Refused::Parameter(Parameter::Sampling));
        if let Some(warmth) = request.temperature.filter(|_| !is_cold) {
            body.push_str(&format!("WARM {warmth}\n"));
        }
        body.push_str(&format!("ASK {}\n", question(request)));
        let context = Box::new(RequestContext {
            model: request.model.decode().into_owned(),
            stream: request.stream,
            refusable: Refusable { sampling: true, ..Refusable::default() },
            ..RequestContext::default()
        });
        let upstream = routed.upstream.name.clone();
        Ok(Translated::Send { upstream, body: body.into_bytes(), context })
    }

    fn may_refuse(&self, refused: &Refused, _context: &RequestContext) -> bool {
        *refused == Refused::Parameter(Parameter::Sampling)
    }

    fn estimate(&self, _client: &ClientRequest<'_>) -> Result<TokenCount, Error> {
        Ok(TokenCount { input: 0, original: None })
    }

    fn count_path(&self, _upstream: &Upstream) -> Option<String> {
        None
    }

    fn write_count(&self, _client: &ClientRequest<'_>) -> Option<CountRequest> {
        None
    }

    fn reader(&self, _context: &mut RequestContext, _settings: &Settings) -> Box<dyn AnswerReader> {
        Box::new(LinesReader::default())
    }
}

/// The last text of the request.
fn question(request: &Request<'_>) -> String {
    let mut blocks = request.messages.iter().flat_map(|message| &message.content).rev();
    let text = blocks.find_map(|block| match block {
        Block::Text(text) => Some(text.text.decode().into_owned()),
        _ => None,
    });
    text.unwrap_or_default()
}

/// Reads an answer in lines.
#[derive(Debug, Default)]
struct LinesReader {
    /// The line that is not complete.
    rest: Vec<u8>,
    has_begun: bool,
    in_text: bool,
    calls: u32,
    spoken: u64,
    is_over: bool,
}

impl LinesReader {
    fn handle_line(&mut self, line: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_begun, true) {
            to.write(Event::Started { model: &to.context.model.clone(), input_tokens: 0 });
        }
        self.spoken += line.len() as u64;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let is_text = word == "SAY";
        if self.in_text != is_text {
            to.write(if is_text { Event::TextBegins } else { Event::BlockEnds });
            self.in_text = is_text;
        }
        match word {
            "SAY" => to.write(Event::Text(&json::escaped(rest))),
            "CALL" => {
                let (name, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let id = tool_id::encode(&to.ids.call(self.calls), &to.context.ids_used);
                let kind = CallKind::Client { toolset: None };
                to.write(Event::CallBegins(CallStart { id: &id, name, kind }));
                to.write(Event::Input(input));
                to.write(Event::BlockEnds);
                self.calls += 1;
            }
            "STOP" => {
                let reason = match self.calls {
                    0 => StopReason::EndTurn,
                    _ => StopReason::ToolUse,
                };
                let model = to.context.model.clone();
                to.stop(&Stop { reason, model: &model, ..Stop::default() });
                self.is_over = true;
            }
            _ => return Err(Error::misbehaved("Upstream sent a line that is none")),
        }
        Ok(())
    }
}

impl AnswerReader for LinesReader {
    fn handle_piece(&mut self, piece: &[u8], to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.rest.extend_from_slice(piece);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.handle_line(String::from_utf8_lossy(&line).trim_end(), to)?;
        }
        Ok(())
    }

    fn handle_whole(&mut self, body: &[u8], to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.handle_piece(body, to)?;
        self.handle_end(to)
    }

    fn handle_end(&mut self, _to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if self.is_over { Ok(()) } else { Err(Error::answer_broke_off()) }
    }

    fn is_whole(&self, body: &[u8]) -> bool {
        body.ends_with(b"STOP\n")
    }

    fn held_bytes(&self) -> usize {
        self.rest.len()
    }

    fn state(&self) -> &dyn AnswerState {
        self
    }

    fn state_mut(&mut self) -> &mut dyn AnswerState {
        self
    }
}

impl AnswerState for LinesReader {
    fn is_complete(&self) -> bool {
        self.is_over
    }

    fn ending(&self) -> Ending {
        if self.is_over { Ending::Sure } else { Ending::Open }
    }

    fn spoken(&self) -> u64 {
        self.spoken
    }

    fn held_bytes(&self) -> usize {
        self.rest.len()
    }
}
