//! The command itself: what it says to wrong arguments.
#![allow(clippy::unwrap_used)]

use std::process::Command;

fn fails(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask-worker")).args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn without_arguments_it_says_which_it_takes() {
    assert!(fails(&[]).contains("usage: xtask-worker MODULE.wasm FOLDER"));
}

#[test]
fn a_module_that_is_not_there_is_named() {
    let folder = std::env::temp_dir().join(format!("creole-no-worker-{}", std::process::id()));
    let said = fails(&["no-such-module.wasm", folder.to_str().unwrap()]);
    assert!(said.contains("no-such-module.wasm"), "{said}");
    assert!(!folder.exists());
}
