//! Limits for the length of files and functions.

use std::path::{Path, PathBuf};

use crate::{is_test, none, read, with_ending};

/// Maximum number of lines of a file. What is always read together stands together; a longer file
/// does too much.
const LINES_MAX: usize = 600;

/// A longer function needs a reason, in a comment above it that begins with [`REASON`].
const FUNCTION_LINES_MAX: usize = 70;

const REASON: &str = "// Long: ";

fn sources() -> Vec<PathBuf> {
    with_ending("", "rs")
}

#[test]
fn no_source_file_is_too_long() {
    let long = sources().into_iter().filter_map(|path| {
        let lines = read(&path).lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", path.display()))
    });
    none("files that are too long", &long.collect::<Vec<_>>());
}

/// The name of the function that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    let is_declaration = before.split_whitespace().all(|word| words.contains(&word));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    is_declaration.then(|| &after[..end])
}

/// The functions of a text that are too long, with the number of their lines.
fn long_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = declared(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &&str| {
            line.trim_end() == format!("{}}}", " ".repeat(indent))
                || (line.len() > indent
                    && line.ends_with(';')
                    && line.len() - line.trim_start().len() == indent)
        };
        // A signature without a body ends with its semicolon.
        let length = lines[at..].iter().position(is_end).map_or(0, |end| end + 1);
        let above = lines[..at].iter().rev().take_while(|line| {
            let line = line.trim_start();
            line.starts_with("//") || line.starts_with("#[") || line.starts_with(')')
        });
        let has_reason = above.into_iter().any(|line| line.trim_start().starts_with(REASON));
        if length > FUNCTION_LINES_MAX && !has_reason {
            found.push((name.to_owned(), length));
        }
    }
    found
}

#[test]
fn no_function_is_too_long_without_a_reason() {
    let mut long = Vec::new();
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let found = long_functions(&read(&path));
        long.extend(
            found.iter().map(|(name, lines)| format!("{}: {name}, {lines}", path.display())),
        );
    }
    none(&format!("functions of more than {FUNCTION_LINES_MAX} lines"), &long);
}

#[test]
fn a_long_function_is_found_and_its_reason_is_read() {
    let body = "    x();\n".repeat(FUNCTION_LINES_MAX);
    let long = format!("pub(crate) fn f(x: u8) {{\n{body}}}\n");
    assert_eq!(long_functions(&long), [("f".to_owned(), FUNCTION_LINES_MAX + 2)]);
    assert!(long_functions(&format!("{REASON}a row for each.\n#[must_use]\n{long}")).is_empty());
    assert!(long_functions("fn f() {\n    x();\n}\n").is_empty());
    assert!(is_test(Path::new("src/a/tests.rs")) && !is_test(Path::new("src/a.rs")));
}
