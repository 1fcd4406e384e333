//! Plan of the measurements: proxies, and the requests that are sent through them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Plan of a run: the processes that `cargo xtask load` started.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Plan {
    /// Address of the demo model, the upstream of all proxies.
    pub(crate) upstream: SocketAddr,
    /// Proxies in the order in which they are shown.
    pub(crate) targets: Vec<Target>,
}

/// Proxy that is measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Target {
    /// Name of the proxy as it is shown.
    pub(crate) name: String,
    /// Address at which the proxy listens.
    pub(crate) address: SocketAddr,
    /// Id of the proxy's process; `None` for the upstream itself.
    pub(crate) pid: Option<u32>,
    /// Dialect of the requests that are sent to the proxy.
    pub(crate) dialect: Dialect,
}

/// Dialect that a client speaks: a proxy that translates nothing gets requests that it can pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dialect {
    /// Dialect of Anthropic's Messages API.
    Messages,
    /// Dialect of OpenAI's Chat Completions.
    Chat,
}

impl Dialect {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
        }
    }

    /// Returns a text that only the last event of a stream contains.
    pub(crate) fn end(self) -> &'static str {
        match self {
            Self::Messages => "message_stop",
            Self::Chat => "[DONE]",
        }
    }
}

/// Kind of request and answer that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scenario {
    /// Scenario: a short question, and a short answer without streaming.
    Small,
    /// Scenario: a coding agent's request of 100 kB, and a short answer without streaming.
    Agent,
    /// Scenario: a stream of many chunks, one at a time.
    Chunks,
    /// Scenario: a short stream, for the time until its first word.
    First,
    /// Scenario: a stream of few chunks with long pauses, for many concurrent streams.
    Sweep,
}

impl Scenario {
    pub(crate) const ALL: [Self; 5] =
        [Self::Small, Self::Agent, Self::Chunks, Self::First, Self::Sweep];

    /// Returns the text in the request by which the demo model chooses the answer.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::Small => "load-small",
            Self::Agent => "load-agent",
            Self::Chunks => "load-chunks",
            Self::First => "load-first",
            Self::Sweep => "load-sweep",
        }
    }

    pub(crate) fn streams(self) -> bool {
        self.chunks() > 0
    }

    /// Returns the number of pieces in a streamed answer; 0 if the answer is not streamed.
    pub(crate) fn chunks(self) -> usize {
        match self {
            Self::Small | Self::Agent => 0,
            Self::Chunks => 1000,
            Self::First => 2,
            Self::Sweep => 20,
        }
    }

    /// Returns the pause before each chunk but the first, in milliseconds.
    pub(crate) fn pause_ms(self) -> u64 {
        match self {
            Self::Small | Self::Agent | Self::First => 0,
            Self::Chunks => 2,
            Self::Sweep => 200,
        }
    }
}
