//! Conversion of core modules to components. The type of the component is in a section of the
//! module.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

/// Writes the component that a module describes to `path`. Fails if the component has imports,
/// because `wit/creole.wit` promises none.
pub(crate) fn encode(module: &[u8], path: &Path) -> Result<()> {
    let component = ComponentEncoder::default().module(module)?.validate(true).encode()?;
    if let Some(import) = first_import(&component)? {
        bail!("the component imports {import}, and it must import nothing");
    }
    fs::write(path, component).with_context(|| path.display().to_string())
}

/// Returns the name of a component's first import, if any.
fn first_import(component: &[u8]) -> Result<Option<String>> {
    // Nested components import from the components around them; only the outermost level asks the
    // host.
    let mut inside = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ComponentSection { .. } | Payload::ModuleSection { .. } => {
                inside = inside.saturating_add(1);
            }
            Payload::End(_) => inside = inside.saturating_sub(1),
            Payload::ComponentImportSection(imports) if inside == 0 => {
                if let Some(import) = imports.into_iter().next() {
                    return Ok(Some(import?.name.name.to_owned()));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}
