//! Host: the WebAssembly component under wasmtime, used as an embedder in any language uses
//! `wit/creole.wit`.

use std::sync::{Mutex, OnceLock};

use creole::{Call, CallId, End, Head, Millis, RequestHead, To};
use serde_json::Value;
use wasmtime::component::{Component as Compiled, Linker, ResourceAny};
use wasmtime::{Engine, Store};

use crate::process::file_of;
use crate::seam::{self, Seam};
use crate::{Got, Header, Host, Trial};

mod bindings {
    #![allow(missing_docs, unused_qualifications, unreachable_pub, clippy::all, clippy::use_self)]
    wasmtime::component::bindgen!({ world: "translator", path: "../../wit/creole.wit" });
}

use bindings::Translator;
use bindings::exports::creole::translate::exchanges as wit;

/// Instance of the component, with its configuration.
pub struct Component {
    inner: Mutex<(Store<()>, Translator, ResourceAny)>,
}

impl Component {
    /// Starts the component with this configuration.
    ///
    /// # Errors
    /// The environment variable for the component's file is missing, or the component has imports,
    /// which it must not have.
    pub fn new(config: &Value) -> Result<Self, String> {
        Self::start(compiled()?, &config.to_string())
            .map_err(|error| format!("component: {error:?}"))
    }

    fn start(compiled: &Compiled, config: &str) -> wasmtime::Result<Self> {
        let engine = compiled.engine();
        let mut store = Store::new(engine, ());
        let translator = Translator::instantiate(&mut store, compiled, &Linker::new(engine))?;
        let configs = translator.creole_translate_exchanges().config();
        let config =
            configs.call_parse(&mut store, config, &[])?.unwrap_or_else(|error| panic!("{error}"));
        Ok(Self { inner: Mutex::new((store, translator, config)) })
    }
}

/// Returns the compiled component, loaded once per process.
fn compiled() -> Result<&'static Compiled, String> {
    static COMPILED: OnceLock<Result<Compiled, String>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let path = file_of("CREOLE_COMPONENT_COMPILED")?;
        // SAFETY: `cargo xtask test` has just had Wasmtime write the file, and nobody changes it.
        let loaded = unsafe { Compiled::deserialize_file(&Engine::default(), path) };
        loaded.map_err(|error| format!("{error:?}"))
    });
    compiled.as_ref().map_err(Clone::clone)
}

impl Host for Component {
    fn name(&self) -> &'static str {
        "component"
    }

    fn send(&self, trial: &Trial) -> Got {
        let mut inner = self.inner.lock().unwrap();
        let (store, translator, config) = &mut *inner;
        let calls = translator.creole_translate_exchanges().exchange();
        let can = wit::HostCan::empty();
        let exchange = calls.call_constructor(&mut *store, *config, (0, 0x5eed), can).unwrap();
        let got = seam::send(&mut Exchange { store, calls, exchange }, trial);
        exchange.resource_drop(store).unwrap();
        got
    }
}

/// Resource `exchange` of the component.
struct Exchange<'a> {
    store: &'a mut Store<()>,
    calls: wit::GuestExchange<'a>,
    exchange: ResourceAny,
}

impl Seam for Exchange<'_> {
    fn handle_request_head(&mut self, method: &str, path: &str, headers: &[Header]) -> RequestHead {
        let Self { store, calls, exchange } = self;
        let head = calls.call_handle_request_head(store, *exchange, method, path, headers);
        match head.unwrap() {
            wit::RequestHead::Translate => RequestHead::Translate,
            wit::RequestHead::Answered => RequestHead::Answered,
            wit::RequestHead::PassThrough => RequestHead::PassThrough,
        }
    }

    fn handle_request_body(&mut self, body: &[u8], now: Millis) {
        let Self { store, calls, exchange } = self;
        calls.call_handle_request_body(store, *exchange, body, now).unwrap();
    }

    fn handle_call_head(&mut self, id: CallId, status: u16, headers: &[Header], now: Millis) {
        let Self { store, calls, exchange } = self;
        calls.call_handle_call_head(store, *exchange, id.0, status, headers, now).unwrap();
    }

    fn handle_call_body(&mut self, id: CallId, piece: &[u8], now: Millis) {
        let Self { store, calls, exchange } = self;
        calls.call_handle_call_body(store, *exchange, id.0, piece, now).unwrap();
    }

    fn handle_call_end(&mut self, id: CallId, how: End, now: Millis) {
        let Self { store, calls, exchange } = self;
        let how = match how {
            End::Complete => wit::End::Complete,
            End::Aborted => wit::End::Aborted,
        };
        calls.call_handle_call_end(store, *exchange, id.0, how, now).unwrap();
    }

    fn handle_timeout(&mut self, now: Millis) {
        let Self { store, calls, exchange } = self;
        calls.call_handle_timeout(store, *exchange, now).unwrap();
    }

    fn poll_call(&mut self, now: Millis) -> Option<Call> {
        let Self { store, calls, exchange } = self;
        let call = calls.call_poll_call(store, *exchange, now).unwrap()?;
        let wit::Call { id, upstream, path, headers, body, .. } = call;
        Some(Call { id: CallId(id), to: To::Upstream(upstream), path, headers, body })
    }

    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Head> {
        let Self { store, calls, exchange } = self;
        let output = calls.call_poll_output(store, *exchange).unwrap();
        out.extend(output.body);
        output.head.map(|head| Head { status: head.status, headers: head.headers })
    }

    fn poll_timeout(&mut self) -> Option<Millis> {
        self.calls.call_poll_timeout(&mut *self.store, self.exchange).unwrap()
    }

    fn is_ended(&mut self) -> bool {
        self.calls.call_is_ended(&mut *self.store, self.exchange).unwrap()
    }
}
