//! Rules for modules: which may use which.
//!
//! The tables in docs/dev/architecture.md are the rule for the core and the gateway: a module uses
//! what its row names, and only rows below its own. In every package, the modules of a folder do
//! not use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::documents::names;
use crate::{is_test, none, read, root, with_ending};

/// Modules, and what each of them uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The code of a file before its unit tests, without comments.
fn code(path: &Path) -> String {
    let text = read(path);
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The core and the gateway have tables. Each is found by the head of its first column.
const CORE: Tree = Tree { sources: "src", column: "| module |" };
const GATEWAY: Tree = Tree { sources: "gateway/src", column: "| room |" };

/// Sources of a package, with the head of its table's first column.
#[derive(Clone, Copy)]
struct Tree {
    sources: &'static str,
    column: &'static str,
}

/// Below `src`, `src/sse/mod.rs` is `sse`, `src/model/tool.rs` is `model::tool`, `src/lib.rs` is
/// the empty path.
fn module(path: &Path, sources: &str) -> String {
    let inside = path.strip_prefix(sources).unwrap_or(path).with_extension("");
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [before @ .., "mod"] => before.join("::"),
        ["lib" | "main"] => String::new(),
        all => all.join("::"),
    }
}

/// The paths that `code`, of the module `here`, names: each from the root of the crate, with braces
/// spread out.
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

/// Returns the modules that each module of a package uses.
fn graph(sources: &str) -> Graph {
    let mut files = with_ending(sources, "rs");
    files.retain(|path| !is_test(path));
    let modules: BTreeSet<String> = files.iter().map(|path| module(path, sources)).collect();
    let owner = |path: &str| {
        let mut path = path;
        while !modules.contains(path) {
            path = path.rsplit_once("::").map_or("", |(before, _)| before);
        }
        path.to_owned()
    };
    let uses = |path: &Path| {
        let here = module(path, sources);
        let mut used: BTreeSet<String> =
            paths(&code(path), &here).iter().map(|it| owner(it)).collect();
        // What is in lib.rs or main.rs is for everybody.
        used.retain(|it| *it != here && !it.is_empty());
        (here, used)
    };
    files.iter().map(|path| uses(path)).collect()
}

fn is_within(module: &str, folder: &str) -> bool {
    module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// A row of the table: folders or files, and what they may use. The first of them names the row for
/// others.
struct Row {
    modules: Vec<String>,
    allowed: BTreeSet<String>,
}

impl Row {
    fn name(&self) -> &str {
        &self.modules[0]
    }
}

fn rows(tree: Tree) -> Vec<Row> {
    let text = read(Path::new("docs/dev/architecture.md"));
    let lines = text.lines().skip_while(|line| !line.starts_with(tree.column)).skip(2);
    let row = |line: &str| {
        let cell = |number| names(line.split('|').nth(number).unwrap()).0;
        let module = |path| module(Path::new(path), tree.sources);
        let modules = cell(1).into_iter().map(module).collect();
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

/// Returns differences between the imports of a package and its table.
fn differences(tree: Tree) -> Vec<String> {
    let rows = rows(tree);
    let mut wrong = Vec::new();
    let mut used = vec![BTreeSet::new(); rows.len()];
    for (module, imports) in graph(tree.sources).iter().filter(|(module, _)| !module.is_empty()) {
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
    wrong
}

#[test]
fn modules_import_what_the_architecture_says_and_nothing_else() {
    for tree in [CORE, GATEWAY] {
        let what = format!("imports of {} and the table in docs/dev/architecture.md", tree.sources);
        none(&format!("{what} differ"), &differences(tree));
    }
}

#[test]
fn no_protocol_knows_another_one() {
    let graph = graph(CORE.sources);
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
fn reached<'a>(from: &'a str, graph: &'a Graph) -> BTreeSet<&'a str> {
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
fn no_files_of_the_core_import_each_other_in_a_circle() {
    let graph = graph(CORE.sources);
    let circles: Vec<String> = graph
        .keys()
        .filter(|module| reached(module, &graph).contains(module.as_str()))
        .cloned()
        .collect();
    none("these files are in a circle of imports", &circles);
}

/// Folders with sources of the packages of the workspace, from the list of its members.
fn packages() -> Vec<String> {
    let text = read(Path::new("Cargo.toml"));
    let list = text.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let members = list.split('"').skip(1).step_by(2);
    let folders = members.map(|member| match member {
        "." => CORE.sources.to_owned(),
        member => format!("{member}/src"),
    });
    folders.filter(|folder| root().join(folder).is_dir()).collect()
}

/// The name of the module inside `folder` that has `module`; `None` for modules elsewhere.
fn child<'a>(module: &'a str, folder: &str) -> Option<&'a str> {
    let inside = match folder {
        "" => module,
        folder => module.strip_prefix(folder)?.strip_prefix("::")?,
    };
    inside.split("::").next().filter(|name| !name.is_empty())
}

/// Returns what the modules of a folder use of each other, with all that is in them.
fn siblings<'a>(graph: &'a Graph, folder: &str) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut siblings = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (module, imports) in graph {
        let Some(name) = child(module, folder) else { continue };
        let used = imports.iter().filter_map(|import| child(import, folder));
        siblings.entry(name).or_default().extend(used.filter(|used| *used != name));
    }
    siblings
}

/// Returns a circle of modules, each of which uses the next one.
fn circle<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    // What uses nothing that is left is in no circle.
    let mut left = uses.clone();
    while let Some(end) = left.iter().find(|(_, used)| used.is_empty()).map(|(name, _)| *name) {
        left.remove(end);
        left.values_mut().for_each(|used| _ = used.remove(end));
    }
    let mut way = vec![*left.keys().next()?];
    loop {
        let next = *left[way[way.len() - 1]].first()?;
        if let Some(at) = way.iter().position(|module| *module == next) {
            return Some(way.split_off(at));
        }
        way.push(next);
    }
}

/// Folders whose modules use each other in a circle: at the root of the core, a file of `dialect`
/// has a row of its own in the table; in the other folder, a file of `words` uses a file that uses
/// `words`.
const UNORDERED: [(&str, &str); 2] = [("src", ""), ("src", "protocols")];

#[test]
fn no_modules_of_a_folder_use_each_other_in_a_circle() {
    let packages = packages();
    assert!(packages.len() > 10, "the rule finds no packages any more: {packages:?}");
    let mut wrong = Vec::new();
    for sources in packages {
        let graph = graph(&sources);
        let parents = graph.keys().map(|module| module.rsplit_once("::").map_or("", |it| it.0));
        for folder in parents.collect::<BTreeSet<&str>>() {
            if UNORDERED.contains(&(sources.as_str(), folder)) {
                continue;
            }
            let found = circle(&siblings(&graph, folder));
            wrong.extend(found.map(|way| format!("{sources} {folder}: {}", way.join(" → "))));
        }
    }
    none("these modules are in a circle of imports", &wrong);
}

#[test]
fn a_circle_of_modules_is_found() {
    let uses = |module: &str, used: &[&str]| {
        (module.to_owned(), used.iter().map(|it| (*it).to_owned()).collect())
    };
    let straight = [uses("a", &["b::c", "d"]), uses("b::c", &["b::e", "d"]), uses("d", &[])];
    assert_eq!(circle(&siblings(&Graph::from(straight), "")), None);
    let graph = [uses("a", &["b::c"]), uses("b::c", &["d"]), uses("b::e", &["a"]), uses("d", &[])];
    let graph = Graph::from(graph);
    assert_eq!(circle(&siblings(&graph, "")), Some(vec!["a", "b"]));
    assert_eq!(circle(&siblings(&graph, "b")), None);
}
