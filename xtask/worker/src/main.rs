//! `xtask-worker MODULE.wasm FOLDER`: the modules that the runtime loads, in `FOLDER`.
//!
//! ```text
//!  shim.js        the entry point, and
//!  stream.js      the clients' streams; both from cloudflare/
//!  index.js       what wasm-bindgen writes around the WebAssembly
//!  index_bg.wasm  the WebAssembly
//!  snippets/…     JavaScript that crates bring along
//!  modules.capnp  the list of these, for workerd without wrangler
//! ```
//!
//! A program of its own, because wasm-bindgen takes a minute to compile that nobody should wait for
//! who only starts another host. It replaces wasm-bindgen's command line and a bundler.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

/// The name that everything else is derived from.
const NAME: &str = "index";
const SCRIPTS: [(&str, &str); 2] = [
    ("shim.js", include_str!("../../../cloudflare/shim.js")),
    ("stream.js", include_str!("../../../cloudflare/stream.js")),
];

fn main() -> Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        bail!("usage: xtask-worker MODULE.wasm FOLDER");
    };
    package(Path::new(module), Path::new(folder))
}

fn package(module: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name(NAME).typescript(false);
    // A sixth of the gzipped size.
    bindgen.remove_name_section(true);
    // What shim.js needs to start the module anew after a panic.
    bindgen.reset_state_function(true).force_enable_abort_handler(true);
    bindgen.module(true)?;
    bindgen.generate(folder)?;
    let index = folder.join(NAME).with_extension("js");
    let script = fs::read_to_string(&index)?;
    fs::write(&index, without_source_phase(&script)?)?;
    for (name, script) in SCRIPTS {
        fs::write(folder.join(name), script)?;
    }
    let files = files(folder, Path::new(""))?;
    fs::write(folder.join("modules.capnp"), modules(&files)?)?;
    Ok(())
}

/// workerd has no source phase imports; there, importing a `.wasm` already gives the compiled
/// module.
fn without_source_phase(script: &str) -> Result<String> {
    const SOURCE: &str = "import source ";
    if script.matches(SOURCE).count() != 1 {
        bail!("wasm-bindgen does not import its module as it used to");
    }
    Ok(script.replace(SOURCE, "import "))
}

/// The files below `folder`, by their paths in it, in order.
fn files(folder: &Path, inside: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(inside))? {
        let entry = entry?;
        let path = inside.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(files(folder, &path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The list of modules. workerd starts the first.
fn modules(files: &[PathBuf]) -> Result<String> {
    let mut listed = Vec::new();
    for file in files {
        let name = file.to_str().context("a file name that is not UTF-8")?;
        let kind = match file.extension().unwrap_or_default().to_str() {
            Some("js") => "esModule",
            Some("wasm") => "wasm",
            _ => bail!("{name}: unknown kind of module"),
        };
        listed.push(format!("  (name = \"{name}\", {kind} = embed \"{name}\"),\n"));
    }
    listed.sort_by_key(|line| !line.contains("\"shim.js\""));
    Ok(format!(
        "# The modules of the Worker, for configurations of workerd.\n@0xb1c9f2a6d7e34581;\n\n\
         using Workerd = import \"/workerd/workerd.capnp\";\n\n\
         const modules :List(Workerd.Worker.Module) = [\n{}];\n",
        listed.concat()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_point_comes_first() {
        let files = ["index.js", "index_bg.wasm", "shim.js", "snippets/a/b.js"].map(PathBuf::from);
        let list = modules(&files).unwrap();
        let at = |name: &str| list.find(&format!("embed \"{name}\"")).unwrap();
        assert!(at("shim.js") < at("index.js") && at("index.js") < at("snippets/a/b.js"));
        assert!(list.contains("wasm = embed \"index_bg.wasm\""));
        assert!(modules(&[PathBuf::from("x.txt")]).is_err());
    }

    #[test]
    fn an_import_that_workerd_cannot_do_is_not_left_unnoticed() {
        assert_eq!(without_source_phase("import source a;").unwrap(), "import a;");
        assert!(without_source_phase("import a;").is_err());
    }
}
