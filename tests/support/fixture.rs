//! The fixtures: real deviations of upstreams, each as files that any host can send.
//!
//! `tests/fixtures/README.md` says which files a case has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Case of `tests/fixtures`: a folder with its files.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// `KIND/CASE`
    pub name: String,
    /// Folder of the case's files.
    pub folder: PathBuf,
    /// `meta.json`
    pub meta: Value,
    /// The name of its default request, where it has no `request.json`.
    pub default_request: Option<String>,
    /// The client's request.
    pub request: Value,
    /// The upstream's body, if the case has one.
    pub upstream: Option<Vec<u8>>,
    /// `expected.json`; null where it is still to be written.
    pub expected: Value,
}

/// The folder beside the kinds that holds the requests which many cases share.
pub const DEFAULT_REQUESTS: &str = "default-requests";

/// Reads all cases, in the order of their names.
pub fn all() -> Vec<Fixture> {
    all_in(&root())
}

/// Reads all cases in a folder that is like `tests/fixtures`.
pub fn all_in(root: &Path) -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    for kind in folders(root).into_iter().filter(|folder| !folder.ends_with(DEFAULT_REQUESTS)) {
        for case in folders(&kind) {
            fixtures.push(load(root, &case));
        }
    }
    assert!(!fixtures.is_empty(), "no fixtures in {}", root.display());
    fixtures
}

/// The requests that cases share, by name.
pub fn default_requests() -> BTreeMap<String, Value> {
    let folder = root().join(DEFAULT_REQUESTS);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.file_stem().unwrap().to_string_lossy().into(), json(&path))).collect()
}

/// `tests/fixtures`, found from whichever package of the workspace is being tested.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .ancestors()
        .map(|folder| folder.join("tests/fixtures"))
        .find(|folder| folder.is_dir())
        .expect("tests/fixtures above the package")
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn load(root: &Path, case: &Path) -> Fixture {
    let meta = json(&case.join("meta.json"));
    let own = case.join("request.json");
    let named = meta.get("request").map(|name| name.as_str().expect("meta.request is a name"));
    assert!(!(own.is_file() && named.is_some()), "{case:?} has a request and names a default");
    let default_request = (!own.is_file()).then(|| named.unwrap_or("plain").to_owned());
    let request = match &default_request {
        Some(name) => root.join(DEFAULT_REQUESTS).join(format!("{name}.json")),
        None => own,
    };
    let expected = case.join("expected.json");
    let upstream = ["upstream.sse", "upstream.json", "upstream.txt"]
        .into_iter()
        .find_map(|file| fs::read(case.join(file)).ok());
    Fixture {
        name: case.strip_prefix(root).unwrap().to_string_lossy().into_owned(),
        meta,
        default_request,
        request: json(&request),
        upstream,
        expected: if expected.exists() { json(&expected) } else { Value::Null },
        folder: case.to_owned(),
    }
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Fixture {
    /// The symptom: the folder of its kind.
    pub fn kind(&self) -> &str {
        self.parts().0
    }

    /// The name without the kind; no other case has it.
    pub fn case(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        self.name.split_once('/').expect("KIND/CASE")
    }

    /// Returns the vendor whose answer it is, or who wants the request so; `generic` for many, or
    /// for a class.
    pub fn vendor(&self) -> &str {
        self.meta["vendor"].as_str().unwrap_or_else(|| panic!("{}: meta.vendor", self.name))
    }

    /// The configuration for this case: one upstream called `default`.
    pub fn config(&self) -> Value {
        config_of(&self.meta)
    }

    /// The request, with `stream` as given.
    pub fn request(&self, stream: bool) -> Vec<u8> {
        let mut request = self.request.clone();
        if stream {
            request["stream"] = true.into();
        } else if let Some(request) = request.as_object_mut() {
            request.remove("stream");
        }
        request.to_string().into_bytes()
    }

    /// Returns the ways in which clients may ask: streaming (true), not, or both.
    pub fn ways(&self) -> Vec<bool> {
        match self.meta.get("stream").and_then(Value::as_bool) {
            Some(stream) => vec![stream],
            None => vec![true, false],
        }
    }

    /// Status of the upstream's answer.
    pub fn status(&self) -> u16 {
        self.meta["status"].as_u64().map_or(200, |status| u16::try_from(status).unwrap())
    }

    /// Headers of the upstream's answer.
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if let Some(kind) = self.meta["content_type"].as_str() {
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        for (name, value) in self.meta["headers"].as_object().into_iter().flatten() {
            headers.push((name.clone(), value.as_str().unwrap().to_owned()));
        }
        headers
    }
}

/// A copy of `request` with the changes of a variant: names of fields, or JSON pointers; null takes
/// a field out.
pub fn patched(request: &Value, patch: &Value) -> Value {
    let mut request = request.clone();
    for (place, value) in patch.as_object().into_iter().flatten() {
        if place.starts_with('/') {
            let (parent, key) = place.rsplit_once('/').unwrap();
            request.pointer_mut(parent).expect("the place that is patched")[key] = value.clone();
        } else if value.is_null() {
            request.as_object_mut().unwrap().remove(place);
        } else {
            request[place] = value.clone();
        }
    }
    request
}

/// The configuration that a case, or a variant of one, names.
pub fn config_of(named: &Value) -> Value {
    let profile = named["profile"].as_str().unwrap_or("default");
    let mut config = config(named["settings"].as_object(), profile, named.get("profile_overrides"));
    if let Some(protocol) = named.get("protocol") {
        config["upstreams"]["default"]["protocol"] = protocol.clone();
    }
    config
}

/// A configuration with one upstream.
pub fn config(
    settings: Option<&Map<String, Value>>,
    profile: &str,
    overrides: Option<&Value>,
) -> Value {
    let mut config = Value::Object(settings.cloned().unwrap_or_default());
    config["upstreams"] = serde_json::json!({"default": {"profile": profile}});
    if let Some(overrides) = overrides.filter(|overrides| !overrides.is_null()) {
        config["upstreams"]["default"]["profile_overrides"] = overrides.clone();
    }
    config
}
