//! Summary of the measurements: medians over the turns, and ratios of results from the same turn.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::measure::{BUSY, Row, STREAMS};
use crate::plan::Scenario;

/// Results of a run, as stored in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) targets: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// Machine on which the measurements ran.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    /// Load average of the minute before the run. If it is not far below 1, other work disturbed
    /// the measurements.
    pub(crate) load: String,
}

impl Machine {
    pub(crate) fn this() -> Result<Self> {
        let info = fs::read_to_string("/proc/cpuinfo")?;
        let model = info.lines().find(|line| line.starts_with("model name"));
        let processor = model.and_then(|line| line.split_once(": ")).map(|(_, name)| name.trim());
        let load = fs::read_to_string("/proc/loadavg")?;
        Ok(Self {
            processor: processor.unwrap_or("an unknown processor").to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        })
    }
}

/// Figure of a proxy that is compared with the same figure of other proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Processor time of a short request, in milliseconds.
    CpuSmall,
    /// Processor time of a coding agent's request, in milliseconds.
    CpuAgent,
    /// Processor time of a chunk, in microseconds.
    CpuChunk,
    /// Number of short requests per second.
    Rate,
    /// Time until a short request is answered, in milliseconds.
    Whole,
    Whole99,
    /// Time until a stream's first word, in milliseconds.
    First,
    First99,
}

impl Metric {
    fn of(self, row: &Row) -> Option<f64> {
        let here = |scenario, clients| row.scenario == scenario && row.clients == clients;
        let [first, first99] = row.first_ms;
        let [whole, whole99] = row.whole_ms;
        match self {
            Self::CpuSmall => here(Scenario::Small, BUSY).then(|| row.cpu_per_request()),
            Self::Rate => here(Scenario::Small, BUSY).then(|| row.requests_per_second()),
            Self::CpuAgent => here(Scenario::Agent, BUSY).then(|| row.cpu_per_request()),
            Self::CpuChunk => here(Scenario::Chunks, STREAMS).then(|| row.cpu_per_chunk()),
            Self::Whole => here(Scenario::Small, 1).then_some(whole),
            Self::Whole99 => here(Scenario::Small, 1).then_some(whole99),
            Self::First => here(Scenario::First, 1).then_some(first),
            Self::First99 => here(Scenario::First, 1).then_some(first99),
        }
    }
}

impl Results {
    /// Returns a figure of a proxy for each turn, without turns in which the figure does not count.
    fn turns(&self, target: &str, metric: Metric) -> BTreeMap<usize, f64> {
        let own = self.rows.iter().filter(|row| row.target == target);
        own.filter_map(|row| Some((row.turn, metric.of(row)?))).collect()
    }

    /// Returns the number of times that every proxy was measured.
    pub(crate) fn times(&self) -> usize {
        let counts = self.targets.iter().map(|name| self.turns(name, Metric::CpuSmall).len());
        counts.min().unwrap_or_default()
    }

    /// Returns the median of a figure; `None` if the proxy was not measured.
    pub(crate) fn median(&self, target: &str, metric: Metric) -> Option<f64> {
        median(self.turns(target, metric).into_values().collect())
    }

    /// Returns the median, over all turns, of the ratio between two proxies.
    pub(crate) fn ratio(&self, target: &str, to: &str, metric: Metric) -> Option<f64> {
        self.compare(target, to, metric, |a, b| a / b)
    }

    /// Returns the median, over all turns, of the difference of `metric` between two proxies.
    pub(crate) fn added(&self, target: &str, to: &str, metric: Metric) -> Option<f64> {
        self.compare(target, to, metric, |a, b| a - b)
    }

    fn compare(
        &self,
        target: &str,
        to: &str,
        metric: Metric,
        how: fn(f64, f64) -> f64,
    ) -> Option<f64> {
        let (own, other) = (self.turns(target, metric), self.turns(to, metric));
        let both = own.into_iter().filter_map(|(turn, a)| Some(how(a, *other.get(&turn)?)));
        median(both.collect())
    }

    /// Returns the results of one proxy with rising numbers of streams.
    pub(crate) fn sweep<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a Row> {
        let own = self.rows.iter().filter(move |row| row.target == target);
        own.filter(|row| row.scenario == Scenario::Sweep && row.answers > 0)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len().div_euclid(2)).copied()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the results of two proxies in three rounds. The second proxy takes twice as much,
    /// and once four times.
    pub(crate) fn results() -> Results {
        let row = |target: &str, turn, scenario, clients, cpu_seconds| Row {
            target: target.to_owned(),
            turn,
            scenario,
            clients,
            answers: 100,
            failed: 0,
            chunks: 1000,
            seconds: 5.0,
            cpu_seconds,
            first_ms: [1.0, cpu_seconds],
            whole_ms: [1.0, 2.0],
        };
        let mut rows = Vec::new();
        for (turn, own, other) in [(1, 1.0, 2.0), (2, 2.0, 4.0), (3, 1.0, 4.0)] {
            for (target, cpu) in [("a", own), ("b", other)] {
                rows.push(row(target, turn, Scenario::Small, BUSY, cpu));
                rows.push(row(target, turn, Scenario::Chunks, STREAMS, cpu));
                rows.push(row(target, 0, Scenario::Sweep, 10, cpu));
            }
        }
        let machine =
            Machine { processor: "A processor".to_owned(), cores: 2, load: "0.10".to_owned() };
        Results { machine, targets: vec!["a".to_owned(), "b".to_owned()], rows }
    }

    #[test]
    fn what_failed_in_a_turn_is_compared_with_nothing() {
        let mut results = results();
        results.rows.retain(|row| row.target == "b" || row.turn != 1);
        assert_eq!(results.added("b", "a", Metric::CpuChunk), Some(3000.0));
        results.rows.retain(|row| row.target == "b");
        assert_eq!(results.ratio("b", "a", Metric::CpuChunk), None);
    }

    #[test]
    fn ratios_are_taken_in_each_turn_and_then_their_median() {
        let results = results();
        assert_eq!(results.ratio("b", "a", Metric::CpuSmall), Some(2.0));
        assert_eq!(results.times(), 3);
        assert_eq!(results.median("a", Metric::CpuSmall), Some(10.0));
        assert_eq!(results.added("b", "a", Metric::CpuChunk), Some(2000.0));
        assert_eq!(results.median("c", Metric::CpuSmall), None);
        assert_eq!(results.median("a", Metric::Whole), None);
    }
}
