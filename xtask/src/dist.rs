//! `cargo xtask dist`: every artefact with what whoever deploys it asks for.
//!
//! ```text
//! dist/creole.wasm, creole.component.wasm, …   as `cargo xtask build` leaves them
//! dist/oci/                                     the filter as an OCI image layout, made without a daemon
//! dist/sbom.cdx.json                            what is in the artefacts: CycloneDX 1.6
//! dist/SHA256SUMS                               of all files, for `sha256sum --check`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

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
    let sbom = sbom(&workspace::metadata(LOCKED)?)?;
    fs::write(dist.join("sbom.cdx.json"), format!("{sbom:#}\n"))?;
    let sums = sums(&dist)?;
    fs::write(dist.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    Ok(())
}

/// Builds the filter a second time, from nothing, and compares.
pub(crate) fn reproduce() -> Result<()> {
    let first = fs::read(build::unfinished(&build::FILTER)?)?;
    let again = workspace::root().join("target/again");
    workspace::emptied(&again)?;
    let folder = again.display().to_string();
    let build::Artefact { package, target, profile, .. } = build::FILTER;
    let arguments = ["--profile", profile, "--target", target, "--target-dir", &folder];
    let second = step("building the filter again", || {
        Ok(fs::read(workspace::module(package, &arguments)?)?)
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
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside)? {
            let path = entry?.path();
            if path == folder.join("site") {
                // Pages, which can be made anew at any time, are no artefact.
            } else if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path);
            }
        }
    }
    let mut lines = String::new();
    for file in files.iter().filter(|file| !file.ends_with("SHA256SUMS")) {
        let name = file.strip_prefix(folder)?.display();
        lines.push_str(&format!("{}  {name}\n", digest(&fs::read(file)?)));
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
    let archive = archive(MODULE_IN_IMAGE, module);
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
fn archive(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    let mut put = |at: usize, text: &str| {
        for (to, from) in header.iter_mut().skip(at).zip(text.bytes()) {
            *to = from;
        }
    };
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", bytes.len()));
    put(136, "00000000000\0");
    // The sum is made with blanks in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\u{0}00");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    for (to, from) in header.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *to = from;
    }
    header.extend_from_slice(bytes);
    let whole = header.len().next_multiple_of(512).saturating_add(1024);
    header.resize(whole, 0);
    header
}

/// The versions that are tested.
const LOCKED: &[&str] = &["--locked"];

/// What the shipped packages are made of: their dependencies, without those of tests and builds.
fn shipped(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |pointer: &str| metadata.pointer(pointer).and_then(Value::as_array);
    let nodes = list("/resolve/nodes").context("cargo metadata has no graph")?;
    let packages = list("/packages").context("cargo metadata has no packages")?;
    let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let by_id: BTreeMap<String, &Value> =
        packages.iter().filter_map(|package| Some((text(package, "id")?, package))).collect();
    let graph: BTreeMap<String, &Value> =
        nodes.iter().filter_map(|node| Some((text(node, "id")?, node))).collect();
    let is_shipped = |package: &&Value| {
        package.get("name").and_then(Value::as_str).is_some_and(|name| SHIPPED.contains(&name))
    };
    let mut open: Vec<String> =
        packages.iter().filter(is_shipped).filter_map(|package| text(package, "id")).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        let Some(node) = graph.get(&id) else { continue };
        if !found.insert(id) {
            continue;
        }
        for dependency in node.get("deps").and_then(Value::as_array).into_iter().flatten() {
            let kinds = dependency.get("dep_kinds").and_then(Value::as_array);
            let normal = |kind: &Value| kind.get("kind").is_some_and(Value::is_null);
            if kinds.is_some_and(|kinds| kinds.iter().any(normal)) {
                open.extend(text(dependency, "pkg"));
            }
        }
    }
    Ok(found.iter().filter_map(|id| by_id.get(id).copied()).collect())
}

fn sbom(metadata: &Value) -> Result<Value> {
    let mut components = Vec::new();
    for package in shipped(metadata)? {
        let text = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        // Older packages write `MIT/Apache-2.0`.
        let licence = text("license").replace(" / ", " OR ").replace('/', " OR ");
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
