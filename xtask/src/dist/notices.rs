//! Licence notices for the parts of the binary, whose licence texts must be distributed with it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use cargo_metadata::Package;

use super::sbom;
use crate::workspace;

/// Licences of the parts of the binaries that are not crates.
const BESIDE: &str = "\
The Rust standard library (https://www.rust-lang.org): MIT OR Apache-2.0.
On Linux musl (https://musl.libc.org): MIT, Copyright 2005-2020 Rich Felker, et al.
";

/// Returns the notices: the name and licence of each crate, and the texts that its archive holds,
/// each text once.
pub(super) fn text() -> Result<String> {
    let metadata = workspace::metadata()?;
    let mut of_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut names = String::new();
    for package in sbom::made_of(&metadata, &["creole-gateway"])? {
        let name = format!("{} {}", package.name, package.version);
        if package.source.is_some() {
            let licence = package.license.as_deref().unwrap_or("see below");
            names.push_str(&format!("{name}: {licence}\n"));
            for text in texts(package)? {
                of_text.entry(text).or_default().push(name.clone());
            }
        }
    }
    let mut all = format!("The program creole contains these works of others.\n\n{BESIDE}{names}");
    for (text, of) in of_text {
        all.push_str(&format!("\n---- {}\n\n{}\n", of.join(", "), text.trim_end()));
    }
    Ok(all)
}

/// Returns the texts of a crate's licence files, which are recognized by their names.
fn texts(package: &Package) -> Result<Vec<String>> {
    let folder = package.manifest_path.parent().context("a package's folder")?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence =
            ["LICEN", "COPY", "NOTICE", "UNLICENSE"].iter().any(|it| name.starts_with(it));
        if is_licence && entry.path().is_file() {
            found.push((name, String::from_utf8_lossy(&fs::read(entry.path())?).replace('\r', "")));
        }
    }
    // The file system decides the order of a folder's files.
    found.sort();
    Ok(found.into_iter().map(|(_, text)| text).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn each_crate_of_the_binary_is_named_with_its_licence_and_no_path_of_this_machine() {
        let text = text().unwrap();
        for words in ["\nhyper 1", "\nring 0", "\nrustls 0", "Sean McArthur"] {
            assert!(text.contains(words), "{words}");
        }
        assert!(!text.contains(&workspace::root().display().to_string()));
        assert!(!text.contains("\nproptest ") && !text.contains("\nwasmtime "));
    }
}
