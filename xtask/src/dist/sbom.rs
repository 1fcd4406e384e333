//! Bill of materials of the artefacts, in CycloneDX 1.6.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, NodeDep, Package, PackageId};
use serde_json::{Value, json};

/// Names of the shipped packages. Their dependencies are shipped with them.
const SHIPPED: [&str; 5] =
    ["creole-envoy", "creole-gateway", "creole-cloudflare", "creole-wit", "creole-wasi-http"];

/// Returns the shipped packages and their dependencies, without dependencies of tests and builds.
pub(super) fn shipped(metadata: &Metadata) -> Result<Vec<&Package>> {
    made_of(metadata, &SHIPPED)
}

/// Returns the packages named in `roots` and their dependencies, without dependencies of tests and
/// builds.
pub(super) fn made_of<'a>(metadata: &'a Metadata, roots: &[&str]) -> Result<Vec<&'a Package>> {
    let graph = metadata.resolve.as_ref().context("cargo metadata has no graph")?;
    let ours = metadata.packages.iter().filter(|it| roots.contains(&it.name.as_str()));
    let mut open: Vec<&PackageId> = ours.map(|package| &package.id).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if found.insert(id) {
            let node = graph.nodes.iter().find(|node| node.id == *id).context("no such package")?;
            let normal =
                |it: &&NodeDep| it.dep_kinds.iter().any(|info| info.kind == DependencyKind::Normal);
            open.extend(node.deps.iter().filter(normal).map(|dependency| &dependency.pkg));
        }
    }
    Ok(metadata.packages.iter().filter(|package| found.contains(&package.id)).collect())
}

/// Returns the bill of materials as a CycloneDX document.
pub(super) fn sbom(metadata: &Metadata) -> Result<Value> {
    let mut components = Vec::new();
    for Package { name, version, license, .. } in shipped(metadata)? {
        // Older packages write `MIT/Apache-2.0`.
        let licence = license.as_deref().unwrap_or_default();
        let licence = licence.replace(" / ", " OR ").replace('/', " OR ");
        components.push(json!({
            "type": "library", "name": name, "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "bom-ref": format!("{name}@{version}"),
            "licenses": [{"expression": licence}],
        }));
    }
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {
            "type": "application", "name": "creole", "version": env!("CARGO_PKG_VERSION"),
        }},
        "components": components,
    }))
}
