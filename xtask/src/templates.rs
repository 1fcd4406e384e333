//! Test of translated requests with the vendors' chat templates.
//!
//! The templates come with the source release of a package on PyPI and are not copied into this
//! repository, because each has a licence of its own. `tests/templates.rs` writes the requests for
//! each model family, and `harness/templates/render.py` renders them with Jinja.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::setup::{self, PYTHON};
use crate::workspace::{self, own, step};

/// Package release whose sources contain the templates, as llama.cpp keeps them.
const TEMPLATES: &str = "llama-cpp-python==0.3.36";

/// Package of the template engine that the templates are written for.
const JINJA: &str = "jinja2==3.1.6";

/// Runs the test with the chat templates. `write` is the command that writes the requests; `each`
/// runs a command and counts its tests.
pub(crate) fn test(
    mut write: Command,
    mut each: impl FnMut(&mut Command) -> Result<()>,
) -> Result<()> {
    let folder = own().join("templates");
    let python = folder.join("bin/python");
    let templates = step(&format!("installing into {}", folder.display()), || install(&folder))?;
    let requests = folder.join("requests");
    workspace::emptied(&requests)?;
    setup::run(write.env("CREOLE_REQUESTS_DIR", &requests))?;
    let script = workspace::root().join("harness/templates/render.py");
    each(Command::new(python).arg(script).arg(requests).arg(templates))
}

/// Installs and returns the archive with the templates. A marker file shows that the installation
/// is complete.
fn install(folder: &Path) -> Result<PathBuf> {
    let (complete, sources) = (folder.join("complete"), folder.join("sources"));
    let wanted = format!("{TEMPLATES} {JINJA}");
    if !fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
        setup::need(&PYTHON)?;
        setup::virtual_environment(folder)?;
        let pip = |arguments: &[&str]| {
            let mut command = Command::new(folder.join("bin/python"));
            command.args(["-m", "pip"]).args(arguments);
            command.args(["--quiet", "--no-input", "--disable-pip-version-check"]);
            command
        };
        setup::run(&mut pip(&["install", JINJA]))?;
        let only_sources = ["download", "--no-deps", "--no-binary", "llama-cpp-python", TEMPLATES];
        setup::run(pip(&only_sources).arg("--dest").arg(&sources))?;
        fs::write(&complete, wanted)?;
    }
    let archive = fs::read_dir(&sources)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(".tar.gz"));
    match archive {
        Some(archive) => Ok(archive),
        None => bail!("{TEMPLATES} has no source release"),
    }
}
