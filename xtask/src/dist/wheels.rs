//! Python wheels with the gateway for PyPI, made from the released binaries.
//!
//! maturin would compile the binaries a second time, with different bytes. A wheel without Python
//! code to compile is a zip archive with four small texts:
//! <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::archive::{self, File};
use super::binaries::Target;
use super::package::{Binary, Facts};

/// Name of the project at PyPI, where the name `creole` is taken.
const PROJECT: &str = "creole-gateway";

/// Form of the project's name in file names.
const STEM: &str = "creole_gateway";

/// Console script of the wheel. The command `creole` is the binary itself. Tools that run a package
/// without installing it, such as `uvx creole-gateway`, need a command with the package's name: a
/// Python function that starts the binary.
const ENTRY_POINTS: &str = "[console_scripts]\ncreole-gateway = creole_gateway:main\n";

const MODULE: &str = include_str!("../../../gateway/python/creole_gateway/__init__.py");
const MAIN: &str = include_str!("../../../gateway/python/creole_gateway/__main__.py");

/// Writes a wheel for each of these programs into a folder.
pub(crate) fn wheels(binaries: &[Binary], facts: &Facts, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    for binary in binaries {
        let platforms = platforms(binary.target)?;
        let path = folder.join(format!("{STEM}-{}-py3-none-{platforms}.whl", facts.version));
        let wheel = wheel(binary.target.file, binary.read()?, &platforms, facts)?;
        fs::write(&path, wheel).with_context(|| path.display().to_string())?;
        written.push(path);
    }
    Ok(written)
}

/// Returns the platform tags of a target. The Linux programs are static and run with any C library,
/// so they get two kinds of tags.
fn platforms(target: &Target) -> Result<String> {
    if let Some(oldest) = target.oldest_macos() {
        let cpu = if target.triple.starts_with("aarch64") { "arm64" } else { "x86_64" };
        return Ok(format!("macosx_{}_{cpu}", oldest.replace('.', "_")));
    }
    let tags = match target.triple {
        "x86_64-unknown-linux-musl" => {
            "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"
        }
        "aarch64-unknown-linux-musl" => {
            "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"
        }
        "x86_64-pc-windows-gnu" => "win_amd64",
        other => bail!("{other} has no platform tag"),
    };
    Ok(tags.to_owned())
}

/// Returns the bytes of one wheel. Its last file is the record with the hashes, which lists itself
/// without a hash.
fn wheel(name: &str, program: Vec<u8>, platforms: &str, facts: &Facts) -> Result<Vec<u8>> {
    let stem = format!("{STEM}-{}", facts.version);
    let info = |name: &str| format!("{stem}.dist-info/{name}");
    let mut files = vec![
        File::plain(format!("{STEM}/__init__.py"), MODULE),
        File::plain(format!("{STEM}/__main__.py"), MAIN),
        File::program(format!("{stem}.data/scripts/{name}"), program),
        File::plain(info("METADATA"), metadata(facts)),
        File::plain(info("WHEEL"), tags(platforms)),
        File::plain(info("entry_points.txt"), ENTRY_POINTS),
        File::plain(info("licenses/LICENSE"), facts.license_text.as_str()),
        File::plain(info("licenses/THIRD-PARTY.txt"), facts.notices.as_str()),
    ];
    let mut record = String::new();
    for File { path, bytes, .. } in &files {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        record.push_str(&format!("{path},sha256={digest},{}\n", bytes.len()));
    }
    record.push_str(&format!("{},,\n", info("RECORD")));
    files.push(File::plain(info("RECORD"), record));
    archive::zip(&files)
}

fn metadata(facts: &Facts) -> String {
    let Facts { version, description, license, .. } = facts;
    let keywords = facts.keywords.join(",");
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: {PROJECT}\nVersion: {version}\nSummary: {description}\n\
         Keywords: {keywords}\nLicense-Expression: {license}\nLicense-File: LICENSE\nLicense-File: THIRD-PARTY.txt\n"
    );
    if let Some(repository) = &facts.repository {
        metadata.push_str(&format!("Project-URL: Source, {repository}\n"));
    }
    metadata.push_str("Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n");
    metadata.push_str(&facts.readme);
    metadata
}

fn tags(platforms: &str) -> String {
    let mut text =
        "Wheel-Version: 1.0\nGenerator: creole-xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in platforms.split('.') {
        text.push_str(&format!("Tag: py3-none-{platform}\n"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests;
