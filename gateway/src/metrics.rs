//! Metrics at `/metrics` for Prometheus: the samples of exchanges, by the core's table.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use creole::Millis;
use creole::config::Config;
use creole::observe::metrics::{BUCKETS, Counters, METRICS, Metric, MetricKind, Sample};
use creole::observe::report::Report;
use hyper::Response;
use hyper::header::{self, HeaderValue};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// URL path of the metrics.
pub(crate) const PATH: &str = "/metrics";

/// Name of the metric that identifies a gateway. OpenMetrics adds `_info` to the name.
pub(crate) const NAME: &str = "creole_gateway";

/// Name of the metric for the memory of requests.
const HELD: &str = "creole_gateway_held_bytes";

/// Names of the metrics for the configuration.
const CONFIG_LOADED: &str = "creole_gateway_config_loaded_timestamp_seconds";
const CONFIG_FAILED: &str = "creole_gateway_config_reload_failed";

/// Content type of a response in the OpenMetrics format.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;

/// Metrics of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    sums: Vec<(&'static Metric, Sum)>,
    /// Memory that requests hold, in bytes.
    held: Gauge,
    /// Time at which the configuration in use was loaded, in seconds of Unix time.
    config_loaded: Gauge,
    /// 1 if the last reading of the configuration failed.
    config_failed: Gauge,
    counted: Mutex<ModelCounters>,
}

/// Counters of model names, with which the number of label values is bounded.
#[derive(Debug, Default)]
struct ModelCounters {
    counters: Counters,
    /// Metrics and labels with model names, which are removed when a name loses its label.
    of_models: Vec<(&'static str, Labels)>,
}

/// Metric with the values for all of its label sets.
#[derive(Clone, Debug)]
enum Sum {
    Counter(Family<Labels, Counter>),
    Histogram(Family<Labels, Histogram>),
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS.map(|bound| bound as f64))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let register = |(metric, help): &'static (Metric, &str)| {
            (metric, register(metric, help, &mut registry))
        };
        let sums = METRICS.iter().map(register).collect();
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register(NAME, "Which gateway this is", Info::new(version));
        let held = Gauge::default();
        registry.register(HELD, "Memory of requests, of buffered_bytes_max", held.clone());
        let (config_loaded, config_failed) = (Gauge::default(), Gauge::default());
        let help = "When the configuration in use was loaded, in seconds of Unix time";
        registry.register(CONFIG_LOADED, help, config_loaded.clone());
        let help =
            "1 if the last reading of the configuration failed, so that the one before is in use";
        registry.register(CONFIG_FAILED, help, config_failed.clone());
        Self { registry, sums, held, config_loaded, config_failed, counted: Mutex::default() }
    }

    /// Notes that a configuration was loaded now.
    pub(crate) fn loaded(&self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.config_loaded.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        self.config_failed.set(0);
    }

    /// Notes that a configuration was read and cannot be used.
    pub(crate) fn not_loaded(&self) {
        self.config_failed.set(1);
    }

    /// Adds the samples of a finished exchange to the metrics.
    pub(crate) fn count(&self, report: &Report, config: &Config, now: Millis) {
        // The counters stay usable if another thread panicked.
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let ModelCounters { counters, of_models } = &mut *counted;
        let model = config.models.entry(&report.model);
        counters.count(report, model, now, |sample| self.add(&sample, of_models));
        for label in counters.take_given_up() {
            for (name, labels) in of_models.extract_if(.., |(_, labels)| labels.contains(&label)) {
                if let Some(Sum::Counter(family)) = self.sum(name) {
                    family.remove(&labels);
                }
            }
        }
    }

    fn sum(&self, name: &str) -> Option<&Sum> {
        self.sums.iter().find(|(metric, _)| metric.name == name).map(|(_, sum)| sum)
    }

    fn add(&self, sample: &Sample<'_>, of_models: &mut Vec<(&'static str, Labels)>) {
        let Some(sum) = self.sum(sample.metric.name) else { return };
        let labels: Labels = sample.pairs().map(|(name, value)| (name, value.to_owned())).collect();
        match sum {
            Sum::Counter(family) => {
                if let Some(counter) = family.get(&labels) {
                    counter.inc_by(sample.value);
                    return;
                }
                if labels.iter().any(|(name, _)| *name == "model") {
                    of_models.push((sample.metric.name, labels.clone()));
                }
                family.get_or_create(&labels).inc_by(sample.value);
            }
            Sum::Histogram(family) => family.get_or_create(&labels).observe(sample.value as f64),
        }
    }

    /// Returns the HTTP response with all metrics in the OpenMetrics format. `held_bytes`: the
    /// memory that requests hold.
    pub(crate) fn response(&self, held_bytes: usize) -> Response<String> {
        self.held.set(i64::try_from(held_bytes).unwrap_or(i64::MAX));
        let mut response = Response::new(self.render());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        response
    }

    fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn register(metric: &Metric, help: &str, registry: &mut Registry) -> Sum {
    // The registry adds `_total` to the names of counters, and a full stop to help texts.
    let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
    match metric.kind {
        MetricKind::Counter => {
            let family = Family::default();
            registry.register(name, help, family.clone());
            Sum::Counter(family)
        }
        MetricKind::Histogram => {
            let family = Family::new_with_constructor(histogram as fn() -> Histogram);
            registry.register(name, help, family.clone());
            Sum::Histogram(family)
        }
    }
}

#[cfg(test)]
mod tests;
