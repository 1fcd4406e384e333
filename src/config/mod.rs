//! Configuration of Creole: one JSON document for every host, which is checked strictly.
//!
//! An unknown key or a bad value prevents the start, with an error that names the path and the
//! expected value. Otherwise a misspelled limit would silently be no limit. Every key is documented
//! at its field.

mod address;
mod claude_names;
mod clients;
mod clusters;
mod credentials;
mod document;
mod fetch_images;
mod mcp;
mod misplaced;
mod models;
mod named_model;
mod network;
mod read_documents;
mod route;
mod safeguards;
pub mod schema;
mod server_tools;
mod session;
mod variables;
mod vision;
mod web_fetch;

use std::collections::BTreeSet;

use crate::profile::Profile;
use crate::setting::{Bounds, keys, word_enum};
use crate::text::names::Names;
pub use address::{Address, request_path, url_parts};
pub use clients::ClientKeys;
pub use clusters::ClusterCalls;
pub use credentials::{
    CREDENTIAL_BYTES_MAX, Key, Secrets, ServiceKey, UpstreamHeader, is_variable,
};
pub use document::{ConfigError, without_comments};
pub use fetch_images::{FetchImages, ImageHost};
pub(crate) use fetch_images::{split_authority, usual_port};
pub use mcp::{
    McpConnector, McpFromRequests, McpKey, McpRevision, McpServerList, McpServerSettings,
    McpUnavailable,
};
pub use models::ModelMap;
pub use network::{IpNetwork, is_public};
pub use read_documents::ReadDocuments;
pub use safeguards::Safeguards;
pub(crate) use server_tools::QUERY;
pub use server_tools::{
    Citations, MixedTurns, SearchKind, SearchMcpTool, SearchMethod, SearchRequest, SearchResponse,
    ServerTools, ServiceParams, SideQuery, ToolSearch, WebSearchService,
};
pub use session::{SessionHeaders, SessionId};
pub use vision::Vision;
pub use web_fetch::{DomainName, PriorContext, WebFetch};

pub use crate::observe::log::Log;

/// Configuration of Creole: everything that an operator decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Upstreams to which requests can go, by name.
    pub upstreams: Names<'static, Upstream>,
    /// Model map: upstream and model for each model name of clients.
    pub models: ModelMap,
    /// Keys that clients may send. If there are none, every client is admitted.
    pub client_keys: ClientKeys,
    /// Settings for all exchanges: every key except upstreams, models and client keys.
    pub settings: Settings,
}

/// Prefix of model names in the list for Claude Code, which shows only ids that contain `claude` or
/// `anthropic`. No server has model names with this prefix.
pub const CLAUDE_CODE_ALIAS: &str = "claude-creole/";

const BYTES: Bounds = Bounds::AtLeast(1024, "bytes");
const MILLISECONDS: Bounds = Bounds::AtLeast(10, "ms");

keys! {
    /// Keys of the document except `upstreams`, `models` and `client_keys`.
    pub Settings {
        /// Reject what would be dropped with a warning, and enforce the real API's conversation
        /// rules instead of repairing what breaks them.
        strict: bool = false;
        /// Largest request body, in bytes; 413 above it. The real API's limit is 32 MiB.
        request_bytes_max: usize = 32 << 20, BYTES;
        /// Largest buffered answer, in bytes; 502 above it.
        response_bytes_max: usize = 64 << 20, BYTES;
        /// Longest event of a stream, in bytes.
        event_bytes_max: usize = 8 << 20, BYTES;
        /// Most bytes of one answer that cannot be sent yet, because an earlier block has not ended
        /// or because they are not complete.
        waiting_bytes_max: usize = 16 << 20, BYTES;
        /// Most bytes that all exchanges of one VM or process hold together; 529 above it.
        buffered_bytes_max: usize = 256 << 20, BYTES;
        /// Time at which a tool call's input reaches the client.
        tool_stream: ToolStream = ToolStream::Live;
        /// Handling of a tool call that is not valid.
        invalid_tool_call: InvalidToolCall = InvalidToolCall::Pass;
        /// Handling of arguments that a client would refuse and can do without: `""` for a number,
        /// `null`, a number beyond its bounds.
        tool_arguments: ToolArguments = ToolArguments::Mend;
        /// Condition under which reasoning becomes thinking blocks.
        reasoning: Reasoning = Reasoning::OnRequest;
        /// Source of the answer to `/v1/messages/count_tokens`.
        count_tokens: CountTokens = CountTokens::Estimate;
        /// Requests that need no model and that Creole answers itself. Requests for an upstream
        /// that speaks Messages are sent to the upstream.
        answer_locally: Vec<LocalAnswer> = Vec::new();
        /// Longest silence of the upstream, in milliseconds; 0: 240,000 where the host can send
        /// pings, 120,000 where it cannot.
        stall_timeout_ms: u64 = 0;
        /// Longest time without content, in milliseconds, while the upstream sends something.
        no_progress_timeout_ms: u64 = 280_000, MILLISECONDS;
        /// Longest wait for the head of the upstream's response, in milliseconds. The longest wait
        /// for the first content is at least as long. 0: as `stall_timeout_ms` where that is set,
        /// else 590,000, but for streams 120,000 in Envoy and 240,000 in Envoy with
        /// `deferred_flush`.
        first_byte_timeout_ms: u64 = 0;
        /// Silence towards the client after which a ping is sent, in milliseconds.
        ping_interval_ms: u64 = 15_000, MILLISECONDS;
        /// Guards that keep agents out of loops.
        guards: Guards = Guards::default();
        /// Model that judges tool calls for clients that request verdicts.
        safeguards: Safeguards = Safeguards::default();
        /// Model that describes images for upstreams whose models see none.
        vision: Vision = Vision::default();
        /// Images by URL that are fetched for upstreams which take images as data alone.
        fetch_images: FetchImages = FetchImages::default();
        /// PDFs that the gateway reads for upstreams which take no files.
        read_documents: ReadDocuments = ReadDocuments::default();
        /// Tools of Anthropic's servers that Creole runs for models which cannot run them.
        server_tools: ServerTools = ServerTools::default();
        /// Envoy: hold the head of a request until its body is translated. `false` where
        /// `allow_on_headers_stop_iteration` cannot be set.
        pause_headers: bool = true;
        /// Envoy: write streams from a timer, so that pings and errors can be sent while the
        /// upstream is silent. Needs `pause_headers`.
        deferred_flush: bool = false;
        /// Envoy: work only behind the filter `creole-guard`, which lets translated requests go to
        /// the clusters of models and to no other.
        check_route: bool = true;
        /// Amount of detail in the log, which never has prompts, tool inputs or credentials.
        log: Log = Log::Info;
    }

    /// Guards that keep agents out of loops.
    pub Guards {
        /// Handling of tool calls without a result, and of results without a call.
        pairing: Pairing = Pairing::Repair;
        /// Circuit breaker for a call that fails, or succeeds, over and over.
        breaker: Breaker = Breaker::default();
        /// Most assistant turns with tool calls since a person last wrote; 0 is no limit.
        tool_turns_max: u32 = 0;
        /// Action at the limit `tool_turns_max`.
        tool_turns_action: ToolTurnsAction = ToolTurnsAction::WindDown;
    }

    /// The circuit breaker for one tool.
    pub Breaker {
        /// Consecutive failures from which on a note asks the model to stop; 0 switches the breaker
        /// off.
        failures_max: u32 = 3;
        /// Consecutive failures from which on `action` is taken; at least `failures_max`.
        withhold_after: u32 = 6;
        /// Action after `withhold_after` consecutive failures of a tool.
        action: BreakerAction = BreakerAction::Withhold;
    }

    /// Certificate with which Creole identifies itself to an upstream, as files in PEM.
    pub ClientCertificate {
        /// File with the certificate, and with those of the authorities between it and the root.
        certificate: String = String::new();
        /// File with the private key.
        key: String = String::new();
    }

    /// Right side of the model map: an upstream and a model.
    pub Target {
        /// Name of the upstream in `upstreams`; may be empty where there is only one upstream.
        upstream: String = String::new();
        /// Name of the model at the upstream. Empty: the name that the client sent.
        model: String = String::new();
        /// Number of tokens of the model's context window, which `/v1/models` reports to clients.
        /// `max_tokens` of a request is lowered to what is left of the window. 0: not known.
        max_input_tokens: u64 = 0;
        /// Maximum number of tokens of an answer, which `/v1/models` reports to clients.
        /// `max_tokens` of a request is lowered to this number. 0: the upstream's `max_tokens_max`,
        /// if it has one.
        max_tokens: u64 = 0;
    }
}

word_enum! {
    /// Time at which a tool call's input reaches the client.
    ToolStream {
        /// The input is sent as it comes, so that clients show progress. The input is sent at the
        /// end where the model thinks and the client did not request thinking.
        Live = "live",
        /// The input is sent when it is complete, so that it can be checked first.
        Buffered = "buffered",
    }

    /// Handling of a tool call with an unknown name or an input that is not one JSON object.
    InvalidToolCall {
        /// The client gets the call, and reports to the model what is wrong.
        Pass = "pass",
        /// The call is repaired if nothing is lost, and else handled as with `pass`.
        Repair = "repair",
        /// The call is not sent to the client; needs `tool_stream: "buffered"`.
        Hold = "hold",
    }

    /// Handling of arguments of calls that a client would refuse and can do without.
    ToolArguments {
        /// Arguments that a client would refuse are left out, by the tool's schema; `"3"` and
        /// `"true"` become a number and a boolean.
        Mend = "mend",
        /// The client gets all arguments unchanged.
        Pass = "pass",
    }

    /// Condition under which reasoning becomes thinking blocks.
    Reasoning {
        /// Reasoning becomes thinking blocks when the request enables thinking.
        OnRequest = "on_request",
        /// Reasoning always becomes thinking blocks.
        Always = "always",
        /// Reasoning never becomes thinking blocks.
        Never = "never",
    }

    /// Source of the answer to `/v1/messages/count_tokens`.
    CountTokens {
        /// Creole estimates the count from how the text is written.
        Estimate = "estimate",
        /// The upstream counts: by its profile's `tokenizer`, or by its own `count_tokens` where it
        /// speaks Messages. Where it has neither, the count is an estimate with the warning
        /// `count_estimated`.
        Upstream = "upstream",
        /// Creole answers with status 404.
        Off = "off",
    }

    /// A request that needs no model.
    LocalAnswer {
        /// Request for one token, with a word and no tools, by which Claude Code tests whether
        /// there is quota, and whether a model exists.
        QuotaProbe = "quota_probe",
        /// Request for a title and nothing else (a schema with the one property `title`). The
        /// answer has the first words of the conversation.
        Title = "title",
    }

    /// Handling of tool calls without a result, and of results without a call.
    Pairing {
        /// The history is repaired.
        Repair = "repair",
        /// The history is sent as it is.
        Off = "off",
        /// The request is refused as the real API does.
        Reject = "reject",
    }

    /// Action of the circuit breaker.
    BreakerAction {
        /// The tool is left out of this request.
        Withhold = "withhold",
        /// The model must answer without tools.
        Answer = "answer",
        /// The request is refused.
        Error = "error",
    }

    /// Action at the limit of tool turns.
    ToolTurnsAction {
        /// Tools are withheld, and the model answers from what it has.
        WindDown = "wind_down",
        /// The request is answered at once with a text that names the limit.
        End = "end",
        /// The request is refused.
        Error = "error",
    }

    /// Protocol that an upstream speaks.
    Protocol {
        /// Chat Completions.
        Openai = "openai",
        /// Messages: Creole repairs instead of translating.
        Anthropic = "anthropic",
        /// OpenAI's Responses.
        Responses = "responses",
        /// Lines of text, an example that shows what adding a protocol takes.
        #[cfg(test)]
        Lines = "lines",
    }
}

impl Settings {
    /// Returns true if the inputs of tool calls are checked against the schemas of their tools.
    pub(crate) fn checks_inputs(&self) -> bool {
        self.invalid_tool_call != InvalidToolCall::Pass || self.tool_stream == ToolStream::Buffered
    }

    /// Returns true if images that are hidden in the text of tool results are sent as images.
    pub(crate) fn shows_hidden_images(&self) -> bool {
        !self.strict
    }

    /// Returns the maximum silence of an upstream, in milliseconds. `pings` is true if the host can
    /// send pings to the client.
    #[must_use]
    pub fn stall_after_ms(&self, pings: bool) -> u64 {
        match (self.stall_timeout_ms, pings) {
            (0, true) => 240_000,
            (0, false) => 120_000,
            (chosen, _) => chosen,
        }
    }

    /// Returns the maximum number of bytes that are still read of a refused body: twice the limit.
    /// If a server closes the connection while the client writes, the client may lose the error
    /// response.
    #[must_use]
    pub fn discarded_bytes_max(&self) -> usize {
        self.request_bytes_max.saturating_mul(2)
    }

    /// Returns the maximum wait for the head of an upstream's response, in milliseconds.
    /// `is_patient` is true if the client waits for a whole answer (SDKs wait ten minutes), or for
    /// a stream with pings. The wait is long, because a laptop may read a long prompt for minutes.
    #[must_use]
    pub fn first_byte_after_ms(&self, pings: bool, is_patient: bool) -> u64 {
        match self.first_byte_timeout_ms {
            0 if is_patient && self.stall_timeout_ms == 0 => 590_000,
            0 => self.stall_after_ms(pings),
            chosen => chosen,
        }
    }
}

/// Upstream: a server, or a pool of servers, to which requests can go.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Name of the upstream in the configuration.
    pub name: String,
    /// Scheme, host and port of the upstream. Empty if the host itself knows the address, as an
    /// Envoy route does.
    pub url: String,
    /// Value of the routing header in Envoy; if empty, the upstream's name is used.
    pub cluster: String,
    /// Base path of the upstream before `/chat/completions` or `/responses`, usually `/v1`.
    pub base_path: String,
    /// Protocol that the upstream speaks.
    pub protocol: Protocol,
    /// True if the configuration names the protocol, so that a preset set later does not change the
    /// protocol.
    pub names_protocol: bool,
    /// Name of the preset on which the profile is based.
    pub preset: &'static str,
    /// Profile of the upstream: flags for its kind of server.
    pub profile: Profile,
    /// Credential that is sent to the upstream.
    pub key: Key,
    /// Headers that the operator adds to every request to the upstream.
    pub headers: Vec<UpstreamHeader>,
    /// Headers that carry the id of a request's conversation.
    pub session: SessionHeaders,
    /// Certificate for the upstream; empty if there is none.
    pub client_certificate: ClientCertificate,
    /// Guards for requests to this upstream; if `None`, the guards of `settings` apply.
    pub guards: Option<Guards>,
}

impl Default for Config {
    /// Returns a configuration with one upstream called `default`. Its profile is `default`, and it
    /// gets the client's credential.
    fn default() -> Self {
        let mut upstreams = Names::default();
        upstreams.insert("default", Upstream::named("default"));
        Self {
            upstreams,
            models: ModelMap::default(),
            client_keys: ClientKeys::default(),
            settings: Settings::default(),
        }
    }
}

impl Upstream {
    /// Returns an upstream with this name, and defaults for everything else.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            url: String::new(),
            cluster: String::new(),
            base_path: "/v1".to_owned(),
            protocol: Protocol::Openai,
            names_protocol: false,
            preset: "default",
            profile: Profile::default(),
            key: Key::Client,
            headers: Vec::new(),
            session: SessionHeaders::default(),
            client_certificate: ClientCertificate::default(),
            guards: None,
        }
    }

    /// Returns true if the profile equals its preset, because the configuration overrides no flag.
    #[must_use]
    pub fn has_flags_of_preset(&self) -> bool {
        document::Preset(self.preset).profile(self.protocol) == self.profile
    }

    /// Returns true if a request to the upstream carries a secret of the operator: a key, a header
    /// or a certificate.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        matches!(self.key, Key::Secret(_))
            || self.headers.iter().any(|header| header.is_secret)
            || self.client_certificate != ClientCertificate::default()
    }
}

impl Config {
    /// Returns the guards for requests to this upstream.
    #[must_use]
    pub fn guards<'a>(&'a self, upstream: &'a Upstream) -> &'a Guards {
        upstream.guards.as_ref().unwrap_or(&self.settings.guards)
    }

    /// Returns the first upstream by name, which gets every request that the model map does not
    /// route to another upstream.
    #[must_use]
    pub fn first_upstream(&self) -> Option<&Upstream> {
        self.upstreams.values().min_by(|one, other| one.name.cmp(&other.name))
    }

    /// Returns the size of a model's context window, in tokens, if the model map states it. `model`
    /// is a name that clients send.
    #[must_use]
    pub fn window(&self, model: &str) -> Option<u64> {
        let window = self.models.target(model)?.max_input_tokens;
        (window > 0).then_some(window)
    }

    /// Returns the models that the model map names for an upstream, by the upstream's own names.
    pub fn models_of(&self, upstream: &str) -> impl Iterator<Item = &str> {
        let first = self.first_upstream().map(|first| first.name.as_str());
        let leads_there = move |target: &&Target| match target.upstream.as_str() {
            "" => first == Some(upstream),
            name => name == upstream,
        };
        let names: BTreeSet<&str> =
            self.models.targets().filter(leads_there).map(|target| &*target.model).collect();
        names.into_iter().filter(|name| !name.is_empty())
    }

    /// Returns the upstream for a request for `model`, and the model's name at the upstream; `None`
    /// if the model map has no matching entry. Without a model map, every request goes to the first
    /// upstream.
    pub fn route<'c: 'a, 'a>(&'c self, model: &'a str) -> Option<(&'c Upstream, &'a str)> {
        let target = self.models.target(model);
        if target.is_none() && !self.models.is_empty() {
            return None;
        }
        let upstream = match target.map(|target| target.upstream.as_str()) {
            None | Some("") => self.first_upstream()?,
            Some(name) => self.upstreams.get(name)?,
        };
        let model = match target.map(|target| target.model.as_str()) {
            None | Some("") => self.models.plain(model),
            Some(model) => model,
        };
        Some((upstream, model))
    }
}
