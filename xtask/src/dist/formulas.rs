//! What Homebrew and Scoop read: where the archives of a release are, and their checksums.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::binaries::Target;
use super::digest;

const DESCRIPTION: &str = "Clients of the Anthropic Messages API on models of other APIs";

/// One archive of a release.
struct Archive {
    url: String,
    digest: String,
    /// Its only folder.
    folder: String,
}

/// Writes both, for the release of this version in a repository of GitHub, `OWNER/NAME`.
pub(super) fn write(dist: &Path, repository: &str) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let home = format!("https://github.com/{repository}");
    let archive = |triple: &str| -> Result<Archive> {
        let target = Target::of(triple)?;
        let name = target.archive();
        let bytes = fs::read(dist.join(&name)).with_context(|| format!("dist/{name}"))?;
        let url = format!("{home}/releases/download/v{version}/{name}");
        Ok(Archive { url, digest: digest(&bytes), folder: target.name() })
    };
    let formula = formula(&home, &archive)?;
    let manifest = manifest(&home, &archive("x86_64-pc-windows-gnu")?);
    for (folder, file, text) in
        [("homebrew", "creole.rb", formula), ("scoop", "creole.json", manifest)]
    {
        let folder = dist.join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}

/// The formula for Homebrew, on macOS and Linux.
fn formula(home: &str, archive: &impl Fn(&str) -> Result<Archive>) -> Result<String> {
    let mut systems = String::new();
    for (system, processors) in [
        ("macos", [("arm", "aarch64-apple-darwin"), ("intel", "x86_64-apple-darwin")]),
        ("linux", [("arm", "aarch64-unknown-linux-musl"), ("intel", "x86_64-unknown-linux-musl")]),
    ] {
        systems.push_str(&format!("\n  on_{system} do\n"));
        for (processor, triple) in processors {
            let Archive { url, digest, .. } = archive(triple)?;
            systems.push_str(&format!(
                "    on_{processor} do\n      url \"{url}\"\n      sha256 \"{digest}\"\n    end\n"
            ));
        }
        systems.push_str("  end\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "class Creole < Formula
  desc \"{DESCRIPTION}\"
  homepage \"{home}\"
  version \"{version}\"
  license \"Apache-2.0\"
{systems}
  def install
    bin.install \"creole\"
  end

  test do
    assert_match version.to_s, shell_output(\"#{{bin}}/creole --version\")
  end
end
"
    ))
}

/// The manifest for Scoop, on Windows.
fn manifest(home: &str, archive: &Archive) -> String {
    let Archive { url, digest, folder } = archive;
    let manifest = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "homepage": home,
        "license": "Apache-2.0",
        "architecture": {"64bit": {"url": url, "hash": digest, "extract_dir": folder}},
        "bin": "creole.exe",
    });
    format!("{manifest:#}\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::dist::binaries::TARGETS;

    #[test]
    fn formulas_name_each_archive_of_the_release_with_its_checksum() {
        let dist = std::env::temp_dir().join(format!("creole-formulas-{}", std::process::id()));
        fs::create_dir_all(&dist).unwrap();
        for target in TARGETS {
            fs::write(dist.join(target.archive()), target.triple).unwrap();
        }
        write(&dist, "owner/name").unwrap();
        let formula = fs::read_to_string(dist.join("homebrew/creole.rb")).unwrap();
        let manifest = fs::read_to_string(dist.join("scoop/creole.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        for target in TARGETS {
            let url = format!(
                "https://github.com/owner/name/releases/download/v{}/{}",
                env!("CARGO_PKG_VERSION"),
                target.archive()
            );
            let digest = digest(target.triple.as_bytes());
            if target.triple.contains("windows") {
                let found = &manifest["architecture"]["64bit"];
                assert_eq!((&found["url"], &found["hash"]), (&url.into(), &digest.into()));
            } else {
                let lines = format!("url \"{url}\"\n      sha256 \"{digest}\"");
                assert!(formula.contains(&lines), "{formula}");
            }
        }
        fs::remove_file(dist.join(TARGETS[0].archive())).unwrap();
        assert!(write(&dist, "owner/name").is_err());
        fs::remove_dir_all(&dist).unwrap();
    }
}
