//! Metrics in Cloudflare's Analytics Engine: a data point for each exchange, if the Worker has a
//! binding for a dataset.
//!
//! Analytics Engine identifies columns by position, so their order is an interface: new columns go
//! to the end. `docs/cloudflare.md` lists the columns.

use creole::Millis;
use creole::config::Config;
use creole::observe::metrics::{self, Counters};
use creole::observe::report::Report;
use wasm_bindgen::prelude::*;
use worker::js_sys::{Array, Function, Object, Reflect};

/// Name of the Worker's binding for the dataset of Analytics Engine.
const BINDING: &str = "CREOLE_METRICS";

/// Dataset of Analytics Engine, to which data points are written.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    binding: JsValue,
    write: Function,
}

impl Dataset {
    pub(crate) fn of(env: &JsValue) -> Option<Self> {
        let binding = Reflect::get(env, &BINDING.into()).ok()?;
        let write = Reflect::get(&binding, &"writeDataPoint".into()).ok()?;
        Some(Self { binding, write: write.dyn_into().ok()? })
    }

    /// Writes a finished exchange to the dataset. Errors are ignored, because metrics must not
    /// disturb the client's answer.
    pub(crate) fn write(
        &self,
        report: &Report,
        config: &Config,
        counters: &mut Counters,
        now: Millis,
    ) {
        let model = counters.model(report, config.models.entry(&report.model));
        // The dataset has no counters of model names that would have to be removed.
        drop(counters.take_given_up());
        let texts = [
            metrics::outcome(report),
            report.cause(),
            &model,
            &report.upstream,
            &report.warnings.header().unwrap_or_default(),
            &report.warnings.guards().join(","),
        ];
        // `requested_at` is 0 if the exchange was answered before its body was read.
        let asked_at = Some(report.requested_at).filter(|at| *at > 0);
        let since = |at: Option<Millis>| {
            at.zip(asked_at).map_or(0, |(at, asked)| at.saturating_sub(asked)) as f64
        };
        let answer = &report.answer;
        let numbers = [
            f64::from(report.status),
            since(report.ended_at.or(Some(now))),
            since(report.head_at),
            since(report.content_at),
            answer.input_tokens as f64,
            answer.cache_read_tokens as f64,
            answer.cache_creation_tokens as f64,
            answer.output_tokens as f64,
            answer.thinking_tokens as f64,
            f64::from(answer.tool_calls),
            f64::from(report.counts.new_results),
            answer.chunks as f64,
            report.request_bytes as f64,
            report.upstream_request_bytes as f64,
            report.upstream_response_bytes as f64,
            report.response_bytes as f64,
        ];
        let point = Object::new();
        for (key, values) in [
            // Analytics Engine samples by this index: the exchanges of one upstream together.
            ("indexes", Array::of1(&report.upstream.as_str().into())),
            ("blobs", texts.into_iter().map(JsValue::from).collect()),
            ("doubles", numbers.into_iter().map(JsValue::from).collect()),
        ] {
            let _ = Reflect::set(&point, &key.into(), &values);
        }
        if self.write.call1(&self.binding, &point).is_err() {
            worker::console_warn!("{BINDING}: the data point was refused");
        }
    }
}
