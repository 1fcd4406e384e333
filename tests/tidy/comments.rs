//! Comments that cannot be read alone.
//!
//! An editor shows a doc comment without its neighbours, so its first line must name its subject.

use crate::{none, read, with_ending};

/// Beginnings without a noun: pronouns, relative clauses and bare prepositions.
const BEGINNINGS: &str = "What Whatever Whose Which Where How Why Who When Whether It Its It's Those These That This \
    One Ones All Nothing None Some Both Each So Such As Of By In With From For To On At Behind Beside Under After \
    Before Without Until Through Other Others Rest Same";

/// Folders, and how many of their comments begin so. The numbers may only fall.
const COUNTS: [(&str, usize); 10] = [
    ("src", 0),
    ("gateway", 13),
    ("demo", 1),
    ("envoy", 0),
    ("cloudflare", 0),
    ("wit", 0),
    ("json", 0),
    ("xtask", 15),
    ("harness", 5),
    ("tests", 0),
];

/// Whether a first line begins without naming its subject.
fn begins_badly(line: &str) -> bool {
    let mut words = line.split(|letter: char| !(letter.is_alphanumeric() || letter == '\''));
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    let word = match first {
        // A subject follows.
        "Whether" => {
            let is_named = second.starts_with(|letter: char| letter.is_ascii_lowercase());
            if is_named && !["it", "they", "that", "this", "there"].contains(&second) {
                return false;
            }
            first
        }
        "As" if second == "of" => return false,
        "In" if second == "place" => return false,
        "For" if second == "example" => return false,
        "This" if second != "one" => return false,
        "The" => match second {
            "same" => "Same",
            "other" => "Other",
            "others" => "Others",
            "rest" => "Rest",
            _ => return false,
        },
        "Other" | "Others" | "Rest" | "Same" => return false,
        first => first,
    };
    BEGINNINGS.split_whitespace().any(|beginning| beginning == word)
}

/// The first lines of the comments of a file: of the file itself, and of each block of `///`
/// outside of its tests.
fn first_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_tests = |at: usize| {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        lines[at] == "#[cfg(test)]" && next.contains("mod ") && next.ends_with('{')
    };
    let end = (0..lines.len()).find(|at| is_tests(*at)).unwrap_or(lines.len());
    let of_file = lines.iter().find_map(|line| line.strip_prefix("//!")).map(str::trim);
    let starts = (0..end).filter(|at| {
        let before = at.checked_sub(1).map_or("", |at| lines[at]);
        lines[*at].starts_with("///") && !before.starts_with("///")
    });
    let of_items = starts.map(|at| lines[at][3..].trim());
    let says = |line: &&str| !line.is_empty();
    let is_prose = |line: &&str| !(line.starts_with("```") || line.starts_with(['#', '|']));
    of_file.filter(says).into_iter().chain(of_items.filter(says).filter(is_prose)).collect()
}

#[test]
fn comments_name_their_subject() {
    let wrong: Vec<String> = COUNTS
        .iter()
        .filter_map(|(folder, expected)| {
            let is_of_tests = ["tests", "harness"].contains(folder);
            let files = with_ending(folder, "rs").into_iter().filter(|path| {
                let path = path.to_string_lossy();
                let is_test = ["/test/", "/tests/"].iter().any(|part| path.contains(part));
                is_of_tests || !(is_test || path.ends_with("tests.rs"))
            });
            let mut found = Vec::new();
            for path in files {
                let text = read(&path);
                let bad = first_lines(&text).into_iter().filter(|line| begins_badly(line));
                found.extend(bad.map(|line| format!("{}: {line}", path.display())));
            }
            let last = found.last().cloned().unwrap_or_default();
            let said =
                format!("{folder}: {} in place of {expected}; the last: {last}", found.len());
            (found.len() != *expected).then_some(said)
        })
        .collect();
    none("write fewer, or the smaller number here", &wrong);
}

#[test]
fn beginnings_without_a_subject_are_found() {
    for line in [
        "Those of the answer.",
        "As the upstream knows it.",
        "The rest.",
        "Whether it is",
        "It's one",
        "This one is",
        "Of each call.",
        "The same as above",
    ] {
        assert!(begins_badly(line), "{line}");
    }
    for line in [
        "Calls in flight.",
        "Whether the upstream sees images.",
        "For example",
        "The index.",
        "This crate translates.",
        "As of today",
        "In place of a stream",
    ] {
        assert!(!begins_badly(line), "{line}");
    }
    let text =
        "//! A file.\nuse a;\n/// One.\n/// Two.\nfn f() {}\n#[cfg(test)]\nmod tests {\n/// It.\n}";
    assert_eq!(first_lines(text), ["A file.", "One."]);
}
