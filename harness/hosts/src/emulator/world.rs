//! State that Envoy shows a module at a moment, and what the module did.

use std::collections::BTreeMap;

use crate::Header;

/// Error of a call into the module that trapped: Envoy would have lost the whole VM.
pub type Trap = wasmtime::Error;

/// The root context: the plugin.
pub const PLUGIN: u32 = 1;

/// Request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the upstream.
    Request = 0,
    /// Towards the client.
    Response = 1,
}

/// Part of a stream's side that the filter can see.
#[derive(Debug, Default)]
pub struct Way {
    /// The head.
    pub headers: Vec<Header>,
    /// Whether the head can still be changed: in its callback, and while it is paused.
    pub headers_open: bool,
    /// The buffer of the body callback that runs, and what is kept after one that paused; otherwise
    /// `None`.
    pub buffer: Option<Vec<u8>>,
}

/// An answer that the filter gave.
#[derive(Clone, Debug)]
pub struct Local {
    /// The status.
    pub status: u16,
    /// `response_code_details`
    pub details: String,
    /// Headers.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
}

/// Part of an HTTP stream that the filter can see.
#[derive(Debug, Default)]
pub struct Stream {
    /// Directions of the stream, indexed by [`Side`].
    pub ways: [Way; 2],
    /// `response.code_details`
    pub details: String,
    /// Sent when the callback has returned, as Envoy does.
    pub local: Option<Local>,
    /// Reset when the callback has returned.
    pub close: bool,
    /// True if the data that waits for the client goes on when the callback has returned.
    pub resume: bool,
}

/// Everything that the imports touch.
#[derive(Debug, Default)]
pub struct World {
    /// The streams by their context.
    pub streams: BTreeMap<u32, Stream>,
    /// Number of streams that there were.
    pub contexts: u32,
    /// The context of hostcalls.
    pub context: u32,
    /// The plugin's configuration.
    pub configuration: Vec<u8>,
    /// The clock.
    pub now_ms: u64,
    /// Lines that were logged.
    pub log: Vec<String>,
    /// The period of ticks; 0: none.
    pub tick_ms: u32,
    /// Statistics by id: name and, of counters, value.
    pub counters: Vec<(String, i64)>,
    /// Hostcalls that failed: the filter asked for what Envoy would refuse.
    pub refused: Vec<String>,
    /// The next `set_buffer` ends the stream before it returns, as it does when a limit is hit.
    pub end_in_set_buffer: bool,
    entropy: u64,
}

impl World {
    /// Makes a world without streams, at a time.
    pub(super) fn at(now_ms: u64) -> Self {
        Self { now_ms, ..Self::default() }
    }

    pub(super) fn way(&mut self, side: Side) -> Option<&mut Way> {
        let stream = self.streams.get_mut(&self.context)?;
        Some(&mut stream.ways[side as usize])
    }
}

/// Bytes that differ each time, the same in each run.
pub(super) fn entropy(world: &mut World) -> u64 {
    world.entropy = world.entropy.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    world.entropy
}
