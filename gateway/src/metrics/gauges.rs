//! Gauges: values that are read when the metrics are asked for.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::Labels;

/// Reader of a gauge: its values with their labels. A gauge without a value is left out.
type GaugeReader = Box<dyn Fn() -> Vec<(Labels, u64)> + Send + Sync>;

/// Gauges of the process, in the order in which they are written.
#[derive(Clone, Default)]
pub(super) struct Gauges(Arc<Mutex<Vec<Gauge>>>);

/// Gauge with its name, its help text and its reader.
type Gauge = (&'static str, &'static str, GaugeReader);

impl Gauges {
    /// Adds a gauge with its name and its help text.
    pub(super) fn add(&self, name: &'static str, help: &'static str, read: GaugeReader) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, help, read));
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, read) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let values = read();
            if values.is_empty() {
                continue;
            }
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in values {
                match labels.is_empty() {
                    true => gauge.encode_gauge(&value)?,
                    false => gauge.encode_family(&labels)?.encode_gauge(&value)?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Gauges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Gauges")
    }
}
