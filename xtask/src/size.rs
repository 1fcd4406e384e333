//! How large the artefacts are: raw, gzipped, and what they consist of.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use wasmparser::{KnownCustom, Name, Parser, Payload, TypeRef};

use crate::build;
use crate::worker;

/// How many functions are listed.
const FUNCTIONS: usize = 15;

/// The budget of the Worker, of which the platform counts gzipped bytes.
const WORKER_GZIPPED_MAX: usize = 1_000_000;

/// Builds and prints.
pub(crate) fn print() -> Result<()> {
    for artefact in build::ARTEFACTS {
        let bytes = fs::read(build::one(artefact)?)?;
        println!("{}", artefact.name);
        println!("  {:>9} bytes raw, of {} at most", bytes.len(), artefact.bytes_max);
        println!("  {:>9} bytes gzipped (level 9)", gzipped(&bytes)?);
        print_parts("as it is", largest_module(&bytes)?)?;
        // The artefact has no names of functions any more.
        let module = fs::read(build::unfinished(artefact)?)?;
        print_parts("as the compiler leaves it", largest_module(&module)?)?;
    }
    let worker = worker::shipped()?;
    println!("dist/worker");
    for (name, raw, small) in worker_files(&worker.folder)? {
        println!("  {raw:>9} bytes raw, {small:>7} gzipped: {name}");
    }
    println!(
        "  {:>9} bytes gzipped, of {WORKER_GZIPPED_MAX} at most",
        worker_gzipped(&worker.folder)?
    );
    print_parts("as the compiler leaves it", &fs::read(&worker.module)?)
}

/// The artefacts in `dist/` that are larger than their budgets, and how many were looked at.
pub(crate) fn over_budget() -> Result<(u64, Vec<String>)> {
    let mut found = Vec::new();
    let mut looked_at = 1_u64;
    for artefact in build::ARTEFACTS {
        looked_at = looked_at.saturating_add(1);
        let bytes = fs::metadata(build::path(artefact))?.len();
        found.extend(excess(artefact.name, usize::try_from(bytes)?, artefact.bytes_max));
    }
    let gzipped = worker_gzipped(&worker::folder())?;
    found.extend(excess("dist/worker, gzipped", gzipped, WORKER_GZIPPED_MAX));
    Ok((looked_at, found))
}

fn excess(name: &str, bytes: usize, most: usize) -> Option<String> {
    println!("  {bytes:>9} of {most:>9} bytes: {name}");
    (bytes > most).then(|| format!("{name} has {bytes} bytes, and may have {most}"))
}

/// Name, bytes, and bytes gzipped of each file of the Worker.
fn worker_files(folder: &Path) -> Result<Vec<(String, usize, usize)>> {
    let files = worker::modules(folder)?.into_iter();
    files.map(|(name, bytes)| Ok((name, bytes.len(), gzipped(&bytes)?))).collect()
}

fn worker_gzipped(folder: &Path) -> Result<usize> {
    Ok(worker_files(folder)?.into_iter().map(|(_, _, small)| small).sum())
}

/// Prints what a module consists of: its sections and, where it has names, its largest functions.
fn print_parts(what: &str, module: &[u8]) -> Result<()> {
    let parts = Parts::read(module)?;
    println!("  {what}");
    let mut sections: Vec<_> = parts.sections.iter().collect();
    sections.sort_by(|a, b| b.1.cmp(a.1));
    for (section, size) in sections.into_iter().take(4) {
        println!("    {size:>9} {section}");
    }
    if !parts.sections.contains_key("name") {
        return Ok(());
    }
    println!("    code by module");
    let mut modules: Vec<_> = parts.modules().into_iter().collect();
    modules.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    for (module, size) in modules.iter().take(FUNCTIONS) {
        println!("    {size:>9} {module}");
    }
    println!("    largest functions");
    for (function, size) in parts.functions.iter().take(FUNCTIONS) {
        println!("    {size:>9} {function}");
    }
    Ok(())
}

/// A component's largest module, which holds its code; a module is its own.
fn largest_module(bytes: &[u8]) -> Result<&[u8]> {
    if !Parser::is_component(bytes) {
        return Ok(bytes);
    }
    let mut largest = bytes.get(..0).unwrap_or_default();
    for payload in Parser::new(0).parse_all(bytes) {
        let Payload::ModuleSection { unchecked_range: range, .. } = payload? else { continue };
        let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
        let module = bytes.get(range).unwrap_or_default();
        if module.len() > largest.len() {
            largest = module;
        }
    }
    Ok(largest)
}

fn length(range: &std::ops::Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

fn gzipped(bytes: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

#[derive(Default)]
struct Parts {
    sections: BTreeMap<String, usize>,
    /// Largest first.
    functions: Vec<(String, usize)>,
}

impl Parts {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut parts = Self::default();
        let mut imported = 0_usize;
        let mut bodies = Vec::new();
        let mut names = BTreeMap::new();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            if let Some((id, range)) = payload.as_section() {
                let name = match &payload {
                    Payload::CustomSection(custom) => custom.name().to_owned(),
                    _ => section(id).to_owned(),
                };
                parts.sections.insert(name, length(&range));
            }
            match payload {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        imported = imported
                            .saturating_add(usize::from(matches!(import?.ty, TypeRef::Func(_))));
                    }
                }
                Payload::CodeSectionEntry(body) => bodies.push(length(&body.range())),
                Payload::CustomSection(custom) => {
                    let KnownCustom::Name(subsections) = custom.as_known() else { continue };
                    for subsection in subsections {
                        let Name::Function(map) = subsection? else { continue };
                        for naming in map {
                            let naming = naming?;
                            let name = format!("{:#}", rustc_demangle::demangle(naming.name));
                            names.insert(naming.index, name);
                        }
                    }
                }
                _ => {}
            }
        }
        parts.functions = bodies
            .into_iter()
            .enumerate()
            .map(|(nth, size)| {
                let index = nth.saturating_add(imported);
                let name = u32::try_from(index).ok().and_then(|index| names.get(&index));
                (name.cloned().unwrap_or_else(|| format!("function {index}")), size)
            })
            .collect();
        parts.functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(parts)
    }
}

impl Parts {
    /// The bytes of code by module: the crate, and for our own the module in it.
    fn modules(&self) -> BTreeMap<String, usize> {
        let mut modules: BTreeMap<String, usize> = BTreeMap::new();
        for (function, size) in &self.functions {
            let total = modules.entry(module(function)).or_default();
            *total = total.saturating_add(*size);
        }
        modules
    }
}

/// `<creole::dialect::profile::_::<impl Deserialize for …` belongs to `creole::dialect::profile`.
fn module(function: &str) -> String {
    let path = function.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let path = path.strip_prefix("mut ").or_else(|| path.strip_prefix("dyn ")).unwrap_or(path);
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | ':'));
    let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
    let depth = if path.starts_with("creole") { 2 } else { 1 };
    path.split("::").filter(|part| !part.is_empty()).take(depth).collect::<Vec<_>>().join("::")
}

fn section(id: u8) -> &'static str {
    const NAMES: [&str; 14] = [
        "custom",
        "type",
        "import",
        "function",
        "table",
        "memory",
        "global",
        "export",
        "start",
        "element",
        "code",
        "data",
        "data count",
        "tag",
    ];
    NAMES.get(usize::from(id)).unwrap_or(&"unknown")
}

#[cfg(test)]
mod tests;
