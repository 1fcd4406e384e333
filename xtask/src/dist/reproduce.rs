//! `cargo xtask dist --twice`: makes `dist/` a second time, from nothing and in another folder, and
//! compares every file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::binaries::{self, TARGETS};
use super::{DistOptions, folder};
use crate::setup;
use crate::workspace;

/// Fails unless every rebuilt file is identical to the file in `dist/`.
pub(crate) fn reproduce(options: &DistOptions) -> Result<()> {
    let first = fs::read_to_string(folder().join("SHA256SUMS"));
    let first = first.context("`cargo xtask dist` makes what is compared")?;
    let scratch = std::env::temp_dir().join(format!("creole-again-{}", std::process::id()));
    let second = again(options, &scratch);
    fs::remove_dir_all(&scratch)?;
    let differences = differences(&first, &second?);
    differences.iter().for_each(|line| println!("{line}"));
    ensure!(differences.is_empty(), "two builds gave different bytes");
    println!("{} files have the same bytes twice", first.lines().count());
    Ok(())
}

/// Builds all parts of a release again below a folder, and returns the checksums of the files.
fn again(options: &DistOptions, scratch: &Path) -> Result<String> {
    // The folder is deeper than that of this workspace.
    let root = scratch.join("in/another/folder");
    copy_sources(&root)?;
    let made = scratch.join("binaries");
    for target in TARGETS {
        let is_again =
            options.binary.is_empty() || options.binary.iter().any(|it| it == target.triple);
        let binary = match is_again {
            true => binaries::build(target, &root, &root.join("target"))?,
            false => binaries::built(target)?,
        };
        let folder = made.join(target.triple);
        fs::create_dir_all(&folder)?;
        fs::copy(&binary, folder.join(target.file))
            .with_context(|| binary.display().to_string())?;
    }
    let mut dist = Command::new(std::env::current_exe()?);
    dist.arg("dist").env(workspace::ROOT, &root).env(binaries::FINISHED, &made);
    dist.args(options.repository.iter().flat_map(|name| ["--repository", name]));
    setup::run(&mut dist)?;
    Ok(fs::read_to_string(root.join("dist/SHA256SUMS"))?)
}

/// Copies the files that git tracks, in their current state. The copy is a clone, because the
/// crates contain the name of their commit.
fn copy_sources(to: &Path) -> Result<()> {
    let from = workspace::root();
    setup::run(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(&from).arg(to))?;
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&from).output()?;
    ensure!(listed.status.success(), "git ls-files failed");
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let file = to.join(name);
        fs::create_dir_all(file.parent().unwrap_or(to))?;
        fs::copy(from.join(name), &file).with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// Returns a line for each file that differs between two lists of checksums.
fn differences(first: &str, second: &str) -> Vec<String> {
    let read = |text| -> BTreeMap<_, _> {
        let lines = str::lines(text).filter_map(|line| line.split_once("  "));
        lines.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect()
    };
    let (first, mut second) = (read(first), read(second));
    let mut lines = Vec::new();
    for (name, digest) in first {
        match second.remove(&name) {
            Some(other) if other == digest => {}
            Some(other) => lines.push(format!("{name}: sha256:{digest}, then sha256:{other}")),
            None => lines.push(format!("{name} was not made again")),
        }
    }
    lines.extend(second.into_keys().map(|name| format!("dist/ has no {name}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_not_the_same_is_named() {
        let first = "aa  one\nbb  folder/two\ncc  three\n";
        assert!(differences(first, first).is_empty());
        let second = "aa  one\nbd  folder/two\ndd  four\n";
        assert_eq!(
            differences(first, second),
            [
                "folder/two: sha256:bb, then sha256:bd",
                "three was not made again",
                "dist/ has no four"
            ]
        );
    }
}
