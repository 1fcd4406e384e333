//! Tests of `dist.rs`.

use super::sbom::{sbom, shipped};
use super::*;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read as _;

fn deny() -> String {
    fs::read_to_string(workspace::root().join("deny.toml")).unwrap()
}

/// Returns true if one of the alternatives is allowed. Parentheses do not nest in the licences of
/// our dependencies.
fn allowed(expression: &str, allow: &[String]) -> bool {
    let expression = expression.replace(" / ", " OR ").replace('/', " OR ");
    let terms = expression.replace(['(', ')'], "");
    if expression.contains(" AND ") {
        // Each part of `(A OR B) AND C` must have an alternative that is allowed.
        return expression.split(" AND ").all(|part| {
            part.replace(['(', ')'], "")
                .split(" OR ")
                .any(|it| allow.iter().any(|ok| ok == it.trim()))
        });
    }
    terms.split(" OR ").any(|it| allow.iter().any(|ok| ok == it.trim()))
}

#[test]
fn licences_and_sources_of_what_is_shipped_are_allowed() {
    let (metadata, deny) = (workspace::metadata().unwrap(), deny());
    let (licences, sources) = (list(&deny, "allow"), list(&deny, "allow-registry"));
    assert!(licences.len() > 5 && sources.len() == 1, "{licences:?} {sources:?}");
    let packages = shipped(&metadata).unwrap();
    assert!(packages.len() > 50, "{}", packages.len());
    for package in packages {
        let (name, licence) = (&package.name, package.license.as_deref().unwrap_or_default());
        assert!(allowed(licence, &licences), "{name}: {licence:?} is not in deny.toml");
        if let Some(source) = &package.source {
            let known = sources.iter().any(|ok| source.repr == format!("registry+{ok}"));
            assert!(known, "{name}: {source}");
        }
        assert_ne!(name.as_str(), "openssl-sys");
    }
    assert!(!allowed("GPL-3.0-only", &licences) && !allowed("MIT AND GPL-3.0", &licences));
}

#[test]
fn the_bill_names_what_is_shipped_and_not_what_tests_use() {
    let sbom = sbom(&workspace::metadata().unwrap()).unwrap();
    let names: Vec<&str> = sbom["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    for name in ["creole", "creole-envoy", "memchr", "hyper", "sha2"] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(!names.contains(&"proptest") && !names.contains(&"xtask"));
}

#[test]
fn the_archive_of_the_worker_holds_all_that_its_settings_and_its_list_name() {
    let folder = std::env::temp_dir().join(format!("creole-worker-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let list = r#"modules = [(name = "shim.js", esModule = embed "shim.js")]"#;
    let made = [("shim.js", "js"), ("creole.wasm", "wasm"), ("modules.capnp", list)];
    for (name, text) in made {
        fs::write(folder.join(name), text).unwrap();
    }
    let settings = workspace::root().join("cloudflare/wrangler.toml");
    let packed = worker_archive(&folder, &fs::read_to_string(settings).unwrap()).unwrap();
    let outside = worker_archive(&folder, "main = \"../else/shim.js\"");
    fs::remove_dir_all(&folder).unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(&packed[..]));
    let mut files = std::collections::BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let path = path.strip_prefix(&format!("{WORKER_NAME}/")).unwrap().to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.insert(path, text);
    }
    for (name, text) in made {
        assert_eq!(files[&format!("worker/{name}")], text);
    }
    let settings = &files["wrangler.toml"];
    assert!(settings.contains("\nmain = \"worker/shim.js\"\n"), "{settings}");
    assert!(settings.contains("\nbase_dir = \"worker\"\n"), "{settings}");
    assert_eq!(files.len(), made.len() + 1, "{files:?}");
    assert!(outside.is_err(), "settings that lead out of the archive are not noticed");
}

#[test]
fn the_image_holds_the_module_and_its_digests_are_right() {
    let folder = std::env::temp_dir().join(format!("creole-oci-{}", std::process::id()));
    let module = vec![7_u8; 1000];
    image::of_module(&module, &folder).unwrap();
    let read =
        |path: PathBuf| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |value: &Value| {
        let name = value["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let bytes = fs::read(folder.join("blobs/sha256").join(name)).unwrap();
        assert_eq!(digest(&bytes), name);
        assert_eq!(value["size"], bytes.len());
        bytes
    };
    let index = read(folder.join("index.json"));
    let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
    let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
    let mut tar = Vec::new();
    GzDecoder::new(&blob(&manifest["layers"][0])[..]).read_to_end(&mut tar).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", digest(&tar)));
    let mut archive = tar::Archive::new(&tar[..]);
    let mut files = archive.entries().unwrap().map(Result::unwrap);
    let mut file = files.next().unwrap();
    assert_eq!((&*file.path_bytes(), file.header().mtime().unwrap()), (&b"plugin.wasm"[..], 0));
    let mut found = Vec::new();
    file.read_to_end(&mut found).unwrap();
    assert!(found == module && files.next().is_none());
    fs::remove_dir_all(&folder).unwrap();
}
