//! Assembly of an answer's blocks: orders what an upstream sends in any order, and sends the blocks
//! one after another.
//!
//! Protocols disagree about who ends a block. A Messages stream sends its blocks one after another,
//! each between its start and its stop. A Chat Completions stream names the field that a delta
//! extends (`content`, `tool_calls[1]`) and never marks a field as complete. So deltas extend
//! logical blocks, which wait in a queue in the order in which they first appeared. Only the block
//! at the head of the queue is sent. It is complete when a later block exists, or at the end of the
//! answer:
//!
//! | block | starts when | is complete when |
//! |---|---|---|
//! | text | it has more than white space | a later block exists, or at the end |
//! | thinking | it has text; without text, when it is complete and carries something | the same |
//! | thinking that the client did not ask for | it is complete | at the end: it carries the inputs of calls |
//! | tool, live | id and name are known (the name is that of one tool alone, or input has come) | a later block exists and the input is one object (`{}` only if the later block is no call without more than that), or at the end |
//! | tool, buffered | it is complete | the same |
//!
//! *Live* and *buffered* are values of the setting `tool_stream`; some calls are always buffered
//! (`answer::rules`). Inputs of calls are carried for clients that lose them:
//! `history::spoilt_inputs` restores them.
//!
//! An incomplete call is never closed before an error: clients would run it.
//!
//! | in this file | in other files |
//! |---|---|
//! | [`Assembly`]: adds text, reasoning and calls | `pump`: sends blocks; `progress`: blocks sent |
//! | | `queue`: blocks not yet sent; `thinking`: one thinking block |
//! | | `calls`: all; `call`: one call; `tool_input`: its input; `mend`: filters the input |

pub(crate) mod call;
mod calls;
pub(crate) mod mend;
mod progress;
mod pump;
mod queue;
mod thinking;
pub(crate) mod tool_input;

use crate::answer::ReaderOutput;
use crate::answer::output::BLOCK_BYTES;
use crate::carry::signature::SignatureField;
use crate::error::Error;
use crate::json::{self, Str};
use crate::model::event::Event;
use crate::model::hosted::HostedCall;
use crate::model::reasoning::Detail;
use crate::model::request_context::Display;
use crate::model::search::Citation;
use crate::text::names::NameSet;
use call::{CallParts, CallState};
pub(crate) use calls::BrokenOff;
use calls::Calls;
use progress::BlockProgress;
use pump::{Pump, shows_thinking};
use queue::{Queue, QueuedBlock};
use thinking::ThinkingBlock;

/// White space removed from the back of the queue, to be put back later or dropped.
#[derive(Debug)]
pub(crate) struct Blank(Option<QueuedBlock>);

/// State of the blocks of one answer: queue, calls and progress.
#[derive(Debug)]
pub(crate) struct Assembly {
    queue: Queue,
    calls: Calls,
    /// Thinking block that the client does not see, but must return with the next call.
    hidden: Option<ThinkingBlock>,
    /// Reasoning items that arrived after their blocks were sent; the next thinking block carries
    /// them.
    late: Vec<String>,
    /// White space before the first reasoning of a block, escaped.
    lead: String,
    /// True if the whole answer has arrived.
    whole: bool,
    progress: BlockProgress,
    scratch: String,
    /// Number of bytes of reasoning items in thinking blocks, and of calls that the upstream ran
    /// itself.
    carried_bytes: usize,
}

impl Assembly {
    /// Creates an assembly without blocks. `ids_used`: the client's ids of calls in the history.
    pub(crate) fn new(ids_used: NameSet<'static>) -> Self {
        Self {
            queue: Queue::default(),
            calls: Calls::new(ids_used),
            hidden: None,
            late: Vec::new(),
            lead: String::new(),
            whole: false,
            progress: BlockProgress::default(),
            scratch: String::new(),
            carried_bytes: 0,
        }
    }

    /// Records that the whole answer has arrived. A call that was cut off can then be left out,
    /// although the client asked for a stream.
    pub(crate) fn set_whole(&mut self) {
        self.whole = true;
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns true if a block of the answer was started.
    pub(crate) fn has_block(&self) -> bool {
        self.progress.has_block()
    }

    /// Returns true if the client got a text or a call, so that the client can continue the
    /// conversation.
    pub(crate) fn has_said(&self) -> bool {
        self.progress.has_said()
    }

    /// Returns the number of bytes that have not been sent, with [`BLOCK_BYTES`] for each block and
    /// call.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let blocks = self.calls.all().len().saturating_add(self.queue.len());
        let hidden = self.hidden.as_ref().map_or(0, |hidden| hidden.pending().len());
        let held = self.queue.held_bytes().saturating_add(self.calls.held_bytes());
        let held = held.saturating_add(BLOCK_BYTES.saturating_mul(blocks));
        held.saturating_add(hidden)
            .saturating_add(self.lead.len())
            .saturating_add(self.carried_bytes)
    }

    /// Returns the number of bytes of the answer that are kept in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.waiting_bytes().saturating_add(self.scratch.capacity())
    }

    /// Adds text to the answer; `raw` is escaped.
    #[inline]
    pub(crate) fn push_text(
        &mut self,
        raw: &str,
        is_blank: impl Fn() -> bool,
        to: &mut ReaderOutput<'_>,
    ) {
        if let Some(hidden) = &mut self.hidden
            && !is_blank()
        {
            hidden.note_text();
        }
        if self.progress.is_in_block() && self.queue.is_sent_text() && json::hold_back(raw) == 0 {
            return to.write(Event::Text(raw));
        }
        if self.queue.is_empty() && json::hold_back(raw) == 0 && !is_blank() {
            // The first text of a block is sent without waiting in the queue: it can be large.
            self.queue.push(QueuedBlock::text(true));
            self.progress.open_text(to);
            return to.write(Event::Text(raw));
        }
        self.queue.push_text(raw, is_blank());
    }

    /// Ends the text block at the back of the queue: later text begins another block.
    pub(crate) fn end_text(&mut self) {
        if let Some(hidden) = &mut self.hidden {
            hidden.end_text();
        }
        self.queue.end_text();
    }

    /// Adds a citation to the text block at the back of the queue. Returns false if the last block
    /// is no text.
    pub(crate) fn cite(&mut self, citation: Citation) -> bool {
        self.queue.cite(citation)
    }

    /// Adds a call that the upstream ran itself, such as a web search.
    pub(crate) fn push_hosted(&mut self, call: HostedCall) {
        self.carried_bytes = self.carried_bytes.saturating_add(call.held_bytes());
        self.queue.push(QueuedBlock::Hosted(Box::new(call)));
    }

    /// Sends a text written by Creole as a block; `raw` is escaped.
    pub(crate) fn send_own_text(&mut self, raw: &str, to: &mut ReaderOutput<'_>) {
        self.progress.open_text(to);
        to.write(Event::Text(raw));
        to.write(Event::BlockEnds);
        self.progress.close_block();
    }

    /// Removes and returns the block at the back of the queue, if it is only white space.
    pub(crate) fn take_blank(&mut self) -> Blank {
        Blank(self.queue.take_blank())
    }

    /// Puts back the white space that [`Assembly::take_blank`] removed.
    pub(crate) fn put_back(&mut self, blank: Blank) {
        if let Some(blank) = blank.0 {
            self.queue.push(blank);
        }
    }

    /// Adds reasoning to the answer.
    pub(crate) fn push_thinking(
        &mut self,
        text: Str<'_>,
        is_blank: bool,
        field: SignatureField,
        to: &mut ReaderOutput<'_>,
    ) {
        let shows = shows_thinking(to);
        let before = if shows { self.queue.back_thinking() } else { self.hidden.as_ref() };
        let continues = before.is_some_and(|it| it.has_text() && !it.is_over());
        if continues
            && self.progress.is_in_block()
            && json::hold_back(text.raw()) == 0
            && let Some(thinking) = self.queue.only_thinking()
            && thinking.is_shown()
            && thinking.pending().is_empty()
        {
            thinking.show(text.raw(), &mut self.scratch);
            return to.write(Event::Thinking(text.raw()));
        }
        if is_blank && !continues {
            // White space alone opens no block; servers send it beside ordinary text.
            self.lead.push_str(text.raw());
            return;
        }
        let lead = std::mem::take(&mut self.lead);
        let thinking = self.thinking(field, to);
        thinking.set_field(field);
        thinking.push(&lead, true);
        thinking.push(text.raw(), is_blank);
        if shows {
            self.queue.hold(lead.len().saturating_add(text.raw().len()));
        }
    }

    /// Adds an item of reasoning that must be sent back to the upstream later.
    pub(crate) fn push_detail(
        &mut self,
        detail: &Detail<'_>,
        field: SignatureField,
        to: &ReaderOutput<'_>,
    ) {
        self.thinking(field, to).push_detail(detail);
    }

    /// Adds an item of reasoning, unchanged, to the thinking block at the back of the queue. The
    /// block's signature carries the item back to the upstream.
    pub(crate) fn carry_item(&mut self, item: String, to: &ReaderOutput<'_>) {
        self.carried_bytes = self.carried_bytes.saturating_add(item.len());
        let late = std::mem::take(&mut self.late);
        let thinking = self.thinking(SignatureField::Item, to);
        late.into_iter().chain([item]).for_each(|item| thinking.carry_item(item));
    }

    /// Keeps an item of reasoning whose block was sent without the item. A later thinking block
    /// will carry it.
    pub(crate) fn carry_late(&mut self, item: String) {
        self.carried_bytes = self.carried_bytes.saturating_add(item.len());
        self.late.push(item);
    }

    /// Ends the thinking block at the back of the queue: later reasoning begins another block.
    pub(crate) fn end_thinking(&mut self) {
        self.lead.clear();
        if let Some(thinking) = self.queue.back_thinking_mut() {
            thinking.end();
        }
    }

    /// Returns the thinking block that new reasoning belongs to, and begins one if needed.
    fn thinking(&mut self, field: SignatureField, to: &ReaderOutput<'_>) -> &mut ThinkingBlock {
        let shown = to.context.thinking.display == Display::Shown;
        let thinking = if shows_thinking(to) { self.queue.thinking(field, shown) } else { None };
        match thinking {
            Some(thinking) => thinking,
            None => self.hidden.get_or_insert_with(|| ThinkingBlock::new(field, false)),
        }
    }

    /// Adds a call, and returns its position.
    pub(crate) fn add_call(
        &mut self,
        mut call: CallParts,
        to: &mut ReaderOutput<'_>,
    ) -> Result<usize, Error> {
        let others = self.calls.all().iter().any(|call| call.state() != CallState::LeftOut);
        if to.context.limits.one_tool_call && others {
            call.leave_out();
            to.warn("parallel_cut");
            return self.calls.push(call);
        }
        let index = self.calls.push(call)?;
        self.queue_hidden();
        self.queue.push(QueuedBlock::Tool(index));
        Ok(index)
    }

    /// Lets the function `change` add data to the call at `index`. `change` also gets memory to
    /// reuse.
    pub(crate) fn extend_call<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut CallParts, &mut String) -> T,
    ) -> Option<T> {
        let scratch = &mut self.scratch;
        self.calls.extend(index, |call| change(call, scratch))
    }

    /// Leaves out the call at `index`, which was cut off, if nothing of it was sent to the client.
    pub(crate) fn leave_out_half(&mut self, index: usize, to: &mut ReaderOutput<'_>) {
        if let Some(call) = self.calls.get_mut(index)
            && call.state() == CallState::Waiting
        {
            call.leave_out();
            to.warn("tool_call_cut_off");
        }
    }

    /// Returns the number of contradictions in the input of the call at `index`, and resets the
    /// counter.
    pub(crate) fn take_conflicts(&mut self, index: usize) -> u32 {
        self.calls.get_mut(index).map_or(0, |call| call.input_mut().take_conflicts())
    }

    /// Adds the hidden thinking block to the queue, before the next block.
    fn queue_hidden(&mut self) {
        if let Some(hidden) = self.hidden.take() {
            self.queue.push(QueuedBlock::Thinking(Box::new(hidden)));
        }
    }

    /// Adds the upstream's signature of the call at `index` to a thinking block. Gemini refuses the
    /// result of a call whose signature does not come back, and ids must stay short. The signature
    /// goes into the thinking block before the call, or into a new block after the call if the
    /// earlier block was sent. In a whole answer no block has been sent yet, and the first thinking
    /// block carries all signatures: clients that make one block of several keep only one signature
    /// (RubyLLM the first, any-llm the last).
    pub(crate) fn carry_signature(
        &mut self,
        index: usize,
        signature: String,
        field: SignatureField,
        to: &ReaderOutput<'_>,
    ) {
        if self.whole
            && let Some(thinking) = self.queue.first_thinking()
        {
            return thinking.carry(index, signature);
        }
        let is_last = matches!(self.queue.back(), Some(QueuedBlock::Tool(at)) if *at == index);
        let fresh = self.calls.get(index).is_some_and(|call| call.state() == CallState::Waiting);
        let shown = to.context.thinking.display == Display::Shown;
        let thinking = match is_last && fresh {
            true => self.queue.thinking_before_back(field, shown),
            false => Some(self.thinking(field, to)),
        };
        if let Some(thinking) = thinking {
            thinking.carry(index, signature);
        }
    }

    /// Returns true if the client has received a part of a call that is incomplete.
    pub(crate) fn is_in_call(&self) -> bool {
        self.calls.all().iter().enumerate().any(|(index, call)| {
            call.state() == CallState::Open
                && !call.input().may_be_whole()
                && (call.input().has_text() || !pump::goes_on(&self.calls, &self.queue, index))
        })
    }

    /// Returns true if a call that the client gets is incomplete.
    pub(crate) fn has_half_call(&self) -> bool {
        self.calls.has_half()
    }

    /// Ends the answer, and sends all blocks that are still held.
    pub(crate) fn finish(&mut self, end: BrokenOff, to: &mut ReaderOutput<'_>) {
        let has_records = self.hidden.as_ref().is_some_and(ThinkingBlock::has_records);
        if has_records && !self.calls.all().is_empty() {
            self.queue_hidden();
        }
        self.hidden = None;
        for _ in self.late.drain(..) {
            to.warn("reasoning_item_late");
        }
        self.calls.give_nameless_inputs();
        self.pump(true, end, to);
        for _ in 0..self.calls.take_leftovers() {
            to.warn("late_tool_fragment");
        }
    }

    /// Sends the blocks that can be sent now. `flushing`: the answer is over, and no more data
    /// comes.
    #[inline]
    pub(crate) fn pump(&mut self, flushing: bool, end: BrokenOff, to: &mut ReaderOutput<'_>) {
        // Fast path: most data continues the queue's only block, whose start was sent.
        if !flushing && self.progress.is_in_block() {
            if let Some(index) = self.queue.only_call() {
                return self.calls.send_input(index, to);
            }
            if self.queue.is_sent() {
                return;
            }
        }
        let pump = Pump {
            queue: &mut self.queue,
            calls: &mut self.calls,
            progress: &mut self.progress,
            scratch: &mut self.scratch,
            is_buffered: self.whole || to.rules.buffered,
        };
        pump.send(flushing, end, to);
    }
}
