//! What the filter asks of its host. Plain data: `abi` does it, tests look at it.

use creole::Header;
use creole::observe::log::Level;

/// The answer to one callback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to do, in this order, before the callback returns.
    pub actions: Vec<Action>,
    /// What the callback returns.
    pub flow: Flow,
}

/// What a callback returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Head, piece or trailers go on as they are now.
    #[default]
    Continue,
    /// The piece of a body waits in Envoy's buffer until [`Action::ContinueResponse`]:
    /// `StopIterationAndBuffer`. Only for pieces that were taken out, or its limit would end the
    /// stream.
    Pause,
    /// They wait, and Envoy keeps no bytes: `StopIteration` for a head or trailers,
    /// `StopIterationNoBuffer` for a body.
    Stop,
}

/// One thing that a host is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The head of this side is these headers and no others. Only while it is in the filter's hands:
    /// in the callback of the head, and later if that was answered with [`Flow::Stop`].
    ReplaceHeaders(Side, Vec<Header>),
    /// Mark the request as one that Creole sends on, for `creole-guard`: a client can set headers, and no filter state.
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
        /// In milliseconds.
        period_ms: u32,
    },
    /// Add to a counter.
    Count {
        /// Its name.
        name: String,
        /// How much.
        by: u64,
    },
    /// Add to a distribution.
    Record {
        /// Its name.
        name: String,
        /// What was measured.
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

/// An answer that comes from here.
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
    /// Its `response_code_details`, which begin with `creole`: so Envoy's `local_reply_config` tells it
    /// from Envoy's own answers.
    pub const DETAILS: &str = "creole_reply";
}

/// Towards which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the client.
    Request,
    /// From the upstream.
    Response,
}

impl Decision {
    /// Hands off.
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
