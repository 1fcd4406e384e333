//! Hostcalls of the ABI, with Rust types as parameters and results.

use creole::observe::log::Level;
use creole::{Header, Millis};

use crate::action::{HttpCall, LocalResponse};

/// Reason why a hostcall did nothing: the status number of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(pub(super) u32);

/// Status of a hostcall that asked for a value that does not exist.
pub(super) const NOT_FOUND: Status = Status(1);

/// Status of a hostcall with an unknown name, such as that of a cluster.
pub(super) const BAD_ARGUMENT: Status = Status(2);

/// Buffer of the host that a hostcall reads or replaces: a `proxy_buffer_type_t`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Buffer {
    RequestBody = 0,
    ResponseBody = 1,
    CallResponseBody = 4,
    PluginConfiguration = 7,
}

/// Map of headers or trailers that a hostcall reads or replaces: a `proxy_map_type_t`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Map {
    RequestHeaders = 0,
    ResponseHeaders = 2,
    CallResponse = 6,
}

/// Length larger than every buffer, which replaces the whole buffer.
const WHOLE: usize = usize::MAX >> 1;

pub(super) mod host {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        pub(in crate::abi) fn proxy_log(level: u32, text: *const u8, size: usize) -> u32;
        pub(in crate::abi) fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
        pub(in crate::abi) fn proxy_continue_stream(stream: u32) -> u32;
        pub(in crate::abi) fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
        pub(in crate::abi) fn proxy_get_buffer_bytes(
            buffer: u32,
            start: usize,
            size: usize,
            bytes: *mut *mut u8,
            bytes_size: *mut usize,
        ) -> u32;
        pub(in crate::abi) fn proxy_set_buffer_bytes(
            buffer: u32,
            start: usize,
            size: usize,
            bytes: *const u8,
            bytes_size: usize,
        ) -> u32;
        pub(in crate::abi) fn proxy_get_header_map_pairs(
            map: u32,
            pairs: *mut *mut u8,
            pairs_size: *mut usize,
        ) -> u32;
        pub(in crate::abi) fn proxy_set_header_map_pairs(
            map: u32,
            pairs: *const u8,
            pairs_size: usize,
        ) -> u32;
        pub(in crate::abi) fn proxy_get_property(
            path: *const u8,
            path_size: usize,
            value: *mut *mut u8,
            value_size: *mut usize,
        ) -> u32;
        pub(in crate::abi) fn proxy_set_property(
            path: *const u8,
            path_size: usize,
            value: *const u8,
            value_size: usize,
        ) -> u32;
        pub(in crate::abi) fn proxy_close_stream(stream: u32) -> u32;
        pub(in crate::abi) fn proxy_send_local_response(
            status: u32,
            details: *const u8,
            details_size: usize,
            body: *const u8,
            body_size: usize,
            headers: *const u8,
            headers_size: usize,
            grpc_status: i32,
        ) -> u32;
        pub(in crate::abi) fn proxy_http_call(
            cluster: *const u8,
            cluster_size: usize,
            headers: *const u8,
            headers_size: usize,
            body: *const u8,
            body_size: usize,
            trailers: *const u8,
            trailers_size: usize,
            timeout_ms: u32,
            token: *mut u32,
        ) -> u32;
        pub(in crate::abi) fn proxy_set_effective_context(context: u32) -> u32;
        pub(in crate::abi) fn proxy_define_metric(
            kind: u32,
            name: *const u8,
            name_size: usize,
            id: *mut u32,
        ) -> u32;
        pub(in crate::abi) fn proxy_increment_metric(id: u32, by: i64) -> u32;
        pub(in crate::abi) fn proxy_record_metric(id: u32, value: u64) -> u32;
    }
}

pub(super) fn check(status: u32) -> Result<(), Status> {
    if status == 0 { Ok(()) } else { Err(Status(status)) }
}

/// Runs a hostcall that returns bytes, and takes ownership of the bytes.
fn bytes(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Vec<u8>, Status> {
    let mut pointer = std::ptr::null_mut();
    let mut size = 0;
    check(call(&raw mut pointer, &raw mut size))?;
    if pointer.is_null() || size == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the host wrote `size` bytes to memory that `proxy_on_memory_allocate` gave it for
    // that size, and has forgotten it.
    Ok(unsafe { Vec::from_raw_parts(pointer, size, size) })
}

pub(super) fn buffer(buffer: Buffer, size: usize) -> Result<Vec<u8>, Status> {
    // SAFETY: the two pointers are to local variables of the function `bytes`.
    bytes(|to, to_size| unsafe {
        host::proxy_get_buffer_bytes(buffer as u32, 0, size, to, to_size)
    })
}

pub(super) fn set_buffer(buffer: Buffer, bytes: &[u8]) -> Result<(), Status> {
    // SAFETY: the host reads `bytes` and keeps nothing.
    check(unsafe {
        host::proxy_set_buffer_bytes(buffer as u32, 0, WHOLE, bytes.as_ptr(), bytes.len())
    })
}

pub(super) fn headers(map: Map) -> Result<Vec<Header>, Status> {
    // SAFETY: the two pointers are to local variables of the function `bytes`.
    let pairs =
        bytes(|to, to_size| unsafe { host::proxy_get_header_map_pairs(map as u32, to, to_size) })?;
    Ok(read_pairs(&pairs))
}

pub(super) fn set_headers(map: Map, headers: &[Header]) -> Result<(), Status> {
    let pairs = write_pairs(headers);
    // SAFETY: the host reads `pairs` and keeps nothing.
    check(unsafe { host::proxy_set_header_map_pairs(map as u32, pairs.as_ptr(), pairs.len()) })
}

pub(super) fn property(path: &[&str]) -> Result<String, Status> {
    Ok(String::from_utf8_lossy(&raw_property(path)?).into_owned())
}

/// Returns a property that is a number of 64 bits. Fails with [`NOT_FOUND`] if the property is no
/// number.
pub(super) fn number_property(path: &[&str]) -> Result<u64, Status> {
    let bytes = raw_property(path)?;
    bytes.try_into().map(u64::from_le_bytes).map_err(|_| NOT_FOUND)
}

/// Sets a property of the stream. Other filters read the property as the filter state `wasm.NAME`.
pub(super) fn set_property(name: &str, value: &str) -> Result<(), Status> {
    // SAFETY: the host reads `name` and `value`, and keeps no pointer to them.
    check(unsafe {
        host::proxy_set_property(name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

fn raw_property(path: &[&str]) -> Result<Vec<u8>, Status> {
    let path = path.join("\0");
    // SAFETY: the host reads `path`; the two pointers are to local variables of the function
    // `bytes`.
    bytes(|to, to_size| unsafe { host::proxy_get_property(path.as_ptr(), path.len(), to, to_size) })
}

pub(super) fn send_local_response(response: &LocalResponse) -> Result<(), Status> {
    let headers = write_pairs(&response.headers);
    let (body, details) = (&response.body, LocalResponse::DETAILS);
    // SAFETY: the host reads the details, body and headers, and keeps no pointer to them.
    check(unsafe {
        host::proxy_send_local_response(
            u32::from(response.status),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            -1, // not gRPC
        )
    })
}

/// Sends a request to a cluster. Returns the token with which its answer comes.
pub(super) fn http_call(call: &HttpCall) -> Result<u32, Status> {
    let (cluster, body) = (call.cluster.as_bytes(), call.body.as_slice());
    let (headers, trailers) = (write_pairs(&call.headers), write_pairs(&[]));
    let mut token = 0;
    // SAFETY: the host reads the name, headers, body and trailers, keeps no pointer to them, and
    // writes to a local variable.
    check(unsafe {
        host::proxy_http_call(
            cluster.as_ptr(),
            cluster.len(),
            headers.as_ptr(),
            headers.len(),
            body.as_ptr(),
            body.len(),
            trailers.as_ptr(),
            trailers.len(),
            call.timeout_ms,
            &raw mut token,
        )
    })?;
    Ok(token)
}

pub(super) fn now_ns() -> u64 {
    let mut time = 0;
    // SAFETY: the host writes only to a local variable.
    match check(unsafe { host::proxy_get_current_time_nanoseconds(&raw mut time) }) {
        Ok(()) => time,
        Err(_) => 0,
    }
}

pub(super) fn now() -> Millis {
    now_ns() / 1_000_000
}

pub(super) fn log(level: Level, text: &str) {
    let level = match level {
        Level::Info => 2,
        Level::Warn => 3,
        Level::Error => 4,
    };
    // SAFETY: the host reads `text` and keeps nothing. A failure is ignored, because it cannot be
    // logged.
    let _ = unsafe { host::proxy_log(level, text.as_ptr(), text.len()) };
}

/// Reads the ABI's list of headers: a count, that many pairs of sizes, then that many names and
/// values, each followed by a zero byte.
fn read_pairs(bytes: &[u8]) -> Vec<Header> {
    let number = |at: usize| {
        let four = bytes.get(at..at.saturating_add(4))?;
        Some(u32::from_le_bytes(four.try_into().ok()?) as usize)
    };
    let count = number(0).unwrap_or_default().min(bytes.len() / 8);
    let mut text_at = count.saturating_mul(8).saturating_add(4);
    let mut next = |size: usize| {
        let end = text_at.saturating_add(size);
        let text = bytes.get(text_at..end)?;
        text_at = end.saturating_add(1);
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let mut pairs = Vec::with_capacity(count);
    for index in 0..count {
        let at = index.saturating_mul(8).saturating_add(4);
        let (Some(name), Some(value)) = (number(at), number(at.saturating_add(4))) else { break };
        let (Some(name), Some(value)) = (next(name), next(value)) else { break };
        pairs.push((name, value));
    }
    pairs
}

fn write_pairs(headers: &[Header]) -> Vec<u8> {
    let number = |size: usize| u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes();
    let pair = |(name, value): &Header| name.len().saturating_add(value.len()).saturating_add(10);
    let size = headers.iter().map(pair).fold(4, usize::saturating_add);
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(&number(headers.len()));
    for (name, value) in headers {
        bytes.extend_from_slice(&number(name.len()));
        bytes.extend_from_slice(&number(value.len()));
    }
    for (name, value) in headers {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}
