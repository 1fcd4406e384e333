//! Names of types: each is used once in a package, so that a name says which type is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::{is_test, none, read, root, with_ending};

/// The name of the type that a line declares outside of blocks.
fn declared(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).next()
}

/// Whether a file is no part of a package's library or program.
fn is_aside(path: &Path) -> bool {
    is_test(path) || path.iter().any(|part| part == "benches" || part == "examples")
}

/// The folder of the package that a file belongs to.
fn package(path: &Path) -> &Path {
    let mut folders = path.ancestors().skip(1);
    folders.find(|folder| root().join(folder).join("Cargo.toml").exists()).unwrap()
}

#[test]
fn a_type_has_its_name_for_itself() {
    let mut declarations: BTreeMap<(PathBuf, String), BTreeSet<PathBuf>> = BTreeMap::new();
    for path in with_ending("", "rs").into_iter().filter(|path| !is_aside(path)) {
        let (text, package) = (read(&path), package(&path).to_path_buf());
        for name in text.lines().filter_map(declared) {
            let key = (package.clone(), name.to_owned());
            // A file can declare a type once for each platform.
            declarations.entry(key).or_default().insert(path.clone());
        }
    }
    assert!(declarations.len() > 500, "{} types", declarations.len());
    let mut twice = Vec::new();
    for ((_, name), files) in declarations.iter().filter(|(_, files)| files.len() > 1) {
        let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
        twice.push(format!("{name}: {}", files.join(", ")));
    }
    none("types of one name", &twice);
}

#[test]
fn a_declaration_is_found_whatever_can_see_it() {
    assert_eq!(declared("struct A;"), Some("A"));
    assert_eq!(declared("pub enum B<'a> {"), Some("B"));
    assert_eq!(declared("pub(in crate::server) trait C: Sync {"), Some("C"));
    assert_eq!(declared("pub(super) type D = Vec<u8>;"), Some("D"));
    assert_eq!(declared("    type Error = E;"), None);
    assert_eq!(declared("fn structure() {"), None);
    assert_eq!(declared("publish(struct_of);"), None);
}
