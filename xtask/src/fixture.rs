//! `cargo xtask fixture`: makes a test case in `tests/fixtures` from a body that an upstream sent.
//!
//! `tests/fixtures/README.md` defines a case. The expected results are written by
//! `tests/fixtures.rs`, the test that reads all cases: so the format is known in one place, and
//! this program is built without the core.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::workspace;

const DEFAULT_REQUESTS: &str = "default-requests";

/// Name of the model in every fixture's request, by which hosts find the trial.
const MODEL: &str = "claude-test";

#[derive(Args)]
pub(crate) struct FixtureOptions {
    /// What the upstream sent, byte for byte: a file, or `-` for the standard input.
    body: PathBuf,
    /// The symptom: a folder in tests/fixtures.
    #[arg(long)]
    kind: String,
    /// The name of the case; no other case has it.
    #[arg(long)]
    name: String,
    /// Whose answer it is.
    #[arg(long, default_value = "generic")]
    vendor: String,
    /// What the upstream does, in a sentence for docs/upstreams.md.
    #[arg(long)]
    why: String,
    /// Who else was seen to do it.
    #[arg(long, value_name = "NAME")]
    seen_at: Vec<String>,
    /// A page that shows it.
    #[arg(long, value_name = "URL")]
    source: Vec<String>,
    /// The client's request: a default of tests/fixtures/default-requests by its name, or a file.
    #[arg(long, default_value = "plain")]
    request: String,
    /// The status of the upstream's answer.
    #[arg(long, default_value_t = 200)]
    status: u16,
    /// The upstream's Content-Type, if the body does not tell.
    #[arg(long)]
    content_type: Option<String>,
    /// Another header of the upstream that matters.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    headers: Vec<String>,
    /// Only clients that stream, or only those that do not; both, if it is not given.
    #[arg(long)]
    stream: Option<bool>,
    /// The preset of the upstream.
    #[arg(long)]
    profile: Option<String>,
    /// Flags beside the preset, as JSON.
    #[arg(long, value_name = "JSON")]
    profile_overrides: Option<String>,
    /// What the upstream speaks, where the preset does not say it: openai (Chat Completions),
    /// responses or anthropic.
    #[arg(long)]
    protocol: Option<String>,
}

/// Contents of `meta.json`, in the order in which they are written.
#[derive(Serialize)]
struct Meta {
    vendor: String,
    seen_at: Vec<String>,
    why: String,
    source: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    status: u16,
    content_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_overrides: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
}

pub(crate) fn fixture(options: &FixtureOptions) -> Result<()> {
    let mut body = Vec::new();
    if options.body == Path::new("-") {
        io::stdin().read_to_end(&mut body)?;
    } else {
        body = fs::read(&options.body).with_context(|| options.body.display().to_string())?;
    }
    let root = workspace::root();
    let case = make(&root.join("tests/fixtures"), options, &body)?;
    let shown = case.strip_prefix(&root).unwrap_or(&case).display();
    let expected = case.join("expected.json");
    let written =
        test(&["--test", "fixtures", "--", "--exact", "a_case_without_expectations_gets_them"])?;
    ensure!(
        written && expected.is_file(),
        "{shown} is there, but its answer cannot be read: write what a client should get into its expected.json"
    );
    print!("\n{}", fs::read_to_string(&expected)?);
    for entry in fs::read_dir(&case)? {
        println!("wrote {shown}/{}", entry?.file_name().to_string_lossy());
    }
    let good = test(&["--test", "fixtures", "--test", "upstreams"])?;
    println!("wrote docs/upstreams.md");
    println!(
        "\nReview:\n\
         - expected.json is what Creole gives today. Where a client should get something else, write that;\n  \
           the test then fails until the code is changed.\n\
         - The body has no key, name or text of a person, and nothing that does not matter.\n\
         - The row in docs/upstreams.md says what the upstream does; `source` in meta.json has the links that show it."
    );
    ensure!(good, "the new case does not hold at every split, or another test failed: see above");
    Ok(())
}

/// Runs tests of the core that write the missing files of a test case.
fn test(arguments: &[&str]) -> Result<bool> {
    let mut command = workspace::cargo(["test", "--quiet", "--package", "creole"]);
    Ok(command.args(arguments).env("CREOLE_WRITE", "1").status()?.success())
}

/// Writes all files of a new test case except the expected results, and returns the folder of the
/// case. Existing files are never overwritten.
fn make(root: &Path, options: &FixtureOptions, body: &[u8]) -> Result<PathBuf> {
    let case = new_folder(root, &options.kind, &options.name)?;
    for link in &options.source {
        ensure!(link.starts_with("https://"), "{link} is no https link");
    }
    let (ending, content_type) = form(body);
    let (default, own) = request(root, &options.request)?;
    let header = |text: &String| {
        let (name, value) =
            text.split_once(':').with_context(|| format!("{text}: no NAME:VALUE"))?;
        Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    let overrides = options.profile_overrides.as_deref().map(serde_json::from_str);
    let meta = Meta {
        vendor: options.vendor.clone(),
        seen_at: options.seen_at.clone(),
        why: options.why.clone(),
        source: options.source.clone(),
        request: default.filter(|name| name != "plain"),
        status: options.status,
        content_type: options.content_type.clone().unwrap_or_else(|| content_type.to_owned()),
        headers: options.headers.iter().map(header).collect::<Result<_>>()?,
        stream: options.stream,
        profile: options.profile.clone(),
        profile_overrides: overrides.transpose().context("--profile-overrides")?,
        protocol: options.protocol.clone(),
    };
    fs::create_dir(&case).with_context(|| case.display().to_string())?;
    fs::write(case.join("meta.json"), serde_json::to_string_pretty(&meta)? + "\n")?;
    fs::write(case.join(format!("upstream.{ending}")), body)?;
    if let Some(request) = own {
        fs::write(case.join("request.json"), format!("{request:#}\n"))?;
    }
    Ok(case)
}

/// Returns the folder for a new case. Fails if its kind is unknown, or its name already used.
fn new_folder(root: &Path, kind: &str, name: &str) -> Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ensure!(!name.is_empty() && name.bytes().all(plain), "{name}: letters, digits, `.`, `_`, `-`");
    let mut kinds = Vec::new();
    for entry in fs::read_dir(root).with_context(|| root.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with(DEFAULT_REQUESTS) {
            ensure!(!path.join(name).exists(), "{} is there already", path.join(name).display());
            kinds.extend(path.file_name().map(|kind| kind.to_string_lossy().into_owned()));
        }
    }
    kinds.sort();
    if !kinds.iter().any(|known| known == kind) {
        bail!("there is no kind {kind}; there are:\n  {}", kinds.join("\n  "));
    }
    Ok(root.join(kind).join(name))
}

/// Returns the file ending and the Content-Type for a body, guessed from its first bytes.
fn form(body: &[u8]) -> (&'static str, &'static str) {
    let text = String::from_utf8_lossy(body);
    let start = text.trim_start();
    if ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| start.starts_with(field)) {
        ("sse", "text/event-stream")
    } else if serde_json::from_slice::<Value>(body).is_ok() {
        ("json", "application/json")
    } else if start.starts_with('<') {
        ("txt", "text/html")
    } else {
        ("txt", "text/plain")
    }
}

/// Returns the name of a default request, or the contents of a request file. A file that equals a
/// default is replaced by the default's name.
fn request(root: &Path, wanted: &str) -> Result<(Option<String>, Option<Value>)> {
    let mut defaults = BTreeMap::new();
    for entry in fs::read_dir(root.join(DEFAULT_REQUESTS))? {
        let path = entry?.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        defaults.insert(name.unwrap_or_default(), json(&path)?);
    }
    if defaults.contains_key(wanted) {
        return Ok((Some(wanted.to_owned()), None));
    }
    let names: Vec<&str> = defaults.keys().map(String::as_str).collect();
    let mut own = json(Path::new(wanted))
        .with_context(|| format!("--request: a file, or one of {}", names.join(", ")))?;
    let Some(members) = own.as_object_mut() else { bail!("{wanted} is no request") };
    members.insert("model".to_owned(), MODEL.into());
    // A case is tested both with and without a stream.
    members.remove("stream");
    let same = defaults.into_iter().find(|(_, default)| *default == own);
    Ok(match same {
        Some((name, _)) => (Some(name), None),
        None => (None, Some(own)),
    })
}

fn json(path: &Path) -> Result<Value> {
    let shown = || path.display().to_string();
    serde_json::from_slice(&fs::read(path).with_context(shown)?).with_context(shown)
}

#[cfg(test)]
mod tests;
