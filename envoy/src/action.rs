//! Actions that the filter asks Envoy to execute. Actions are plain data: `abi` executes them, and
//! tests compare them.

use creole::observe::log::Level;
use creole::{CallId, Header};

/// Result of one callback: actions, and how the head or body goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Actions to execute, in this order, before the callback returns.
    pub actions: Vec<Action>,
    /// Return value of the callback.
    pub flow: Flow,
}

/// Return value of a callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Flow: the head, chunk or trailers go on as they are now.
    #[default]
    Continue,
    /// Flow: the chunk of a body stays in Envoy's buffer until [`Action::ContinueResponse`]
    /// (`StopIterationAndBuffer`). Only for chunks that were replaced by nothing, or Envoy's buffer
    /// limit would end the stream.
    Pause,
    /// Flow: the head, chunk or trailers are held back, while Envoy keeps no bytes. `StopIteration`
    /// for a head or trailers, `StopIterationNoBuffer` for a body.
    Stop,
}

/// Action that Envoy is asked to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Action: replace all headers of the head in this direction. This works only while the filter
    /// has the head: in the head's callback, and later if that callback returned [`Flow::Stop`].
    ReplaceHeaders(Side, Vec<Header>),
    /// Action: set the filter state that marks the request as translated, for the filter
    /// `creole-guard`. A header would be unsafe, because clients can set headers, but no filter
    /// state.
    Mark,
    /// Action: replace the chunk of the body that this body callback got. Outside of a body
    /// callback, Envoy has a buffer to replace only after [`Flow::Pause`].
    ReplaceBody(Side, Vec<u8>),
    /// Action: send the request that waits after [`Flow::Pause`] on to the upstream.
    ContinueRequest,
    /// Action: send the bytes that wait after [`Flow::Pause`] on to the client.
    ContinueResponse,
    /// Action: send a request to a cluster, beside the stream's own request.
    Call(HttpCall),
    /// Action: answer the client from this filter, and drop the upstream.
    SendLocalResponse(LocalResponse),
    /// Action: reset the stream, so that the client sees its connection break.
    CloseStream,
    /// Action: set the period at which Envoy calls `on_tick` of this root context.
    SetTickPeriod {
        /// Time between two ticks, in milliseconds.
        period_ms: u32,
    },
    /// Action: add a number to a counter.
    Count {
        /// Name of the counter.
        name: String,
        /// Number that is added to the counter.
        by: u64,
    },
    /// Action: add a value to a distribution.
    Record {
        /// Name of the distribution.
        name: String,
        /// Measured value that is added to the distribution.
        value: u64,
    },
    /// Action: write a line to Envoy's log.
    Log(Level, String),
}

impl Action {
    /// Returns true if Envoy ends the stream with this action.
    #[must_use]
    pub fn ends_stream(&self) -> bool {
        matches!(self, Self::SendLocalResponse(_) | Self::CloseStream)
    }
}

/// Request to a cluster, whose answer the filter gets whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCall {
    /// Id of the call in its exchange.
    pub id: CallId,
    /// Name of the cluster in Envoy's configuration.
    pub cluster: String,
    /// Headers of the request, with the pseudo-headers and without `content-length`.
    pub headers: Vec<Header>,
    /// Body of the request; empty for `GET`.
    pub body: Vec<u8>,
    /// Time after which Envoy gives the request up, in milliseconds.
    pub timeout_ms: u32,
}

/// Answer to the client that comes from this filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalResponse {
    /// HTTP status of the answer.
    pub status: u16,
    /// Headers, without `content-length`.
    pub headers: Vec<Header>,
    /// Body of the answer.
    pub body: Vec<u8>,
}

impl LocalResponse {
    /// Value of `response_code_details` for an answer from this filter. Envoy's
    /// `local_reply_config` can tell Creole's answers from Envoy's own by the beginning `creole`.
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
    /// Returns the decision to let the head or chunk pass unchanged.
    #[must_use]
    pub fn pass() -> Self {
        Self::default()
    }

    /// Returns the decision to execute these actions and then continue.
    #[must_use]
    pub fn go_on(actions: Vec<Action>) -> Self {
        Self { actions, flow: Flow::Continue }
    }

    /// Returns the decision to execute these actions and keep the chunk in Envoy's buffer.
    #[must_use]
    pub fn pause(actions: Vec<Action>) -> Self {
        Self { actions, flow: Flow::Pause }
    }

    /// Returns the decision to execute these actions and hold the head or chunk back.
    #[must_use]
    pub fn stop(actions: Vec<Action>) -> Self {
        Self { actions, flow: Flow::Stop }
    }
}
