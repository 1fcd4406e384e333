//! Container images as OCI layouts, made without a daemon.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::archive::{self, File};
use super::binaries::{self, Documents, Target};
use super::digest;
use crate::workspace;

/// Name of the module's file in an image, where Istio and Envoy Gateway look for it.
const MODULE_IN_IMAGE: &str = "plugin.wasm";

/// Targets in the gateway's image, each with the OCI name of its processor.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64-unknown-linux-musl", "amd64"), ("aarch64-unknown-linux-musl", "arm64")];

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes an image with one layer that contains the filter's module.
pub(super) fn of_module(module: &[u8], folder: &Path) -> Result<()> {
    let mut layout = Layout::new(folder)?;
    let platform = json!({"architecture": "wasm", "os": "wasi"});
    let image = layout.image(&[File::plain(MODULE_IN_IMAGE, module)], &platform, &json!({}))?;
    layout.finish(image)
}

/// Writes the gateway's image for both processors. The image contains only the binary, which needs
/// no other file.
pub(super) fn of_gateway(folder: &Path) -> Result<()> {
    let documents = Documents::read()?;
    let mut layout = Layout::new(folder)?;
    let mut images = Vec::new();
    for (triple, architecture) in ARCHITECTURES {
        let binary = fs::read(binaries::built(Target::of(triple)?)?)?;
        let mut files = Vec::from(documents.files("licenses"));
        files.push(File::program("usr/local/bin/creole", binary));
        let platform = json!({"architecture": architecture, "os": "linux"});
        let mut image = layout.image(&files, &platform, &gateway())?;
        if let Some(image) = image.as_object_mut() {
            image.insert("platform".to_owned(), platform);
        }
        images.push(image);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": images});
    let index = layout.blob(INDEX, index.to_string().as_bytes())?;
    layout.finish(index)
}

/// Returns the image's settings for starting the gateway, as in `gateway/deploy/Containerfile`,
/// which gives the reasons.
fn gateway() -> Value {
    json!({
        "User": "65534:65534",
        "ExposedPorts": {"8787/tcp": {}, "9787/tcp": {}},
        "Env": ["PATH=/usr/local/bin"],
        "Entrypoint": ["/usr/local/bin/creole"],
        "Cmd": [
            "serve", "--config", "/etc/creole.json", "--listen", "0.0.0.0:8787",
            "--metrics", "0.0.0.0:9787", "--allow-host", "localhost", "--shutdown-timeout", "60",
        ],
        "Labels": {
            "org.opencontainers.image.title": "creole",
            "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
    })
}

/// OCI image layout: a folder of blobs that are named by their digests.
struct Layout<'a> {
    folder: &'a Path,
}

impl<'a> Layout<'a> {
    fn new(folder: &'a Path) -> Result<Self> {
        workspace::emptied(folder)?;
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        Ok(Self { folder })
    }

    /// Writes a blob of the image layout, and returns the descriptor of the blob.
    fn blob(&mut self, kind: &str, bytes: &[u8]) -> Result<Value> {
        let digest = digest(bytes);
        fs::write(self.folder.join("blobs/sha256").join(&digest), bytes)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
    }

    /// Writes an image of one layer for one platform, and returns its descriptor. The same files
    /// give the same bytes, because the image has no times and no users.
    fn image(&mut self, files: &[File], platform: &Value, config: &Value) -> Result<Value> {
        let archive = archive::tar(files)?;
        let layer = archive::gzip(&archive)?;
        let layer = self.blob("application/vnd.oci.image.layer.v1.tar+gzip", &layer)?;
        let config = json!({
            "architecture": platform["architecture"], "os": platform["os"], "config": config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(&archive))]},
        });
        let kind = "application/vnd.oci.image.config.v1+json";
        let config = self.blob(kind, config.to_string().as_bytes())?;
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest =
            json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
        self.blob(kind, manifest.to_string().as_bytes())
    }

    /// Writes the layout's index with this image as its only entry, named by the version.
    fn finish(self, mut image: Value) -> Result<()> {
        let version = json!({"org.opencontainers.image.ref.name": env!("CARGO_PKG_VERSION")});
        if let Some(image) = image.as_object_mut() {
            image.insert("annotations".to_owned(), version);
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]});
        fs::write(self.folder.join("index.json"), index.to_string())?;
        fs::write(self.folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(())
    }
}
