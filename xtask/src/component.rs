//! Core modules become components: the type of the component is in a section of the module.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use wit_component::ComponentEncoder;

/// Writes the component that the module at `module` describes to `path`. A component that would ask
/// its host for anything is refused: `wit/creole.wit` promises that it asks for nothing.
pub(crate) fn encode(module: &Path, path: &Path) -> Result<()> {
    let module = fs::read(module).with_context(|| module.display().to_string())?;
    let component = ComponentEncoder::default().module(&module)?.validate(true).encode()?;
    if let Some(import) = first_import(&component)? {
        bail!("the component imports {import}, and it must import nothing");
    }
    fs::write(path, component).with_context(|| path.display().to_string())
}

/// The name of the first thing that a component asks for.
fn first_import(component: &[u8]) -> Result<Option<String>> {
    for payload in wasmparser::Parser::new(0).parse_all(component) {
        if let wasmparser::Payload::ComponentImportSection(imports) = payload?
            && let Some(import) = imports.into_iter().next()
        {
            return Ok(Some(import?.name.name.to_owned()));
        }
    }
    Ok(None)
}
