//! Instance of the component that counts executed instructions (fuel of Wasmtime) and memory.

use std::path::PathBuf;
use std::sync::OnceLock;

use wasmtime::component::{Component, Linker, ResourceAny};
use wasmtime::{Config, Engine, ResourceLimiter, Store};

mod bindings {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::use_self)]
    wasmtime::component::bindgen!({ world: "translator", path: "creole.wit" });
}

use bindings::Translator;
use bindings::exports::creole::translate::exchanges::{End, HostCan, RequestHead};

const SMALL: &str = r#"{"model":"m","max_tokens":9,"stream":true,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"x"}],"tools":[{"name":"Tool0","input_schema":{"type":"object"}},{"name":"Tool1","input_schema":{"type":"object"}},{"name":"Tool2","input_schema":{"type":"object"}},{"name":"Tool3","input_schema":{"type":"object"}}]}"#;

/// Compiled component, loaded once for all tests.
static COMPILED: OnceLock<(Engine, Component)> = OnceLock::new();

/// Loads the component, which was compiled to count its instructions.
fn load() -> (Engine, Component) {
    let path = std::env::var_os("CREOLE_COMPONENT_COUNTING").map(PathBuf::from);
    let path = path.unwrap_or_default();
    assert!(path.is_file(), "CREOLE_COMPONENT_COUNTING names no file: cargo xtask test cost");
    let mut settings = Config::new();
    settings.consume_fuel(true);
    let engine = Engine::new(&settings).unwrap();
    // SAFETY: `cargo xtask test` has just had Wasmtime write the file, and nobody changes it.
    let component = unsafe { Component::deserialize_file(&engine, path) }.unwrap();
    (engine, component)
}

/// Largest size of an instance's memory in bytes; the memory of WebAssembly never shrinks.
#[derive(Default)]
struct Memory(usize);

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.0 = self.0.max(desired);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        _desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(true)
    }
}

/// Instance of the component, with its configuration.
pub(super) struct Instance {
    store: Store<Memory>,
    creole: Translator,
    config: ResourceAny,
}

impl Instance {
    pub(super) fn new() -> Self {
        Self::of("{}")
    }

    /// Returns an instance with this configuration.
    pub(super) fn of(config_text: &str) -> Self {
        let (engine, component) = COMPILED.get_or_init(load);
        let mut store = Store::new(engine, Memory::default());
        store.limiter(|memory| memory);
        store.set_fuel(u64::MAX).unwrap();
        let creole = Translator::instantiate(&mut store, component, &Linker::new(engine)).unwrap();
        let config = creole.creole_translate_exchanges().config();
        let config = config.call_parse(&mut store, config_text, &[]).unwrap().unwrap();
        Self { store, creole, config }
    }

    /// Returns the fuel that the instance has used so far, including its start and the reading of
    /// the configuration.
    pub(super) fn used(&self) -> u64 {
        u64::MAX - self.store.get_fuel().unwrap()
    }

    /// Returns an exchange that has the head of a request, and waits for the body.
    pub(super) fn exchange(&mut self) -> ResourceAny {
        let calls = self.creole.creole_translate_exchanges().exchange();
        let store = &mut self.store;
        let exchange =
            calls.call_constructor(&mut *store, self.config, (17, 4), HostCan::PING).unwrap();
        let headers = [("x-api-key".to_owned(), "local".to_owned())];
        let head = calls
            .call_handle_request_head(&mut *store, exchange, "POST", "/v1/messages", &headers)
            .unwrap();
        assert!(matches!(head, RequestHead::Translate));
        exchange
    }

    /// Gives an exchange its request body, and returns the id of the upstream call.
    pub(super) fn send(&mut self, exchange: ResourceAny, body: &[u8]) -> u32 {
        let calls = self.creole.creole_translate_exchanges().exchange();
        calls.call_handle_request_body(&mut self.store, exchange, body, 0).unwrap();
        let sent = calls.call_poll_call(&mut self.store, exchange, 0).unwrap().unwrap();
        assert!(sent.body.len() * 2 > body.len(), "the request is translated");
        sent.id
    }

    /// Returns the fuel for the translation of an answer that arrives in these chunks.
    pub(super) fn answer(&mut self, content_type: &str, pieces: &[&[u8]], end: bool) -> u64 {
        let exchange = self.exchange();
        let id = self.send(exchange, SMALL.as_bytes());
        let calls = self.creole.creole_translate_exchanges().exchange();
        let store = &mut self.store;
        let headers = [("content-type".to_owned(), content_type.to_owned())];
        calls.call_handle_call_head(&mut *store, exchange, id, 200, &headers, 0).unwrap();
        let before = store.get_fuel().unwrap();
        let mut written = Vec::new();
        for piece in pieces {
            calls.call_handle_call_body(&mut *store, exchange, id, piece, 0).unwrap();
            written.extend(calls.call_poll_output(&mut *store, exchange).unwrap().body);
        }
        if end {
            calls.call_handle_call_end(&mut *store, exchange, id, End::Complete, 0).unwrap();
            written.extend(calls.call_poll_output(&mut *store, exchange).unwrap().body);
        }
        let used = before - store.get_fuel().unwrap();
        let written = String::from_utf8(written).unwrap();
        let whole =
            written.contains("event: content_block_delta") && !written.contains("event: error");
        assert!(whole, "no answer: {written}");
        exchange.resource_drop(&mut *store).unwrap();
        used
    }

    /// Returns the fuel for the translation of a request.
    pub(super) fn request(&mut self, body: &[u8]) -> u64 {
        let exchange = self.exchange();
        let before = self.store.get_fuel().unwrap();
        self.send(exchange, body);
        let used = before - self.store.get_fuel().unwrap();
        exchange.resource_drop(&mut self.store).unwrap();
        used
    }

    /// Returns the largest size of the instance's memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.store.data().0
    }
}
