//! Tests of the packages for users, installed as users do, with the scripts in `harness/packages`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::dist::binaries::{self, TARGETS, Target};
use crate::dist::package::{Binary, Facts};
use crate::dist::{npm, wheels};
use crate::hosts::gateway;
use crate::setup::{self, DEBOOTSTRAP, NODE, NPM};
use crate::{clients, workspace};

/// Tests packages with the tests' own gateway binary, installed for a user with an empty home
/// folder. `each` runs a command and counts its tests.
pub(crate) fn installed(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    setup::need(&NODE)?;
    setup::need(&NPM)?;
    let folder = workspace::own().join("run/packages");
    let packages = packages(&gateway::binary()?, &folder)?;
    let mut command = script("installed.py")?;
    each(command.arg(folder.join("users")).args(packages))
}

/// Tests packages with the released program in a fresh Debian without compiler and network, up to
/// an answer of Claude Code.
pub(crate) fn from_nothing(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    setup::need(&DEBOOTSTRAP)?;
    let target = Target::of_this_machine()?;
    let packages = packages(&binaries::built(target)?, &workspace::own().join("run/from-nothing"))?;
    let mut command = script("clean_root.py")?;
    command.arg(workspace::own().join("debian")).args(packages);
    command.args(setup::node_to_copy_and_uv()?).arg(clients::claude_code()?);
    each(&mut command)
}

/// Returns the command for a script in `harness/packages`. Its Python interpreter has pip, which
/// the system's Python may lack.
fn script(name: &str) -> Result<Command> {
    let mut command = Command::new(setup::python_with_yaml()?);
    command.arg("-B").arg(workspace::root().join("harness/packages").join(name));
    Ok(command)
}

/// Makes packages that contain `program` for this machine, and a dummy text for other machines.
/// Returns the folders for npm and PyPI, and the archive.
fn packages(program: &Path, folder: &Path) -> Result<[PathBuf; 3]> {
    workspace::emptied(folder)?;
    let (ours, other) = (Target::of_this_machine()?, folder.join("other"));
    fs::write(&other, "no program\n")?;
    let of = |target: &'static Target| {
        let path = if target.triple == ours.triple { program } else { &other };
        Binary { target, path: path.to_owned() }
    };
    let binaries: Vec<Binary> = TARGETS.iter().map(of).collect();
    let (facts, npm, wheels) = (Facts::read(None)?, folder.join("npm"), folder.join("pypi"));
    npm::packages(&binaries, &facts, &npm)?;
    wheels::wheels(&binaries, &facts, &wheels)?;
    Ok([npm, wheels, binaries::archive_of(ours, program, folder)?])
}
