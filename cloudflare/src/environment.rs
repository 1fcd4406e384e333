//! The isolate's environment: variables and secrets, the clock, randomness.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use creole::callers::{Callers, is_loopback};
use creole::config::{Log, Upstream};
use creole::observe::log::RefusedLines;
use creole::observe::metrics::Counters;
use creole::text::words;
use creole::{Config, Header, Millis, Refusals};
use wasm_bindgen::prelude::*;
use worker::js_sys::{Date, JSON, Object, Reflect};
use worker::web_sys::Request;

use crate::analytics::Dataset;
use crate::budget::Budget;
use crate::configure::{self, Variable};

/// Calls that the free plan allows for one request.
const CALLS_MAX: u32 = 50;

/// State that all requests of the isolate share.
#[derive(Clone)]
pub(crate) struct Isolate {
    pub(crate) config: Arc<Config>,
    pub(crate) budget: Budget,
    pub(crate) dataset: Option<Dataset>,
    pub(crate) counters: Rc<RefCell<Counters>>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) refused_lines: Rc<RefCell<RefusedLines>>,
    /// Calls that one request may make.
    pub(crate) calls_max: u32,
    /// Callers of a Worker on one's own machine; `None` where clients have keys.
    callers: Option<Rc<Callers>>,
}

thread_local! {
    static ISOLATE: OnceCell<Option<Isolate>> = const { OnceCell::new() };
}

impl Isolate {
    /// Reads the configuration at the first request: variables belong to a deployment, and each
    /// deployment has isolates of its own. `None`: it cannot be used, and the log says why.
    pub(crate) fn of(env: &JsValue) -> Option<Self> {
        ISOLATE.with(|isolate| {
            isolate
                .get_or_init(|| {
                    let config = configure::read(|name| variable(env, name));
                    match &config {
                        Ok(config) if is_open(config) => worker::console_warn!(
                            "whoever knows this Worker's address can use its key: give clients keys (CLIENT_KEY, \
                             client_keys), or put a proxy that authenticates in front"
                        ),
                        Ok(_) => {}
                        Err(error) => worker::console_error!("{error}"),
                    }
                    config.ok().map(|config| Self {
                        calls_max: calls_max(env),
                        callers: config.client_keys.is_empty().then(|| callers(env).into()),
                        budget: Budget::new(config.settings.buffered_bytes_max),
                        config: config.into(),
                        dataset: Dataset::of(env),
                        counters: Rc::default(),
                        refusals: Arc::default(),
                        refused_lines: Rc::default(),
                    })
                })
                .clone()
        })
    }

    /// Returns why a request is not answered: a web page of another host may have sent it. A Worker
    /// at Cloudflare, whose requests have `cf.colo` or come by HTTPS, is called by any name.
    pub(crate) fn refuse(
        &self,
        request: &Request,
        url: &str,
        headers: &[Header],
    ) -> Option<&'static str> {
        let callers = self.callers.as_ref()?;
        let (scheme, rest) = words::split_once(url, "://")?;
        let authority = words::before(rest, b"/?#");
        let is_public = || scheme != "http" || has_colo(request);
        if !is_loopback(authority) && is_public() {
            return None;
        }
        let headers = headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        callers.refuse(Some(authority), headers)
    }
}

/// Returns Cloudflare's limit of subrequests, which differs between plans.
fn calls_max(env: &JsValue) -> u32 {
    match variable(env, "SUBREQUESTS_MAX") {
        Some(Variable::Text(text) | Variable::Json(text)) => text.trim().parse().ok(),
        None => None,
    }
    .unwrap_or(CALLS_MAX)
}

fn callers(env: &JsValue) -> Callers {
    match variable(env, "ALLOWED_HOSTS") {
        Some(Variable::Text(hosts)) => Callers::of_variable(Some(&hosts)),
        _ => Callers::of_variable(None),
    }
}

/// Returns true if Cloudflare says in which of its places a request came in.
pub(crate) fn has_colo(request: &Request) -> bool {
    let cf = Reflect::get(request, &"cf".into()).ok().filter(JsValue::is_object);
    let colo = cf.and_then(|cf| Reflect::get(&cf, &"colo".into()).ok());
    colo.is_some_and(|colo| colo.is_string())
}

/// Returns true if everybody uses a key of the operator's.
fn is_open(config: &Config) -> bool {
    let has_secrets = config.upstreams.values().any(Upstream::has_secrets);
    has_secrets && config.client_keys.is_empty() && config.settings.log >= Log::Warn
}

fn variable(env: &JsValue, name: &str) -> Option<Variable> {
    // `toString` and others, which every object inherits, are no variables.
    if !Object::has_own(env.unchecked_ref::<Object>(), &name.into()) {
        return None;
    }
    let value = Reflect::get(env, &name.into()).ok()?;
    if value.is_undefined() || value.is_null() {
        return None;
    }
    match value.as_string() {
        Some(text) => Some(Variable::Text(text)),
        None => JSON::stringify(&value).ok().map(String::from).map(Variable::Json),
    }
}

/// Returns the time in Unix milliseconds. The clock of a Worker stands still while it computes.
pub(crate) fn now() -> Millis {
    Date::now() as Millis
}

#[wasm_bindgen]
extern "C" {
    type Crypto;

    #[wasm_bindgen(thread_local_v2, js_namespace = globalThis, js_name = crypto)]
    static CRYPTO: Crypto;

    #[wasm_bindgen(method, catch, js_name = getRandomValues)]
    fn random_values(this: &Crypto, bytes: &mut [u8]) -> Result<JsValue, JsValue>;
}

/// Returns a seed for an exchange.
pub(crate) fn seed() -> u128 {
    let mut bytes = [0; 16];
    // It has no way to fail for so few bytes. Should it, the clock is better than equal ids.
    match CRYPTO.with(|crypto| crypto.random_values(&mut bytes)) {
        Ok(_) => u128::from_be_bytes(bytes),
        Err(_) => now().into(),
    }
}
