//! A stream in its steady state allocates nothing for a chunk.

#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use creole::{CallId, Config, Exchange, HostCan, RequestHead};

#[path = "../benches/bodies/mod.rs"]
#[allow(dead_code, clippy::indexing_slicing, reason = "only streams are needed here")]
mod bodies;

use bodies::Says;

/// The system's allocator, which counts what this thread asks of it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Id of an exchange's first call.
const CALL: CallId = CallId(1);

/// An exchange whose answer begins, as a stream.
fn streaming(config: &str) -> Exchange {
    let config = Arc::new(Config::from_json(config, |_| None).unwrap());
    let mut exchange = Exchange::new(config, 7, HostCan::default());
    let headers = [("authorization".to_owned(), "Bearer x".to_owned())];
    let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
    assert!(matches!(head, RequestHead::Translate));
    let tools = r#"{"name":"Tool0","input_schema":{}},{"name":"Tool1","input_schema":{}},{"name":"Tool2","input_schema":{}},{"name":"Tool3","input_schema":{}}"#;
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"stream":true,"thinking":{{"type":"adaptive"}},"tools":[{tools}],"messages":[{{"role":"user","content":"x"}}]}}"#
    );
    exchange.handle_request_body(body.into_bytes(), 0);
    assert_eq!(exchange.poll_call(0).unwrap().id, CALL);
    let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
    exchange.handle_call_head(CALL, 200, &headers, 0);
    exchange
}

/// Returns the number of allocations that the chunks of a stream need, without the first ones and
/// the last.
fn allocations(says: Says) -> u64 {
    let events = bodies::chunks(says).iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    allocations_of("{}", events)
}

/// Returns the number of allocations that the events of a stream in Responses need, without the
/// first ones and the last.
fn allocations_in_responses(says: Says) -> u64 {
    let config = r#"{"upstreams":{"u":{"url":"https://u.test","protocol":"responses"}}}"#;
    let events = bodies::events(says).iter().map(|event| bodies::event(event)).collect();
    allocations_of(config, events)
}

fn allocations_of(config: &str, events: Vec<String>) -> u64 {
    let mut exchange = streaming(config);
    let mut out = Vec::with_capacity(64 << 10);
    let (first, rest) = events.split_at(10);
    for event in first {
        exchange.handle_call_body(CALL, event.as_bytes(), 0);
        exchange.poll_body(&mut out);
    }
    assert!(!out.is_empty(), "the stream has begun");
    let before = ALLOCATIONS.with(Cell::get);
    let mut bytes = 0;
    for event in rest.iter().take(980) {
        out.clear();
        exchange.handle_call_body(CALL, event.as_bytes(), 0);
        exchange.poll_body(&mut out);
        bytes += out.len();
    }
    let allocated = ALLOCATIONS.with(Cell::get) - before;
    assert!(bytes > 90_000, "every chunk says something: {bytes} bytes");
    allocated
}

#[test]
fn text_needs_no_allocation_for_a_chunk() {
    assert_eq!(allocations(Says::Text), 0);
}

#[test]
fn reasoning_needs_no_allocation_for_a_chunk_but_the_growth_of_its_record() {
    // What was thought is kept for the signature: one buffer, which doubles.
    let allocated = allocations(Says::Reasoning);
    assert!(allocated <= 12, "{allocated} allocations");
}

#[test]
fn tool_calls_need_no_allocation_for_a_chunk_but_the_growth_of_their_inputs() {
    // Three more calls begin, and each keeps its input in a buffer that doubles.
    let allocated = allocations(Says::Tools);
    assert!(allocated <= 4 * 24, "{allocated} allocations");
}

#[test]
fn a_stream_in_responses_needs_no_more_allocations_than_one_in_chat() {
    // The buffer of an event grows once, because its number gets longer.
    let text = allocations_in_responses(Says::Text);
    assert!(text <= 1, "{text} allocations for text");
    let reasoning = allocations_in_responses(Says::Reasoning);
    assert!(reasoning <= 12, "{reasoning} allocations for reasoning");
    let input = allocations_in_responses(Says::Tools);
    assert!(input <= 24, "{input} allocations for the input of a call");
}

#[test]
fn the_allocator_counts() {
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(100)));
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 1);
}
