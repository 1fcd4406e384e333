//! Gate of server tools: writer around the client's writer, which keeps a message open while the
//! model calls server tools.
//!
//! Calls of server tools pass as the blocks that the client gets anyway. At the end of a round, the
//! gate holds back the end of the message if there are only such calls. The next round continues
//! the message, and the end has the sums of all rounds. If the client has to run calls, too, the
//! message ends with the round: before the server tools are run, or with their results.

use super::OpeningBlock;
use crate::StopReason;
use crate::config::MixedTurns;
use crate::model::context_management::Cleared;
use crate::model::counts::Counts;
use crate::model::event::{
    CallKind, CallStart, Event, ServerCall, ServerOutput, ServerResult, Stop,
};
use crate::model::mcp::function_name;
use crate::protocols::{AnswerWriter, WriterPhase};
use crate::text::words;

/// Maximum number of bytes of a call's input that is kept.
const INPUT_BYTES_MAX: usize = 4 << 20;

/// Writer of the client's message that continues over several rounds.
#[derive(Debug)]
pub(super) struct ToolGate {
    client: Box<dyn AnswerWriter>,
    /// Writer of the blocks that the request of the next round repeats.
    record: Box<dyn AnswerWriter>,
    /// Text for the record that was not written yet, as the inside of a JSON string.
    text: String,
    /// Blocks of steps before the first round, with which the message begins.
    opening: Vec<OpeningBlock>,
    /// Progress of the round.
    phase: WriterPhase,
    /// Call of a server tool whose block is open.
    open: Option<ServerCall>,
    /// Calls of the round without a result.
    calls: Vec<ServerCall>,
    /// True if the client has to run a call of the round.
    has_client_call: bool,
    /// True if server tools are run even if the client has to run a call of the round.
    runs_mixed: bool,
    sums: Sums,
}

/// Sums of all rounds of an answer.
#[derive(Debug, Default)]
struct Sums {
    counts: Counts,
    /// Token counts of each round; `None` if the client does not want them.
    rounds: Option<Vec<Counts>>,
    uses: WebUses,
    told: Told,
    /// Counts of what was cleared from the history of the newest round.
    cleared: Option<Cleared>,
}

/// Counts that the client is told at the end of its message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// True if the client gets the token counts of each round.
    pub(super) rounds: bool,
    /// True if the client gets the numbers of web searches and fetches.
    pub(super) uses: bool,
}

/// Numbers of web searches and fetches that Creole ran.
#[derive(Clone, Copy, Debug, Default)]
struct WebUses {
    searches: u64,
    fetches: u64,
}

impl WebUses {
    /// Counts the result of a call.
    fn add(&mut self, result: &ServerResult<'_>) {
        let count = match result.output {
            ServerOutput::Pages(_) => &mut self.searches,
            ServerOutput::Page(_) | ServerOutput::FetchFailed(_) => &mut self.fetches,
            _ => return,
        };
        *count = count.saturating_add(u64::from(result.is_counted));
    }
}

impl ToolGate {
    /// Creates the gate around the client's writer. The writer `record` writes messages.
    pub(super) fn new(
        (client, record): (Box<dyn AnswerWriter>, Box<dyn AnswerWriter>),
        opening: Vec<OpeningBlock>,
        told: Told,
    ) -> Self {
        Self {
            client,
            record,
            text: String::new(),
            opening,
            phase: WriterPhase::Start,
            open: None,
            calls: Vec::new(),
            has_client_call: false,
            runs_mixed: false,
            sums: Sums { rounds: told.rounds.then(Vec::new), told, ..Sums::default() },
        }
    }

    /// Sets how a round is handled that ends with calls of both sides.
    pub(super) fn with_mixed(self, mixed: MixedTurns) -> Self {
        Self { runs_mixed: mixed == MixedTurns::Run, ..self }
    }

    /// Writes an event for the client, and into the record.
    fn pass(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        self.client.write(event, out);
        // The answer ends with the round if the client has to run a call.
        if !self.has_client_call {
            self.write_text();
            self.record.write(event, &mut Vec::new());
        }
    }

    /// Writes a text for the client. The record gets all pieces of a text at once.
    fn pass_text(&mut self, raw: &str, out: &mut Vec<u8>) {
        self.client.write(Event::Text(raw), out);
        if !self.has_client_call {
            self.text.push_str(raw);
        }
    }

    /// Writes the text into the record that was not written yet.
    fn write_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.record.write(Event::Text(&text), &mut Vec::new());
        }
    }

    fn start(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        self.phase = WriterPhase::Open;
        if self.client.phase() != WriterPhase::Start {
            return;
        }
        self.client.write(event, out);
        for block in &self.opening {
            block.write(|event| self.client.write(event, out));
        }
    }

    fn begin_call(&mut self, start: &CallStart<'_>) {
        match start.kind {
            CallKind::Client { .. } => {
                self.has_client_call = true;
                self.text.clear();
                self.record.take_blocks();
            }
            CallKind::Server => self.open_call(start, start.name.to_owned()),
            CallKind::Mcp { server } => self.open_call(start, function_name(server, start.name)),
        }
    }

    fn open_call(&mut self, start: &CallStart<'_>, name: String) {
        self.open = Some(ServerCall { id: start.id.to_owned(), name, input: String::new() });
    }

    fn take_result(&mut self, result: &ServerResult<'_>) {
        self.calls.retain(|call| call.id != result.id);
        self.sums.uses.add(result);
    }

    /// Holds back the end of the message if the round ended with calls of server tools that are run
    /// now.
    fn stop(&mut self, stop: &Stop<'_>, out: &mut Vec<u8>) {
        self.phase = WriterPhase::Ended;
        self.sums.add(&stop.counts);
        let is_theirs = self.has_client_call && !self.runs_mixed;
        let goes_on = stop.reason == StopReason::ToolUse && !is_theirs;
        self.sums.cleared = stop.cleared.or(self.sums.cleared);
        if goes_on && !self.calls.is_empty() {
            return;
        }
        self.calls.clear();
        let mut uses = self.sums.uses;
        self.opening.iter().filter_map(OpeningBlock::result).for_each(|result| uses.add(&result));
        let searches = uses.searches.saturating_add(stop.searches.unwrap_or_default());
        let rounds = self.sums.rounds.as_deref().filter(|rounds| rounds.len() > 1);
        self.client.write(
            Event::Stopped(&Stop {
                counts: self.sums.counts,
                searches: if self.sums.told.uses { Some(searches) } else { stop.searches },
                fetches: self.sums.told.uses.then_some(uses.fetches),
                iterations: rounds.unwrap_or_default(),
                cleared: self.sums.cleared,
                ..*stop
            }),
            out,
        );
    }
}

impl Sums {
    fn add(&mut self, round: &Counts) {
        // A message that Creole ends itself has no round of its own.
        if *round == Counts::default() {
            return;
        }
        self.counts = self.counts.plus(round);
        if let Some(rounds) = &mut self.rounds {
            rounds.push(*round);
        }
    }
}

impl AnswerWriter for ToolGate {
    #[inline]
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Text(raw) => return self.pass_text(raw, out),
            Event::Started { .. } => return self.start(event, out),
            Event::Stopped(stop) => return self.stop(stop, out),
            Event::CallBegins(start) => self.begin_call(&start),
            Event::ServerResult(result) => self.take_result(&result),
            Event::Input(text) => {
                if let Some(call) = &mut self.open {
                    let room = INPUT_BYTES_MAX.saturating_sub(call.input.len());
                    // A cut input is no JSON, and so is answered as an invalid one.
                    call.input.push_str(words::beginning(text, room));
                }
            }
            Event::BlockEnds => self.calls.extend(self.open.take()),
            _ => {}
        }
        self.pass(event, out);
    }

    fn ping(&self, out: &mut Vec<u8>) {
        self.client.ping(out);
    }

    fn phase(&self) -> WriterPhase {
        self.phase
    }

    fn relayed(&mut self, phase: WriterPhase) {
        self.phase = phase;
        self.client.relayed(phase);
    }

    fn begin_round(&mut self) {
        self.phase = WriterPhase::Start;
        self.has_client_call = false;
        self.client.begin_round();
        self.record.begin_round();
    }

    fn take_back(&mut self) {
        self.phase = WriterPhase::Start;
        self.has_client_call = false;
        self.open = None;
        self.calls.clear();
        self.text.clear();
        self.client.take_back();
        self.record.take_back();
    }

    fn take_calls(&mut self) -> Vec<ServerCall> {
        std::mem::take(&mut self.calls)
    }

    fn is_mixed(&self) -> bool {
        self.has_client_call
    }

    fn take_blocks(&mut self) -> Vec<u8> {
        self.write_text();
        self.record.take_blocks()
    }

    fn held_bytes(&self) -> usize {
        let calls = self.calls.iter().chain(&self.open).map(ServerCall::held_bytes);
        let opening = self.opening.iter().map(OpeningBlock::held_bytes);
        let written = self.client.held_bytes().saturating_add(self.record.held_bytes());
        let written = written.saturating_add(self.text.len());
        calls.chain(opening).fold(written, usize::saturating_add)
    }
}
