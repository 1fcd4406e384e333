//! Emulator of Envoy, as far as a filter can observe it, in this process. Tests use it for every
//! order of callbacks, tiny chunks, both pause modes, ticks, and streams that end inside of
//! hostcalls.
//!
//! The emulated rules were measured on Envoy 1.40; `tests/fixtures.rs` verifies them by running the
//! same module in a real Envoy.

mod abi;
mod stream;
pub mod vm;
mod wasi;
pub mod world;

use std::sync::{Mutex, OnceLock};

use serde_json::Value;
use wasmtime::{Engine, Module};

use crate::process::file_of;
use crate::{End, Got, Header, Host, Trial};

pub use stream::{Rules, Stream};
pub use vm::Vm;

/// Longest silence of an upstream, in milliseconds, before the emulator stops waiting: longer than
/// any timeout.
const SILENCE_MS: u64 = 3_600_000;

/// Worker of an emulated Envoy.
pub struct Emulator {
    vm: Mutex<Vm>,
    rules: Rules,
}

/// Returns the filter's module, loaded once per process.
fn module() -> Result<&'static Module, String> {
    static MODULE: OnceLock<Result<Module, String>> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        let path = file_of("CREOLE_WASM_COMPILED")?;
        // SAFETY: the file of the compiled filter was written by Wasmtime in this run of
        // `cargo xtask test`, and nobody changes the file.
        let loaded = unsafe { Module::deserialize_file(&Engine::default(), path) };
        loaded.map_err(|error| format!("{error:?}"))
    });
    module.as_ref().map_err(Clone::clone)
}

impl Emulator {
    /// Starts a worker with this configuration.
    ///
    /// # Errors
    /// The environment variable for the filter's file is missing, an import is unknown, or the
    /// filter refuses the configuration.
    pub fn new(config: &Value, rules: Rules) -> Result<Self, String> {
        let vm = Vm::start(module()?, &config.to_string())?;
        Ok(Self { vm: Mutex::new(vm), rules })
    }

    /// Calls a function with the worker's VM, and returns the result of the function.
    pub fn with<R>(&self, what: impl FnOnce(&mut Vm) -> R) -> R {
        what(&mut self.vm.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Sends the request of a trial under these rules.
    pub fn send_under(&self, trial: &Trial, rules: Rules) -> Got {
        self.with(|vm| run(vm, trial, rules))
    }
}

impl Host for Emulator {
    fn name(&self) -> &'static str {
        "emulator"
    }

    fn send(&self, trial: &Trial) -> Got {
        self.send_under(trial, self.rules)
    }
}

/// Returns the head of a trial's request as filters see it.
pub fn head_of(trial: &Trial, rules: Rules) -> Vec<Header> {
    let request = &trial.request;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut head = vec![
        pair(":authority", "127.0.0.1:10000"),
        pair(":path", &request.path),
        pair(":method", &request.method),
        pair(":scheme", "http"),
    ];
    head.extend(request.headers.iter().cloned());
    if rules.cut == 0 && request.piece_bytes == 0 && !request.body.is_empty() {
        head.push(pair("content-length", &request.body.len().to_string()));
    }
    head.push(pair("x-forwarded-proto", "http"));
    head.push(pair("x-request-id", "5f0d5d0e-8d3c-4e58-9f0e-3e7f4f1c2b1a"));
    head
}

fn run(vm: &mut Vm, trial: &Trial, rules: Rules) -> Got {
    let request = &trial.request;
    let mut stream = Stream::new(vm, rules);
    stream.request_headers(vm, head_of(trial, rules), request.body.is_empty());
    let cut = if request.piece_bytes == 0 { rules.cut } else { request.piece_bytes };
    let body: Vec<&[u8]> = pieces(&request.body, cut);
    let with_trailers = !request.trailers.is_empty();
    for (index, piece) in body.iter().enumerate() {
        let last = index + 1 == body.len() && !with_trailers;
        stream.request_body(vm, piece, last && !rules.end_apart);
        if last && rules.end_apart {
            stream.request_body(vm, b"", true);
        }
    }
    if with_trailers {
        stream.request_trailers(vm);
    }
    if !stream.asks_upstream() {
        return stream.got;
    }
    let answer = &trial.answer;
    let head_at = vm.world().now_ms + answer.delay.as_millis() as u64;
    while vm.world().now_ms < head_at && !stream.is_over() {
        let period = u64::from(vm.world().tick_ms.max(100));
        stream.tick(vm, period);
    }
    let joined = answer.pieces.concat();
    let body: Vec<&[u8]> = match rules.cut {
        0 => answer.pieces.iter().map(AsRef::as_ref).filter(|p: &&[u8]| !p.is_empty()).collect(),
        cut => pieces(&joined, cut),
    };
    let complete = answer.end == End::Complete;
    let with_trailers = !answer.trailers.is_empty();
    let header_only = body.is_empty() && complete && !with_trailers;
    stream.response_headers(vm, answer.status, &answer.headers, header_only);
    for (index, piece) in body.iter().enumerate() {
        let last = index + 1 == body.len() && complete && !with_trailers;
        stream.response_body(vm, piece, last && !rules.end_apart);
        if last && rules.end_apart {
            stream.response_body(vm, b"", true);
        }
        // A filter that wants a tick at once gets one after every second piece.
        if vm.world().tick_ms == 1 && index % 2 == 1 {
            stream.tick(vm, 1);
        }
    }
    if with_trailers && complete {
        stream.response_trailers(vm);
    }
    match answer.end {
        End::Complete => {
            // A stream that ended in the middle of the answer is closed a little later.
            for _ in 0..10 {
                stream.tick(vm, 100);
            }
        }
        End::Aborted => stream.upstream_reset(vm),
        End::Silent => {
            let since = vm.world().now_ms;
            while !stream.is_over() && vm.world().now_ms < since + SILENCE_MS {
                let period = u64::from(vm.world().tick_ms.max(100));
                stream.tick(vm, period);
            }
        }
    }
    stream.give_up(vm);
    stream.got
}

fn pieces(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    if size == 0 {
        (!bytes.is_empty()).then_some(bytes).into_iter().collect()
    } else {
        bytes.chunks(size).collect()
    }
}
