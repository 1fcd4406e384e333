//! Rules for the modules of the core: which may use which.
//!
//! The table in docs/dev/architecture.md is the rule: a module uses what its row names, and only rows below its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::documents::names;
use crate::{is_test, none, read, root, with_ending};

/// The code of a file before its unit tests, without comments.
fn code(path: &Path) -> String {
    let text = read(path);
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// `src/sse/mod.rs` is `sse`, `src/model/tool.rs` is `model::tool`, `src/lib.rs` is the empty path.
fn module(path: &Path) -> String {
    let inside = path.strip_prefix("src").unwrap_or(path).with_extension("");
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [before @ .., "mod"] => before.join("::"),
        ["lib"] => String::new(),
        all => all.join("::"),
    }
}

/// The paths that `code`, of the module `here`, names: each from the root of the crate, with braces spread out.
fn paths(code: &str, here: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || before == '_' || before == ':' {
                continue;
            }
            let mut base: Vec<&str> =
                if root == "crate::" { vec![] } else { here.split("::").collect() };
            let mut rest = &code[at..];
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
            let rest = rest
                .strip_prefix("crate::")
                .or_else(|| rest.strip_prefix("self::"))
                .unwrap_or(rest);
            let tree: String = rest.chars().filter(|c| !c.is_whitespace()).take(4000).collect();
            spread(&tree, &base.join("::"), &mut found);
        }
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
            found.insert(path);
            rest
        }
    }
}

#[test]
fn import_trees_are_spread_out() {
    let code = "use crate::a::{self, b::{c, d}, e}; use super::{f, g::h}; x(self::i::j()); y(super::super::k);";
    let wanted = ["a", "a::b::c", "a::b::d", "a::e", "k", "m::f", "m::g::h", "m::n::i::j"];
    assert_eq!(paths(code, "m::n"), wanted.map(str::to_owned).into());
}

/// Returns the modules that each module of the core uses.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let mut sources = with_ending("src", "rs");
    sources.retain(|path| !is_test(path));
    let modules: BTreeSet<String> = sources.iter().map(|path| module(path)).collect();
    let owner = |path: &str| {
        let mut path = path;
        while !modules.contains(path) {
            path = path.rsplit_once("::").map_or("", |(before, _)| before);
        }
        path.to_owned()
    };
    let uses = |path: &Path| {
        let here = module(path);
        let mut used: BTreeSet<String> =
            paths(&code(path), &here).iter().map(|it| owner(it)).collect();
        // What is in lib.rs is for everybody.
        used.retain(|it| *it != here && !it.is_empty());
        (here, used)
    };
    sources.iter().map(|path| uses(path)).collect()
}

fn is_within(module: &str, folder: &str) -> bool {
    module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// A row of the table: folders or files, and what they may use. The first of them names the row for others.
struct Row {
    modules: Vec<String>,
    allowed: BTreeSet<String>,
}

impl Row {
    fn name(&self) -> &str {
        &self.modules[0]
    }
}

fn rows() -> Vec<Row> {
    let text = read(Path::new("docs/dev/architecture.md"));
    let lines = text.lines().skip_while(|line| !line.starts_with("| module |")).skip(2);
    let row = |line: &str| {
        let cell = |number| names(line.split('|').nth(number).unwrap()).0;
        let modules = cell(1).into_iter().map(|path| module(Path::new(path))).collect();
        Row { modules, allowed: cell(3).into_iter().map(str::to_owned).collect() }
    };
    let rows: Vec<Row> = lines.take_while(|line| line.starts_with('|')).map(row).collect();
    assert!(rows.len() > 10, "the table has no rows any more");
    rows
}

/// The row that names a module most closely.
fn row_of(module: &str, rows: &[Row]) -> Option<usize> {
    let closest = |row: &Row| {
        let within = row.modules.iter().filter(|folder| is_within(module, folder));
        within.map(String::len).max()
    };
    let within = rows.iter().enumerate().filter_map(|(at, row)| Some((closest(row)?, at)));
    within.max().map(|(_, at)| at)
}

#[test]
fn modules_import_what_the_architecture_says_and_nothing_else() {
    let rows = rows();
    let mut wrong = Vec::new();
    let mut used = vec![BTreeSet::new(); rows.len()];
    for (module, imports) in graph().iter().filter(|(module, _)| !module.is_empty()) {
        let Some(at) = row_of(module, &rows) else {
            wrong.push(format!("{module}: the module has no row in the table"));
            continue;
        };
        for import in imports {
            let Some(other) = row_of(import, &rows).filter(|other| *other != at) else { continue };
            used[at].insert(rows[other].name());
            if other < at {
                wrong.push(format!("{module} uses {import}, whose row is above its own"));
            }
            if !rows[at].allowed.contains(rows[other].name()) {
                wrong.push(format!("{module} uses {import}, which its row does not name"));
            }
        }
    }
    for (row, used) in rows.iter().zip(used) {
        let unused = row.allowed.iter().filter(|name| !used.contains(name.as_str()));
        wrong.extend(unused.map(|name| format!("{} may use {name}, but does not", row.name())));
    }
    none("imports and the table in docs/dev/architecture.md differ", &wrong);
}

#[test]
fn no_protocol_knows_another_one() {
    let graph = graph();
    // A protocol is a folder; the files beside are what every one has.
    let folders = std::fs::read_dir(root().join("src/protocols")).unwrap();
    let protocols: Vec<String> = folders
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("mod.rs").exists())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(protocols.len() >= 2, "{protocols:?}");
    let mut wrong = Vec::new();
    for (module, imports) in &graph {
        for one in protocols.iter().filter(|one| is_within(module, &format!("protocols::{one}"))) {
            let others = protocols.iter().filter(|other| other != &one);
            for other in others.map(|other| format!("protocols::{other}")) {
                let used = imports.iter().filter(|import| is_within(import, &other));
                wrong.extend(used.map(|import| format!("{module} uses {import}")));
            }
        }
    }
    none("a protocol that knows another one", &wrong);
}

/// Whether one of two modules is inside of the other one.
fn are_related(one: &str, other: &str) -> bool {
    is_within(one, other) || is_within(other, one)
}

/// Returns the modules that can be reached from a module over imports, parents and children apart.
fn reached<'a>(from: &'a str, graph: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for import in graph.get(module).into_iter().flatten() {
            if !are_related(module, import) && seen.insert(import.as_str()) {
                open.push(import);
            }
        }
    }
    seen
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let graph = graph();
    let circles: Vec<String> = graph
        .keys()
        .filter(|module| reached(module, &graph).contains(module.as_str()))
        .cloned()
        .collect();
    none("these files are in a circle of imports", &circles);
}
