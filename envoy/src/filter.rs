//! The state of one VM: its plugins (root contexts) and its streams (HTTP contexts).
//!
//! Every callback of the ABI has its method here. None of them calls a host, so none of them can be
//! entered again while it runs; what they decide is done after they have returned. Envoy may then
//! call back (a stream can end inside of a hostcall) and finds everything in order.

use std::sync::Arc;

use creole::config::Config;
use creole::headers::is_value;
use creole::observe::log::{Level, RefusedLines};
use creole::observe::metrics::Counters;
use creole::{Failure, Header, Millis, Owner, Refusals, json};

use crate::action::{Action, Decision, Side};
use crate::contexts::{ContextId, Contexts};
use crate::heads;
use crate::memory::{Counted, Memory};
use crate::stream::{Progress, Route, Stream};
use crate::unguarded::{Host, Unguarded};

/// Bounds of the time between two looks at the streams, which is a quarter of the shortest timeout.
const TICK_MS_MIN: u64 = 200;
const TICK_MS_MAX: u64 = 1000;

/// Most routes with a configuration of their own that are remembered; beyond, the
/// oldest is forgotten and read anew.
const ROUTES_MAX: usize = 64;

/// Streams that are answered or reset in one tick. Envoy does this behind the callback, each inside
/// of the one before: some hundred of them overflow its stack, and the VM traps.
const ENDED_MAX: usize = 16;

/// State of one VM.
#[derive(Debug, Default)]
pub struct Filter {
    plugins: Contexts<Plugin>,
    streams: Contexts<Entry>,
    memory: Memory,
    counters: Counters,
    refused_lines: RefusedLines,
}

/// Plugin, with its configuration once there is one.
#[derive(Debug, Default)]
struct Plugin {
    config: Option<Arc<Config>>,
    /// Metadata of routes that want settings of their own, and the configuration that came of it.
    routes: Vec<(String, Option<Arc<Config>>)>,
    refusals: Arc<Refusals>,
    tick_ms: u32,
    /// True if ticks come at once, because a stream has something to write.
    hurries: bool,
    /// Stream with which the next tick begins.
    tick_from: ContextId,
    /// Hosts for which nothing is sent, because nobody checks where requests for them go.
    unguarded: Unguarded,
}

/// A context, and its stream once the request's head has come.
#[derive(Debug)]
struct Entry {
    plugin: ContextId,
    host: Host,
    stream: Option<Box<Stream>>,
    counted: Option<Counted>,
}

impl Plugin {
    /// Returns the configuration of a route; nothing where its metadata cannot be read, which is
    /// told once.
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
        let read = match config.for_route(route) {
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
    /// Handles the begin of a context: a plugin if it has no parent, else a stream.
    pub fn on_context_create(&mut self, id: ContextId, parent: ContextId) {
        if parent == 0 {
            self.plugins.insert(id, Plugin::default());
        } else {
            self.streams.insert(id, Entry::new(parent));
        }
    }

    /// Gives a plugin its configuration. Streams that have begun keep the old one.
    ///
    /// # Errors
    /// Why the configuration is refused.
    pub fn on_configure(
        &mut self,
        id: ContextId,
        text: &str,
        secret: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Action>, String> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let config = Config::from_json(text, secret).map_err(|error| error.to_string())?;
        config.check_client_keys()?;
        if !config.settings.pause_headers && config.upstreams.len() != 1 {
            // The head leaves with a credential before the model is known.
            return Err(format!(
                "configuration: upstreams: expected one, because pause_headers is false, but found \
                 {}",
                config.upstreams.len()
            ));
        }
        if let Some(upstream) =
            config.upstreams.values().find(|upstream| !is_value(heads::routing_value(upstream)))
        {
            return Err(format!(
                "configuration: upstreams.{}.cluster: expected one, because the name cannot be the \
                 value of {}",
                json::quoted(&upstream.name),
                heads::ROUTING_HEADER
            ));
        }
        let settings = &config.settings;
        if settings.deferred_flush && !settings.pause_headers {
            return Err(
                "configuration: deferred_flush: expected pause_headers to be true with it, \
                        because a head that has left cannot be held"
                    .to_owned(),
            );
        }
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
        Ok(vec![Action::SetTickPeriod { period_ms: tick_ms }])
    }

    /// Returns true if a context is there: after some hostcalls it is not any more.
    #[must_use]
    pub fn has(&self, id: ContextId) -> bool {
        self.streams.get(id).is_some()
    }

    /// Returns true if the callbacks of this side need the head or piece that they are about.
    #[must_use]
    pub fn reads(&self, id: ContextId, side: Side) -> bool {
        self.stream(id).is_some_and(|stream| stream.reads(side))
    }

    /// Returns true if the host is to say where this stream's request went, before it tells of an
    /// answer.
    #[must_use]
    pub fn awaits_route(&self, id: ContextId) -> bool {
        self.stream(id).is_some_and(Stream::awaits_route)
    }

    /// Notes where a stream's request went. A host that knows no clusters does not call this.
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

    /// Handles a request's head. `seed` must differ for each stream of all replicas. `route`: the
    /// metadata of its route, empty if it has none, nothing if it cannot be read. `connection`: the
    /// client's, where the host numbers them.
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
            // Nothing is kept of it.
            return decision;
        }
        if stream.progress() != Progress::Ended {
            let owner = match stream.client_key() {
                Some(name) => Owner::of_client_key(name),
                // A host without numbers has one owner, whose oldest unfinished request gives way.
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

    /// Handles a piece of a request's body.
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

    /// Handles a response's head. `details`: Envoy's `response.code_details`.
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

    /// Handles a piece of a response's body.
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

    /// Lets time pass for the streams of a plugin. At most [`ENDED_MAX`] of them end in one tick;
    /// the next one comes at once and begins behind them.
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
            ended = ended.saturating_add(usize::from(actions.iter().any(Action::ends_stream)));
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
                all.push((plugin, vec![Action::SetTickPeriod { period_ms }]));
            }
        }
        all
    }

    /// Counts and logs a stream that is over.
    pub fn on_log(&mut self, id: ContextId, details: &str, now: Millis) -> Vec<Action> {
        match self.streams.get_mut(id).and_then(|entry| entry.stream.as_mut()) {
            Some(stream) => {
                stream.on_log(details, &mut self.counters, &mut self.refused_lines, now)
            }
            None => Vec::new(),
        }
    }

    /// Adds the time that a callback of this stream took.
    pub fn add_spent(&mut self, id: ContextId, spent_ns: u64) {
        if let Some(stream) = self.streams.get_mut(id).and_then(|entry| entry.stream.as_mut()) {
            stream.add_spent(spent_ns);
        }
    }

    /// Forgets a context.
    pub fn on_delete(&mut self, id: ContextId) {
        self.plugins.remove(id);
        if let Some(counted) = self.streams.get(id).and_then(|entry| entry.counted.as_ref()) {
            self.memory.end(counted);
        }
        self.streams.remove(id);
    }

    /// Returns the bytes of bodies that all streams hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let streams = self.streams.iter().filter_map(|entry| entry.stream.as_ref());
        streams.map(|stream| stream.held_bytes()).fold(0, usize::saturating_add)
    }

    fn stream(&self, id: ContextId) -> Option<&Stream> {
        self.streams.get(id).and_then(|entry| entry.stream.as_deref())
    }

    /// Calls with the stream, and with what reserves memory for all that it holds.
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

    /// Ends the requests that others need the memory of. Their answers go out with the next tick.
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

/// A call of a stream, with what reserves memory for all that the stream holds.
type Call<'a> = &'a mut dyn FnMut(&mut Stream, &mut dyn FnMut(usize) -> bool) -> Decision;

impl Entry {
    fn new(plugin: ContextId) -> Self {
        Self { plugin, host: Host::default(), stream: None, counted: None }
    }

    /// Counts what the stream holds by now, which is never more than before, and how far it is. One
    /// that is over holds nothing here, though Envoy keeps it for as long as the client does not
    /// take its answer.
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
