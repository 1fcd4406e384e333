//! Guest side of the proxy-wasm ABI 0.2.1. No other module calls the host, except `wasi`.
//!
//! This module makes no decisions. An export reads the data of its callback, calls the [`Filter`],
//! and executes the returned actions. `docs/dev/decisions/0001-own-guest-abi.md` explains why the
//! crate `proxy-wasm` is not used.
//!
//! * Hostcalls never panic: each returns `Result<_, Status>`. A stream may be gone at the time of a
//!   call, and a panic would end every other stream of the VM.
//! * No value stays borrowed during a hostcall, because the host may call back from inside of it
//!   (`proxy_on_log`, `proxy_on_delete` when a write ends the stream).
//! * `unsafe` code is only here and in `wasi`. The host returns data in memory that it allocated
//!   with `proxy_on_memory_allocate`, and names exactly the allocated size.
#![allow(unsafe_code)]

mod hostcalls;

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::panic;

use creole::observe::log::Level;
use creole::text::names::Names;
use creole::{Failure, Millis, json};

use hostcalls::{
    BAD_ARGUMENT, Buffer, Map, NOT_FOUND, Status, buffer, check, headers, host, http_call, log,
    now, now_ns, number_property, property, send_local_response, set_buffer, set_headers,
    set_property,
};

use crate::Filter;
use crate::action::{Action, Decision, Flow, HttpCall, Side};
use crate::contexts::ContextId;
use crate::heads;
use crate::stream::Route;
use crate::wasi;
/// Values of `proxy_action_t` as Envoy reads them: for a head or trailers, and for a body.
const CONTINUE: u32 = 0;
const STOP_ITERATION: u32 = 1;
const STOP_ITERATION_NO_BUFFER: u32 = 3;

/// Values of `proxy_stream_type_t`. Resets affect both directions of a stream alike.
const STREAM_REQUEST: u32 = 0;
const STREAM_RESPONSE: u32 = 1;

/// Values of `proxy_metric_type_t`, the kind of a statistic.
const COUNTER: u32 = 0;
const HISTOGRAM: u32 = 2;

/// Name and value of the filter state that marks requests sent on by Creole, for the filter
/// `creole-guard`.
const MARK: &str = "creole";
const MARKED: &str = "sent";

/// State of this VM: the filter, and data that only the ABI needs.
struct Vm {
    filter: RefCell<Filter>,
    /// Ids of the statistics by name. A statistic must be defined only once, or it would get a
    /// second id.
    statistics: RefCell<Names<'static, u32>>,
    /// Random number that no other VM has, drawn once.
    entropy: u128,
    streams: Cell<u64>,
}

thread_local! {
    static VM: Vm = Vm {
        filter: RefCell::default(),
        statistics: RefCell::default(),
        // Should the host have no randomness, its clock serves.
        entropy: wasi::random().unwrap_or_else(|| u128::from(now_ns()) << 64),
        streams: Cell::new(0),
    };
}

/// Calls the filter. The borrow cannot fail, because the filter is never borrowed while the host
/// can call back.
fn ask<R: Default>(question: impl FnOnce(&mut Filter) -> R) -> R {
    VM.with(|vm| vm.filter.try_borrow_mut().map(|mut filter| question(&mut filter)))
        .unwrap_or_default()
}

/// Calls the filter for a chunk of a body, and records the time that the call took. Each reading of
/// the clock is a hostcall, so the first reading also serves as the time of the callback.
fn timed<R: Default>(id: ContextId, question: impl FnOnce(&mut Filter, Millis) -> R) -> R {
    let began = now_ns();
    let answer = ask(|filter| question(filter, began / 1_000_000));
    let spent_ns = now_ns().saturating_sub(began);
    ask(|filter| filter.add_spent(id, spent_ns));
    answer
}

/// Returns a number that no other stream has, in any VM. It need not look random, because ids are
/// derived from it by mixing.
fn seed() -> u128 {
    VM.with(|vm| {
        let number = vm.streams.get().wrapping_add(1);
        vm.streams.set(number);
        vm.entropy.wrapping_add(number.into())
    })
}

/// Returns the host's id of a statistic, and defines the statistic at the first use.
fn statistic(kind: u32, name: &str) -> Result<u32, Status> {
    let known = VM.with(|vm| vm.statistics.try_borrow().ok()?.get(name).copied());
    if let Some(id) = known {
        return Ok(id);
    }
    let mut id = 0;
    // SAFETY: the host reads `name` and writes to a local variable.
    check(unsafe { host::proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) })?;
    VM.with(|vm| {
        if let Ok(mut statistics) = vm.statistics.try_borrow_mut() {
            statistics.insert(name.to_owned(), id);
        }
    });
    Ok(id)
}

fn count(name: &str, by: u64) -> Result<(), Status> {
    let id = statistic(COUNTER, name)?;
    let by = i64::try_from(by).unwrap_or(i64::MAX);
    // SAFETY: the host gets only numbers.
    check(unsafe { host::proxy_increment_metric(id, by) })
}

fn record(name: &str, value: u64) -> Result<(), Status> {
    let id = statistic(HISTOGRAM, name)?;
    // SAFETY: the host gets only numbers.
    check(unsafe { host::proxy_record_metric(id, value) })
}

fn act(action: &Action) -> Result<(), Status> {
    match action {
        Action::ReplaceHeaders(Side::Request, head) => set_headers(Map::RequestHeaders, head),
        Action::ReplaceHeaders(Side::Response, head) => set_headers(Map::ResponseHeaders, head),
        Action::Mark => set_property(MARK, MARKED),
        Action::ReplaceBody(Side::Request, bytes) => set_buffer(Buffer::RequestBody, bytes),
        Action::ReplaceBody(Side::Response, bytes) => set_buffer(Buffer::ResponseBody, bytes),
        Action::SendLocalResponse(response) => send_local_response(response),
        // SAFETY: the host gets only numbers.
        Action::CloseStream => check(unsafe { host::proxy_close_stream(STREAM_RESPONSE) }),
        // SAFETY: the host gets only numbers.
        Action::ContinueRequest => check(unsafe { host::proxy_continue_stream(STREAM_REQUEST) }),
        // SAFETY: the host gets only numbers.
        Action::ContinueResponse => check(unsafe { host::proxy_continue_stream(STREAM_RESPONSE) }),
        Action::SetTickPeriod { period_ms } => {
            // SAFETY: the host gets only numbers.
            check(unsafe { host::proxy_set_tick_period_milliseconds(*period_ms) })
        }
        Action::Count { name, by } => count(name, *by),
        Action::Record { name, value } => record(name, *value),
        Action::Log(level, text) => {
            log(*level, text);
            Ok(())
        }
        // Only a stream makes calls: see `act_for`.
        Action::Call(_) => Err(BAD_ARGUMENT),
    }
}

/// Executes the actions of a stream, as long as the stream exists.
fn act_for(id: ContextId, actions: &[Action]) {
    for action in actions {
        match action {
            Action::Call(call) => send_call(id, call),
            // A write before may have ended the stream.
            Action::ContinueRequest if !may_continue(id, Side::Request) => {}
            Action::ContinueResponse if !may_continue(id, Side::Response) => {}
            _ => act_or_tell(action),
        }
        if !ask(|filter| filter.has(id)) {
            return;
        }
    }
}

fn may_continue(id: ContextId, side: Side) -> bool {
    ask(|filter| filter.may_continue(id, side))
}

/// Sends a call of a stream. Writes a line to Envoy's log if the host does not send the call.
fn send_call(id: ContextId, call: &HttpCall) {
    let status = match http_call(call) {
        Ok(token) => return ask(|filter| filter.on_call_sent(id, call.id, token)),
        Err(status) => status,
    };
    let cluster = json::quoted(&call.cluster);
    log(Level::Warn, &format!("call of the cluster {cluster}: status {} of the host", status.0));
    let failure =
        if status == BAD_ARGUMENT { Failure::NoRoute } else { Failure::NoHealthyUpstream };
    if let Some(action) = ask(|filter| filter.on_call_refused(id, call.id, failure)) {
        act_or_tell(&action);
    }
}

/// Executes one action. Writes a line to Envoy's log if the host refuses the action.
fn act_or_tell(action: &Action) {
    if let Err(Status(status)) = act(action) {
        log(Level::Warn, &format!("{}: status {status} of the host", name(action)));
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::ReplaceHeaders(..) => "replace headers",
        Action::Mark => "mark",
        Action::ReplaceBody(..) => "replace body",
        Action::SendLocalResponse(_) => "send local response",
        Action::ContinueRequest => "continue request",
        Action::ContinueResponse => "continue response",
        Action::Call(_) => "call",
        Action::CloseStream => "close stream",
        Action::SetTickPeriod { .. } => "set tick period",
        Action::Count { .. } => "count",
        Action::Record { .. } => "record",
        Action::Log(..) => "log",
    }
}

fn finish(id: ContextId, decision: &Decision, stop: u32) -> u32 {
    act_for(id, &decision.actions);
    match decision.flow {
        Flow::Continue => CONTINUE,
        Flow::Pause => STOP_ITERATION,
        Flow::Stop => stop,
    }
}

/// Returns the text of the route's metadata `filter_metadata.creole.configuration`. Empty if the
/// route has no such metadata; `None` if the host fails to return the metadata.
fn route_metadata() -> Option<String> {
    match property(&["xds", "route_metadata", "filter_metadata", "creole", "configuration"]) {
        Ok(text) => Some(text),
        Err(NOT_FOUND) => Some(String::new()),
        Err(Status(status)) => {
            log(Level::Error, &format!("route metadata: status {status} of the host"));
            None
        }
    }
}

/// Path of the property that the filter `creole-guard` sets on a stream after checking its route.
const ROUTE_CHECK: [&str; 4] =
    ["metadata", "filter_metadata", "envoy.filters.http.rbac", "creole_shadow_engine_result"];

fn code_details() -> String {
    property(&["response", "code_details"]).unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

/// Initializes the VM before any other call. Sets a panic hook that logs only the location of a
/// panic, because the message could quote a request. A panic, which must not happen, ends the VM.
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    panic::set_hook(Box::new(|info| {
        if let Some(at) = info.location() {
            log(Level::Error, &format!("panicked at {}:{}", at.file(), at.line()));
        }
    }));
}

/// Allocates memory for the result of a hostcall. Returns null if no memory is left, and the
/// hostcall then fails.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    match Layout::array::<u8>(size.max(1)) {
        // SAFETY: the size is not zero.
        Ok(layout) => unsafe { std::alloc::alloc(layout) },
        Err(_) => std::ptr::null_mut(),
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_context_create(id: ContextId, parent: ContextId) {
    ask(|filter| filter.on_context_create(id, parent));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_vm_start(_id: ContextId, _size: usize) -> u32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(id: ContextId, size: usize) -> u32 {
    let text = if size == 0 { Ok(Vec::new()) } else { buffer(Buffer::PluginConfiguration, size) };
    let Ok(text) = text.map(|text| String::from_utf8_lossy(&text).into_owned()) else {
        log(Level::Error, "configuration: the host did not give it");
        return 0;
    };
    // Secrets are environment variables of the VM.
    let environment = wasi::environment().unwrap_or_default();
    let secret = |name: &str| wasi::variable(&environment, name);
    match ask(|filter| Some(filter.on_configure(id, &text, secret))) {
        Some(Ok(actions)) => {
            actions.iter().for_each(act_or_tell);
            1
        }
        Some(Err(reason)) => {
            log(Level::Error, &reason);
            0
        }
        None => 0,
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_tick(plugin: ContextId) {
    let now = now();
    for (id, actions) in ask(|filter| filter.on_tick(plugin, now)) {
        // SAFETY: the host gets only numbers, and refuses the id of a stream that is gone.
        if check(unsafe { host::proxy_set_effective_context(id) }).is_ok() {
            act_for(id, &actions);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(id: ContextId, _count: u32, end: u32) -> u32 {
    let mut head = headers(Map::RequestHeaders).unwrap_or_default();
    // Reserved headers are removed before the route is read, because they may choose the route.
    if heads::remove_reserved(&mut head)
        && let Err(Status(status)) = set_headers(Map::RequestHeaders, &head)
    {
        log(Level::Error, &format!("remove x-creole headers: status {status} of the host"));
        act_or_tell(&Action::CloseStream);
        return STOP_ITERATION;
    }
    #[cfg(feature = "test-hooks")]
    if head.iter().any(|(name, value)| name == "x-test-hook" && value == "trap") {
        core::arch::wasm32::unreachable();
    }
    let (seed, now) = (seed(), now());
    // The route is read before any change of the head, which makes Envoy choose a route anew.
    let route = route_metadata();
    let from = (route.as_deref(), number_property(&["connection", "id"]).ok());
    let decision = ask(|filter| filter.on_request_headers(id, head, end != 0, from, seed, now));
    finish(id, &decision, STOP_ITERATION)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_body(id: ContextId, size: usize, end: u32) -> u32 {
    if !ask(|filter| filter.reads(id, Side::Request)) {
        return CONTINUE;
    }
    let Some(piece) = piece(id, Buffer::RequestBody, size) else {
        return STOP_ITERATION_NO_BUFFER;
    };
    let decision = timed(id, |filter, now| filter.on_request_body(id, piece, end != 0, now));
    finish(id, &decision, STOP_ITERATION_NO_BUFFER)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_trailers(id: ContextId, _count: u32) -> u32 {
    let now = now();
    let decision = ask(|filter| filter.on_request_trailers(id, now));
    finish(id, &decision, STOP_ITERATION)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(id: ContextId, _count: u32, end: u32) -> u32 {
    if !ask(|filter| filter.reads(id, Side::Response)) {
        return CONTINUE;
    }
    let head = headers(Map::ResponseHeaders).unwrap_or_default();
    let (details, now) = (code_details(), now());
    if ask(|filter| filter.awaits_route(id))
        && let Ok(cluster) = property(&["xds", "cluster_name"])
    {
        let is_checked = property(&ROUTE_CHECK).is_ok();
        ask(|filter| filter.on_route(id, Route { cluster, is_checked }));
    }
    let decision = ask(|filter| filter.on_response_headers(id, &head, end != 0, &details, now));
    finish(id, &decision, STOP_ITERATION)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_body(id: ContextId, size: usize, end: u32) -> u32 {
    if !ask(|filter| filter.reads(id, Side::Response)) {
        return CONTINUE;
    }
    let Some(piece) = piece(id, Buffer::ResponseBody, size) else {
        return STOP_ITERATION_NO_BUFFER;
    };
    let decision = timed(id, |filter, now| filter.on_response_body(id, piece, end != 0, now));
    finish(id, &decision, STOP_ITERATION_NO_BUFFER)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_trailers(id: ContextId, _count: u32) -> u32 {
    let now = now();
    let decision = ask(|filter| filter.on_response_trailers(id, now));
    finish(id, &decision, STOP_ITERATION)
}

/// Passes the answer to a call on. The host calls this for the plugin, and not for the stream.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_http_call_response(
    _plugin: ContextId,
    token: u32,
    count: u32,
    size: usize,
    _trailers: u32,
) {
    let Some((id, call, bytes_max)) = ask(|filter| filter.take_call(token)) else { return };
    let head = if count == 0 { Ok(Vec::new()) } else { headers(Map::CallResponse) };
    let body = match size.min(bytes_max) {
        0 => Ok(Vec::new()),
        size => buffer(Buffer::CallResponseBody, size),
    };
    // Without its head, or for lack of memory, the call has failed.
    let (head, body) = match (head, body) {
        (Ok(head), Ok(body)) => (head, body),
        _ => (Vec::new(), Vec::new()),
    };
    // SAFETY: the host gets only numbers, and refuses the id of a stream that is gone.
    if check(unsafe { host::proxy_set_effective_context(id) }).is_err() {
        return;
    }
    let whole = size <= bytes_max;
    let actions =
        timed(id, |filter, now| filter.on_call_response(id, call, &head, (&body, whole), now));
    act_for(id, &actions);
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_log(id: ContextId) {
    let (details, now) = (code_details(), now());
    act_for(id, &ask(|filter| filter.on_log(id, &details, now)));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_done(_id: ContextId) -> u32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_delete(id: ContextId) {
    ask(|filter| filter.on_delete(id));
}

/// Reads the chunk of a body callback. If the chunk cannot be read for lack of memory, resets the
/// stream, because going on without the chunk would change the message.
fn piece(id: ContextId, from: Buffer, size: usize) -> Option<Vec<u8>> {
    if size == 0 {
        return Some(Vec::new());
    }
    match buffer(from, size) {
        Ok(piece) => Some(piece),
        Err(Status(status)) => {
            log(Level::Error, &format!("read body: status {status} of the host"));
            act_for(id, &[Action::CloseStream]);
            None
        }
    }
}
