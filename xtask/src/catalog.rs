//! Catalogue of clients and model servers: folders of `harness/`, each with a JSON file that
//! describes the entry.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::workspace;

/// Tier of an entry: whether `cargo xtask test` runs it, or only a request for it. See
/// CONTRIBUTING.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tier {
    Default,
    Second,
    Third,
}

/// Entry of the catalogue, read from the JSON file of a folder, such as `client.json`.
pub(crate) trait Entry: DeserializeOwned {
    /// Name of the folder below `harness/` that contains the folders of all entries.
    const FOLDER: &'static str;
    /// Name of the JSON file without its ending, such as `client`.
    const KIND: &'static str;

    /// Returns the name of the entry's folder, mutably.
    fn folder(&mut self) -> &mut String;
    fn tier(&self) -> Tier;
}

/// Returns the path of the folder that contains all entries.
pub(crate) fn sources<E: Entry>() -> PathBuf {
    workspace::root().join("harness").join(E::FOLDER)
}

/// Reads the catalogue's entry in one folder.
pub(crate) fn read<E: Entry>(folder: &str) -> Result<E> {
    let path = sources::<E>().join(folder).join(format!("{}.json", E::KIND));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut entry: E = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    folder.clone_into(entry.folder());
    Ok(entry)
}

/// Reads all entries of the catalogue, in the order of their folders.
pub(crate) fn all<E: Entry>() -> Result<Vec<E>> {
    let mut folders = Vec::new();
    for folder in fs::read_dir(sources::<E>())? {
        let path = folder?.path();
        if path.join(format!("{}.json", E::KIND)).is_file() {
            folders.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    folders.iter().map(|folder| read(folder)).collect()
}

/// Returns the entries selected by names of folders or tiers.
pub(crate) fn chosen<E: Entry>(names: &[String]) -> Result<Vec<E>> {
    let mut entries = all::<E>()?;
    let means = |name: &str, entry: &mut E| {
        let tier = match entry.tier() {
            Tier::Default => "default",
            Tier::Second => "second",
            Tier::Third => "third",
        };
        name == "all" || name == tier || name == entry.folder()
    };
    for name in names {
        if !entries.iter_mut().any(|entry| means(name, entry)) {
            let known: Vec<String> = entries.iter_mut().map(|it| it.folder().clone()).collect();
            bail!("no {} {name}; there are {}", E::KIND, known.join(", "));
        }
    }
    entries.retain_mut(|entry| names.iter().any(|name| means(name, entry)));
    Ok(entries)
}
