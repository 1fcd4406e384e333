//! Environment of the isolate: variables and secrets, the clock, and randomness.

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

/// Number of subrequests that Cloudflare's free plan allows for one request.
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
    /// Maximum number of calls that one request may make.
    pub(crate) calls_max: u32,
    /// Check of the callers of a Worker on a developer's own machine; `None` if clients
    /// authenticate with keys.
    callers: Option<Rc<Callers>>,
}

thread_local! {
    static ISOLATE: OnceCell<Option<Isolate>> = const { OnceCell::new() };
}

impl Isolate {
    /// Returns the isolate's state; the first request reads the configuration. Returns `None` if
    /// the configuration is invalid, after logging the error. Variables belong to a deployment, and
    /// each deployment has isolates of its own.
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

    /// Returns the reason to refuse a request that a web page of another host may have sent, or
    /// `None`. A Worker at Cloudflare (requests have `cf.colo`, or use HTTPS) accepts any host
    /// name.
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

/// Returns the maximum number of subrequests for one request, which depends on the Cloudflare plan.
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

/// Returns true if the request has `cf.colo`, the Cloudflare data centre that received the request.
pub(crate) fn has_colo(request: &Request) -> bool {
    let cf = Reflect::get(request, &"cf".into()).ok().filter(JsValue::is_object);
    let colo = cf.and_then(|cf| Reflect::get(&cf, &"colo".into()).ok());
    colo.is_some_and(|colo| colo.is_string())
}

/// Returns true if clients can use the operator's upstream key without a key of their own.
fn is_open(config: &Config) -> bool {
    let has_secrets = config.upstreams.values().any(Upstream::has_secrets);
    has_secrets && config.client_keys.is_empty() && config.settings.log >= Log::Warn
}

fn variable(env: &JsValue, name: &str) -> Option<Variable> {
    // Inherited properties such as `toString` are no variables.
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

/// Returns the time in Unix milliseconds. A Worker's clock stands still during computation.
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

/// Returns a random seed for an exchange.
pub(crate) fn seed() -> u128 {
    let mut bytes = [0; 16];
    // `random_values` cannot fail for so few bytes. If it did, the clock is better than equal ids.
    match CRYPTO.with(|crypto| crypto.random_values(&mut bytes)) {
        Ok(_) => u128::from_be_bytes(bytes),
        Err(_) => now().into(),
    }
}
