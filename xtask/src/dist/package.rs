//! Contents that packages of all kinds share: the gateway's program for a target, and facts about
//! the project.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::binaries::{self, TARGETS, Target};
use super::notices;
use crate::workspace;

/// Gateway's program for one target.
pub(crate) struct Binary {
    pub(crate) target: &'static Target,
    pub(crate) path: PathBuf,
}

impl Binary {
    /// Returns the released programs of every target.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let built = |target| Ok(Self { target, path: binaries::built(target)? });
        TARGETS.iter().map(built).collect()
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        fs::read(&self.path).with_context(|| self.path.display().to_string())
    }
}

/// Facts that every package states, mostly as in the gateway's manifest.
pub(crate) struct Facts {
    pub(super) version: String,
    pub(super) description: String,
    pub(super) keywords: Vec<String>,
    pub(super) license: String,
    pub(super) license_text: String,
    /// Licence notices for the parts of the program.
    pub(super) notices: String,
    /// Text of the package's page at the registry, in Markdown.
    pub(super) readme: String,
    /// URL of the source repository, if it is known.
    pub(super) repository: Option<String>,
}

impl Facts {
    /// Reads the facts about the project. Packages name a repository only if `repository` is given
    /// as `OWNER/NAME` on GitHub.
    pub(crate) fn read(repository: Option<&str>) -> Result<Self> {
        let packages = workspace::packages()?;
        let package = packages.into_iter().find(|it| it.name.as_str() == "creole-gateway");
        let package = package.context("the workspace has no creole-gateway")?;
        let text = |path: &str| {
            let path = workspace::root().join(path);
            fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        Ok(Self {
            version: package.version.to_string(),
            description: package.description.context("creole-gateway has no description")?,
            keywords: package.keywords,
            license: package.license.context("creole-gateway has no licence")?,
            license_text: text("LICENSE")?,
            notices: notices::text()?,
            readme: text("gateway/README.md")?,
            repository: repository.map(|name| format!("https://github.com/{name}")),
        })
    }
}

/// Creates an empty folder for a test, with a dummy program for each target.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
pub(super) fn sample(test: &str) -> (PathBuf, Vec<Binary>) {
    let folder = workspace::root().join("target/tests").join(test);
    workspace::emptied(&folder).unwrap();
    let path = folder.join("program");
    fs::write(&path, "program").unwrap();
    let of = |target| Binary { target, path: path.clone() };
    (folder.clone(), TARGETS.iter().map(of).collect())
}
