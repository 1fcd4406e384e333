//! Process of workerd, the Workers runtime, with the Worker in it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Returns the compatibility date and flags of the runtime, as in `cloudflare/wrangler.toml`.
fn compatibility() -> String {
    let wrangler = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../cloudflare/wrangler.toml");
    let text = std::fs::read_to_string(wrangler).unwrap();
    let value = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        value.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    let (date, flags) = (value("compatibility_date"), value("compatibility_flags"));
    format!("compatibilityDate = {date},\n  compatibilityFlags = {flags},")
}

/// Running Worker, killed when this value is dropped.
pub struct Worker {
    pub address: SocketAddr,
    /// Time from the start of the process until the Worker accepted connections.
    pub started: Duration,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Worker {
    /// Starts a Worker in front of `upstream`, with `config` (one JSON document without
    /// `upstreams`).
    #[must_use]
    pub fn start(upstream: &str, config: &str) -> Self {
        Self::start_with(&[("UPSTREAM_URL", upstream), ("CREOLE_CONFIG", config)])
    }

    /// Starts a Worker with these variables.
    #[must_use]
    pub fn start_with(variables: &[(&str, &str)]) -> Self {
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| (*name, format!("text = {}", quote(value))))
            .collect();
        Self::run("CREOLE_WORKER_DIR", &variables)
    }

    /// Starts a Worker with a variable that is a JSON object.
    #[must_use]
    pub fn start_with_json(name: &str, json: &str) -> Self {
        Self::run("CREOLE_WORKER_DIR", &[(name, format!("json = {}", quote(json)))])
    }

    /// Starts the Worker with test hooks, which can panic on demand and report counts of live
    /// objects.
    #[must_use]
    pub fn start_with_hooks(upstream: &str, config: &str) -> Self {
        Self::start_with_hooks_and(upstream, config, &[])
    }

    /// Starts the Worker with test hooks, and with more variables.
    #[must_use]
    pub fn start_with_hooks_and(upstream: &str, config: &str, more: &[(&str, &str)]) -> Self {
        let variables = [("UPSTREAM_URL", upstream), ("CREOLE_CONFIG", config)];
        let variables: Vec<_> = variables
            .iter()
            .chain(more)
            .map(|(name, value)| (*name, format!("text = {}", quote(value))))
            .collect();
        Self::run("CREOLE_WORKER_HOOKS_DIR", &variables)
    }

    fn run(folder: &str, variables: &[(&str, String)]) -> Self {
        let began = Instant::now();
        let configuration = file(&configuration(variables));
        let mut child = Command::new(path("CREOLE_WORKERD"))
            .args(["serve", "--control-fd=1", "--import-path"])
            .arg(path(folder))
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("CREOLE_WORKERD: workerd does not start");
        let log = Arc::new(Mutex::new(String::new()));
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // With the control channel on standard output, its first line says where workerd listens.
        out.read_line(&mut line).unwrap();
        // workerd has read the configuration by now.
        let _ = std::fs::remove_file(&configuration);
        let port = serde_json::from_str::<Value>(&line).ok().and_then(|it| it["port"].as_u64());
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(out), Box::new(child.stderr.take().unwrap())];
        let readers = streams.map(|mut stream| {
            let written = Arc::clone(&log);
            std::thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut piece) {
                    written.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
                }
            })
        });
        let Some(port) = port else {
            let _ = child.kill();
            for reader in readers {
                let _ = reader.join();
            }
            panic!("workerd did not start: {line}{}", log.lock().unwrap());
        };
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()));
        Self { address, started: began.elapsed(), child, log }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Returns the lines of the request log that have this member.
    #[must_use]
    pub fn lines(&self, key: &str, value: &str) -> Vec<Value> {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line[key] == value).collect()
    }

    /// Returns the resident bytes, open descriptors and processor time of workerd; `None` on
    /// systems without `/proc`.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let id = self.child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let resident = status.lines().find(|line| line.starts_with("VmRSS"))?;
        let kib: u64 = resident.split_whitespace().nth(1)?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let after: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = after[11].parse::<u64>().ok()? + after[12].parse::<u64>().ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{id}/fd")).ok()?.count();
        // A tick is a hundredth of a second on all usual Linux systems.
        Some(Figures { resident: kib * 1024, descriptors, cpu: Duration::from_millis(ticks * 10) })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub resident: u64,
    pub descriptors: usize,
    pub cpu: Duration,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn path(variable: &str) -> PathBuf {
    let Some(value) = std::env::var_os(variable) else {
        panic!(
            "{variable} is not set; `cargo xtask test workerd` builds what these tests need and sets it"
        );
    };
    let path = PathBuf::from(value);
    assert!(path.exists(), "{variable}: {} does not exist", path.display());
    path
}

fn configuration(variables: &[(&str, String)]) -> String {
    let mut bindings = String::new();
    for (name, value) in variables {
        writeln!(bindings, "    (name = {}, {value}),", quote(name)).unwrap();
    }
    let compatibility = compatibility();
    format!(
        r#"using Workerd = import "/workerd/workerd.capnp";
using Modules = import "/modules.capnp";
const config :Workerd.Config = (
  services = [
    (name = "creole", worker = .creole),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "creole")],
);
const creole :Workerd.Worker = (
  modules = Modules.modules,
  {compatibility}
  bindings = [
{bindings}  ],
);
"#
    )
}

/// Returns a text as a Cap'n Proto literal.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn file(text: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("creole-worker-tests-{}-{number}.capnp", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    path
}
