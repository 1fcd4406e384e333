//! The written rules of the project, enforced: CONTRIBUTING.md says them in words.
#![cfg(not(target_family = "wasm"))] // about files, which are the same whatever the target
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod comments;
mod documents;
mod imports;
mod names;
mod sizes;
mod states;

use std::fs;
use std::path::{Path, PathBuf};

/// The width of comments; rustfmt keeps that of code.
const COLUMNS_MAX: usize = 100;

/// Names that say nothing of what is in a file.
const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "manager", "misc", "util", "utils", "shared"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the project below a folder, by their path from the root.
fn files(folder: &str) -> Vec<PathBuf> {
    const SKIPPED: [&str; 6] =
        [".creole", ".git", "node_modules", "target", "__pycache__", "Cargo.lock"];
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            // Artefacts are in `dist/`; other folders of that name have sources.
            if SKIPPED.iter().any(|skipped| path.ends_with(skipped)) || path == root().join("dist")
            {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(root()).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}

fn with_ending(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = files(folder);
    files.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

/// The text of a line that is nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

#[test]
fn no_comment_is_wider_than_the_project() {
    let mut wrong = Vec::new();
    for path in with_ending("", "rs") {
        let mut is_drawing = false;
        for (at, line) in read(&path).lines().enumerate() {
            is_drawing ^= comment(line).is_some_and(|text| text.starts_with("```"));
            // Rows of a table, drawings, addresses and pieces of code cannot be broken.
            let breaks = |text: &str| {
                let is_code = text.starts_with('`') && text.trim_end_matches('.').ends_with('`');
                !(is_drawing || is_code || text.starts_with('|') || text.contains("://"))
            };
            if line.chars().count() > COLUMNS_MAX && comment(line).is_some_and(breaks) {
                wrong.push(format!("{}:{}", path.display(), at + 1));
            }
        }
    }
    none("these comments are wider than the code", &wrong);
}

#[test]
fn the_name_of_a_source_file_says_what_is_in_it() {
    let is_empty = |path: &&PathBuf| {
        let parts = path.iter().filter_map(|part| Path::new(part).file_stem()?.to_str());
        parts.into_iter().any(|part| EMPTY_NAMES.contains(&part))
    };
    let sources = with_ending("", "rs");
    let found: Vec<String> =
        sources.iter().filter(is_empty).map(|path| path.display().to_string()).collect();
    assert!(!sources.is_empty());
    none("names that say nothing", &found);
}

/// The first word that a text has twice in a row.
fn doubled(text: &str) -> Option<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_word = |word: &str| word.len() > 1 && word.chars().all(char::is_alphabetic);
    words.windows(2).find(|pair| pair[0] == pair[1] && is_word(pair[0])).map(|pair| pair[0])
}

/// The texts between quotation marks in a source file, where lines that go on are joined.
fn literals(text: &str) -> Vec<String> {
    let joined = text.replace("\\\"", " ").replace("\\\n", " ");
    let lines = joined.lines().filter(|line| comment(line).is_none());
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn no_message_says_a_word_twice() {
    assert_eq!(doubled("cannot read a a file file"), Some("file"));
    assert_eq!(literals("f(\"one \\\n  two\") // \"\n// \"x\"").first().unwrap(), "one    two");
    let (mut found, mut read_texts) = (Vec::new(), 0);
    for path in with_ending("", "rs").into_iter().filter(|path| !is_test(path)) {
        let texts = literals(&read(&path));
        read_texts += texts.len();
        for text in texts {
            if let Some(word) = doubled(&text) {
                found.push(format!("{}: {word}: {text}", path.display()));
            }
        }
    }
    assert!(read_texts > 5_000, "{read_texts}");
    none("messages with a word twice", &found);
}

#[test]
fn no_code_is_left_to_be_written() {
    let words = ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX:", "#[ignore"];
    let mut found = Vec::new();
    for path in with_ending("", "rs") {
        // This file has the words to look for.
        if path.ends_with("tests/tidy/main.rs") {
            continue;
        }
        let text = read(&path);
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(*word)) {
                found.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    none("left over", &found);
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    // In pieces, so that this file is none of them.
    let places =
        [["/ho", "me/"], ["/ro", "ot/"], ["/wo", "rk/"], ["/Use", "rs/"]].map(|it| it.concat());
    let starts = [' ', '"', '\'', '`', '(', '=', ':'];
    let mut found = Vec::new();
    for path in files("") {
        let Ok(text) = String::from_utf8(fs::read(root().join(&path)).unwrap()) else { continue };
        for (number, line) in text.lines().enumerate() {
            let named = places.iter().any(|place| {
                let mut parts: Vec<&str> = line.split(place.as_str()).collect();
                parts.pop();
                parts.iter().any(|before| before.is_empty() || before.ends_with(starts))
            });
            if named && !path.starts_with("tests/fixtures") {
                found.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    none("paths of one machine", &found);
}
