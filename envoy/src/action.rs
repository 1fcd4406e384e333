//! Actions that the filter asks of its host. They are plain data: `abi` does them, tests look at
//! them.

use creole::Header;
use creole::observe::log::Level;

/// The answer to one callback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Actions to do, in this order, before the callback returns.
    pub actions: Vec<Action>,
    /// Return value of the callback.
    pub flow: Flow,
}

/// Return value of a callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Head, piece or trailers go on as they are now.
    #[default]
    Continue,
    /// The piece of a body waits in Envoy's buffer until [`Action::ContinueResponse`]:
    /// `StopIterationAndBuffer`. Only for pieces that were taken out, or its limit would end the
    /// stream.
    Pause,
    /// Head, piece or trailers wait, and Envoy keeps no bytes: `StopIteration` for a head or
    /// trailers, `StopIterationNoBuffer` for a body.
    Stop,
}

/// Action that a host is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The head of this side is these headers and no others. Only while it is in the filter's
    /// hands: in the callback of the head, and later if that was answered with [`Flow::Stop`].
    ReplaceHeaders(Side, Vec<Header>),
    /// Mark the request as one that Creole sends on, for `creole-guard`: a client can set headers,
    /// and no filter state.
    Mark,
    /// The piece that this body callback is about is these bytes instead. Outside of a body
    /// callback, Envoy has a buffer behind it only after [`Flow::Pause`].
    ReplaceBody(Side, Vec<u8>),
    /// Let what waits after [`Flow::Pause`] go on to the client.
    ContinueResponse,
    /// Answer the client from here, and drop the upstream.
    SendLocalResponse(LocalResponse),
    /// Reset the stream: the client sees it break.
    CloseStream,
    /// Call `on_tick` of this root context that often.
    SetTickPeriod {
        /// Time between two ticks, in milliseconds.
        period_ms: u32,
    },
    /// Add to a counter.
    Count {
        /// Name of the counter.
        name: String,
        /// Number that is added.
        by: u64,
    },
    /// Add to a distribution.
    Record {
        /// Name of the distribution.
        name: String,
        /// Value that was measured.
        value: u64,
    },
    /// Write a line to Envoy's log.
    Log(Level, String),
}

impl Action {
    /// Returns true if the stream is over for Envoy once it has done this.
    #[must_use]
    pub fn ends_stream(&self) -> bool {
        matches!(self, Self::SendLocalResponse(_) | Self::CloseStream)
    }
}

/// Answer to the client that comes from this filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers, without `content-length`.
    pub headers: Vec<Header>,
    /// Body.
    pub body: Vec<u8>,
}

impl LocalResponse {
    /// `response_code_details` of an answer from this filter. They begin with `creole`: so Envoy's
    /// `local_reply_config` tells the answer from Envoy's own.
    pub const DETAILS: &str = "creole_reply";
}

/// Direction of a head or a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The way from the client to the upstream.
    Request,
    /// The way from the upstream to the client.
    Response,
}

impl Decision {
    /// Lets the head or piece pass as it is.
    #[must_use]
    pub fn pass() -> Self {
        Self::default()
    }

    /// Goes on after these actions.
    #[must_use]
    pub fn go_on(actions: Vec<Action>) -> Self {
        Self { actions, flow: Flow::Continue }
    }

    /// Keeps the piece in Envoy's buffer after these actions.
    #[must_use]
    pub fn pause(actions: Vec<Action>) -> Self {
        Self { actions, flow: Flow::Pause }
    }

    /// Waits after these actions.
    #[must_use]
    pub fn stop(actions: Vec<Action>) -> Self {
        Self { actions, flow: Flow::Stop }
    }
}
