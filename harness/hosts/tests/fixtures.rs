//! Tests of every fixture on every host: the client's bytes, status and headers, and the requests
//! that reached the upstream, are those of the core, and those that the fixture expects. Upstream
//! answers come whole and in small pieces.
//!
//! libtest's harness is not used, because the table must be shown when all is well, too.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::arithmetic_side_effects
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use creole_hosts::suite::{self, Named, Suite};
use creole_hosts::support::expected::{self, Got as Checked};
use creole_hosts::{Got, Host, Trial, hosts};

/// Size of the pieces in bytes: small enough to cut every event, and not a divisor of usual sizes.
const PIECE_BYTES: usize = 61;

/// Number of trials that a host with sockets runs at once.
const AT_ONCE: usize = 8;

#[derive(Default)]
struct Row {
    trials: usize,
    failures: Vec<String>,
    seconds: f64,
}

fn main() -> ExitCode {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // A misspelt name would silently leave hosts out.
    let names = hosts::names();
    if let Some(word) = wanted.iter().find(|word| !names.contains(&word.as_str())) {
        println!("no host is called {word}; there are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    let mut rows: BTreeMap<usize, (&str, Row)> = BTreeMap::new();
    let suites = suite::all();
    for suite in &suites {
        let mut reference = Vec::new();
        for (at, (name, host)) in hosts::all(&suite.config).into_iter().enumerate() {
            if at > 0 && !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
                continue;
            }
            let row = &mut rows.entry(at).or_insert_with(|| (name, Row::default())).1;
            let since = Instant::now();
            match host {
                Ok(host) if at == 0 => reference = first(suite, &*host, row),
                Ok(host) => others(suite, &*host, &reference, row),
                Err(reason) => {
                    row.trials += suite.trials.len();
                    let lost = suite.trials.iter().map(|_| String::new()).skip(1);
                    row.failures.push(format!("does not start: {reason}"));
                    row.failures.extend(lost);
                }
            }
            row.seconds += since.elapsed().as_secs_f64();
        }
    }
    let mut good = true;
    for (name, row) in rows.values() {
        for failure in row.failures.iter().filter(|failure| !failure.is_empty()).take(12) {
            println!("\n{name}: {failure}");
        }
        good &= row.failures.is_empty();
    }
    println!("\n{:<10} {:>8} {:>8} {:>8} {:>9}", "host", "fixtures", "passed", "failed", "seconds");
    for (name, row) in rows.values() {
        let (failed, trials) = (row.failures.len().min(row.trials), row.trials);
        let passed = trials - failed;
        println!("{name:<10} {trials:>8} {passed:>8} {failed:>8} {:>9.1}", row.seconds);
    }
    println!();
    for (name, row) in rows.values() {
        let failed = row.failures.len().min(row.trials);
        let word = if failed == 0 { "ok" } else { "FAILED" };
        let passed = row.trials - failed;
        println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored; host {name}");
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Results of the core for an answer that comes whole, and in pieces. The two differ in one thing:
/// a head that leaves with the first piece cannot name a warning that a later piece causes.
type Reference = [String; 2];

/// Runs the core. Returns the results with which other hosts are compared.
fn first(suite: &Suite, host: &dyn Host, row: &mut Row) -> Vec<Reference> {
    let mut reference = Vec::new();
    for named in &suite.trials {
        row.trials += 1;
        let got =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.send(&named.trial)));
        match got {
            Ok(got) => {
                if let Err(reason) = expectations(named, &got) {
                    row.failures.push(format!("{}: {reason}", named.name));
                }
                let pieces = suite::comparable(&host.send(&in_pieces(named)));
                let whole = suite::comparable(&got);
                if without_warnings(&whole) != without_warnings(&pieces) {
                    let how = suite::difference(&whole, &pieces);
                    row.failures.push(format!("{}: in pieces, {how}", named.name));
                }
                reference.push([whole, pieces]);
            }
            Err(_) => {
                row.failures.push(format!("{}: panicked", named.name));
                reference.push(Reference::default());
            }
        }
    }
    reference
}

fn others(suite: &Suite, host: &dyn Host, reference: &[Reference], row: &mut Row) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(named), Some(reference)) = (suite.trials.get(at), reference.get(at))
                    else {
                        return;
                    };
                    if let Err(reason) = one(named, host, reference) {
                        let failure = format!("{}: {reason}", named.name);
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    // Without results of the core, nothing was compared.
    row.trials += suite.trials.len().min(reference.len());
    row.failures.extend(failures.into_inner().unwrap());
}

fn one(named: &Named, host: &dyn Host, reference: &Reference) -> Result<(), String> {
    for (how, trial) in [("whole", &named.trial), ("in pieces", &in_pieces(named))] {
        let got = suite::comparable(&host.send(trial));
        if !is_one_of(&got, reference) {
            return Err(format!("{how}, {}", suite::difference(&reference[0], &got)));
        }
    }
    Ok(())
}

/// Returns true if the core could have given this result, too. Sockets join and cut as they like: a
/// head may name more warnings than the first piece causes, and fewer than the whole answer causes.
fn is_one_of(got: &str, [whole, pieces]: &Reference) -> bool {
    let (named, most, least) = (warnings(got), warnings(whole), warnings(pieces));
    without_warnings(got) == without_warnings(whole)
        && named.is_subset(&most)
        && named.is_superset(&least)
}

fn in_pieces(named: &Named) -> Trial {
    Trial { answer: named.trial.answer.clone().cut(PIECE_BYTES), ..named.trial.clone() }
}

const WARNINGS: &str = "x-creole-warnings: ";

fn warnings(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix(WARNINGS))
        .flat_map(|it| it.split(','))
        .collect()
}

fn without_warnings(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with(WARNINGS)).collect()
}

/// Checks the result that the fixture expects. The core's own tests check every detail; this check
/// shows that the trial is the fixture.
fn expectations(named: &Named, got: &Got) -> Result<(), String> {
    if named.is_request {
        return match got.upstream.first() {
            Some(seen) => {
                let body = serde_json::from_slice(&seen.body).map_err(|error| error.to_string())?;
                expected::same_request(&named.expected, &body)
            }
            None if named.expected.get("error").is_some() => Ok(()),
            None => Err(format!("nothing reached the upstream: {}", got.text())),
        };
    }
    let expected = expected::for_way(&named.expected, named.stream);
    let body = got.text().replace(&format!("claude-{}", named.trial.key), "claude-test");
    let checked = Checked {
        status: got.status,
        headers: &got.headers,
        body: body.as_bytes(),
        stream: named.stream,
    };
    expected::check(&expected, checked).map(|_| ())
}
