//! Build of the binary `creole` for every system, on one Linux machine, with zig as linker and C
//! compiler.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::{self, File};
use super::notices;
use crate::setup;
use crate::workspace::{self, step};

/// Name of the cargo profile for released binaries.
const PROFILE: &str = "dist";

/// Target of a release: a system and a processor.
pub(crate) struct Target {
    /// Rust's name of the compilation target.
    pub(crate) triple: &'static str,
    /// Name of the binary file.
    pub(crate) file: &'static str,
}

/// Targets for which a release has a binary.
pub(crate) const TARGETS: &[Target] = &[
    Target { triple: "x86_64-unknown-linux-musl", file: "creole" },
    Target { triple: "aarch64-unknown-linux-musl", file: "creole" },
    Target { triple: "x86_64-apple-darwin", file: "creole" },
    Target { triple: "aarch64-apple-darwin", file: "creole" },
    Target { triple: "x86_64-pc-windows-gnu", file: "creole.exe" },
];

/// Beginning of the README in each archive.
const README: &str = "\
Creole: any client of the Anthropic Messages API on any model that is served with Chat Completions, Responses or
Messages.

    ./creole launch claude                                     Claude Code on a model server of this machine
    ./creole check --upstream http://localhost:11434/v1        what an agent can do with a server
    ./creole serve --upstream http://localhost:11434/v1        for every other client
    ./creole demo                                              a model to try it with
    ./creole --help

The binary needs no other file. Put it anywhere in your PATH.
";

/// Licence texts that come with every binary.
pub(super) struct Documents {
    licence: String,
    /// Licences of the crates and other parts in the binary.
    notices: String,
}

impl Documents {
    pub(super) fn read() -> Result<Self> {
        let licence = fs::read_to_string(workspace::root().join("LICENSE"))?;
        Ok(Self { licence, notices: notices::text()? })
    }

    /// Returns the licence documents as files of a folder in an archive.
    pub(super) fn files(&self, folder: &str) -> [File; 2] {
        [
            File::plain(format!("{folder}/LICENSE"), self.licence.as_str()),
            File::plain(format!("{folder}/THIRD-PARTY.txt"), self.notices.as_str()),
        ]
    }
}

/// Packs the binary of each system.
pub(super) fn archives(dist: &Path) -> Result<()> {
    for target in TARGETS {
        archive_of(target, &built(target)?, dist)?;
    }
    Ok(())
}

/// Packs a binary into an archive in a folder, and returns the archive's path.
pub(crate) fn archive_of(target: &Target, binary: &Path, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(target.archive());
    step(&format!("writing {}", target.archive()), || {
        let manual = manual(binary, target)?;
        let packed = target.packed(fs::read(binary)?, &Documents::read()?, manual)?;
        Ok(fs::write(&path, packed)?)
    })?;
    Ok(path)
}

impl Target {
    /// Returns the target of this machine.
    pub(crate) fn of_this_machine() -> Result<&'static Self> {
        let system = if OS == "macos" { "darwin" } else { OS };
        let fits = |it: &&Self| it.triple.starts_with(ARCH) && it.triple.contains(system);
        TARGETS
            .iter()
            .find(fits)
            .with_context(|| format!("there are no packages for {ARCH} and {OS}"))
    }

    /// Returns the target with this triple.
    pub(crate) fn of(triple: &str) -> Result<&'static Self> {
        let found = TARGETS.iter().find(|target| target.triple == triple);
        found.with_context(|| format!("there is no binary for {triple}"))
    }

    fn is_windows(&self) -> bool {
        self.triple.contains("windows")
    }

    /// Returns the name of the archive without its ending, which is also the name of its only
    /// folder.
    pub(super) fn name(&self) -> String {
        format!("creole-{}-{}", env!("CARGO_PKG_VERSION"), self.triple)
    }

    /// Returns the oldest macOS version that the binary supports. It is Rust's own limit; zig's
    /// default would be macOS 15.
    pub(super) fn oldest_macos(&self) -> Option<&'static str> {
        match self.triple {
            "x86_64-apple-darwin" => Some("10.12"),
            "aarch64-apple-darwin" => Some("11.0"),
            _ => None,
        }
    }

    /// Returns the linker flag that makes builds reproducible. Without it, linkers write the time
    /// on Windows, and on macOS a name (`LC_UUID`) made of the paths of objects on this machine.
    fn steady(&self) -> Option<&'static str> {
        match self.triple {
            triple if triple.contains("windows") => Some("-Clink-arg=-Wl,-Brepro"),
            triple if triple.contains("apple") => Some("-Clink-arg=-Wl,-S"),
            _ => None,
        }
    }

    /// Returns the file name of the target's archive.
    pub(super) fn archive(&self) -> String {
        self.name() + if self.is_windows() { ".zip" } else { ".tar.gz" }
    }

    fn packed(
        &self,
        binary: Vec<u8>,
        documents: &Documents,
        manual: Vec<(String, Vec<u8>)>,
    ) -> Result<Vec<u8>> {
        let folder = self.name();
        let mut files = Vec::from(documents.files(&folder));
        let manual = manual.into_iter();
        files.extend(manual.map(|(path, text)| File::plain(format!("{folder}/{path}"), text)));
        files.push(File::plain(format!("{folder}/README.txt"), README));
        files.push(File::program(format!("{folder}/{}", self.file), binary));
        if self.is_windows() { archive::zip(&files) } else { archive::gzip(&archive::tar(&files)?) }
    }
}

/// Shells with completions, and the file names of these.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "creole.bash"),
    ("fish", "creole.fish"),
    ("powershell", "creole.ps1"),
    ("zsh", "_creole"),
];

/// Returns the manual pages and the completions, with their paths in an archive. The binary for
/// this machine prints those of all targets.
fn manual(binary: &Path, target: &Target) -> Result<Vec<(String, Vec<u8>)>> {
    let ours = Target::of_this_machine()?;
    let binary = if ours.triple == target.triple { binary.to_owned() } else { built(ours)? };
    let folder = std::env::temp_dir().join(format!("creole-manual-{}", std::process::id()));
    workspace::emptied(&folder)?;
    setup::run(Command::new(&binary).arg("manual").arg(&folder))?;
    let mut files = Vec::new();
    for page in fs::read_dir(&folder)? {
        let page = page?;
        files.push((format!("man/{}", page.file_name().to_string_lossy()), fs::read(page.path())?));
    }
    fs::remove_dir_all(&folder)?;
    for (shell, file) in COMPLETIONS {
        let printed = Command::new(&binary).args(["completions", shell]).output()?;
        ensure!(printed.status.success(), "creole completions {shell}: {}", printed.status);
        files.push((format!("completions/{file}"), printed.stdout));
    }
    files.sort();
    Ok(files)
}

/// Name of the environment variable with a folder of built binaries: `TRIPLE/creole`.
pub(super) const FINISHED: &str = "CREOLE_BINARIES";

/// Returns the binary for a target: from the folder of built binaries if set, else newly built.
pub(crate) fn built(target: &Target) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os(FINISHED) {
        let found = Path::new(&folder).join(target.triple).join(target.file);
        ensure!(found.is_file(), "{FINISHED}: there is no {}", found.display());
        return Ok(found);
    }
    build(target, &workspace::root(), &workspace::root().join("target"))
}

/// Builds the binary from the sources in `root`, with `folder` as cargo's target folder.
pub(super) fn build(target: &Target, root: &Path, folder: &Path) -> Result<PathBuf> {
    setup::target(target.triple)?;
    let (zig, zigbuild) = setup::zig()?;
    step(&format!("building creole for {}", target.triple), || {
        let mut command = Command::new(zigbuild);
        workspace::without_cargo(&mut command);
        command.current_dir(root).env("CARGO_ZIGBUILD_ZIG_PATH", zig);
        command.args(["zigbuild", "--quiet", "--locked", "--profile", PROFILE]);
        command.args(["--package", "creole-gateway", "--bin", "creole", "--target", target.triple]);
        let flags = workspace::rustflags(root, target.triple, target.steady())?;
        command.arg("--target-dir").arg(folder).args(flags);
        if let Some(oldest) = target.oldest_macos() {
            command.env("MACOSX_DEPLOYMENT_TARGET", oldest);
        }
        setup::run(&mut command)
    })?;
    let file = folder.join(target.triple).join(PROFILE).join(target.file);
    ensure!(file.is_file(), "cargo made no {}", file.display());
    Ok(file)
}
