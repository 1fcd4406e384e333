//! The component under wasmtime: what an embedder in any language does with `wit/creole.wit`.

use std::sync::Mutex;

use serde_json::Value;
use wasmtime::component::{Component as Compiled, Linker, ResourceAny};
use wasmtime::{Engine, Store};

use crate::process::file_of;
use crate::{End, Got, Host, Seen, Trial};

mod bindings {
    #![allow(missing_docs, unused_qualifications, unreachable_pub, clippy::all, clippy::use_self)]
    wasmtime::component::bindgen!({ world: "translator", path: "../../wit/creole.wit" });
}

use bindings::Translator;
use bindings::exports::creole::translate::exchanges as wit;

const NOW: u64 = 1_790_000_000_000;

/// An instance of the component and its configuration.
pub struct Component {
    inner: Mutex<(Store<()>, Translator, ResourceAny)>,
}

impl Component {
    /// With this configuration.
    ///
    /// # Errors
    /// The variable is missing, or the component needs something: it must ask for nothing.
    pub fn new(config: &Value) -> Result<Self, String> {
        let path = file_of("CREOLE_COMPONENT")?;
        Self::start(&path, &config.to_string()).map_err(|error| format!("component: {error:?}"))
    }

    fn start(path: &std::path::Path, config: &str) -> wasmtime::Result<Self> {
        let engine = Engine::default();
        let compiled = Compiled::from_file(&engine, path)?;
        let mut store = Store::new(&engine, ());
        let translator = Translator::instantiate(&mut store, &compiled, &Linker::new(&engine))?;
        let configs = translator.creole_translate_exchanges().config();
        let config =
            configs.call_parse(&mut store, config, &[])?.unwrap_or_else(|error| panic!("{error}"));
        Ok(Self { inner: Mutex::new((store, translator, config)) })
    }
}

impl Host for Component {
    fn name(&self) -> &'static str {
        "component"
    }

    fn send(&self, trial: &Trial) -> Got {
        let mut inner = self.inner.lock().unwrap();
        let (store, translator, config) = &mut *inner;
        let exchanges = translator.creole_translate_exchanges();
        let calls = exchanges.exchange();
        let exchange = calls.call_constructor(&mut *store, *config, (0, 0x5eed), false).unwrap();
        let request = &trial.request;
        let got = (|| {
            let head = calls
                .call_handle_request_head(
                    &mut *store,
                    exchange,
                    &request.method,
                    &request.path,
                    &request.headers,
                )
                .unwrap();
            match head {
                wit::RequestHead::Translate => {}
                wit::RequestHead::Reply(reply) => return replied(reply, Vec::new()),
                wit::RequestHead::PassThrough => return passed(trial),
            }
            let sent = calls.call_handle_request(&mut *store, exchange, &request.body, NOW);
            let sent = match sent.unwrap() {
                Ok(sent) => sent,
                Err(reply) => return replied(reply, Vec::new()),
            };
            let seen = Seen {
                method: "POST".to_owned(),
                path: sent.path,
                headers: sent.headers,
                bytes: sent.body.len(),
                body: sent.body.into(),
            };
            let answer = &trial.answer;
            let decided = calls
                .call_handle_response_head(
                    &mut *store,
                    exchange,
                    answer.status,
                    &answer.headers,
                    NOW,
                )
                .unwrap();
            if decided == wit::ResponseHead::PassThrough {
                return passed(trial);
            }
            let (mut head, mut body) = (None, Vec::new());
            for piece in &answer.pieces {
                let out =
                    calls.call_handle_response_body(&mut *store, exchange, piece, NOW).unwrap();
                head = head.or(out.head);
                body.extend(out.body);
                if calls.call_is_ended(&mut *store, exchange).unwrap() {
                    break;
                }
            }
            if !calls.call_is_ended(&mut *store, exchange).unwrap() {
                let how = match answer.end {
                    End::Complete => wit::End::Complete,
                    End::Aborted | End::Silent => wit::End::Aborted,
                };
                let out = calls.call_handle_response_end(&mut *store, exchange, how, NOW).unwrap();
                head = head.or(out.head);
                body.extend(out.body);
            }
            let head = head.expect("a head");
            replied(wit::Reply { head, body }, vec![seen])
        })();
        exchange.resource_drop(store).unwrap();
        got
    }
}

fn replied(reply: wit::Reply, upstream: Vec<Seen>) -> Got {
    let wit::Reply { head, body } = reply;
    Got { status: head.status, headers: head.headers, body, end: End::Complete, upstream }
}

fn passed(trial: &Trial) -> Got {
    let answer = &trial.answer;
    Got {
        status: answer.status,
        headers: answer.headers.clone(),
        body: answer.pieces.concat(),
        end: answer.end,
        upstream: Vec::new(),
    }
}
