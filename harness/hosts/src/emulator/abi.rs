//! Host side of the proxy-wasm ABI 0.2.1, limited to the filter's imports, with Envoy's rules: the
//! running callback decides what may be read and written.

use wasmtime::{Caller, Extern, Linker, Memory};

use super::world::{Local, PLUGIN, Side, Trap, VisibleWay, World};
use crate::Header;

const OK: i32 = 0;
const NOT_FOUND: i32 = 1;
const BAD_ARGUMENT: i32 = 2;

/// Returns the guest's memory.
fn memory(caller: &mut Caller<'_, World>) -> Memory {
    caller.get_export("memory").and_then(Extern::into_memory).expect("a memory")
}

pub(super) fn read(caller: &mut Caller<'_, World>, at: u32, size: u32) -> Vec<u8> {
    let memory = memory(caller);
    let bytes = memory.data(&*caller).get(at as usize..at as usize + size as usize);
    bytes.expect("a pointer into the guest's memory").to_vec()
}

pub(super) fn write(caller: &mut Caller<'_, World>, at: u32, bytes: &[u8]) {
    memory(caller).write(caller, at as usize, bytes).expect("a pointer into the guest's memory");
}

/// Copies bytes to the guest, into memory that the guest allocates.
fn give(caller: &mut Caller<'_, World>, bytes: &[u8], at: u32, size_at: u32) -> i32 {
    let size = bytes.len() as u32;
    let pointer = if bytes.is_empty() {
        0
    } else {
        let allocate = caller
            .get_export("proxy_on_memory_allocate")
            .and_then(Extern::into_func)
            .expect("proxy_on_memory_allocate");
        let allocate = allocate.typed::<u32, u32>(&*caller).expect("its type");
        match allocate.call(&mut *caller, size) {
            Ok(pointer) if pointer != 0 => pointer,
            _ => return BAD_ARGUMENT,
        }
    };
    write(caller, pointer, bytes);
    write(caller, at, &pointer.to_le_bytes());
    write(caller, size_at, &size.to_le_bytes());
    OK
}

fn pairs(headers: &[Header]) -> Vec<u8> {
    let mut bytes = (headers.len() as u32).to_le_bytes().to_vec();
    for (name, value) in headers {
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
    }
    for (name, value) in headers {
        bytes.extend(name.bytes().chain([0]).chain(value.bytes()).chain([0]));
    }
    bytes
}

fn headers(bytes: &[u8]) -> Vec<Header> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    if bytes.is_empty() {
        return Vec::new();
    }
    let count = number(0);
    let mut at = 4 + count * 8;
    let mut text = |size: usize| {
        let text = String::from_utf8_lossy(&bytes[at..at + size]).into_owned();
        assert_eq!(bytes[at + size], 0, "a zero behind each name and value");
        at += size + 1;
        text
    };
    (0..count)
        .map(|index| {
            let name = text(number(4 + index * 8));
            // Envoy's maps have names in lower case.
            (name.to_ascii_lowercase(), text(number(8 + index * 8)))
        })
        .collect()
}

fn refuse(caller: &mut Caller<'_, World>, what: String) -> i32 {
    caller.data_mut().refused.push(what);
    BAD_ARGUMENT
}

fn side_of_map(map: u32) -> Option<Side> {
    match map {
        0 => Some(Side::Request),
        2 => Some(Side::Response),
        _ => None,
    }
}

fn side_of_buffer(buffer: u32) -> Option<Side> {
    match buffer {
        0 => Some(Side::Request),
        1 => Some(Side::Response),
        _ => None,
    }
}

/// Registers every import of the filter. An import that is missing here fails the instantiation, as
/// in Envoy.
// Long: a block for each import.
pub(super) fn link(linker: &mut Linker<World>) -> Result<(), Trap> {
    linker.func_wrap("env", "proxy_log", |mut c: Caller<'_, World>, _level: u32, at, size| {
        let text = read(&mut c, at, size);
        c.data_mut().log.push(String::from_utf8_lossy(&text).into_owned());
        OK
    })?;
    linker.func_wrap(
        "env",
        "proxy_get_current_time_nanoseconds",
        |mut c: Caller<'_, World>, at: u32| {
            let time = c.data().now_ms * 1_000_000;
            write(&mut c, at, &time.to_le_bytes());
            OK
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_set_tick_period_milliseconds",
        |mut c: Caller<'_, World>, period: u32| {
            c.data_mut().tick_ms = period;
            OK
        },
    )?;
    linker.func_wrap("env", "proxy_continue_stream", |mut c: Caller<'_, World>, side: u32| {
        let context = c.data().context;
        match c.data_mut().streams.get_mut(&context) {
            Some(stream) if side == Side::Response as u32 => stream.resume = true,
            _ => return refuse(&mut c, "continue: no such stream".to_owned()),
        }
        OK
    })?;
    linker.func_wrap("env", "proxy_get_buffer_bytes", get_buffer)?;
    linker.func_wrap("env", "proxy_set_buffer_bytes", set_buffer)?;
    linker.func_wrap(
        "env",
        "proxy_get_header_map_pairs",
        |mut c: Caller<'_, World>, map: u32, at: u32, size_at: u32| {
            let Some(side) = side_of_map(map) else { return BAD_ARGUMENT };
            let bytes = match c.data_mut().way(side) {
                Some(way) if way.headers_open => pairs(&way.headers),
                _ => pairs(&[]),
            };
            give(&mut c, &bytes, at, size_at)
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_set_header_map_pairs",
        |mut c: Caller<'_, World>, map: u32, at: u32, size: u32| {
            let new = headers(&read(&mut c, at, size));
            let Some(side) = side_of_map(map) else { return BAD_ARGUMENT };
            match c.data_mut().way(side) {
                Some(way) if way.headers_open => way.headers = new,
                _ => return refuse(&mut c, format!("set headers of the {side:?}: not paused")),
            }
            OK
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_get_property",
        |mut c: Caller<'_, World>, at: u32, size: u32, to: u32, size_to: u32| {
            let path = read(&mut c, at, size);
            let context = c.data().context;
            let details = c.data().streams.get(&context).map(|stream| stream.details.clone());
            match (path.as_slice(), details) {
                (b"response\0code_details", Some(details)) if !details.is_empty() => {
                    give(&mut c, details.as_bytes(), to, size_to)
                }
                _ => NOT_FOUND,
            }
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_set_property",
        |mut c: Caller<'_, World>, at: u32, size: u32, value_at: u32, value_size: u32| {
            let mark = (read(&mut c, at, size), read(&mut c, value_at, value_size));
            if mark != (b"creole".to_vec(), b"sent".to_vec()) {
                return refuse(&mut c, format!("set property: {mark:?}"));
            }
            OK
        },
    )?;
    linker.func_wrap("env", "proxy_close_stream", |mut c: Caller<'_, World>, _kind: u32| {
        let context = c.data().context;
        match c.data_mut().streams.get_mut(&context) {
            Some(stream) => stream.close = true,
            None => return refuse(&mut c, "close: no stream".to_owned()),
        }
        OK
    })?;
    linker.func_wrap("env", "proxy_send_local_response", send_local_response)?;
    linker.func_wrap("env", "proxy_http_call", http_call)?;
    linker.func_wrap(
        "env",
        "proxy_set_effective_context",
        |mut c: Caller<'_, World>, context: u32| {
            if context != PLUGIN && !c.data().streams.contains_key(&context) {
                return BAD_ARGUMENT;
            }
            c.data_mut().context = context;
            OK
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_define_metric",
        |mut c: Caller<'_, World>, _kind: u32, at: u32, size: u32, to: u32| {
            let name = String::from_utf8_lossy(&read(&mut c, at, size)).into_owned();
            let id = c.data().counters.len() as u32;
            c.data_mut().counters.push((name, 0));
            write(&mut c, to, &id.to_le_bytes());
            OK
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_increment_metric",
        |mut c: Caller<'_, World>, id: u32, by: i64| match c
            .data_mut()
            .counters
            .get_mut(id as usize)
        {
            Some((_, value)) => {
                *value += by;
                OK
            }
            None => BAD_ARGUMENT,
        },
    )?;
    linker.func_wrap(
        "env",
        "proxy_record_metric",
        |c: Caller<'_, World>, id: u32, _value: u64| {
            if (id as usize) < c.data().counters.len() { OK } else { BAD_ARGUMENT }
        },
    )?;
    Ok(())
}

fn get_buffer(
    mut caller: Caller<'_, World>,
    buffer: u32,
    start: u32,
    size: u32,
    at: u32,
    size_at: u32,
) -> i32 {
    let bytes = match side_of_buffer(buffer) {
        Some(side) => match caller.data_mut().way(side) {
            Some(VisibleWay { buffer: Some(bytes), .. }) => bytes.clone(),
            _ => return NOT_FOUND,
        },
        None if buffer == 7 => caller.data().configuration.clone(),
        None => return BAD_ARGUMENT,
    };
    let start = (start as usize).min(bytes.len());
    let end = start.saturating_add(size as usize).min(bytes.len());
    give(&mut caller, &bytes[start..end], at, size_at)
}

fn set_buffer(
    mut caller: Caller<'_, World>,
    buffer: u32,
    start: u32,
    size: u32,
    at: u32,
    new_size: u32,
) -> i32 {
    let new = read(&mut caller, at, new_size);
    let Some(side) = side_of_buffer(buffer) else { return BAD_ARGUMENT };
    if std::mem::take(&mut caller.data_mut().end_in_set_buffer) {
        // Envoy resets the stream inside of this hostcall, and calls the filter back before the
        // hostcall returns.
        let context = caller.data().context;
        for name in ["proxy_on_log", "proxy_on_done", "proxy_on_delete"] {
            let callback = caller.get_export(name).and_then(Extern::into_func).expect("a callback");
            let outcome = match callback.typed::<u32, i32>(&caller) {
                Ok(callback) => callback.call(&mut caller, context).map(|_| ()),
                Err(_) => {
                    callback.typed::<u32, ()>(&caller).expect("its type").call(&mut caller, context)
                }
            };
            outcome.expect("a callback inside of a hostcall");
        }
        caller.data_mut().streams.remove(&context);
        return OK;
    }
    let (start, size) = (start as usize, size as usize);
    let Some(VisibleWay { buffer: Some(bytes), .. }) = caller.data_mut().way(side) else {
        return refuse(&mut caller, format!("set the body of the {side:?}: there is no buffer"));
    };
    if start == 0 && size == 0 {
        bytes.splice(0..0, new);
    } else if start == 0 && size >= bytes.len() {
        *bytes = new;
    } else if start >= bytes.len() {
        bytes.extend(new);
    } else {
        return refuse(&mut caller, "set a part of a body".to_owned());
    }
    OK
}

/// Refuses a call, because the emulated Envoy has no clusters.
#[allow(clippy::too_many_arguments, reason = "the ABI")]
fn http_call(
    mut caller: Caller<'_, World>,
    cluster: u32,
    cluster_size: u32,
    _headers: u32,
    _headers_size: u32,
    _body: u32,
    _body_size: u32,
    _trailers: u32,
    _trailers_size: u32,
    _timeout: u32,
    _token: u32,
) -> i32 {
    let cluster = read(&mut caller, cluster, cluster_size);
    let cluster = String::from_utf8_lossy(&cluster).into_owned();
    refuse(&mut caller, format!("call: no cluster {cluster}"))
}

#[allow(clippy::too_many_arguments, reason = "the ABI")]
fn send_local_response(
    mut caller: Caller<'_, World>,
    status: u32,
    details: u32,
    details_size: u32,
    body: u32,
    body_size: u32,
    pairs: u32,
    pairs_size: u32,
    _grpc: i32,
) -> i32 {
    let local = Local {
        status: u16::try_from(status).unwrap_or_default(),
        details: String::from_utf8_lossy(&read(&mut caller, details, details_size)).into_owned(),
        body: read(&mut caller, body, body_size),
        headers: headers(&read(&mut caller, pairs, pairs_size)),
    };
    let context = caller.data().context;
    match caller.data_mut().streams.get_mut(&context) {
        // Only the first local response of a stream counts.
        Some(stream) => stream.local.get_or_insert(local),
        None => return refuse(&mut caller, "answer: no stream".to_owned()),
    };
    OK
}
