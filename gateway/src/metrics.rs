//! Metrics at `/metrics` for Prometheus: the samples of exchanges, by the core's table.

mod gauges;
mod process;
mod text;

use std::sync::{Mutex, PoisonError};

use creole::Millis;
use creole::config::Config;
use creole::observe::metrics::{BUCKETS, Counters, METRICS, Metric, MetricKind, Sample};
use creole::observe::report::Report;
use hyper::Response;
use hyper::header::{self, HeaderMap, HeaderValue};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use gauges::Gauges;

/// URL path of the metrics.
pub(crate) const PATH: &str = "/metrics";

/// Name of the metric that identifies a gateway. OpenMetrics adds `_info` to the name.
pub(crate) const NAME: &str = "creole_gateway";

/// Media type of the OpenMetrics format, for which a collector asks in `accept`.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// Content types of a response in the OpenMetrics format and in the text format of Prometheus.
const CONTENT_TYPES: [&str; 2] = [
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "text/plain; version=0.0.4; charset=utf-8",
];

type Labels = Vec<(&'static str, String)>;

/// Metrics of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    sums: Vec<(&'static Metric, Sum)>,
    gauges: Gauges,
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
        let gauges = Gauges::default();
        registry.register_collector(Box::new(gauges.clone()));
        let metrics = Self { registry, sums, gauges, counted: Mutex::default() };
        process::add(&metrics);
        metrics
    }

    /// Adds a gauge, whose value is read when the metrics are asked for. Without a value, the gauge
    /// is left out.
    pub(crate) fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) {
        let read = move || read().map(|value| (Labels::new(), value)).into_iter().collect();
        self.gauges.add(name, help, Box::new(read));
    }

    /// Adds a gauge with a value for each upstream.
    pub(crate) fn gauge_of_upstreams(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> Vec<(String, u64)> + Send + Sync + 'static,
    ) {
        let labelled = |(upstream, value)| (vec![("upstream", upstream)], value);
        self.gauges.add(name, help, Box::new(move || read().into_iter().map(labelled).collect()));
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

    /// Returns the HTTP response with all metrics: in the OpenMetrics format if the sender of
    /// `headers` asks for it, else as text.
    pub(crate) fn response(&self, headers: &HeaderMap) -> Response<String> {
        let mut accepted = headers.get_all(header::ACCEPT).iter();
        let is_open =
            accepted.any(|value| value.to_str().is_ok_and(|value| value.contains(OPEN_METRICS)));
        let [open, plain] = CONTENT_TYPES;
        let (body, content_type) = match is_open {
            true => (self.render(), open),
            false => (text::of_open_metrics(&self.render()), plain),
        };
        let mut response = Response::new(body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
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
