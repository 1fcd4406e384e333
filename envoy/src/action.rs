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
    /// Replace all headers of the head of this side. This works only while the filter has the head:
    /// in the head's callback, and later if that callback returned [`Flow::Stop`].
    ReplaceHeaders(Side, Vec<Header>),
    /// Set the filter state that tells `creole-guard` that the request is translated. A header
    /// would not do: clients can set headers, but no filter state.
    Mark,
    /// Replace the piece of the body that this body callback got. Outside of a body callback, Envoy
    /// has a buffer to replace only after [`Flow::Pause`].
    ReplaceBody(Side, Vec<u8>),
    /// Send what waits after [`Flow::Pause`] on to the client.
    ContinueResponse,
    /// Answer the client from here, and drop the upstream.
    SendLocalResponse(LocalResponse),
    /// Reset the stream: the client sees it break.
    CloseStream,
    /// Call `on_tick` of this root context at this interval.
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
    /// Returns true if Envoy ends the stream with this action.
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
    /// Direction from the client to the upstream.
    Request,
    /// Direction from the upstream to the client.
    Response,
}

impl Decision {
    /// Returns the decision to let the head or piece pass unchanged.
    #[must_use]
    pub fn pass() -> Self {
        Self::default()
    }

    /// Returns the decision to take these actions and then continue.
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
