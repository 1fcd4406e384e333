//! HTML of the gateway's web page. Every text that the gateway did not write itself is escaped with
//! [`escaped`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use creole::Config;
use creole::Millis;
use creole::json::Writer as Json;
use creole::observe::log::Level;
use creole::observe::report::CallCount;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::board::{BoardState, CheckResult, Health};
use super::escape::escaped;
use super::meanings;
use super::plots::plots;
use super::row::{FinishedRow, RunningRow};
use crate::clock::Clock;
use crate::log::figures;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Icon of the page: a circle in two halves, as a data URL.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%230f766e'/%3E%3Cpath d='M8 1a7 7 0 0 1 0 14z' fill='%235eead4'/%3E%3C/svg%3E";

/// URL of the source repository, which has the documents; empty if the package names no repository.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Maximum number of running exchanges that are shown individually.
const RUNNING_MAX: usize = 20;

/// Maximum number of models that are shown.
const MODELS_MAX: usize = 20;

/// Words for the ends of successful exchanges, which need no remark on the page.
const USUAL: [&str; 4] = ["end_turn", "tool_use", "reply", "passed"];

/// Returns the whole page. `nonce` consists of letters that need no escapes.
pub(super) fn page(config: &Config, state: &BoardState, nonce: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Creole</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
         <link rel=\"icon\" href=\"{ICON}\"><style nonce=\"{nonce}\">{STYLE}</style></head><body>\
         <header><h1><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><circle cx=\"8\" cy=\"8\" r=\"7\"/>\
         <path d=\"M8 1a7 7 0 0 1 0 14z\"/></svg>Creole</h1><span class=\"version\">{version}</span>\
         <span id=\"live\" class=\"live\">reload to update</span></header><main>"
    );
    for (id, title, text) in sections(config, state) {
        let title = if title.is_empty() { String::new() } else { format!("<h2>{title}</h2>") };
        let _ =
            write!(out, "<section class=\"{id}\">{title}<div id=\"{id}\">{text}</div></section>");
    }
    let _ = writeln!(
        out,
        "</main><footer>Names and numbers only: this page has no prompts, answers, tool inputs or keys. It is \
         forgotten when the gateway ends.</footer><script nonce=\"{nonce}\">{SCRIPT}</script></body></html>"
    );
    out
}

/// Returns an event for the browser with the sections of the page that changed, by section id.
pub(super) fn update(config: &Config, state: &BoardState, is_changed: bool) -> String {
    let mut data = Vec::new();
    let mut json = Json::new(&mut data);
    json.begin_object();
    if is_changed {
        for (id, _, text) in sections(config, state) {
            json.key(id).text(&text);
        }
    } else {
        json.key("running").text(&running(state));
    }
    json.end_object();
    format!("data: {}\n\n", String::from_utf8_lossy(&data))
}

/// Returns the sections of the page, each with its id, title and HTML content.
fn sections(config: &Config, state: &BoardState) -> [(&'static str, &'static str, String); 8] {
    [
        ("figures", "", figures(state)),
        ("running", "Running now", running(state)),
        ("plots", "", plots(state.rows.iter())),
        ("upstreams", "Upstreams", upstreams(config, state)),
        ("models", "Models", models(config, state)),
        ("tools", "Server tools", server_tools(state)),
        ("exchanges", "Last exchanges", exchanges(state)),
        ("meanings", "Warnings and guards", explained(state)),
    ]
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn figures(state: &BoardState) -> String {
    let totals = &state.totals;
    let first =
        median(state.rows.iter().filter_map(|row| row.figures.first_ms).map(|ms| ms as f64));
    let speed = median(state.rows.iter().filter_map(|row| row.figures.speed));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let cached = match totals.input_tokens {
        0 => String::new(),
        all => format!("{:.0} % cached", totals.cached_tokens as f64 / all as f64 * 100.0),
    };
    let failed = match totals.failed {
        0 => "none failed".to_owned(),
        failed => format!("<em>{} failed</em>", figures::count(failed)),
    };
    let tiles = [
        ("exchanges", figures::count(totals.exchanges), failed),
        ("running", state.running.len().to_string(), String::new()),
        ("tokens in", figures::count(totals.input_tokens), cached),
        ("tokens out", figures::count(totals.output_tokens), String::new()),
        (
            "to first content",
            or_none(first.map(|ms| figures::time(ms as u64))),
            "median".to_owned(),
        ),
        ("tokens a second", or_none(speed.map(figures::speed)), "median".to_owned()),
    ];
    let tile = |(name, value, more): &(&str, String, String)| {
        let value = value.strip_suffix("/s").unwrap_or(value);
        format!("<div class=\"tile\"><span>{name}</span><b>{value}</b><small>{more}</small></div>")
    };
    tiles.iter().map(tile).collect()
}

/// Returns an HTML table with the given columns.
fn table(columns: &[&str], rows: &str) -> String {
    let head: String =
        columns.iter().map(|column| format!("<th scope=\"col\">{column}</th>")).collect();
    format!("<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
}

fn cell(out: &mut String, label: &str, class: &str, text: &str) {
    let _ = write!(out, "<td data-label=\"{label}\" class=\"{class}\">{text}</td>");
}

fn running(state: &BoardState) -> String {
    if state.running.is_empty() {
        return "<p class=\"none\">Nothing runs.</p>".to_owned();
    }
    let now = Clock::start().now();
    let mut rows = String::new();
    for running in state.running.values().take(RUNNING_MAX) {
        rows.push_str(&running_row(running, now));
    }
    let more = state.running.len().saturating_sub(RUNNING_MAX);
    let more =
        if more > 0 { format!("<p class=\"none\">and {more} more</p>") } else { String::new() };
    let columns = ["Model", "State", "First", "Time", "Chunks", "A second", "Tools"];
    format!("{}{more}", table(&columns, &rows))
}

fn running_row(running: &RunningRow, now: Millis) -> String {
    let mut out = "<tr>".to_owned();
    let spent = now.saturating_sub(running.began);
    let flowing = spent.saturating_sub(running.first_ms.unwrap_or(spent));
    let speed = (flowing > 0 && running.chunks > 0)
        .then(|| running.chunks as f64 * 1000.0 / flowing as f64);
    let state = match (running.first_ms, running.stream, running.retries) {
        (Some(_), true, _) => "streams",
        (Some(_), false, _) => "answers",
        (None, _, 0) => "waits",
        (None, _, _) => "waits again",
    };
    cell(&mut out, "Model", "name", &name(&running.model, "", &running.upstream, ""));
    cell(&mut out, "State", "state", &format!("<i class=\"pulse\"></i>{state}"));
    cell(&mut out, "First", "number", &running.first_ms.map_or_else(String::new, figures::time));
    cell(&mut out, "Time", "number", &figures::time(spent));
    cell(&mut out, "Chunks", "number", &number(running.chunks));
    cell(&mut out, "A second", "number", &speed.map_or_else(String::new, figures::speed));
    cell(&mut out, "Tools", "number", &number(running.tool_calls.into()));
    out.push_str("</tr>");
    out
}

/// Returns a count as text, empty for zero, because a table full of zeros is hard to read.
fn number(count: u64) -> String {
    if count == 0 { String::new() } else { figures::count(count) }
}

fn name(model: &str, served: &str, upstream: &str, client_key: &str) -> String {
    let mut out = format!("<b>{}</b>", escaped(model));
    if !served.is_empty() {
        let _ = write!(out, " <span class=\"served\">→ {}</span>", escaped(served));
    }
    if !upstream.is_empty() {
        let _ = write!(out, " <small>@{}</small>", escaped(upstream));
    }
    if !client_key.is_empty() {
        let _ = write!(out, " <small>by {}</small>", escaped(client_key));
    }
    out
}

fn exchanges(state: &BoardState) -> String {
    if state.rows.is_empty() {
        return "<p class=\"none\">No client has asked yet.</p>".to_owned();
    }
    let rows: String = state.rows.iter().rev().map(exchange).collect();
    let columns = [
        "At", "Status", "Model", "End", "First", "Time", "In", "Cached", "Out", "Speed", "Tools",
        "Notes",
    ];
    table(&columns, &rows)
}

fn exchange(row: &FinishedRow) -> String {
    let figures = &row.figures;
    let class = match (row.level, figures.status) {
        (Level::Error, _) => "bad",
        (Level::Warn, _) | (_, 400..) => "care",
        _ => "good",
    };
    let mut out = "<tr>".to_owned();
    cell(&mut out, "At", "at", &time_of_day(row.ended_at));
    cell(
        &mut out,
        "Status",
        "status",
        &format!("<span class=\"{class}\">{}</span>", figures.status),
    );
    cell(&mut out, "Model", "name", &name(&row.model, &row.served, &row.upstream, &row.client_key));
    let end = if USUAL.contains(&row.cause) { "" } else { class };
    cell(&mut out, "End", "end", &format!("<span class=\"{end}\">{}</span>", row.cause));
    let first = figures.first_ms.filter(|_| row.stream);
    cell(&mut out, "First", "number", &first.map_or_else(String::new, figures::time));
    cell(&mut out, "Time", "number", &figures::time(figures.duration_ms));
    cell(&mut out, "In", "number", &number(figures.input_tokens));
    cell(&mut out, "Cached", "number", &number(row.cached_tokens));
    cell(&mut out, "Out", "number", &number(row.output_tokens));
    cell(&mut out, "Speed", "number", &figures.speed.map_or_else(String::new, figures::speed));
    cell(&mut out, "Tools", "number", &number(row.tool_calls.into()));
    cell(&mut out, "Notes", "notes", &notes(row));
    out.push_str("</tr>");
    out
}

fn notes(row: &FinishedRow) -> String {
    let mut out = String::new();
    if !row.reason.is_empty() {
        let _ = write!(out, "<span class=\"reason\">{}</span> ", escaped(&row.reason));
    }
    if !row.request_id.is_empty() {
        let _ = write!(out, "<small>{}</small> ", escaped(&row.request_id));
    }
    match row.retries {
        0 => {}
        1 => out.push_str("<span class=\"note\">1 retry</span>"),
        retries => {
            let _ = write!(out, "<span class=\"note\">{retries} retries</span>");
        }
    }
    for (kind, count) in row.server_calls.iter() {
        let calls = count.calls;
        let _ = write!(out, "<span class=\"note ran\">{calls} {kind}{}</span>", failed(count));
    }
    for guard in &row.guards {
        note(&mut out, &format!("guard {guard}"), "");
    }
    for (code, name) in &row.warnings {
        note(&mut out, code, name);
    }
    out
}

/// Returns the number of failed calls in brackets; empty if none failed.
fn failed(count: CallCount) -> String {
    if count.failed == 0 { String::new() } else { format!(" ({} failed)", count.failed) }
}

/// Returns a table of the calls of server tools since the start; empty if there were none.
fn server_tools(state: &BoardState) -> String {
    let mut rows = String::new();
    for (kind, count) in state.totals.server_calls.iter() {
        rows.push_str("<tr>");
        cell(&mut rows, "Tool", "name", &format!("<b>{kind}</b>"));
        cell(&mut rows, "Calls", "number", &figures::count(count.calls.into()));
        cell(&mut rows, "Failed", "number", &number(count.failed.into()));
        rows.push_str("</tr>");
    }
    if rows.is_empty() {
        return rows;
    }
    table(&["Tool", "Calls", "Failed"], &rows)
}

fn note(out: &mut String, code: &str, name: &str) {
    let colon = if name.is_empty() { "" } else { ":" };
    let _ = write!(
        out,
        "<a class=\"note\" href=\"#{}\" title=\"{}\">{code}{colon}{}</a>",
        code.replace(' ', "-"),
        escaped(meanings::of(code)),
        escaped(name)
    );
}

/// Returns a section that explains the warnings and guards that the page shows.
fn explained(state: &BoardState) -> String {
    let mut codes: BTreeMap<String, u32> = BTreeMap::new();
    for row in &state.rows {
        let guards = row.guards.iter().map(|guard| format!("guard {guard}"));
        for code in guards.chain(row.warnings.iter().map(|(code, _)| (*code).to_owned())) {
            let count = codes.entry(code).or_default();
            *count = count.saturating_add(1);
        }
    }
    if codes.is_empty() {
        return "<p class=\"none\">None in these exchanges.</p>".to_owned();
    }
    let mut rows = String::new();
    for (code, count) in codes {
        rows.push_str("<tr>");
        let link = documents(&code);
        let id = code.replace(' ', "-");
        cell(&mut rows, "Code", "name", &format!("<b id=\"{id}\">{code}</b>"));
        cell(&mut rows, "Exchanges", "number", &count.to_string());
        cell(&mut rows, "Meaning", "meaning", &format!("{}{link}", escaped(meanings::of(&code))));
        rows.push_str("</tr>");
    }
    table(&["Code", "Exchanges", "Meaning"], &rows)
}

/// Returns a link to the document about a warning or guard, or the document's name.
fn documents(code: &str) -> String {
    let page = if code.starts_with("guard ") { "guards.md" } else { "troubleshooting.md#warnings" };
    if REPOSITORY.is_empty() {
        return format!(" <small>more: docs/{page} in Creole's repository</small>");
    }
    let version = env!("CARGO_PKG_VERSION");
    let url = format!("{REPOSITORY}/blob/v{version}/docs/{page}");
    format!(" <a href=\"{}\" rel=\"noreferrer noopener\">more</a>", escaped(&url))
}

fn upstreams(config: &Config, state: &BoardState) -> String {
    let mut rows = String::new();
    for upstream in config.upstreams.values() {
        let (class, says) = health(state.health.get(&upstream.name));
        let address = figures::text(&format!("{}{}", upstream.url, upstream.base_path));
        rows.push_str("<tr>");
        cell(&mut rows, "Name", "name", &format!("<b>{}</b>", escaped(&upstream.name)));
        cell(&mut rows, "Address", "address", &escaped(&address));
        let says = format!("<i class=\"dot {class}\"></i>{}", escaped(&says));
        cell(&mut rows, "State", "state", &says);
        rows.push_str("</tr>");
    }
    table(&["Name", "Address", "State"], &rows)
}

fn health(health: Option<&Health>) -> (&'static str, String) {
    match health.map(|known| &known.answer) {
        None | Some(CheckResult::Asked) => ("unknown", "is being asked".to_owned()),
        Some(CheckResult::Status(401 | 403)) => ("care", "answers, but wants a key".to_owned()),
        Some(CheckResult::Status(status @ 500..)) => ("bad", format!("answers with {status}")),
        Some(CheckResult::Status(_)) => ("good", "answers".to_owned()),
        Some(CheckResult::Missing(reason)) => ("bad", format!("does not answer: {reason}")),
    }
}

fn models(config: &Config, state: &BoardState) -> String {
    let mut models: BTreeMap<(&str, &str, &str), Vec<&FinishedRow>> = BTreeMap::new();
    for row in state.rows.iter().filter(|row| !row.upstream.is_empty()) {
        let model = (row.model.as_str(), row.served.as_str(), row.upstream.as_str());
        models.entry(model).or_default().push(row);
    }
    if models.is_empty() {
        return "<p class=\"none\">None was asked yet.</p>".to_owned();
    }
    let mut models: Vec<_> = models.into_iter().collect();
    models.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    let mut out = String::new();
    for ((model, served, upstream), rows) in models.into_iter().take(MODELS_MAX) {
        let failed = rows.iter().filter(|row| row.is_failed()).count();
        let first = rows.iter().filter_map(|row| row.figures.first_ms).map(|ms| ms as f64);
        let speed = median(rows.iter().filter_map(|row| row.figures.speed));
        let first = median(first).map_or_else(String::new, |ms| figures::time(ms as u64));
        out.push_str("<tr>");
        cell(&mut out, "Model", "name", &name(model, served, upstream, ""));
        cell(&mut out, "Asked", "number", &rows.len().to_string());
        cell(&mut out, "Failed", "number", &number(failed as u64));
        cell(&mut out, "First", "number", &first);
        cell(&mut out, "Speed", "number", &speed.map_or_else(String::new, figures::speed));
        let own = if served.is_empty() { model } else { served };
        let window = config.window(model).or_else(|| state.window(upstream, own));
        cell(&mut out, "Window", "number", &window.map_or_else(String::new, figures::count));
        cell(
            &mut out,
            "Fullest",
            "number",
            &window.map_or_else(String::new, |of| fullest(&rows, of)),
        );
        out.push_str("</tr>");
    }
    table(&["Model", "Asked", "Failed", "First", "Speed", "Window", "Fullest"], &out)
}

/// Returns how full the context window was in the longest of the conversations, in percent.
fn fullest(rows: &[&FinishedRow], window: u64) -> String {
    let tokens = |row: &&FinishedRow| row.figures.input_tokens.saturating_add(row.output_tokens);
    let most = rows.iter().map(tokens).max().unwrap_or_default();
    format!("{:.0} %", most as f64 / window as f64 * 100.0)
}

fn time_of_day(at: Millis) -> String {
    let time = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    time.map_or_else(String::new, |at| {
        at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
    })
}

#[cfg(test)]
mod tests;
