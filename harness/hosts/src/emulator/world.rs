//! State that the emulated Envoy shows the filter, and a record of the filter's actions.

use std::collections::BTreeMap;

use crate::Header;

/// Error of a call into the module that trapped: Envoy would have lost the whole VM.
pub type Trap = wasmtime::Error;

/// Id of the root context, which is the plugin.
pub const PLUGIN: u32 = 1;

/// Direction of a head or a body: request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Direction towards the upstream.
    Request = 0,
    /// Direction towards the client.
    Response = 1,
}

/// Head and buffer of one direction, as far as the filter can see them.
#[derive(Debug, Default)]
pub struct VisibleWay {
    /// Headers of the head.
    pub headers: Vec<Header>,
    /// True if the head can still be changed: in its callback, and while the head is paused.
    pub headers_open: bool,
    /// Buffer of the running body callback, or bytes kept after a callback that paused; otherwise
    /// `None`.
    pub buffer: Option<Vec<u8>>,
}

/// Local response that the filter sent.
#[derive(Clone, Debug)]
pub struct Local {
    /// HTTP status of the local response.
    pub status: u16,
    /// Value of `response_code_details` for the local response.
    pub details: String,
    /// Headers of the local response.
    pub headers: Vec<Header>,
    /// Body of the local response.
    pub body: Vec<u8>,
}

/// Part of an HTTP stream that the filter can see.
#[derive(Debug, Default)]
pub struct VisibleStream {
    /// Directions of the stream, indexed by [`Side`].
    pub ways: [VisibleWay; 2],
    /// Value of the property `response.code_details`.
    pub details: String,
    /// Local response, sent to the client when the callback has returned, as Envoy does.
    pub local: Option<Local>,
    /// True if the stream is reset when the callback has returned.
    pub close: bool,
    /// True if the data that waits for the client goes on when the callback has returned.
    pub resume: bool,
}

/// State that the imports read and change.
#[derive(Debug, Default)]
pub struct World {
    /// Streams by the ids of their contexts.
    pub streams: BTreeMap<u32, VisibleStream>,
    /// Number of streams created so far.
    pub contexts: u32,
    /// Id of the context that hostcalls refer to.
    pub context: u32,
    /// Configuration of the plugin.
    pub configuration: Vec<u8>,
    /// Current time in milliseconds.
    pub now_ms: u64,
    /// Lines that the filter logged.
    pub log: Vec<String>,
    /// Tick period in milliseconds; 0: no ticks.
    pub tick_ms: u32,
    /// Statistics, indexed by their ids: each has a name and, for counters, a value.
    pub counters: Vec<(String, i64)>,
    /// Descriptions of failed hostcalls, which Envoy would refuse too.
    pub refused: Vec<String>,
    /// True if the next `set_buffer` ends the stream before it returns, as happens when a limit is
    /// exceeded.
    pub end_in_set_buffer: bool,
    entropy: u64,
}

impl World {
    /// Creates a world without streams, whose clock shows this time.
    pub(super) fn at(now_ms: u64) -> Self {
        Self { now_ms, ..Self::default() }
    }

    pub(super) fn way(&mut self, side: Side) -> Option<&mut VisibleWay> {
        let stream = self.streams.get_mut(&self.context)?;
        Some(&mut stream.ways[side as usize])
    }
}

/// Returns a pseudo-random number, different at each call, but the same in each run.
pub(super) fn entropy(world: &mut World) -> u64 {
    world.entropy = world.entropy.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    world.entropy
}
