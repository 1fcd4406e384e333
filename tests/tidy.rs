//! The written rules of the project, enforced: CONTRIBUTING.md says them in words.
#![cfg(not(target_family = "wasm"))] // about files, which are the same whatever the target
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A longer file does too much: split it.
const LINES_MAX: usize = 600;

/// The width of comments; rustfmt keeps that of code.
const COLUMNS_MAX: usize = 120;

/// Names that say nothing of what is in a file.
const EMPTY_NAMES: [&str; 8] =
    ["common", "helper", "helpers", "manager", "misc", "util", "utils", "shared"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the project below a folder, by their path from the root.
fn files(folder: &str) -> Vec<PathBuf> {
    const SKIPPED: [&str; 7] =
        [".creole", ".git", "dist", "node_modules", "target", "__pycache__", "Cargo.lock"];
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
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

/// The code of a file before its unit tests, without comments.
fn code(path: &Path) -> String {
    let text = read(path);
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

/// `src/sse/mod.rs` is in `stream`, `src/error.rs` is `error`; the package `json/` is `json`.
fn module(path: &Path) -> String {
    let inside = path.strip_prefix("src").unwrap_or(path);
    let first = inside.components().next().unwrap().as_os_str();
    first.to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// Every path that begins with `crate::`, with the braces of imports spread out, two names deep.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let tree: String = after.chars().filter(|c| !c.is_whitespace()).collect();
        spread(&tree, "", &mut found);
    }
    found
}

/// Reads one import tree and gives what follows it.
fn spread<'a>(tree: &'a str, before: &str, found: &mut BTreeSet<String>) -> &'a str {
    if let Some(mut inside) = tree.strip_prefix('{') {
        loop {
            inside = spread(inside, before, found);
            match inside.strip_prefix(',') {
                Some(next) if !next.starts_with('}') => inside = next,
                Some(next) => return next.strip_prefix('}').unwrap_or(next),
                None => return inside.strip_prefix('}').unwrap_or(inside),
            }
        }
    }
    let end = tree.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tree.len());
    let (name, rest) = tree.split_at(end);
    let path = match (before, name) {
        (_, "self") => before.to_owned(),
        ("", _) => name.to_owned(),
        _ => format!("{before}::{name}"),
    };
    match rest.strip_prefix("::") {
        Some(deeper) => spread(deeper, &path, found),
        None => {
            found.insert(path.split("::").take(2).collect::<Vec<_>>().join("::"));
            rest
        }
    }
}

#[test]
fn import_trees_are_spread_out() {
    let code = "use crate::a::{self, b::{c, d}, e}; use crate::{f, g::h}; x(crate::i::j::k());";
    let wanted = ["a", "a::b", "a::e", "f", "g::h", "i::j"];
    assert_eq!(imports(code), wanted.map(str::to_owned).into());
}

/// What each module may import from others, by the last column of the table in docs/dev/architecture.md;
/// `module::part` allows that part alone.
fn may_import() -> BTreeMap<String, BTreeSet<String>> {
    let text = read(Path::new("docs/dev/architecture.md"));
    let lines = text.lines().skip_while(|line| !line.starts_with("| module |")).skip(2);
    let mut rows = BTreeMap::new();
    for row in lines.take_while(|line| line.starts_with('|')) {
        let cell = |number| names(row.split('|').nth(number).unwrap()).0;
        let allowed: BTreeSet<String> = cell(3).into_iter().map(str::to_owned).collect();
        for room in cell(1) {
            rows.insert(module(Path::new(room)), allowed.clone());
        }
    }
    rows
}

#[test]
fn modules_import_what_the_architecture_says_and_nothing_else() {
    let may_import = may_import();
    let mut wrong = Vec::new();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let here: BTreeSet<String> = with_ending("src", "rs").iter().map(|path| module(path)).collect();
    for path in with_ending("src", "rs") {
        let module = module(&path);
        if module == "lib" || is_test(&path) {
            continue;
        }
        let Some(allowed) = may_import.get(&module) else {
            wrong.push(format!("{}: the module has no row in the table", path.display()));
            continue;
        };
        let used = used.entry(module.clone()).or_default();
        for import in imports(&code(&path)) {
            let first = import.split("::").next().unwrap();
            // What is not a module is a type of lib.rs, such as `crate::Millis`.
            let own = first == module || !here.contains(first);
            if !own && !allowed.contains(first) && !allowed.contains(&import) {
                wrong.push(format!("{}: {import}", path.display()));
            }
            used.extend([first.to_owned(), import]);
        }
    }
    for (module, allowed) in &may_import {
        // The manifest of a package of its own says what that uses.
        if root().join(module).join("Cargo.toml").exists() {
            continue;
        }
        let used = used.get(module).cloned().unwrap_or_default();
        let unused = allowed.difference(&used);
        wrong.extend(unused.map(|name| format!("{module} may import {name}, but does not")));
    }
    none("imports and the table in docs/dev/architecture.md differ", &wrong);
}

#[test]
fn no_source_file_is_too_long() {
    let long = with_ending("", "rs").into_iter().filter_map(|path| {
        let lines = read(&path).lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", path.display()))
    });
    none(&format!("files of more than {LINES_MAX} lines"), &long.collect::<Vec<_>>());
}

/// The text of a line that is nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

#[test]
fn doc_comments_can_be_read_alone() {
    // An editor shows a comment without the one before it.
    let mut wrong = Vec::new();
    for path in with_ending("", "rs") {
        for (at, line) in read(&path).lines().enumerate() {
            let is_doc = line.trim_start().starts_with("///");
            if is_doc && comment(line).is_some_and(|text| text.starts_with("The same")) {
                wrong.push(format!("{}:{}", path.display(), at + 1));
            }
        }
    }
    none("these say of what only where another comment is read, too", &wrong);
}

#[test]
fn no_comment_is_wider_than_the_project() {
    let mut wrong = Vec::new();
    for path in with_ending("", "rs") {
        for (at, line) in read(&path).lines().enumerate() {
            // Rows of a table and addresses cannot be broken.
            let breaks = |text: &str| !text.starts_with('|') && !text.contains("://");
            if line.chars().count() > COLUMNS_MAX && comment(line).is_some_and(breaks) {
                wrong.push(format!("{}:{}", path.display(), at + 1));
            }
        }
    }
    none("these comments are wider than 120 columns", &wrong);
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

#[test]
fn no_code_is_left_to_be_written() {
    let words = ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX:", "#[ignore"];
    let mut found = Vec::new();
    for path in with_ending("", "rs") {
        // This file has the words to look for.
        if path.ends_with("tests/tidy.rs") {
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

/// The names in backticks and the targets of links in a document, outside of code blocks.
fn names(text: &str) -> (Vec<&str>, Vec<&str>) {
    let prose = text.split("\n```").step_by(2);
    let mut spans = Vec::new();
    let mut links = Vec::new();
    for part in prose {
        spans.extend(part.split('`').skip(1).step_by(2));
        links.extend(part.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
    }
    (spans, links)
}

#[test]
fn documents_name_only_paths_that_exist() {
    let made = ["dist/", ".creole/", "target/"];
    let top: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut wrong = Vec::new();
    for document in with_ending("", "md") {
        let text = read(&document);
        let folder = root().join(&document).parent().unwrap().to_path_buf();
        let (spans, links) = names(&text);
        for span in spans {
            let plain = span.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
            let first = span.split('/').next().unwrap_or_default();
            let inside = span.contains('/') && top.iter().any(|name| name == first);
            let file = [".rs", ".md", ".toml", ".yaml"].iter().any(|ending| span.ends_with(ending));
            let wanted = plain && (inside || (file && span.contains('/')));
            let exists = root().join(span).exists() || folder.join(span).exists();
            if wanted && !exists && !made.iter().any(|made| span.starts_with(made)) {
                wrong.push(format!("{}: {span}", document.display()));
            }
        }
        for link in links {
            let target = link.split('#').next().unwrap_or_default();
            let elsewhere =
                target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !folder.join(target).exists() {
                wrong.push(format!("{}: link to {target}", document.display()));
            }
        }
    }
    none("documents name what does not exist", &wrong);
}

/// The anchors of a document, as they are made of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n");
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let letters = heading.trim_start_matches('#').trim().chars();
        let kept = letters.filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_to_headings_lead_to_headings() {
    let mut dead = Vec::new();
    let mut seen = 0;
    for document in with_ending("", "md") {
        let text = read(&document);
        let folder = root().join(&document).parent().unwrap().to_path_buf();
        for link in names(&text).1 {
            let Some((file, anchor)) = link.split_once('#') else { continue };
            if link.contains("://") || (!file.is_empty() && !file.ends_with(".md")) {
                continue;
            }
            seen += 1;
            let target = if file.is_empty() { root().join(&document) } else { folder.join(file) };
            let target = fs::read_to_string(target).unwrap_or_default();
            if !anchors(&target).contains(anchor) {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(seen > 10, "the rule finds no links any more: {seen}");
    none("links to headings that are not there", &dead);
}

#[test]
fn the_site_has_every_page_once() {
    let summary = read(Path::new("docs/SUMMARY.md"));
    let mut listed: Vec<PathBuf> =
        names(&summary).1.iter().map(|link| Path::new("docs").join(link)).collect();
    listed.sort();
    let mut pages = with_ending("docs", "md");
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(listed, pages, "docs/SUMMARY.md and docs/ differ");
}

#[test]
fn every_document_can_be_found_from_the_readme() {
    let mut reached = BTreeSet::new();
    let mut open = vec![root().join("README.md")];
    while let Some(document) = open.pop() {
        let Ok(document) = document.canonicalize() else { continue };
        let folder = document.parent().unwrap().to_path_buf();
        // The site's own list has every page: it would lead everywhere.
        if document.ends_with("SUMMARY.md") || !reached.insert(document.clone()) {
            continue;
        }
        // A link to a folder leads to every document in it.
        if document.is_dir() {
            open.extend(fs::read_dir(&document).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if document.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&document).unwrap();
            let (_, links) = names(&text);
            let files = links.iter().map(|link| link.split('#').next().unwrap());
            // A link to a heading of the same page is none to its folder.
            open.extend(files.filter(|file| !file.is_empty()).map(|file| folder.join(file)));
        }
    }
    let docs = with_ending("docs", "md").into_iter();
    // Two files are only of the site: its list of pages and its first page.
    let docs = docs.filter(|path| !path.ends_with("SUMMARY.md") && !path.ends_with("index.md"));
    let lost = docs.filter(|path| !reached.contains(&root().join(path).canonicalize().unwrap()));
    let lost: Vec<String> = lost.map(|path| path.display().to_string()).collect();
    none("no link leads from README.md to", &lost);
}

/// The words of a page that are written by hand: tables that tests and commands make stand below a mark.
fn words_by_hand(page: &Path) -> usize {
    let text = read(page);
    let by_hand = text.split("\n<!-- From here on").next().unwrap_or_default();
    by_hand.split_whitespace().count()
}

#[test]
fn the_pages_for_users_stay_short() {
    const WORDS_MAX: usize = 35_000;
    const README_LINES_MAX: usize = 100;
    let mut pages = with_ending("docs", "md");
    // Those for makers may be long, and the page of upstreams is made from the fixtures.
    pages.retain(|page| !page.starts_with("docs/dev") && !page.ends_with("upstreams.md"));
    let words: usize = pages.iter().map(|page| words_by_hand(page)).sum();
    assert!(words > 1_000, "the rule finds no pages any more: {words} words");
    assert!(words <= WORDS_MAX, "docs/ has {words} words, and its readers {WORDS_MAX} at most");
    let lines = read(Path::new("README.md")).lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}
