//! Tables of the results: on the terminal, and in the generated part of `docs/speed.md`.

use std::fmt::Write as _;

use anyhow::Result;

use crate::summary::{Metric, Results};

/// Names of the proxies that the page discusses, as `cargo xtask load` assigns them.
const ENVOY: &str = "Envoy";
const DRAIN: &str = "Envoy, drain and emit";
pub(crate) const CREOLE: &str = "Envoy, Creole";
const GATEWAY: &str = "gateway, Creole";
const PASS: &str = "workerd, pass-through";
const WORKER: &str = "workerd, Creole";
const LITELLM: &str = "LiteLLM";
const ROUTER: &str = "claude-code-router";

/// Returns a table of the absolute figures, to be printed in a terminal.
pub(crate) fn table(results: &Results) -> Result<String> {
    let mut text = format!(
        "{:<24} {:>10} {:>10} {:>10} {:>8} {:>7} {:>7} {:>7} {:>7}\n{:<24} {:>10} {:>10} {:>10} {:>8} {:>7} {:>7} {:>7} {:>7}\n",
        "",
        "cpu/small",
        "cpu/100kB",
        "cpu/chunk",
        "small",
        "whole",
        "whole",
        "first",
        "first",
        "",
        "ms",
        "ms",
        "µs",
        "1/s",
        "p50 ms",
        "p99 ms",
        "p50 ms",
        "p99 ms",
    );
    for target in &results.targets {
        let get = |metric| match results.median(target, metric) {
            Some(value) => format!("{value:.3}"),
            None => "-".to_owned(),
        };
        let short = |metric| match results.median(target, metric) {
            Some(value) => format!("{value:.1}"),
            None => "-".to_owned(),
        };
        writeln!(
            text,
            "{target:<24} {:>10} {:>10} {:>10} {:>8} {:>7} {:>7} {:>7} {:>7}",
            get(Metric::CpuSmall),
            get(Metric::CpuAgent),
            short(Metric::CpuChunk),
            short(Metric::Rate),
            short(Metric::Whole),
            short(Metric::Whole99),
            short(Metric::First),
            short(Metric::First99),
        )?;
    }
    for bar in bars(results) {
        writeln!(text, "{}: {} (bar {}): {}", bar.claim, bar.measured, bar.limit, bar.verdict())?;
    }
    Ok(text)
}

/// Mark in `docs/speed.md` that ends the part written by hand.
pub(crate) const MARK: &str =
    "<!-- From here on, made by `cargo xtask load`: see harness/load/src/page.rs -->\n";

/// Returns the generated part of `docs/speed.md`.
pub(crate) fn page(results: &Results) -> Result<String> {
    let machine = &results.machine;
    let mut text = format!(
        "{INTRODUCTION}\nThe machine of this run: {} cores of {}, which had {} other processes at work in the \
         minute before; {} rounds. Everything ran on it, the clients and the upstream too.\n\n{COLUMNS}",
        machine.cores,
        machine.processor,
        machine.load,
        results.times()
    );
    for target in &results.targets {
        let cell = |metric| match results.ratio(target, CREOLE, metric) {
            // The upstream alone has no process that is measured.
            Some(ratio) if ratio > 0.0 => format!("{}x", figures(ratio)),
            _ => "-".to_owned(),
        };
        writeln!(
            text,
            "| {target} | {} | {} | {} | {} | {} | {} |",
            cell(Metric::CpuSmall),
            cell(Metric::CpuAgent),
            cell(Metric::CpuChunk),
            cell(Metric::Rate),
            cell(Metric::Whole),
            cell(Metric::First),
        )?;
    }
    text.push_str(BARS);
    for bar in bars(results) {
        let (claim, measured, limit) = (bar.claim, &bar.measured, &bar.limit);
        writeln!(text, "| {claim} | {limit} | {measured} | {} |", bar.verdict())?;
    }
    text.push_str(STREAMS);
    text.push_str("\n| proxy | most streams at once | of these failed |\n|---|---|---|\n");
    for target in &results.targets {
        if let Some(most) = results.sweep(target).last() {
            let all = most.answers.saturating_add(most.failed);
            writeln!(text, "| {target} | {} | {} of {all} |", most.clients, most.failed)?;
        }
    }
    Ok(text)
}

/// Formats a ratio with about two significant figures, or one if the ratio is small.
fn figures(ratio: f64) -> String {
    match ratio {
        ..0.095 => format!("{ratio:.2}"),
        ..9.95 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

/// Performance claim with its limit and the measured value.
struct Bar {
    claim: &'static str,
    limit: String,
    measured: String,
    holds: bool,
}

impl Bar {
    fn verdict(&self) -> &'static str {
        if self.holds { "holds" } else { "**missed**" }
    }
}

// Long: a row for each bar.
fn bars(results: &Results) -> Vec<Bar> {
    let ratio = |claim, of, to, metric, limit: f64| {
        let ratio = results.ratio(of, to, metric)?;
        let measured = format!("{}x", figures(ratio));
        Some(Bar { claim, limit: format!("at most {limit}x"), measured, holds: ratio <= limit })
    };
    let least = |claim, of, to, metric, limit: f64| {
        let ratio = results.ratio(of, to, metric)?;
        let measured = format!("{}x", figures(ratio));
        Some(Bar { claim, limit: format!("at least {limit}x"), measured, holds: ratio >= limit })
    };
    let added = |claim, of, to, metric, limit: f64, unit: &str| {
        let added = results.added(of, to, metric)?;
        let measured = format!("{added:.2} {unit}");
        Some(Bar {
            claim,
            limit: format!("at most {limit} {unit}"),
            measured,
            holds: added <= limit,
        })
    };
    let gateway = || {
        let cpu = results.median(GATEWAY, Metric::CpuSmall)?;
        let (limit, measured) = ("at most 0.25 ms".to_owned(), format!("{cpu:.2} ms"));
        let claim = "gateway: processor time of a short request";
        Some(Bar { claim, limit, measured, holds: cpu <= 0.25 })
    };
    let rows = [
        ratio(
            "Envoy: processor time of a 100 kB request, to the filter that drains and emits",
            CREOLE,
            DRAIN,
            Metric::CpuAgent,
            1.5,
        ),
        added(
            "Envoy: processor time that a chunk takes more than without the filter",
            CREOLE,
            ENVOY,
            Metric::CpuChunk,
            10.0,
            "µs",
        ),
        added(
            "Envoy: later first word than without the filter, median",
            CREOLE,
            ENVOY,
            Metric::First,
            1.0,
            "ms",
        ),
        ratio(
            "Worker: processor time of a chunk, to the pass-through",
            WORKER,
            PASS,
            Metric::CpuChunk,
            1.2,
        ),
        added(
            "Worker: later first word than the pass-through, median",
            WORKER,
            PASS,
            Metric::First,
            1.0,
            "ms",
        ),
        gateway(),
        least(
            "LiteLLM to Envoy with Creole, short request",
            LITELLM,
            CREOLE,
            Metric::CpuSmall,
            20.0,
        ),
        least(
            "LiteLLM to Envoy with Creole, 100 kB request",
            LITELLM,
            CREOLE,
            Metric::CpuAgent,
            20.0,
        ),
        least("LiteLLM to Envoy with Creole, chunk", LITELLM, CREOLE, Metric::CpuChunk, 20.0),
        least("LiteLLM to the gateway, short request", LITELLM, GATEWAY, Metric::CpuSmall, 20.0),
        least("LiteLLM to the gateway, 100 kB request", LITELLM, GATEWAY, Metric::CpuAgent, 20.0),
        least("LiteLLM to the gateway, chunk", LITELLM, GATEWAY, Metric::CpuChunk, 20.0),
        least(
            "claude-code-router to the gateway, short request",
            ROUTER,
            GATEWAY,
            Metric::CpuSmall,
            5.0,
        ),
        least(
            "claude-code-router to the gateway, 100 kB request",
            ROUTER,
            GATEWAY,
            Metric::CpuAgent,
            5.0,
        ),
        least("claude-code-router to the gateway, chunk", ROUTER, GATEWAY, Metric::CpuChunk, 5.0),
        least(
            "claude-code-router to Envoy with Creole, short request",
            ROUTER,
            CREOLE,
            Metric::CpuSmall,
            5.0,
        ),
        least(
            "claude-code-router to Envoy with Creole, 100 kB request",
            ROUTER,
            CREOLE,
            Metric::CpuAgent,
            5.0,
        ),
        least(
            "claude-code-router to Envoy with Creole, chunk",
            ROUTER,
            CREOLE,
            Metric::CpuChunk,
            5.0,
        ),
    ];
    rows.into_iter().flatten().collect()
}

const INTRODUCTION: &str = "## The last run

`cargo xtask load` measures every host under load, beside other proxies in front of the same upstream, and writes this
part and its plots. Do not edit them.

```sh
cargo xtask load            # everything; takes a quarter of an hour or more
cargo xtask load --quick    # one short round, without this page
```

The upstream is the [demo model](dev/demo-model.md) with a script, so every proxy gets the same answers. The generator
(`harness/load`) is a closed loop: each client sends its next request when the last one is answered. All proxies take
turns, several rounds, each round four times for chunks. A ratio is taken within a turn; the table gives the median of the
turns. A first round is not counted, because compilers at run time are still at work in it. Processor time is what Linux
counts for the proxy's process, user and system. Proxies that translate nothing pass on Chat Completions; the others get
this request as a Messages request.
";

const COLUMNS: &str = "Each figure is a ratio to Envoy with Creole; more than 1x is more time, or more requests in a second. A short
request has 1 kB, a coding agent's 100 kB (20 tools, 40 turns); chunks come one at a time, 2 ms apart, in four
streams.

| proxy | processor, short request | processor, 100 kB request | processor, chunk | short requests a second | short request, median | first word, median |
|---|---|---|---|---|---|---|
";

const BARS: &str = "
### Bars

| what | bar | measured | |
|---|---|---|---|
";

const STREAMS: &str = "
### Many streams at once

Each stream has 20 chunks, 200 ms apart. A proxy that fails more than one stream in fifty gets no more
streams.

![Processor time, to Envoy with Creole](speed/cpu.svg)

![First word by the number of streams](speed/first-word.svg)

![Processor time of a chunk by the number of streams](speed/chunks.svg)
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::results;

    fn named() -> Results {
        let mut results = results();
        for row in &mut results.rows {
            row.target = if row.target == "a" { CREOLE } else { LITELLM }.to_owned();
        }
        results.targets = vec![CREOLE.to_owned(), LITELLM.to_owned()];
        results
    }

    #[test]
    fn a_bar_that_is_missed_is_said_to_be() {
        let text = page(&named()).unwrap();
        let bar =
            "| LiteLLM to Envoy with Creole, short request | at least 20x | 2.0x | **missed** |";
        assert!(text.contains(bar), "{text}");
        assert!(!text.contains("drain and emit |"), "nothing is said of what was not measured");
    }

    #[test]
    fn a_small_ratio_is_not_nothing() {
        let written = [0.02, 0.08, 0.2, 1.0, 9.94, 40.4].map(figures);
        assert_eq!(written, ["0.02", "0.08", "0.2", "1.0", "9.9", "40"]);
    }

    #[test]
    fn the_table_has_a_row_for_each_proxy() {
        let text = page(&named()).unwrap();
        assert!(text.contains("| Envoy, Creole | 1.0x | - | 1.0x |"), "{text}");
        assert!(text.contains("| LiteLLM | 2.0x | - | 2.0x |"), "{text}");
        assert!(table(&named()).unwrap().contains("LiteLLM"));
    }
}
