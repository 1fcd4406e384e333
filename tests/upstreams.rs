//! `docs/upstreams.md` is made from the fixtures, so that it says what the tests prove and nothing
//! else. To write it anew after a fixture was added or changed:
//!
//! ```text
//! CREOLE_WRITE=1 cargo test --test upstreams
//! ```
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use support::fixture::{self, Fixture};

#[test]
fn the_table_of_upstreams_says_what_the_fixtures_prove() {
    assert_current("docs/upstreams.md", |_| document(&fixture::all()));
}

#[test]
fn the_readme_says_how_many_fixtures_there_are() {
    assert_current("README.md", |page| {
        let (before, rest) = page.split_once("<!-- fixtures -->").unwrap();
        let (_, after) = rest.split_once("<!-- end of fixtures -->").unwrap();
        let count = fixture::all().len();
        format!("{before}<!-- fixtures -->{count}<!-- end of fixtures -->{after}")
    });
}

/// Checks that a page is what `make` returns for it, and writes the page if the user wants that.
#[track_caller]
fn assert_current(page: &str, make: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let found = fs::read_to_string(&path).unwrap_or_default();
    let expected = make(&found);
    if std::env::var_os("CREOLE_WRITE").is_some() {
        return fs::write(&path, &expected).unwrap();
    }
    let differs = found.lines().zip(expected.lines()).position(|(left, right)| left != right);
    assert!(
        found == expected,
        "{page} is stale, from line {}; write it anew with CREOLE_WRITE=1 cargo \
         test --test upstreams",
        differs.unwrap_or_else(|| expected.lines().count().min(found.lines().count())) + 1
    );
}

const INTRODUCTION: &str = "# What upstreams do differently

Servers of the Chat Completions API agree on little. Look for your server, or for a symptom:

- Is your server here? Then its rows show what Creole already does, without any setting but the profile.
- Does an answer still come out wrong? [Make a case of it](../tests/fixtures/README.md), or report the bytes that the server
  sent: on the project's page, choose the form *My upstream's answer is not understood*.

<!-- From here on, made from the fixtures: see tests/upstreams.rs -->

";

const ROWS: &str = "
The second cell is what a client of the Messages API gets all the same; the stop reason is named where it is not the usual
one. The third one has the fixtures that prove it, and numbers that lead to reports. Fixtures are written after bug reports,
documentation and sources; they are not recordings. Rows with *sent* or *refused* are about requests, with this preset and
these settings. `generic` is for deviations of many servers.
";

/// Vendors by name; `generic` is the last one, because a reader looks for a name first.
fn vendors(fixtures: &[Fixture]) -> Vec<(&str, Vec<&Fixture>)> {
    let mut vendors: BTreeMap<(bool, &str), Vec<&Fixture>> = BTreeMap::new();
    for fixture in fixtures {
        let vendor = fixture.vendor();
        vendors.entry((vendor == "generic", vendor)).or_default().push(fixture);
    }
    vendors.values_mut().for_each(|fixtures| fixtures.sort_by_key(|fixture| fixture.case()));
    vendors.into_iter().map(|((_, vendor), fixtures)| (vendor, fixtures)).collect()
}

/// The kinds of fixtures with the symptom of each, as the page of the fixtures has them.
fn symptoms() -> Vec<(String, String)> {
    let page = fs::read_to_string(fixture::root().join("README.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(kind, rest)| (kind.to_owned(), rest.trim_end_matches(" |").to_owned())).collect()
}

fn document(fixtures: &[Fixture]) -> String {
    let vendors = vendors(fixtures);
    let links: Vec<_> =
        vendors.iter().map(|(name, _)| format!("[{name}](#{})", anchor(name))).collect();
    let mut text = format!("{INTRODUCTION}{}\n\n## By symptom\n\n", links.join(" · "));
    write!(
        text,
        "{} fixtures:\n\n| what is seen | cases | where |\n| --- | --- | --- |\n",
        fixtures.len()
    )
    .unwrap();
    for (kind, symptom) in symptoms() {
        let of = |(name, all): &(&str, Vec<&Fixture>)| {
            let has = all.iter().any(|fixture| fixture.kind() == kind);
            has.then(|| format!("[{name}](#{})", anchor(name)))
        };
        let places: Vec<String> = vendors.iter().filter_map(of).collect();
        let count = fixtures.iter().filter(|fixture| fixture.kind() == kind).count();
        writeln!(
            text,
            "| {symptom} | {count} [{kind}](../tests/fixtures/{kind}) | {} |",
            places.join(", ")
        )
        .unwrap();
    }
    text.push_str(ROWS);
    for (upstream, fixtures) in vendors {
        write!(
            text,
            "\n## {upstream}\n\n| what it does, or needs | what follows | fixture |\n| --- | --- | --- |\n"
        )
        .unwrap();
        // A deviation of streams and of whole answers is one row.
        let mut rows: Vec<(String, String)> = Vec::new();
        for fixture in fixtures {
            let why = fixture.meta["why"].as_str().expect("meta.why");
            let cells =
                format!("{} | {}", cell(&with_places(why, fixture)), cell(&outcome(fixture)));
            let link = format!(
                "[{}](../tests/fixtures/{}){}",
                fixture.case(),
                fixture.name,
                sources(fixture)
            );
            match rows.iter_mut().find(|(known, _)| *known == cells) {
                Some((_, links)) => *links = format!("{links}, {link}"),
                None => rows.push((cells, link)),
            }
        }
        for (cells, links) in rows {
            writeln!(text, "| {cells} | {links} |").unwrap();
        }
    }
    text
}

/// Returns the anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    heading.replace('.', "").replace(' ', "-")
}

/// The name in a note on where something was seen (`name (what is known of it)`). What is
/// uncertain, or names nobody, is not for readers.
fn place(note: &str) -> Option<&str> {
    const NOBODY: [&str; 5] = ["all", "any", "some", "defensive", "behind"];
    let name = note.split(['(', ':']).next()?.trim();
    let plain = name.chars().all(|c| c.is_alphanumeric() || " .,-".contains(c));
    let uncertain = note.contains(['?', '#']) || note.contains("unspecified");
    let nobody = NOBODY.iter().any(|word| name.split(' ').next() == Some(*word));
    (plain && !uncertain && !nobody && !name.is_empty()).then_some(name)
}

/// Adds to `why` the places, beside that of the heading, where the behaviour was seen.
fn with_places(why: &str, fixture: &Fixture) -> String {
    let seen = fixture.meta["seen_at"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let first = |name: &str| name.split([' ', '-', '/']).next().unwrap_or_default().to_lowercase();
    let heading = first(fixture.vendor());
    let names = seen.filter_map(place).filter(|name| first(name) != heading);
    let names: BTreeSet<&str> = names.collect();
    if names.is_empty() {
        return why.to_owned();
    }
    let also = if fixture.vendor() == "generic" { "" } else { "also: " };
    format!("{why} ({also}{})", names.into_iter().collect::<Vec<_>>().join(", "))
}

/// Links to what shows the deviation.
fn sources(fixture: &Fixture) -> String {
    let links = fixture.meta["source"].as_array().into_iter().flatten().filter_map(Value::as_str);
    links.zip(1..).map(|(link, number)| format!(" [{number}]({link})")).collect()
}

/// Describes what a client gets, or what the upstream is sent.
fn outcome(fixture: &Fixture) -> String {
    let expected = &fixture.expected;
    if let Some(variants) = expected["variants"].as_array() {
        let mut results: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for variant in variants {
            let result = match variant["error"]["type"].as_str() {
                Some(kind) => format!("refused as `{kind}`"),
                None => "sent".to_owned(),
            };
            results.entry(result).or_default().insert(configuration(variant));
        }
        let with = |(result, configurations): (String, BTreeSet<String>)| {
            let all: Vec<String> = configurations.into_iter().collect();
            format!("{result} with {}", all.join(", "))
        };
        return results.into_iter().rev().map(with).collect::<Vec<_>>().join("; ");
    }
    let mut parts = Vec::new();
    for (way, expected) in
        [("", expected), ("streamed: ", &expected["streamed"]), ("whole: ", &expected["whole"])]
    {
        let said = answer(expected, fixture.kind() == "usage-wrong");
        if !said.is_empty() {
            parts.push(format!("{way}{said}"));
        }
    }
    if parts.is_empty() { "passed on as it is".to_owned() } else { parts.join("; ") }
}

/// The preset of a variant, and what else is set in it.
fn configuration(variant: &Value) -> String {
    let mut text = format!("`{}`", variant["profile"].as_str().unwrap_or("default"));
    if let Some(protocol) = variant["protocol"].as_str() {
        write!(text, " and `protocol: {protocol}`").unwrap();
    }
    for of in ["profile_overrides", "settings"] {
        for (key, value) in variant[of].as_object().into_iter().flatten() {
            write!(text, " and `{key}: {}`", value.to_string().replace('"', "")).unwrap();
        }
    }
    text
}

/// Describes an answer; its counts of tokens only where the fixture is about them.
fn answer(expected: &Value, with_usage: bool) -> String {
    let mut parts = Vec::new();
    if let Some(kind) = expected["error"]["type"].as_str() {
        parts.push(match expected["status"].as_u64() {
            Some(status) => format!("`{kind}`, status {status}"),
            None => format!("`{kind}`"),
        });
    } else if let Some(part) = expected["error"]["message_contains"].as_str() {
        parts.push(format!("an error that says “{part}”"));
    }
    if let Some(blocks) = expected["content"].as_array() {
        let kinds: Vec<String> =
            blocks.iter().map(|block| format!("`{}`", block["type"].as_str().unwrap())).collect();
        parts.push(if kinds.is_empty() { "no content".to_owned() } else { kinds.join(", ") });
    }
    let calls = expected["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"));
    let usual = if calls { "tool_use" } else { "end_turn" };
    if let Some(reason) = expected["stop_reason"].as_str().filter(|reason| *reason != usual) {
        parts.push(format!("stop reason `{reason}`"));
    }
    for (key, count) in expected["usage"].as_object().into_iter().flatten() {
        if with_usage && count.is_u64() {
            parts.push(format!("{key} {count}"));
        }
    }
    for code in expected["warnings"].as_array().into_iter().flatten() {
        let code = code.as_str().unwrap();
        if with_usage || code != "usage_estimated" {
            parts.push(format!("warning `{code}`"));
        }
    }
    parts.join(", ")
}

/// Escapes text that would end a cell, or be read as markup.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
