//! Tests of `npm.rs`.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;

use super::*;
use crate::dist::package::sample;

/// Returns the files of a package with their modes.
fn read(path: &Path) -> BTreeMap<String, (u32, String)> {
    let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(path).unwrap()));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        let name = entry.path().unwrap().display().to_string();
        files.insert(name, (entry.header().mode().unwrap(), text));
    }
    files
}

fn manifest(files: &BTreeMap<String, (u32, String)>) -> Value {
    serde_json::from_str(&files["package/package.json"].1).unwrap()
}

#[test]
fn each_target_has_a_package_that_the_launcher_names() {
    let (folder, binaries) = sample("npm");
    let packages = packages(&binaries, &Facts::read(Some("owner/name")).unwrap(), &folder).unwrap();
    assert_eq!(packages.len(), TARGETS.len() + 1);
    let launcher = read(packages.last().unwrap());
    let of_launcher = manifest(&launcher);
    let wanted = of_launcher["optionalDependencies"].as_object().unwrap();
    assert_eq!(wanted.len(), TARGETS.len());
    for package in packages.iter().take(TARGETS.len()) {
        let files = read(package);
        let of_target = manifest(&files);
        let name = of_target["name"].as_str().unwrap();
        assert_eq!(wanted[name], of_target["version"], "{name}");
        // The launcher makes the package's name from Node's words, and so finds the program.
        let (os, cpu) = (of_target["os"][0].as_str(), of_target["cpu"][0].as_str());
        assert_eq!(name, format!("creole-{}-{}", os.unwrap(), cpu.unwrap()));
        let program = if os == Some("win32") { "creole.exe" } else { "creole" };
        let (mode, text) = &files[&format!("package/bin/{program}")];
        assert_eq!((*mode, text.as_str()), (0o755, "program"));
        assert!(files["package/THIRD-PARTY.txt"].1.contains("hyper"), "{name}");
        assert_eq!(of_target["repository"]["url"], "git+https://github.com/owner/name.git");
    }
    assert_eq!(launcher["package/creole.js"].0, 0o755);
    assert_eq!(of_launcher["bin"]["creole"], "creole.js");
}

#[test]
fn nothing_runs_at_installation() {
    let (folder, binaries) = sample("npm-scripts");
    for package in packages(&binaries, &Facts::read(Some("owner/name")).unwrap(), &folder).unwrap()
    {
        let files = read(&package);
        let manifest = manifest(&files);
        for key in ["scripts", "dependencies", "gypfile"] {
            assert_eq!(manifest.get(key), None, "{}: {key}", package.display());
        }
        assert!(files["package/LICENSE"].1.contains("Apache License"));
        assert!(files["package/README.md"].1.contains("creole"));
    }
}

#[test]
fn the_same_binary_gives_the_same_package() {
    let ((one, binaries), (two, _)) = (sample("npm-one"), sample("npm-two"));
    let facts = Facts::read(Some("owner/name")).unwrap();
    let first = packages(&binaries, &facts, &one).unwrap();
    let second = packages(&binaries, &facts, &two).unwrap();
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap(), "{}", first.display());
    }
}
