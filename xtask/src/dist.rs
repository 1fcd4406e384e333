//! `cargo xtask dist`: every artefact with what whoever deploys it asks for.
//!
//! ```text
//! dist/creole.wasm, creole.component.wasm, …   as `cargo xtask build` leaves them
//! dist/oci/                                     the filter as an OCI image layout, made without a daemon
//! dist/crates/                                  the crates as a registry gets them
//! dist/sbom.cdx.json                            what is in the artefacts: CycloneDX 1.6
//! dist/SHA256SUMS                               of all files, for `sha256sum --check`
//! ```

mod crates;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, NodeDep, Package, PackageId};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use walkdir::{DirEntry, WalkDir};

use crate::build;
use crate::workspace::{self, step};

/// The packages that are shipped, whose dependencies are.
const SHIPPED: [&str; 5] =
    ["creole-envoy", "creole-gateway", "creole-cloudflare", "creole-wit", "creole-wasi-http"];

/// The name by which Istio and Envoy Gateway look for the module in an image.
const MODULE_IN_IMAGE: &str = "plugin.wasm";

/// Makes everything.
pub(crate) fn all() -> Result<()> {
    build::all()?;
    let dist = workspace::root().join("dist");
    step("building the gateway", || {
        let built = workspace::build("creole-gateway", &["--bin", "creole", "--release"], "")?;
        fs::copy(&built, dist.join("creole")).with_context(|| built.display().to_string())?;
        Ok(())
    })?;
    step("writing dist/oci", || image(&fs::read(build::path(&build::FILTER))?, &dist.join("oci")))?;
    step("packing the crates", || crates::packages(&dist.join("crates")).map(drop))?;
    let sbom = sbom(&workspace::metadata()?)?;
    fs::write(dist.join("sbom.cdx.json"), format!("{sbom:#}\n"))?;
    let sums = sums(&dist)?;
    fs::write(dist.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    Ok(())
}

/// Builds the filter a second time, from nothing, and compares.
pub(crate) fn reproduce() -> Result<()> {
    let first = fs::read(build::unfinished(&build::FILTER, &[])?)?;
    let again = workspace::root().join("target/again");
    workspace::emptied(&again)?;
    let folder = again.display().to_string();
    let second = step("building the filter again", || {
        Ok(fs::read(build::unfinished(&build::FILTER, &["--target-dir", &folder])?)?)
    })?;
    let (first, second) = (digest(&first), digest(&second));
    println!("first  sha256:{first}\nsecond sha256:{second}");
    if first != second {
        bail!("two builds gave different bytes");
    }
    Ok(())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lines as `sha256sum` writes them, for every file below `folder`.
fn sums(folder: &Path) -> Result<String> {
    let mut lines = String::new();
    // Pages, which can be made anew at any time, are no artefact.
    let shipped = |entry: &DirEntry| entry.path() != folder.join("site");
    for entry in WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(shipped) {
        let file = entry?.into_path();
        if file.is_file() && !file.ends_with("SHA256SUMS") {
            let name = file.strip_prefix(folder)?.display();
            lines.push_str(&format!("{}  {name}\n", digest(&fs::read(&file)?)));
        }
    }
    Ok(lines)
}

/// An image of one layer with the module in it. The same module gives the same bytes: no time, no user.
fn image(module: &[u8], folder: &Path) -> Result<()> {
    workspace::emptied(folder)?;
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let blob = |kind: &str, bytes: &[u8]| -> Result<Value> {
        let digest = digest(bytes);
        fs::write(blobs.join(&digest), bytes)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
    };
    let archive = archive(MODULE_IN_IMAGE, module)?;
    let mut layer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    layer.write_all(&archive)?;
    let layer = blob("application/vnd.oci.image.layer.v1.tar+gzip", &layer.finish()?)?;
    let config = json!({
        "architecture": "wasm", "os": "wasi", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(&archive))]},
    });
    let config = blob("application/vnd.oci.image.config.v1+json", config.to_string().as_bytes())?;
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
    let mut manifest = blob(kind, manifest.to_string().as_bytes())?;
    let version = env!("CARGO_PKG_VERSION");
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert(
            "annotations".to_owned(),
            json!({"org.opencontainers.image.ref.name": version}),
        );
    }
    let kind = "application/vnd.oci.image.index.v1+json";
    let index = json!({"schemaVersion": 2, "mediaType": kind, "manifests": [manifest]});
    fs::write(folder.join("index.json"), index.to_string())?;
    fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(())
}

/// A tar archive of one file.
fn archive(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o644);
    header.set_size(u64::try_from(bytes.len())?);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, name, bytes)?;
    Ok(archive.into_inner()?)
}

/// What the shipped packages are made of: their dependencies, without those of tests and builds.
fn shipped(metadata: &Metadata) -> Result<Vec<&Package>> {
    let graph = metadata.resolve.as_ref().context("cargo metadata has no graph")?;
    let ours = metadata.packages.iter().filter(|it| SHIPPED.contains(&it.name.as_str()));
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

fn sbom(metadata: &Metadata) -> Result<Value> {
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

/// The texts of a list in `deny.toml`.
#[cfg(test)]
fn list(deny: &str, name: &str) -> Vec<String> {
    let after = deny.split(&format!("\n{name} = [")).nth(1).unwrap_or_default();
    let inside = after.split(']').next().unwrap_or_default();
    inside.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests;
