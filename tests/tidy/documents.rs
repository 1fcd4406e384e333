//! Documents: their paths, links and headings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{none, read, root, with_ending};

/// The names in backticks and the targets of links in a document, outside of code blocks.
pub(crate) fn names(text: &str) -> (Vec<&str>, Vec<&str>) {
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
fn every_code_block_of_a_document_ends_where_its_fence_stands_alone() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in with_ending("", "md") {
        let text = read(&document);
        let mut open = false;
        for (index, line) in text.lines().enumerate() {
            let Some(at) = line.find("```") else { continue };
            seen += 1;
            // The word behind an opening fence is the language.
            let alone = line[..at].trim().is_empty();
            let word = line[at..].trim_start_matches('`');
            if !alone || word.contains(' ') || (open && !word.is_empty()) {
                wrong.push(format!("{}:{}: {line}", document.display(), index + 1));
            }
            open = !open;
        }
        if open {
            wrong.push(format!("{}: the last block has no end", document.display()));
        }
    }
    assert!(seen > 100, "the rule finds no code blocks any more: {seen}");
    none("fences of code blocks that are none", &wrong);
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

/// Counts the words of a page that are written by hand. Tables and transcripts that tests and
/// commands write stand below a mark.
fn words_by_hand(text: &str) -> usize {
    let by_hand = text.split("\n<!-- From here on, made ").next().unwrap_or_default();
    let mut parts = by_hand.split("\n<!-- ");
    let before = parts.next().unwrap_or_default().split_whitespace().count();
    let after = parts.map(|part| {
        let end = if part.starts_with("codes: ") {
            part.match_indices("\n\n").nth(1).map_or(part.len(), |(at, _)| at)
        } else if part.starts_with("transcript: ") {
            part.find("\n```\n").unwrap_or(part.len())
        } else {
            0
        };
        part[end..].split_whitespace().count()
    });
    before + after.sum::<usize>()
}

#[test]
fn words_that_code_writes_are_not_counted() {
    let page = "one two\n<!-- codes: all -->\n\n| a | b |\n\nthree\n<!-- transcript: x -->\n```text\na b\n\nc\n```\n\
                four\n\n<!-- From here on, made from the code -->\nfive";
    assert_eq!(words_by_hand(page), "one two three ``` four".split(' ').count());
}

#[test]
fn the_pages_for_users_stay_short() {
    const WORDS_MAX: usize = 45_000;
    const README_LINES_MAX: usize = 100;
    let summary = read(Path::new("docs/SUMMARY.md"));
    let (of_users, _) = summary.split_once("# For makers").expect("the makers' part");
    let pages = names(of_users).1.into_iter().map(|page| Path::new("docs").join(page));
    let mut words: Vec<(usize, String)> = pages
        .chain([PathBuf::from("README.md")])
        .map(|page| (words_by_hand(&read(&page)), page.display().to_string()))
        .collect();
    words.sort();
    let sum: usize = words.iter().map(|(words, _)| words).sum();
    assert!(sum > 10_000, "the rule finds no pages any more: {words:?}");
    assert!(sum <= WORDS_MAX, "a user reads {sum} words, and {WORDS_MAX} are enough: {words:?}");
    let lines = read(Path::new("README.md")).lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}

#[test]
fn fractions_of_processor_time_are_those_of_the_last_run() {
    let page = read(Path::new("docs/speed.md"));
    let (by_hand, measured) = page.split_once("<!-- From here on, made").unwrap();
    let readme = read(Path::new("README.md"));
    let quoted: Vec<String> = [by_hand, &readme]
        .into_iter()
        .flat_map(|text| text.split(" 1/").skip(1))
        .map(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().to_owned())
        .collect();
    assert!(quoted.len() > 4, "the pages have no fractions any more: {quoted:?}");
    let is_measured = |number: &String| measured.contains(&format!("| {number}x |"));
    let lost: Vec<String> = quoted.into_iter().filter(|number| !is_measured(number)).collect();
    none("fractions that are not in the last run: 1/", &lost);
}

#[test]
fn a_change_is_one_line_of_the_changelog() {
    const COLUMNS_MAX: usize = 120;
    let changelog = read(Path::new("CHANGELOG.md"));
    let mut wrong: Vec<String> = Vec::new();
    let changes = changelog.lines().filter(|line| line.starts_with("- "));
    wrong.extend(changes.filter(|line| line.chars().count() > COLUMNS_MAX).map(str::to_owned));
    wrong.extend(changelog.lines().filter(|line| line.starts_with("  ")).map(str::to_owned));
    none("changes of more than a line", &wrong);
}

/// Returns the functions that a page names as `name()`, each with the file that the page named last
/// before it.
fn named_functions(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut file = None;
    for span in names(text).0 {
        if span.ends_with(".rs") && span.contains('/') {
            file = Some(span);
        } else if let (Some(file), Some(name)) = (file, span.strip_suffix("()")) {
            found.push((file.to_owned(), name.to_owned()));
        }
    }
    found
}

#[test]
fn the_architecture_names_functions_that_exist() {
    let page = read(Path::new("docs/dev/architecture.md"));
    let from = page.find("## Where it is decided").expect("where it is decided");
    let to = page.find("## Rules that the tests enforce").expect("the rules");
    let named = named_functions(&page[from..to]);
    assert!(named.len() > 20, "the page names no functions any more: {named:?}");
    let lost = named.into_iter().filter(|(file, name)| {
        let source = read(Path::new(file));
        !source.contains(&format!("fn {name}(")) && !source.contains(&format!("fn {name}<"))
    });
    let lost: Vec<String> = lost.map(|(file, name)| format!("{file}: {name}()")).collect();
    none("functions that are not there", &lost);
}
