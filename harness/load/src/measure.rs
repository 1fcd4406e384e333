//! Order of the measurements: every proxy in turn, in several rounds, so that a temporary
//! disturbance of the machine affects all proxies.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::client::{self, Loop};
use crate::cpu;
use crate::plan::{Plan, Scenario, Target};

/// Number and length of the measurement loops.
#[derive(Clone, Debug)]
pub(crate) struct Amount {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    /// Numbers of concurrent streams, in rising order.
    pub(crate) streams: Vec<usize>,
}

/// Results of one loop over one proxy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) target: String,
    /// Number of the turn over all proxies. Figures are compared only within one turn.
    pub(crate) turn: usize,
    pub(crate) scenario: Scenario,
    pub(crate) clients: usize,
    pub(crate) answers: usize,
    pub(crate) failed: usize,
    /// Number of upstream chunks in the answers of the loop.
    pub(crate) chunks: usize,
    pub(crate) seconds: f64,
    /// Processor time of the proxy's process in seconds; 0 for the upstream itself.
    pub(crate) cpu_seconds: f64,
    pub(crate) first_ms: [f64; 2],
    pub(crate) whole_ms: [f64; 2],
}

impl Row {
    fn is_tired(&self) -> bool {
        count(self.failed) > FAILED_MAX * count(self.answers)
    }

    /// Returns the processor time for each request, in milliseconds.
    pub(crate) fn cpu_per_request(&self) -> f64 {
        self.cpu_seconds * 1e3 / count(self.answers.max(1))
    }

    /// Returns the processor time for each chunk, in microseconds.
    pub(crate) fn cpu_per_chunk(&self) -> f64 {
        self.cpu_seconds * 1e6 / count(self.chunks.max(1))
    }

    pub(crate) fn requests_per_second(&self) -> f64 {
        count(self.answers) / self.seconds
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}

/// Number of concurrent clients in measurements that keep the proxy busy.
pub(crate) const BUSY: usize = 8;
/// Number of concurrent streams in measurements of the time for a chunk.
pub(crate) const STREAMS: usize = 4;
/// Number of turns in a round, each with one answer for each stream. The kernel's time for a chunk
/// depends on other processes, so many short turns agree better than few long ones.
const CHUNK_TURNS: usize = 4;
/// Maximum fraction of failed requests. A proxy above it gets no more streams, and its other
/// figures do not count.
const FAILED_MAX: f64 = 0.02;

/// Runs all measurements, and reports the progress on stderr.
pub(crate) async fn all(plan: &Plan, amount: &Amount) -> Result<Vec<Row>> {
    client::teach(plan.upstream).await?;
    for target in &plan.targets {
        for scenario in Scenario::ALL {
            let warm = client::run(target, scenario, 1, Duration::ZERO).await;
            if let Some(reason) = warm.reason {
                bail!("{} does not do {scenario:?}: {reason}", target.name);
            }
        }
    }
    let mut rows = Vec::new();
    let mut turn = 0_usize;
    // Round 0 is not counted: in it V8, which runs in most of the proxies, compiles what is used
    // often.
    for round in 0..=amount.rounds {
        let chunks = [(Scenario::Chunks, STREAMS, Duration::ZERO); CHUNK_TURNS];
        let others = [
            (Scenario::First, 1, amount.time),
            (Scenario::Small, 1, amount.time),
            (Scenario::Small, BUSY, amount.time),
            (Scenario::Agent, BUSY, amount.time),
        ];
        for (scenario, clients, time) in others.into_iter().chain(chunks) {
            turn = turn.saturating_add(1);
            for target in &plan.targets {
                let row = one(target, turn, scenario, clients, time).await?;
                eprintln!("round {round}: {}", line(&row));
                // The processor time of failed requests would be counted for the answered ones.
                if row.is_tired() {
                    eprintln!("not counted: too many failed");
                } else if round > 0 {
                    rows.push(row);
                }
            }
        }
    }
    for target in &plan.targets {
        for &clients in &amount.streams {
            let row = one(target, 0, Scenario::Sweep, clients, amount.time).await?;
            eprintln!("{}", line(&row));
            let tired = row.is_tired();
            rows.push(row);
            if tired {
                break;
            }
        }
    }
    Ok(rows)
}

fn line(row: &Row) -> String {
    format!(
        "{:<28} {:?} x {:>4}: {:>6} answers, {} failed, {:.3} ms of cpu each, first word {:.1} / {:.1} ms",
        row.target,
        row.scenario,
        row.clients,
        row.answers,
        row.failed,
        row.cpu_per_request(),
        row.first_ms.first().unwrap_or(&0.0),
        row.first_ms.last().unwrap_or(&0.0),
    )
}

async fn one(
    target: &Target,
    turn: usize,
    scenario: Scenario,
    clients: usize,
    time: Duration,
) -> Result<Row> {
    let used = |pid: Option<u32>| pid.map_or(Ok(Duration::ZERO), cpu::used);
    let before = used(target.pid)?;
    let since = Instant::now();
    let done = client::run(target, scenario, clients, time).await;
    let seconds = since.elapsed().as_secs_f64();
    let cpu = used(target.pid)?.saturating_sub(before);
    let Loop { answers, failed, reason } = done;
    if let Some(reason) = reason {
        eprintln!("{}: {reason}", target.name);
    }
    let first = answers.iter().map(|answer| answer.first).collect();
    let whole = answers.iter().map(|answer| answer.whole).collect();
    Ok(Row {
        target: target.name.clone(),
        turn,
        scenario,
        clients,
        answers: answers.len(),
        failed,
        chunks: answers.len().saturating_mul(scenario.chunks()),
        seconds,
        cpu_seconds: cpu.as_secs_f64(),
        first_ms: percentiles(first),
        whole_ms: percentiles(whole),
    })
}

/// Returns the median and the 99th percentile of times, in milliseconds.
fn percentiles(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort_unstable();
    let at = |hundredth: usize| {
        let index = times.len().saturating_sub(1).saturating_mul(hundredth).div_euclid(100);
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    [at(50), at(99)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times = (1..=101).rev().map(Duration::from_millis).collect();
        assert_eq!(percentiles(times), [51.0, 100.0]);
        assert_eq!(percentiles(Vec::new()), [0.0, 0.0]);
    }
}
