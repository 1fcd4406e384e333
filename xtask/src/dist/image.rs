//! Images as OCI layouts, made without a daemon.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::archive::{self, File};
use super::digest;
use crate::workspace;

/// The name by which Istio and Envoy Gateway look for the module in an image.
const MODULE_IN_IMAGE: &str = "plugin.wasm";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image of one layer with the module in it.
pub(super) fn of_module(module: &[u8], folder: &Path) -> Result<()> {
    let mut layout = Layout::new(folder)?;
    let platform = json!({"architecture": "wasm", "os": "wasi"});
    let image = layout.image(&[File::plain(MODULE_IN_IMAGE, module)], &platform, &json!({}))?;
    layout.finish(image)
}

/// A folder of blobs, which are named by their digests.
struct Layout<'a> {
    folder: &'a Path,
}

impl<'a> Layout<'a> {
    fn new(folder: &'a Path) -> Result<Self> {
        workspace::emptied(folder)?;
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        Ok(Self { folder })
    }

    /// Writes a blob, and gives its descriptor.
    fn blob(&mut self, kind: &str, bytes: &[u8]) -> Result<Value> {
        let digest = digest(bytes);
        fs::write(self.folder.join("blobs/sha256").join(&digest), bytes)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
    }

    /// An image of one layer, for one platform. The same files give the same bytes: no time, no user.
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

    /// Names an image by the version, as the layout's only one.
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
