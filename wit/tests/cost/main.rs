//! Number of instructions that the component executes: Wasmtime's fuel, which is the same on every
//! machine.
//!
//! `wit/tests/cost/budgets.txt` has a budget for each case. A case that exceeds its budget by more
//! than [`TOLERANCE_PERCENT`] fails. A case that stays as far below its budget fails, too, because
//! growth up to an old budget would go unseen. `CREOLE_WRITE=1` writes the budgets anew.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

#[path = "../../../benches/bodies/mod.rs"]
#[allow(clippy::indexing_slicing, reason = "generated bodies, as for the native benchmark")]
mod bodies;
mod instance;
mod memory;

use bodies::Says;
use instance::Instance;

const TOLERANCE_PERCENT: u64 = 5;

/// Configuration with an upstream that speaks Responses.
const RESPONSES: &str = r#"{"upstreams":{"u":{"url":"https://u.test","protocol":"responses"}}}"#;

/// Returns the mean fuel for a chunk of a stream in Chat Completions.
fn chunk(instance: &mut Instance, says: Says) -> u64 {
    stream(instance, bodies::chunks(says).iter().map(|chunk| format!("data: {chunk}\n\n")))
}

/// Returns the mean fuel for an event of a stream in Responses.
fn event(instance: &mut Instance, says: Says) -> u64 {
    stream(instance, bodies::events(says).iter().map(|data| bodies::event(data)))
}

fn stream(instance: &mut Instance, events: impl Iterator<Item = String>) -> u64 {
    let events: Vec<String> = events.collect();
    let pieces: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    instance.answer("text/event-stream", &pieces, false) / pieces.len() as u64
}

fn measure() -> BTreeMap<String, u64> {
    let mut instance = Instance::new();
    let mut used = BTreeMap::from([("start".to_owned(), instance.used())]);
    for (name, bytes, images) in [
        ("10kB", 10_000, 0),
        ("100kB", 100_000, 0),
        ("1MB", 1_000_000, 0),
        ("1MB-images", 1_000_000, 800_000),
    ] {
        let body = bodies::request(bytes, images);
        used.insert(format!("request-{name}"), instance.request(body.as_bytes()));
    }
    for (name, bytes) in [("1kB", 1_000), ("12kB", 12_000)] {
        let body = bodies::answer(bytes);
        let fuel = instance.answer("application/json", &[body.as_bytes()], true);
        used.insert(format!("answer-{name}"), fuel);
    }
    for (name, says) in [
        ("text", Says::Text),
        ("text-padded", Says::Padded),
        ("text-numbered", Says::Numbered),
        ("tools", Says::Tools),
        ("reasoning", Says::Reasoning),
    ] {
        used.insert(format!("chunk-{name}"), chunk(&mut instance, says));
    }
    let mut instance = Instance::of(RESPONSES);
    for (name, bytes) in [("10kB", 10_000), ("100kB", 100_000)] {
        let fuel = instance.request(bodies::request(bytes, 0).as_bytes());
        used.insert(format!("responses-request-{name}"), fuel);
    }
    // Events of Responses always have a number, so no case `text-numbered` is needed.
    for (name, says) in [
        ("text", Says::Text),
        ("text-padded", Says::Padded),
        ("tools", Says::Tools),
        ("reasoning", Says::Reasoning),
    ] {
        used.insert(format!("responses-event-{name}"), event(&mut instance, says));
    }
    used
}

fn budgets(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, fuel)| (name.to_owned(), fuel.trim().parse().unwrap()))
        .collect()
}

/// Returns a message for each case whose fuel is not within the tolerance of its budget.
fn violations(used: &BTreeMap<String, u64>, budgets: &BTreeMap<String, u64>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, fuel) in used {
        let budget = budgets.get(name).copied().unwrap_or_default();
        let room = budget * TOLERANCE_PERCENT / 100;
        if *fuel > budget + room {
            found.push(format!("{name} needs {fuel} instructions, and its budget is {budget}"));
        } else if *fuel + room < budget {
            found.push(format!("{name} needs only {fuel} instructions: lower its {budget}"));
        }
    }
    found.extend(
        budgets.keys().filter(|name| !used.contains_key(*name)).map(|name| format!("no {name}")),
    );
    found
}

#[test]
fn no_path_needs_more_instructions_than_its_budget() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cost/budgets.txt");
    let used = measure();
    for (name, fuel) in &used {
        println!("{name:<20} {fuel:>12}");
    }
    if std::env::var_os("CREOLE_WRITE").is_some() {
        let mut text = "# WebAssembly instructions (fuel of Wasmtime) of the component. Written by\n# CREOLE_WRITE=1 cargo xtask test cost\n".to_owned();
        for (name, fuel) in &used {
            writeln!(text, "{name} {fuel}").unwrap();
        }
        std::fs::write(&file, text).unwrap();
    }
    let found = violations(&used, &budgets(&std::fs::read_to_string(file).unwrap()));
    assert!(
        found.is_empty(),
        "{}\nIf that is meant: CREOLE_WRITE=1 cargo xtask test cost",
        found.join("\n")
    );
}

#[test]
fn an_upstream_of_responses_costs_little_more_than_one_of_chat() {
    let (mut chat, mut responses) = (Instance::new(), Instance::of(RESPONSES));
    let body = bodies::request(100_000, 0);
    let requests = [&mut chat, &mut responses].map(|instance| instance.request(body.as_bytes()));
    let texts = [chunk(&mut chat, Says::Text), event(&mut responses, Says::Text)];
    for (what, [chat, responses], percent_max) in
        [("a request of 100 kB", requests, 120), ("a delta of text", texts, 150)]
    {
        println!("{what}: {responses} instructions in Responses, {chat} in Chat Completions");
        assert!(responses * 100 <= chat * percent_max, "{what}: {responses}, and {chat} in Chat");
    }
}

#[test]
fn growth_is_found_and_so_is_an_old_budget() {
    let used = |fuel| BTreeMap::from([("a".to_owned(), fuel)]);
    let budget = budgets("# comment\na 1000\n");
    assert!(violations(&used(1050), &budget).is_empty());
    assert!(violations(&used(950), &budget).is_empty());
    assert_eq!(violations(&used(1051), &budget).len(), 1);
    assert_eq!(violations(&used(949), &budget).len(), 1);
    assert_eq!(violations(&used(1000), &BTreeMap::new()).len(), 1);
    assert_eq!(violations(&BTreeMap::new(), &budget).len(), 1);
}
