//! Clients that speak lines: `STREAM`, `WARM 0.5` and `ASK text` come; `SAY text`, `END reason` and
//! `FAIL status text` go back.

use crate::answer::{AnswerWriter, WriterPhase};
use crate::config::{Config, Upstream};
use crate::error::Error;
use crate::headers::{Header, Headers as _};
use crate::ids::Ids;
use crate::json::Str;
use crate::model::block::Text;
use crate::model::event::Event;
use crate::model::{Block, Message, Request, Role};
use crate::observe::warning::Warnings;
use crate::protocols::TokenCount;
use crate::protocols::client::Purpose;
use crate::protocols::client::{ClientProtocol, Endpoint, ListFor};

/// Path at which lines are answered.
const PATH: &str = "/v1/lines";

/// Clients that speak lines.
pub(crate) struct LineClient;

impl ClientProtocol for LineClient {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        (path == PATH).then_some(Endpoint::Answer)
    }

    fn owns(&self, path: &str) -> bool {
        path == PATH
    }

    fn read<'a>(
        &self,
        body: &'a str,
        _purpose: Purpose,
        _warnings: &mut Warnings,
    ) -> Result<Request<'a>, Error> {
        let mut request = Request { model: Str::plain("m"), ..Request::default() };
        for (at, line) in body.lines().enumerate() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("STREAM", "") => request.stream = true,
                ("WARM", number) => request.temperature = Some(number),
                ("ASK", text) => request.messages.push(asked(text)),
                _ => return Err(Error::invalid(format!("line {}: expected ASK", at + 1))),
            }
        }
        Ok(request)
    }

    fn check<'c>(
        &self,
        _request: &Request<'_>,
        _model: &'c str,
        route: Option<(&'c Upstream, &'c str)>,
        _headers: &[Header],
        _calls_mcp_here: bool,
        _warnings: &mut Warnings,
    ) -> Result<(&'c Upstream, &'c str), Error> {
        route.ok_or_else(|| Error::invalid("no upstream"))
    }

    fn check_strictly(&self, _request: &Request<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn writer(&self, _stream: bool, _ids: Ids) -> Box<dyn AnswerWriter> {
        Box::new(LinesWriter::default())
    }

    fn write_error(&self, error: &Error, _request_id: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("FAIL {} {}\n", error.status, error.message).as_bytes());
    }

    fn write_error_event(&self, error: &Error, request_id: &str, out: &mut Vec<u8>) {
        self.write_error(error, request_id, out);
    }

    fn ping(&self) -> &'static [u8] {
        b"WAIT\n"
    }

    fn write_count(&self, count: TokenCount) -> Vec<u8> {
        format!("COUNT {}\n", count.input).into_bytes()
    }

    fn lists_for(&self, headers: &[Header]) -> bool {
        headers.value("accept") == Some("text/lines")
    }

    fn list_for(&self, _headers: &[Header]) -> ListFor {
        ListFor::Anyone
    }

    fn write_models(&self, config: &Config, _list_for: ListFor) -> Vec<u8> {
        config.models.names().flat_map(|name| ["MODEL ", name, "\n"]).collect::<String>().into()
    }

    fn rewrite_models(&self, _body: &[u8], _list_for: ListFor) -> Option<Vec<u8>> {
        None
    }

    fn write_model(&self, _config: &Config, id: &str) -> Result<Vec<u8>, Error> {
        Ok(format!("MODEL {id}\n").into_bytes())
    }
}

fn asked(text: &str) -> Message<'_> {
    let text = Text { text: Str::plain(text), cached: None, citations: None };
    let content = vec![Block::Text(text)];
    Message { raw: "{}", role: Role::User, content, until_next_user: false, effort: None }
}

/// Writer of an answer in lines.
#[derive(Debug, Default)]
struct LinesWriter {
    phase: WriterPhase,
}

impl AnswerWriter for LinesWriter {
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Started { .. } => self.phase = WriterPhase::Open,
            Event::TextBegins => out.extend_from_slice(b"SAY "),
            Event::Text(text) => out.extend_from_slice(text.as_bytes()),
            Event::BlockEnds => out.push(b'\n'),
            Event::Stopped(stop) => {
                self.phase = WriterPhase::Ended;
                out.extend_from_slice(format!("END {:?}\n", stop.reason).as_bytes());
            }
            _ => {}
        }
    }

    fn ping(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(LineClient.ping());
    }

    fn phase(&self) -> WriterPhase {
        self.phase
    }

    fn relayed(&mut self, phase: WriterPhase) {
        self.phase = phase;
    }

    fn begin_round(&mut self) {}

    fn take_back(&mut self) {
        self.phase = WriterPhase::Start;
    }

    fn held_bytes(&self) -> usize {
        0
    }
}
