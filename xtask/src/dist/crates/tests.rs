//! Tests of `crates.rs`.

use std::process::Stdio;

use cargo_metadata::DependencyKind;

use super::*;

#[test]
fn a_published_crate_needs_no_unpublished_one() {
    let published = published().unwrap();
    let ours = workspace::packages().unwrap();
    let is = |packages: &[Package], name: &str| packages.iter().any(|it| it.name.as_str() == name);
    assert!(is(&published, "creole") && is(&published, "creole-gateway"));
    assert!(!is(&published, "xtask") && !is(&published, "creole-rig"));
    for package in &published {
        for needed in &package.dependencies {
            // Cargo leaves out test dependencies that have no version.
            if needed.kind == DependencyKind::Development || !is(&ours, &needed.name) {
                continue;
            }
            assert!(is(&published, &needed.name), "{} needs {}", package.name, needed.name);
            assert_eq!(needed.req.to_string(), format!("^{}", package.version), "{}", needed.name);
        }
    }
}

#[test]
fn a_registry_can_show_what_each_crate_is() {
    for package in published().unwrap() {
        let name = &package.name;
        assert!(package.description.is_some() && package.readme.is_some(), "{name}");
        assert!(package.license.is_some() && package.documentation.is_some(), "{name}");
        assert!((1..=5).contains(&package.keywords.len()), "{name}: {:?}", package.keywords);
        assert!((1..=5).contains(&package.categories.len()), "{name}: {:?}", package.categories);
    }
}

#[test]
fn crates_have_their_licence_and_no_tests() {
    for package in published().unwrap() {
        let list = ["package", "--list", "--allow-dirty", "--package", package.name.as_str()];
        let output = workspace::cargo(list).stderr(Stdio::inherit()).output().unwrap();
        let files = String::from_utf8(output.stdout).unwrap();
        let files: Vec<&str> = files.lines().collect();
        for needed in ["LICENSE", "README.md", "Cargo.lock"] {
            assert!(files.contains(&needed), "{}: {files:?}", package.name);
        }
        let foreign: Vec<_> = files
            .iter()
            .filter(|file| {
                let top = file.split('/').next().unwrap_or_default();
                // The front page of the core has the text of its example.
                let is_shown = **file == "examples/host.rs";
                file.contains("tests") || (file.contains('/') && top != "src" && !is_shown)
            })
            .collect();
        assert!(foreign.is_empty(), "{}: {foreign:?}", package.name);
    }
}
