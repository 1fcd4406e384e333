//! What a translation costs, as a ratio to its floor: reading the same bytes with
//! `serde_json::de::IgnoredAny` and copying them once.
//!
//! Both are measured in the same run, alternately, as processor time of this thread; the medians of
//! the ratios are printed. So a busy machine disturbs little. Columns: nanoseconds for a request,
//! an answer or a chunk; the same for each byte; the ratio to the floor; and how often as long it
//! takes to build a `serde_json::Value` and write it back.
//!
//! Arguments are parts of names of cases. `--once CASE SIDE` does the work of one side once, for a
//! profiler that counts instructions.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark fails by panicking"
)]

mod bodies;
mod cases;

use std::sync::Arc;
use std::time::Duration;

use cases::{CASES, Case, Side};
use cpu_time::ThreadTime;
use creole::Config;

/// The marker between preparing and measuring, for counters of instructions.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// How long one side takes for its work, done so many times, without the preparation.
fn run(case: &Case, side: Side, config: &Arc<Config>, times: usize) -> Duration {
    let mut out = Vec::new();
    let mut prepared = case.prepare(side, config, times);
    let start = ThreadTime::now();
    for at in 0..times {
        match prepared.get_mut(at) {
            Some(exchange) => measured(|| case.translate(exchange, &mut out)),
            None if side == Side::Floor => measured(|| case.floor(&mut out)),
            None => measured(|| case.value()),
        }
    }
    start.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let config = Arc::new(Config::from_json("{}", |_| None).unwrap());
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [once, name, side] = arguments.as_slice()
        && once == "--once"
    {
        let (name, make) = CASES.iter().find(|(known, _)| known == name).expect("a case");
        let side = match side.as_str() {
            "floor" => Side::Floor,
            "creole" => Side::Creole,
            _ => Side::Value,
        };
        let case = make(name);
        case.check(&config);
        run(&case, side, &config, 1);
        return;
    }
    println!("{:<20} {:>12} {:>8} {:>13} {:>13}", "", "ns", "ns/byte", "to floor", "Value to it");
    for (name, make) in CASES {
        if arguments.iter().any(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let case = make(name);
        case.check(&config);
        // So long that the clock is exact, and so often that medians are.
        let times = (200_000 / case.bytes()).max(1);
        let rounds = (60_000_000 / case.bytes() / times).clamp(5, 101);
        let (mut cost, mut to_floor, mut to_value) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let side = |side| run(&case, side, &config, times).as_secs_f64();
            let (floor, creole, value) = (side(Side::Floor), side(Side::Creole), side(Side::Value));
            cost.push(creole / times as f64);
            to_floor.push(creole / floor);
            to_value.push(value / creole);
        }
        let nanoseconds = median(cost) * 1e9;
        println!(
            "{:<20} {:>12.0} {:>8.3} {:>12.2}x {:>12.2}x",
            case.name,
            nanoseconds / case.texts.len() as f64,
            nanoseconds / case.bytes() as f64,
            median(to_floor),
            median(to_value)
        );
    }
}
