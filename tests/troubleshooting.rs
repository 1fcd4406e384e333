//! `docs/troubleshooting.md` is complete and true: every error text, error code, warning and guard
//! of the sources is on the page, and every text on the page is in the sources. Every code is in a
//! test, too.
//!
//! `CREOLE_WRITE=1 cargo test -p creole --test troubleshooting` writes the tables of warnings and
//! guards.
#![cfg(not(target_family = "wasm"))] // about files, which are the same whatever the target
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::arithmetic_side_effects, clippy::string_slice, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use creole::observe::meanings::{CodeMeaning, GUARDS, WARNINGS};

/// Folders whose code makes errors. Hosts beside Envoy add reasons of connections and of their own
/// start.
const PLACES: [&str; 6] = ["src", "json/src", "envoy/src", "gateway/src", "cloudflare/src", "wit"];

/// A statement that makes an error, or the text of one, has one of these.
const MAKERS: [&str; 11] = [
    "invalid(",
    "Error::new(",
    "misbehaved(",
    "Error::value(",
    "refuse(",
    "error(Fault",
    "unreachable(",
    "let message",
    "Due::Stalled(",
    "Level::Error",
    "self.end = ",
];

/// Not said to clients and operators: notes to the model (`tool_schema`) and tests' helpers.
const ELSEWHERE: [&str; 2] = ["src/json_schema/input.rs", "src/fuzz.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = PLACES.iter().map(|place| root().join(place)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !name.contains("tests") {
                let text = fs::read_to_string(&path).unwrap();
                let product = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
                found.push((name, product));
            }
        }
    }
    assert!(found.len() > 80, "the sources are elsewhere: {}", found.len());
    found
}

/// The string literals of a source with the statement before each, comments left out.
fn literals(source: &str) -> Vec<(String, String)> {
    let bytes = source.as_bytes();
    let (mut found, mut statement, mut at) = (Vec::new(), String::new(), 0);
    while at < bytes.len() {
        let rest = &source[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(length) = character(rest) {
            at += length;
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = rest.find('"').unwrap() + 1;
            at += begin + rest[begin..].find(&end).unwrap() + end.len();
        } else if rest.starts_with('"') {
            let mut end = 1;
            while rest.as_bytes()[end] != b'"' {
                end += if rest.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            found.push((statement.clone(), literal(&rest[1..end])));
            at += end + 1;
        } else {
            let letter = rest.chars().next().unwrap();
            match letter {
                ';' | '{' | '}' => statement.clear(),
                _ => statement.push(letter),
            }
            at += letter.len_utf8();
        }
    }
    found
}

fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// `'"'` and `'\n'`, and no lifetime.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let length = if inside.starts_with('\\') { 2 } else { inside.chars().next()?.len_utf8() };
    (inside.get(length..)?.starts_with('\'')).then_some(length + 2)
}

/// Returns a literal in the form that a user reads: lines joined, `{…}` as `…`.
fn literal(raw: &str) -> String {
    let mut text = String::new();
    let mut letters = raw.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('\n') => while letters.next_if(|next| next.is_whitespace()).is_some() {},
                Some(escaped) => text.push(escaped),
                None => {}
            },
            '{' if letters.next_if_eq(&'{').is_some() => text.push('{'),
            '}' if letters.next_if_eq(&'}').is_some() => text.push('}'),
            '{' => {
                letters.by_ref().find(|inside| *inside == '}');
                text.push('…');
            }
            _ => text.push(letter),
        }
    }
    text
}

/// Mark between the tables of symptoms and the reference.
const MARK: &str =
    "<!-- From here on, tests/troubleshooting.rs compares the tables with the code -->\n";

/// The first cells of all tables of the reference, without backticks around them.
fn cells() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let (_, page) = page.split_once(MARK).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next()).filter(|cell| cell.contains('`'));
    cells
        .map(|cell| match cell.strip_prefix("``").and_then(|cell| cell.strip_suffix("``")) {
            Some(cell) => cell.trim().to_owned(),
            None => cell.trim_matches('`').to_owned(),
        })
        .collect()
}

#[test]
fn literals_are_found_with_their_statements() {
    let source = "let x = 'a'; // \"no\"\nlet message = format!(\"a {b} \\\n    {{c}} \\\"d\\\"\");\nr#\"raw \"#;\n'\"'";
    assert_eq!(
        literals(source),
        [(" \nlet message = format!(".to_owned(), "a … {c} \"d\"".to_owned())]
    );
}

/// Fails if a literal that `is_told`, by its statement and its text, is not in the first cells of
/// the page. There are more than `least` of them in the sources, but for files with one of the
/// names `but`.
#[track_caller]
fn are_on_the_page(but: &[&str], least: usize, is_told: impl Fn(&str, &str) -> bool) {
    let cells: BTreeSet<String> = cells().into_iter().collect();
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for (name, text) in sources() {
        if ELSEWHERE.contains(&name.as_str()) || but.contains(&name.as_str()) {
            continue;
        }
        for (statement, text) in literals(&text) {
            if is_told(&statement, &text) {
                seen += 1;
                if !cells.contains(&text) {
                    missing.insert(format!("{name}: {text}"));
                }
            }
        }
    }
    assert!(seen > least, "the rule finds nothing any more: {seen}");
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(missing.is_empty(), "not on the page:\n  {}", missing.join("\n  "));
}

#[test]
fn every_error_of_the_sources_is_on_the_page() {
    are_on_the_page(&[], 100, |statement, text| {
        let makes = MAKERS.iter().any(|maker| statement.contains(maker));
        // Shorter ones are names: of a field, a header, a file.
        makes && text.len() >= 12 && text.contains(' ') && !text.starts_with('\'')
    });
}

/// Words of the configuration's help, of clients, and of `creole check` and requests of Creole's
/// own to a model, which nobody gets from Creole.
const OTHER_SENTENCES: [&str; 8] = [
    "src/config/schema.rs",
    "src/guards/claude_code.rs",
    "src/steps/verdicts/brief.rs",
    "src/steps/verdicts/question.rs",
    "src/steps/descriptions.rs",
    "src/steps/tools/side_query.rs",
    "src/tools/web_search.rs",
    "gateway/src/check/ask.rs",
];

#[test]
fn every_sentence_in_a_constant_is_on_the_page() {
    are_on_the_page(&OTHER_SENTENCES, 8, |statement, text| {
        // What upstreams say, Creole does not.
        let is_constant = statement.contains("const ")
            && statement.contains(": &str")
            && !statement.contains("phrases!");
        let begins = |letter: char| letter.is_ascii_uppercase() || letter == '[';
        is_constant && text.starts_with(begins) && text.trim().contains(' ')
    });
}

#[test]
fn every_text_of_the_page_is_in_the_sources() {
    let all: Vec<String> = sources()
        .iter()
        .flat_map(|(_, text)| literals(text))
        .map(|(_, text)| text.trim().to_owned())
        .collect();
    let lost: Vec<String> =
        cells().into_iter().filter(|cell| !all.iter().any(|text| text == cell)).collect();
    assert!(lost.is_empty(), "not in the sources:\n  {}", lost.join("\n  "));
}

/// Calls that give a warning, with its code.
const WARNERS: [&str; 6] = [
    "warnings.add(",
    ".warn(",
    "add_named(",
    "warn_named(",
    "WarningName::Code(",
    "WarningName::Key(key) => (",
];

/// Calls that note a guard, with its code.
const GUARDERS: [&str; 2] = ["acted(", "guards.push("];

/// The codes of warnings, guards and errors that the core gives.
fn codes() -> BTreeSet<String> {
    codes_of(&[&WARNERS[..], &GUARDERS[..], &["with_code("]].concat())
}

/// The codes that the core gives with one of these calls.
fn codes_of(makers: &[&str]) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for (_, text) in sources().into_iter().filter(|(name, _)| name.starts_with("src/")) {
        for (statement, text) in literals(&text) {
            let made = makers.iter().any(|maker| {
                statement.rsplit_once(maker).is_some_and(|(_, after)| !after.contains([')', ',']))
            });
            if made {
                codes.insert(text);
            }
        }
    }
    for (name, text) in sources().into_iter().filter(|(name, _)| name.starts_with("src/")) {
        let adders = ["warnings.add_named(", "warnings.add(", ".warn("];
        // These count what is a constant, or what they are given; both were looked for above.
        let counts_refused =
            ["src/exchange/retry.rs", "src/answer/output.rs"].contains(&name.as_str());
        let adders = adders.iter().filter(|_| !counts_refused);
        for after in adders.flat_map(|adder| text.split(adder).skip(1)) {
            let is_seen = after.trim_start().starts_with('"');
            assert!(is_seen, "{name}: write the code where it is added, so that it is seen here");
        }
    }
    codes
}

#[test]
fn every_warning_and_every_guard_has_a_meaning() {
    let of = |table: &[CodeMeaning]| table.iter().map(|row| row.code.to_owned()).collect();
    let warnings: BTreeSet<String> = of(WARNINGS);
    let guards: BTreeSet<String> = of(GUARDS);
    assert_eq!(warnings.len(), WARNINGS.len(), "a code comes twice");
    let given = codes_of(&WARNERS);
    assert!(given.len() > 35, "the rule finds nothing any more: {given:?}");
    assert_eq!(given.difference(&warnings).collect::<Vec<_>>(), Vec::<&String>::new(), "lost");
    let all = codes();
    let gone: Vec<_> = warnings.union(&guards).filter(|code| !all.contains(*code)).collect();
    assert!(gone.is_empty(), "given nowhere: {gone:?}");
    let acted: Vec<_> =
        codes_of(&GUARDERS).into_iter().filter(|code| !given.contains(code)).collect();
    assert_eq!(acted, guards.into_iter().collect::<Vec<_>>());
}

/// Returns the table that stands behind a mark: of all warnings, of the guards, or of these codes.
fn table(chosen: &str) -> String {
    let rows: Vec<&CodeMeaning> = match chosen {
        "all" => WARNINGS.iter().collect(),
        "guards" => GUARDS.iter().collect(),
        codes => codes
            .split(' ')
            .map(|code| WARNINGS.iter().find(|row| row.code == code).unwrap())
            .collect(),
    };
    let mut text = "| code | meaning |\n|---|---|\n".to_owned();
    for CodeMeaning { code, what, more } in rows {
        let between = if more.is_empty() { "" } else { ". " };
        text += &format!("| `{code}` | {what}{between}{more} |\n");
    }
    text
}

#[test]
fn the_tables_of_warnings_are_written_by_the_code() {
    let mut seen = 0;
    for name in ["docs/troubleshooting.md", "docs/guards.md"] {
        let found = fs::read_to_string(root().join(name)).unwrap();
        let mut parts = found.split("<!-- codes: ");
        let mut expected = parts.next().unwrap().to_owned();
        for part in parts {
            let (chosen, rest) = part.split_once(" -->\n\n").unwrap();
            let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
            let between = if after.is_empty() { "" } else { "\n" };
            expected += &format!("<!-- codes: {chosen} -->\n\n{}{between}{after}", table(chosen));
            seen += 1;
        }
        if std::env::var_os("CREOLE_WRITE").is_some() {
            fs::write(root().join(name), &expected).unwrap();
        }
        let found = fs::read_to_string(root().join(name)).unwrap();
        assert!(
            found == expected,
            "{name} is old: CREOLE_WRITE=1 cargo test -p creole --test troubleshooting"
        );
    }
    assert!(seen > 2, "the documents have lost their tables: {seen}");
}

#[test]
fn every_code_of_the_sources_is_on_the_page() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let codes = codes();
    let lost: Vec<&String> =
        codes.iter().filter(|code| !page.contains(&format!("`{code}`"))).collect();
    assert!(lost.is_empty(), "not on the page: {lost:?}");
}

#[test]
fn every_code_of_the_sources_is_in_a_test() {
    let mut codes = codes();
    let mut folders = vec![root().join("tests"), root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
            let is_test = name.ends_with(".rs") || name.ends_with("expected.json");
            if path.is_dir() {
                if !name.ends_with("node_modules") {
                    folders.push(path);
                }
            } else if is_test && !name.ends_with("troubleshooting.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = match name.starts_with("src") && !name.contains("tests") {
                    true => text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests),
                    false => text.as_str(),
                };
                for word in text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_')
                {
                    codes.remove(word);
                }
            }
        }
    }
    assert!(codes.is_empty(), "in no test: {codes:?}");
}
