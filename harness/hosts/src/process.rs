//! Hosts that run as processes: Envoy, the gateway, and the component for servers of `wasi:http`.
//! Each process is started for one configuration, listens on a port of its own, logs to a file, and
//! is killed when its value is dropped.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::upstream::{Upstream, runtime};
use crate::{Got, Host, Request, Trial, client};

/// Maximum time for the start of a host, longer than any host needs.
const START: Duration = Duration::from_secs(60);

/// Returns the path in an environment variable.
///
/// # Errors
/// The environment variable is not set, or no file exists at its path.
pub fn file_of(variable: &str) -> Result<PathBuf, String> {
    let how = "`cargo xtask test hosts` builds what is needed and sets it";
    match std::env::var_os(variable) {
        None => Err(format!("{variable} is not set: {how}")),
        Some(path) if Path::new(&path).exists() => Ok(path.into()),
        Some(path) => Err(format!("{variable}: there is no {}: {how}", path.display())),
    }
}

/// Running process of a host.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    /// Address to which clients connect.
    pub address: SocketAddr,
    /// Address of the admin pages, which only Envoy has.
    pub admin: Option<SocketAddr>,
    log: PathBuf,
}

/// Parts of Envoy's configuration that a test may choose.
#[derive(Clone, Copy, Debug)]
pub struct EnvoyOptions {
    /// True if Envoy's `allow_on_headers_stop_iteration` is set.
    pub pause_headers: bool,
    /// Number of Envoy's worker threads, each with a VM.
    pub concurrency: u32,
    /// True if Envoy gets several routes for tests. By `x-creole-upstream`, for upstreams with this
    /// `cluster`: `http2` speaks HTTP/2, the route of `slow` has a `timeout` of half a second,
    /// `refusing` refuses connections, `empty` has no server, `nowhere` has no route. By `x-team`,
    /// with metadata: `other` has a model map of its own, `small` accepts 2048 bytes, `broken` has
    /// an invalid configuration.
    pub routes: bool,
}

impl Default for EnvoyOptions {
    fn default() -> Self {
        Self { pause_headers: true, concurrency: 1, routes: false }
    }
}

impl Process {
    /// Starts a real Envoy with the filter, from `envoy/envoy.yaml`.
    ///
    /// # Errors
    /// An environment variable is missing, or Envoy does not start; then the error text has the end
    /// of Envoy's log.
    pub fn envoy(config: &Value, options: &EnvoyOptions) -> Result<Self, String> {
        Self::envoy_with(config, options, &|yaml| yaml)
    }

    /// Starts a real Envoy whose rendered configuration a function changes before the start.
    ///
    /// # Errors
    /// The errors are those of [`Process::envoy`]: a variable is missing, or Envoy does not start.
    pub fn envoy_with(
        config: &Value,
        options: &EnvoyOptions,
        change: &dyn Fn(String) -> String,
    ) -> Result<Self, String> {
        let (binary, filter) = (file_of("CREOLE_ENVOY")?, file_of("CREOLE_WASM")?);
        let (address, admin) = (free(), free());
        let upstream = Upstream::shared().address();
        let template = fs::read_to_string(root().join("envoy/envoy.yaml")).unwrap();
        let raw = json!({
            "name": "envoy.transport_sockets.raw_buffer",
            "typed_config": {"@type":
                "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}
        });
        let values = [
            ("LISTEN_ADDRESS", address.ip().to_string()),
            ("LISTEN_PORT", address.port().to_string()),
            ("ADMIN_ADDRESS", admin.ip().to_string()),
            ("ADMIN_PORT", admin.port().to_string()),
            ("UPSTREAM_HOST", upstream.ip().to_string()),
            ("UPSTREAM_PORT", upstream.port().to_string()),
            ("UPSTREAM_TRANSPORT", raw.to_string()),
            ("WASM_PATH", filter.display().to_string()),
            ("SECRET_NAMES", "[]".to_owned()),
            ("CREOLE_CONFIG", config.to_string()),
        ];
        let mut yaml = template;
        for (name, value) in values {
            yaml = yaml.replace(&format!("{{{{{name}}}}}"), &value);
        }
        if !options.pause_headers {
            yaml = changed(
                &yaml,
                "allow_on_headers_stop_iteration: true",
                "\
                allow_on_headers_stop_iteration: false",
            );
        }
        if options.routes {
            yaml = with_routes(&yaml, upstream);
        }
        let folder = folder("envoy");
        let path = folder.join("envoy.yaml");
        fs::write(&path, change(yaml)).unwrap();
        let mut command = Command::new(binary);
        command.arg("--config-path").arg(&path).arg("--disable-hot-restart").args([
            "--concurrency",
            &options.concurrency.to_string(),
            "--log-level",
            "warning",
            "--component-log-level",
            "wasm:info",
        ]);
        let mut envoy = Self::start("envoy", &mut command, address, &folder)?;
        envoy.admin = Some(admin);
        Ok(envoy)
    }

    /// Starts the gateway's binary.
    ///
    /// # Errors
    /// The environment variable is missing, or the gateway does not start; then the error text has
    /// the end of the gateway's log.
    pub fn gateway(config: &Value) -> Result<Self, String> {
        let binary = file_of("CREOLE_GATEWAY")?;
        let (address, folder) = (free(), folder("gateway"));
        let path = folder.join("creole.json");
        let mut config = config.clone();
        // Documents are not read, because the gateway alone reads PDFs.
        if let Some(settings) = config.as_object_mut() {
            settings.entry("read_documents").or_insert_with(|| json!({"pages_max": 0}));
        }
        fs::write(&path, config.to_string()).unwrap();
        let mut command = Command::new(binary);
        let listen = address.to_string();
        command.args(["serve", "--no-check", "--listen", &listen, "--config"]).arg(path);
        Self::start("gateway", &mut command, address, &folder)
    }

    /// Starts the component for servers of `wasi:http` in Wasmtime.
    ///
    /// # Errors
    /// An environment variable is missing, or Wasmtime does not start; then the error text has the
    /// end of Wasmtime's log.
    pub fn wasi_http(config: &Value) -> Result<Self, String> {
        let (wasmtime, component) = (file_of("CREOLE_WASMTIME")?, file_of("CREOLE_WASI_HTTP")?);
        let (address, folder) = (free(), folder("wasi-http"));
        let mut command = Command::new(wasmtime);
        command.args(["serve", "-Scli", "-Opooling-allocator=n", "--addr", &address.to_string()]);
        command.args(["--env", "CREOLE_CONFIG"]).env("CREOLE_CONFIG", config.to_string());
        Self::start("wasi:http", command.arg(component), address, &folder)
    }

    fn start(
        name: &'static str,
        command: &mut Command,
        address: SocketAddr,
        folder: &Path,
    ) -> Result<Self, String> {
        let log = folder.join("log");
        let file = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let mut process = Self { name, child, address, admin: None, log };
        let since = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = process.child.try_wait() {
                return Err(format!("{name} ended with {status}:\n{}", process.log()));
            }
            if since.elapsed() > START {
                return Err(format!("{name} does not listen:\n{}", process.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// Returns the end of the process's log.
    pub fn log(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(8000)..]).into_owned()
    }

    /// Returns true if the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the resident memory of the process and its peak, in MB.
    pub fn resident_mb(&self) -> (u64, u64) {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let mb = |name| line(name).unwrap_or_default() / 1024;
        (mb("VmRSS:"), mb("VmHWM:"))
    }

    /// Returns a page of Envoy's admin server.
    pub fn admin_page(&self, path: &str) -> String {
        let request = Request::plain("GET", path);
        runtime().block_on(client::send(self.admin.expect("an admin server"), &request)).text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The log is needed only after a failure.
        if let Some(folder) = self.log.parent().filter(|_| !std::thread::panicking()) {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

impl Host for Process {
    fn name(&self) -> &'static str {
        self.name
    }

    fn send(&self, trial: &Trial) -> Got {
        client::send_trial(self.address, trial)
    }
}

/// Returns the root folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace")
}

/// Adds the test routes and clusters to Envoy's configuration: see [`EnvoyOptions::routes`].
fn with_routes(yaml: &str, upstream: SocketAddr) -> String {
    const ROUTE: &str = "              - match: {prefix: /}\n";
    const CLUSTERS: &str = "  clusters:\n";
    let header = |name: &str| {
        format!("headers: [{{name: x-creole-upstream, string_match: {{exact: {name}}}")
    };
    let route = |name: &str, timeout: &str| {
        let header = header(name);
        format!(
            "              - match: {{prefix: /, {header}}}]}}\n                \
             route: {{cluster: {name}, timeout: {timeout}}}\n"
        )
    };
    let names = [("http2", "0s"), ("slow", "0.5s"), ("refusing", "0s"), ("empty", "0s")];
    let team = |(name, configuration): (&str, &str)| {
        format!(
            "              - match: {{prefix: /, headers: [{{name: x-team, string_match: {{exact: \
             {name}}}}}]}}\n                route: {{cluster: upstream, timeout: 0s}}\n                \
             metadata: {{filter_metadata: {{creole: {{configuration: '{configuration}'}}}}}}\n"
        )
    };
    let teams = [
        ("other", r#"{"models": {"*": {"upstream": "0012", "model": "other-model"}}}"#),
        ("small", r#"{"request_bytes_max": 2048}"#),
        ("broken", r#"{"guards": {"pairing": "mend"}}"#),
    ];
    let routes = names.map(|(name, timeout)| route(name, timeout)).concat();
    let routes = teams.map(team).concat() + &routes;
    let last = format!(
        "{routes}              - match: {{prefix: /, {}, invert_match: true}}]}}\n",
        header("nowhere")
    );
    let cluster = |name: &str, address: Option<SocketAddr>, more: &str| {
        let endpoints = address.map(|address| {
            let (ip, port) = (address.ip(), address.port());
            format!(
                "{{lb_endpoints: [{{endpoint: {{address: {{socket_address: \
                 {{address: {ip}, port_value: {port}}}}}}}}}]}}"
            )
        });
        format!(
            "  - name: {name}\n    type: STATIC\n{more}    load_assignment: \
             {{cluster_name: {name}, endpoints: [{}]}}\n",
            endpoints.unwrap_or_default()
        )
    };
    let http2 = "    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
";
    let clusters = [
        cluster("http2", Some(upstream), http2),
        cluster("slow", Some(upstream), ""),
        cluster("refusing", Some(free()), ""),
        cluster("empty", None, ""),
    ];
    let yaml = changed(yaml, ROUTE, &last);
    changed(&yaml, CLUSTERS, &format!("{CLUSTERS}{}", clusters.concat()))
}

fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "envoy/envoy.yaml has no {from:?} any more");
    text.replace(from, to)
}

/// Returns an unused port. The port is below the range for outgoing connections, so that no
/// connection occupies it before the host listens.
fn free() -> SocketAddr {
    let random = RandomState::new();
    let ports = (0..100).map(|attempt| 10_000 + random.hash_one(attempt) % 20_000);
    let mut listeners = ports.filter_map(|port| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, u16::try_from(port).ok()?)).ok()
    });
    listeners.next().expect("a free port").local_addr().unwrap()
}

/// Creates a folder for the files of one process.
fn folder(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("creole-hosts-{}-{name}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}
