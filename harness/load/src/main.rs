//! Load generator of `cargo xtask load`, which starts the measured proxies and passes a plan to
//! this program.
//!
//! A closed loop on hyper sends the same requests to the proxies in turn, with the demo model
//! behind all of them. Processor time is read from `/proc`, so this program needs Linux.
#![forbid(unsafe_code)]

mod bodies;
mod client;
mod cpu;
mod measure;
mod page;
mod plan;
mod plots;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::measure::Amount;
use crate::summary::Results;

#[derive(Parser)]
struct Arguments {
    /// What to measure, as JSON; without it, the page and the plots are made from the last results.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Where the results are kept.
    #[arg(long, value_name = "FILE")]
    results: PathBuf,
    /// The folder with the page `speed.md`, for its last part and the plots.
    #[arg(long, value_name = "FOLDER")]
    docs: Option<PathBuf>,
    /// How often each loop is run.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long each loop takes.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How many streams at once, in rising order.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 500, 2000])]
    streams: Vec<usize>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(plan) = &arguments.plan {
        let plan: plan::Plan = serde_json::from_str(&read(plan)?)?;
        let amount = Amount {
            rounds: arguments.rounds,
            time: Duration::from_secs(arguments.seconds),
            streams: arguments.streams.clone(),
        };
        let machine = summary::Machine::this()?;
        let runtime = tokio::runtime::Runtime::new()?;
        let rows = runtime.block_on(measure::all(&plan, &amount))?;
        let names = plan.targets.into_iter().map(|target| target.name).collect();
        let results = Results { machine, targets: names, rows };
        fs::write(&arguments.results, serde_json::to_string_pretty(&results)?)?;
    }
    let results: Results = serde_json::from_str(&read(&arguments.results)?)?;
    println!("{}", page::table(&results)?);
    if let Some(docs) = &arguments.docs {
        let path = docs.join("speed.md");
        let page = read(&path)?;
        let (own, _) = page.split_once(page::MARK).context("speed.md has no mark")?;
        fs::write(&path, format!("{own}{}\n{}", page::MARK, page::page(&results)?))?;
        plots::all(&results, &docs.join("speed"))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
