//! State of one VM of Envoy: its plugins (root contexts) and its streams (HTTP contexts).
//!
//! Every callback of the ABI has a method here. The methods never call the host, so they cannot be
//! entered again while they run; the host executes their decisions after they have returned. During
//! that, Envoy may call back (a stream can end inside of a hostcall) and finds a consistent state.

use std::sync::Arc;

use creole::config::Config;
use creole::observe::log::{Level, RefusedLines};
use creole::observe::metrics::Counters;
use creole::{CallId, Failure, Header, Millis, Owner, Refusals};

use crate::action::{Action, Decision, Side};
use crate::configured;
use crate::contexts::{ContextId, Contexts};
use crate::heads;
use crate::memory::{Counted, Memory};
use crate::stream::{Progress, Route, Stream};
use crate::unguarded::{Host, Unguarded};

/// Bounds of the tick period, in milliseconds. The period is a quarter of the shortest timeout,
/// within these bounds.
const TICK_MS_MIN: u64 = 200;
const TICK_MS_MAX: u64 = 1000;

/// Maximum number of remembered routes with a configuration of their own. Beyond it, the oldest
/// route is forgotten and read anew when needed.
const ROUTES_MAX: usize = 64;

/// Maximum number of streams that are answered or reset in one tick. Envoy processes these nested
/// inside of each other after the callback: some hundred of them overflow its stack, and the VM
/// traps.
const ENDED_MAX: usize = 16;

/// Filter in one VM of Envoy, with all plugins and streams.
#[derive(Debug, Default)]
pub struct Filter {
    plugins: Contexts<Plugin>,
    streams: Contexts<Entry>,
    /// Streams and their open calls, by the tokens that the host gave the calls.
    calls: Contexts<(ContextId, CallId)>,
    memory: Memory,
    counters: Counters,
    refused_lines: RefusedLines,
}

/// Plugin (root context) with its configuration, once Envoy has sent one.
#[derive(Debug, Default)]
struct Plugin {
    config: Option<Arc<Config>>,
    /// Metadata of routes with settings of their own, and the resulting configuration; `None` if
    /// the metadata is invalid.
    routes: Vec<(String, Option<Arc<Config>>)>,
    refusals: Arc<Refusals>,
    tick_ms: u32,
    /// True if ticks are set to the shortest period, because a stream has bytes to write.
    hurries: bool,
    /// Id of the stream with which the next tick begins.
    tick_from: ContextId,
    /// Hosts for which no requests are sent, because no `creole-guard` checks the routes of their
    /// requests.
    unguarded: Unguarded,
}

/// HTTP context, with its stream once the request's head has arrived.
#[derive(Debug)]
struct Entry {
    plugin: ContextId,
    host: Host,
    stream: Option<Box<Stream>>,
    counted: Option<Counted>,
}

impl Plugin {
    /// Returns the configuration of a route; `None` if its metadata is invalid, which is logged
    /// once.
    fn for_route(
        &mut self,
        route: &str,
        config: &Arc<Config>,
        actions: &mut Vec<Action>,
    ) -> Option<Arc<Config>> {
        if route.is_empty() {
            return Some(Arc::clone(config));
        }
        if let Some((_, known)) = self.routes.iter().find(|(text, _)| text == route) {
            return known.clone();
        }
        let read = config.for_route(route).map_err(|error| error.to_string());
        let read = match read.and_then(|config| config.check_clusters().map(|_| config)) {
            Ok(config) => Some(Arc::new(config)),
            Err(error) => {
                actions.push(Action::Log(Level::Error, format!("route metadata: {error}")));
                None
            }
        };
        if self.routes.len() >= ROUTES_MAX {
            self.routes.remove(0);
        }
        self.routes.push((route.to_owned(), read.clone()));
        read
    }
}

impl Filter {
    /// Handles the start of a context: a plugin if it has no parent, else a stream.
    pub fn on_context_create(&mut self, id: ContextId, parent: ContextId) {
        if parent == 0 {
            self.plugins.insert(id, Plugin::default());
        } else {
            self.streams.insert(id, Entry::new(parent));
        }
    }

    /// Configures a plugin. Streams that have begun keep the old configuration.
    ///
    /// # Errors
    /// The configuration is refused; the text gives the reason.
    pub fn on_configure(
        &mut self,
        id: ContextId,
        text: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Action>, String> {
        let (config, notes) = configured::read(text, secret)?;
        let settings = &config.settings;
        let pings = settings.deferred_flush;
        let mut shortest =
            settings.stall_after_ms(pings).min(settings.first_byte_after_ms(pings, false));
        if pings {
            shortest = shortest.min(settings.ping_interval_ms);
        }
        let period = (shortest / 4).clamp(TICK_MS_MIN, TICK_MS_MAX);
        let tick_ms = u32::try_from(period).unwrap_or(u32::MAX);
        self.memory.raise_limit(config.settings.buffered_bytes_max);
        let config = Some(Arc::new(config));
        self.plugins.insert(id, Plugin { config, tick_ms, ..Plugin::default() });
        let mut actions = vec![Action::SetTickPeriod { period_ms: tick_ms }];
        actions.extend(notes.into_iter().map(|note| Action::Log(Level::Warn, note)));
        Ok(actions)
    }

    /// Returns true if a context still exists. Some hostcalls end the context.
    #[must_use]
    pub fn has(&self, id: ContextId) -> bool {
        self.streams.get(id).is_some()
    }

    /// Returns true if callbacks in this direction need the head or chunk that they are about.
    #[must_use]
    pub fn reads(&self, id: ContextId, side: Side) -> bool {
        self.stream(id).is_some_and(|stream| stream.reads(side))
    }

    /// Returns true if the host should report the route of this stream's request before the
    /// response's head.
    #[must_use]
    pub fn awaits_route(&self, id: ContextId) -> bool {
        self.stream(id).is_some_and(Stream::awaits_route)
    }

    /// Notes the route that a stream's request took. A host without clusters does not call this
    /// method.
    pub fn on_route(&mut self, id: ContextId, route: Route) {
        let Some(entry) = self.streams.get_mut(id) else { return };
        if route.is_checked
            && let Some(plugin) = self.plugins.get_mut(entry.plugin)
        {
            plugin.unguarded.note_guard();
        }
        if let Some(stream) = entry.stream.as_mut() {
            stream.note_route(route);
        }
    }

    /// Handles a request's head. `seed` must differ for each stream of all replicas. `route` is the
    /// metadata of the route: empty if the route has no metadata, `None` if the metadata cannot be
    /// read. `connection` is the id of the client's connection, if the host numbers connections.
    pub fn on_request_headers(
        &mut self,
        id: ContextId,
        head: Vec<Header>,
        end_of_stream: bool,
        (route, connection): (Option<&str>, Option<u64>),
        seed: u128,
        now: Millis,
    ) -> Decision {
        let Some(entry) = self.streams.get_mut(id) else { return Decision::pass() };
        let Some(plugin) = self.plugins.get_mut(entry.plugin) else { return Decision::pass() };
        let Some(config) = plugin.config.clone() else { return Decision::pass() };
        let mut actions = Vec::new();
        let known = route.and_then(|route| plugin.for_route(route, &config, &mut actions));
        entry.host = Host::of(&head);
        let (config, failure) = match known {
            Some(config) if plugin.unguarded.refuses(entry.host, now) => {
                (config, Some(Failure::Misconfigured))
            }
            Some(config) => (config, None),
            None => (config, Some(Failure::Misconfigured)),
        };
        let refusals = Arc::clone(&plugin.refusals);
        let all_bytes = heads::bytes(&head);
        let mut stream = Box::new(Stream::new(config, refusals, seed));
        let mut decision = stream.on_request_headers(head, end_of_stream, failure, now);
        if !stream.is_ours() {
            // No state is kept for a stream that passes unchanged.
            return decision;
        }
        if stream.progress() != Progress::Ended {
            let owner = match stream.client_key() {
                Some(name) => Owner::of_client_key(name),
                // If the host does not number connections, all requests have one owner, whose
                // oldest unfinished request gives way.
                None => Owner::of_connection(connection.unwrap_or_default()),
            };
            // Envoy keeps the whole head of a refused request until it is answered.
            let progress = stream.progress();
            let is_refused = progress == Progress::Refuses;
            let head_bytes = if is_refused { all_bytes } else { stream.head_bytes() };
            entry.counted = self.memory.begin(id, owner, head_bytes, progress, now);
            match &entry.counted {
                None => decision = stream.give_up(true, now),
                Some(counted) => self.memory.note_progress(counted, stream.progress()),
            }
        }
        entry.stream = Some(stream);
        self.end_given_up(now);
        actions.append(&mut decision.actions);
        decision.actions = actions;
        decision
    }

    /// Handles a chunk of a request's body.
    pub fn on_request_body(
        &mut self,
        id: ContextId,
        mut piece: Vec<u8>,
        end_of_stream: bool,
        now: Millis,
    ) -> Decision {
        if let Some(counted) = self.streams.get(id).and_then(|entry| entry.counted.as_ref()) {
            self.memory.note_bytes(counted, piece.len(), now);
        }
        self.with(id, now, &mut |stream, fits| {
            stream.on_request_body(std::mem::take(&mut piece), end_of_stream, fits, now)
        })
    }

    /// Handles a request's trailers.
    pub fn on_request_trailers(&mut self, id: ContextId, now: Millis) -> Decision {
        self.with(id, now, &mut |stream, _| stream.on_request_trailers(now))
    }

    /// Handles a response's head. `details` is Envoy's `response.code_details`.
    pub fn on_response_headers(
        &mut self,
        id: ContextId,
        head: &[Header],
        end_of_stream: bool,
        details: &str,
        now: Millis,
    ) -> Decision {
        let decision = self.with(id, now, &mut |stream, _| {
            stream.on_response_headers(head, end_of_stream, details, now)
        });
        if let Some(entry) = self.streams.get(id)
            && entry.stream.as_deref().is_some_and(Stream::was_unchecked)
            && let Some(plugin) = self.plugins.get_mut(entry.plugin)
        {
            plugin.unguarded.note(entry.host, now);
        }
        decision
    }

    /// Handles a chunk of a response's body.
    pub fn on_response_body(
        &mut self,
        id: ContextId,
        piece: Vec<u8>,
        end_of_stream: bool,
        now: Millis,
    ) -> Decision {
        self.with(id, now, &mut |stream, fits| {
            stream.on_response_body(&piece, end_of_stream, fits, now)
        })
    }

    /// Handles a response's trailers.
    pub fn on_response_trailers(&mut self, id: ContextId, now: Millis) -> Decision {
        self.with(id, now, &mut |stream, _| stream.on_response_trailers(now))
    }

    /// Notes that the host has sent a call of a stream, and will give its answer with this token.
    pub fn on_call_sent(&mut self, id: ContextId, call: CallId, token: u32) {
        self.calls.insert(token, (id, call));
    }

    /// Notes that the host does not send a call of a stream. The exchange learns of it in the next
    /// tick, for which the action is.
    pub fn on_call_refused(
        &mut self,
        id: ContextId,
        call: CallId,
        failure: Failure,
    ) -> Option<Action> {
        let entry = self.streams.get_mut(id)?;
        entry.stream.as_mut()?.note_refused_call(call, failure);
        let plugin = self.plugins.get_mut(entry.plugin).filter(|plugin| !plugin.hurries)?;
        plugin.hurries = true;
        Some(Action::SetTickPeriod { period_ms: 1 })
    }

    /// Returns the stream and the call that a token stands for, and the maximum number of bytes to
    /// read of the answer. `None` if the stream is gone.
    pub fn take_call(&mut self, token: u32) -> Option<(ContextId, CallId, usize)> {
        let (id, call) = *self.calls.get(token)?;
        self.calls.remove(token);
        Some((id, call, self.stream(id)?.call_bytes_max(call)))
    }

    /// Handles the whole answer to a call of a stream: its head, which is empty if the call has
    /// failed, and its body, with true if the body was not cut.
    pub fn on_call_response(
        &mut self,
        id: ContextId,
        call: CallId,
        head: &[Header],
        body: (&[u8], bool),
        now: Millis,
    ) -> Vec<Action> {
        let decision = self.with(id, now, &mut |stream, fits| {
            stream.on_call_response(call, head, body, fits, now)
        });
        decision.actions
    }

    /// Returns true if the held head and body of a stream may go on in this direction.
    #[must_use]
    pub fn may_continue(&self, id: ContextId, side: Side) -> bool {
        self.stream(id).is_some_and(|stream| stream.may_continue(side))
    }

    /// Handles a tick: checks the timeouts of a plugin's streams. At most [`ENDED_MAX`] streams end
    /// in one tick; if more are due, the next tick comes at once and continues after them.
    pub fn on_tick(&mut self, plugin: ContextId, now: Millis) -> Vec<(ContextId, Vec<Action>)> {
        let mut all = Vec::new();
        let (mut hurries, mut ended) = (false, 0_usize);
        let from = self.plugins.get(plugin).map_or(0, |known| known.tick_from);
        let mut next = 0;
        for (id, entry) in self.streams.iter_mut_from(from) {
            let Some(stream) = entry.stream.as_mut().filter(|_| entry.plugin == plugin) else {
                continue;
            };
            if ended >= ENDED_MAX {
                (next, hurries) = (id, true);
                break;
            }
            let actions = stream.on_tick(now);
            hurries |= stream.is_due();
            ended = ended.saturating_add(usize::from(stream.ends_by(&actions)));
            if !actions.is_empty() {
                entry.count(&mut self.memory, now);
                all.push((id, actions));
            }
        }
        if let Some(known) = self.plugins.get_mut(plugin) {
            known.tick_from = next;
            if known.hurries != hurries {
                known.hurries = hurries;
                let period_ms = if hurries { 1 } else { known.tick_ms };
                // A call that the host does not take makes the next tick come at once, later.
                all.insert(0, (plugin, vec![Action::SetTickPeriod { period_ms }]));
            }
        }
        all
    }

    /// Counts and logs a stream that has ended.
    pub fn on_log(&mut self, id: ContextId, details: &str, now: Millis) -> Vec<Action> {
        match self.streams.get_mut(id).and_then(|entry| entry.stream.as_mut()) {
            Some(stream) => {
                stream.on_log(details, &mut self.counters, &mut self.refused_lines, now)
            }
            None => Vec::new(),
        }
    }

    /// Adds the duration of a callback to the time spent on a stream.
    pub fn add_spent(&mut self, id: ContextId, spent_ns: u64) {
        if let Some(stream) = self.streams.get_mut(id).and_then(|entry| entry.stream.as_mut()) {
            stream.add_spent(spent_ns);
        }
    }

    /// Removes a context.
    pub fn on_delete(&mut self, id: ContextId) {
        self.plugins.remove(id);
        if let Some(counted) = self.streams.get(id).and_then(|entry| entry.counted.as_ref()) {
            self.memory.end(counted);
        }
        self.streams.remove(id);
    }

    /// Returns the number of body bytes that all streams hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let streams = self.streams.iter().filter_map(|entry| entry.stream.as_ref());
        streams.map(|stream| stream.held_bytes()).fold(0, usize::saturating_add)
    }

    fn stream(&self, id: ContextId) -> Option<&Stream> {
        self.streams.get(id).and_then(|entry| entry.stream.as_deref())
    }

    /// Calls `call` with a stream and a function that reserves memory for the stream, then updates
    /// the memory count.
    fn with(&mut self, id: ContextId, now: Millis, call: Call<'_>) -> Decision {
        let Some(entry) = self.streams.get_mut(id) else { return Decision::pass() };
        let Some(stream) = entry.stream.as_deref_mut() else { return Decision::pass() };
        let Some(plugin) = self.plugins.get_mut(entry.plugin) else { return Decision::pass() };
        let mut fits = |bytes| match &mut entry.counted {
            Some(counted) => self.memory.set(counted, bytes, now),
            None => true,
        };
        let mut decision = call(stream, &mut fits);
        if stream.is_due() && !plugin.hurries {
            plugin.hurries = true;
            decision.actions.push(Action::SetTickPeriod { period_ms: 1 });
        }
        entry.count(&mut self.memory, now);
        self.end_given_up(now);
        decision
    }

    /// Ends the requests whose memory is needed for other requests. Their error responses are sent
    /// with the next tick.
    fn end_given_up(&mut self, now: Millis) {
        while let Some(id) = self.memory.poll_given_up() {
            let Some(entry) = self.streams.get_mut(id) else { continue };
            if let Some(counted) = &mut entry.counted {
                counted.give_up();
            }
            if let Some(stream) = &mut entry.stream {
                stream.give_up(false, now);
            }
        }
    }
}

/// Handler of an event on a stream. Its second argument is a function that reserves memory for all
/// that the stream holds, and returns false if there is not enough memory.
type Call<'a> = &'a mut dyn FnMut(&mut Stream, &mut dyn FnMut(usize) -> bool) -> Decision;

impl Entry {
    fn new(plugin: ContextId) -> Self {
        Self { plugin, host: Host::default(), stream: None, counted: None }
    }

    /// Updates the memory counted for a stream, and its progress. A stream that is over counts for
    /// nothing, though Envoy keeps the stream until the client has read the answer.
    fn count(&mut self, memory: &mut Memory, now: Millis) {
        let (Some(counted), Some(stream)) = (&mut self.counted, &self.stream) else { return };
        match stream.progress() {
            Progress::Ended => {
                memory.end(counted);
                self.counted = None;
            }
            progress => {
                memory.note_progress(counted, progress);
                let _ = memory.set(counted, stream.held_bytes(), now);
            }
        }
    }
}
