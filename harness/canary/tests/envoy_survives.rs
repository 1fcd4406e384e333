//! Does Envoy survive a filter on the crate `proxy-wasm`? Reported, not judged: a line says so, and
//! the test fails only if it could not find out. The day Envoy survives, Creole's filter can move to
//! the crate: see `docs/dev/decisions/0001-own-guest-abi.md`.
//!
//! `CREOLE_ENVOY` names the Envoy binary; `cargo xtask test canary` sets it. The filter is in
//! `filter/`, a package of its own, which this test builds.
#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

use std::env;
use std::fmt::Display;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Below and above Envoy's default buffer limit of 1 MiB.
const SMALL_BYTES: usize = 64 << 10;
const LARGE_BYTES: usize = 3 << 20;

const START_SECONDS: u64 = 90;

#[test]
fn envoys_fate_under_the_crates_callback_layer_is_reported() {
    let Some(binary) = env::var_os("CREOLE_ENVOY") else {
        panic!("CREOLE_ENVOY does not name an Envoy binary; run `cargo xtask test canary`");
    };
    let (wasm, release) = build_filter();
    let folder = wasm.parent().expect("a folder").to_owned();
    let upstream = serve();
    let listen = free_address();
    let config = folder.join("canary.yaml");
    fs::write(&config, configuration(listen, upstream, &wasm)).expect("the configuration");
    let log = fs::File::create(folder.join("canary.log")).expect("the log");
    let child = Command::new(binary)
        .arg("--config-path")
        .arg(&config)
        .args(["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("Envoy starts");
    let mut envoy = Envoy(child);
    envoy.wait_until_listening(listen);

    let small = fetch(listen, "/small").unwrap_or_default();
    assert!(
        small.starts_with(b"HTTP/1.1 200") && small.len() > SMALL_BYTES,
        "the canary does not even pass a small body: {}",
        String::from_utf8_lossy(small.get(..200).unwrap_or(&small))
    );
    for _ in 0..3 {
        // Whatever comes of it: what counts is who is alive afterwards.
        let _ = fetch(listen, "/large");
    }
    match envoy.exit_within(Duration::from_secs(3)) {
        Some(status) => say(format!(
            "canary: Envoy DIED ({status}) under proxy-wasm {release}: the filter keeps its own \
             guest layer"
        )),
        None => say(format!(
            "canary: Envoy SURVIVED under proxy-wasm {release}: the filter can move to the crate, \
             see docs/dev/decisions/0001-own-guest-abi.md"
        )),
    }
}

/// Past the test harness, which would keep it for itself.
fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Gives the module, and the release of `proxy-wasm` in it.
fn build_filter() -> (PathBuf, String) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("filter");
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/canary");
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).current_dir(&package).env("CARGO_TARGET_DIR", &target);
        // Flags for the build of the tests are not meant for the canary.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    };
    let status = cargo(&["build", "--release", "--locked", "--quiet", "--target", "wasm32-wasip1"])
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the canary does not build ({status})");
    let lock = fs::read_to_string(package.join("Cargo.lock")).expect("its lock file");
    let release = lock
        .split_once("name = \"proxy-wasm\"\nversion = \"")
        .and_then(|(_, rest)| rest.split('"').next())
        .expect("proxy-wasm in its lock file");
    // Without a network there is nothing to say.
    if let Ok(output) = cargo(&["update", "--dry-run", "proxy-wasm"]).output() {
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            if line.contains("proxy-wasm v") {
                say(format!("canary: a newer release is there: {}", line.trim()));
            }
        }
    }
    let wasm = target.join("wasm32-wasip1/release/creole_canary_filter.wasm");
    (wasm.canonicalize().expect("the module"), release.to_owned())
}

/// An upstream that answers `/small` and everything else with bodies of those sizes.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            thread::spawn(move || {
                let head = read_head(&mut connection);
                let size = if head.contains(" /small ") { SMALL_BYTES } else { LARGE_BYTES };
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n{}",
                    "x".repeat(size)
                );
                let _ = connection.write_all(answer.as_bytes());
            });
        }
    });
    address
}

fn read_head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(size @ 1..) = connection.read(&mut piece) {
        head.extend_from_slice(piece.get(..size).unwrap_or_default());
        if head.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn fetch(address: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(connection, "GET {path} HTTP/1.1\r\nhost: canary\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    // A broken connection ends an answer as well.
    let _ = connection.read_to_end(&mut answer);
    Ok(answer)
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address")
}

fn configuration(listen: SocketAddr, upstream: SocketAddr, wasm: &Path) -> String {
    let (listen, upstream, wasm) = (listen.port(), upstream.port(), wasm.display());
    let types = "type.googleapis.com/envoy.extensions.filters";
    format!(
        r#"static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {listen}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": {types}.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: canary
          http_filters:
          - name: canary
            typed_config:
              "@type": {types}.http.wasm.v3.Wasm
              config:
                name: canary
                root_id: canary
                allow_on_headers_stop_iteration: true
                failure_policy: FAIL_RELOAD
                vm_config:
                  vm_id: canary
                  runtime: envoy.wasm.runtime.v8
                  code: {{local: {{filename: "{wasm}"}}}}
          - name: envoy.filters.http.router
            typed_config: {{"@type": {types}.http.router.v3.Router}}
          route_config:
            virtual_hosts:
            - {{name: all, domains: ["*"], routes: [{{match: {{prefix: /}}, route: {{cluster: u}}}}]}}
  clusters:
  - name: u
    type: STATIC
    load_assignment:
      cluster_name: u
      endpoints:
      - lb_endpoints:
        - endpoint:
            address: {{socket_address: {{address: 127.0.0.1, port_value: {upstream}}}}}
"#
    )
}

/// A child that does not outlive the test.
struct Envoy(Child);

impl Envoy {
    fn wait_until_listening(&mut self, address: SocketAddr) {
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = self.0.try_wait().expect("its status");
            assert!(ended.is_none(), "Envoy did not start ({ended:?}); see target/canary");
            assert!(start.elapsed().as_secs() < START_SECONDS, "Envoy does not listen");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn exit_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            let ended = self.0.try_wait().expect("its status");
            if ended.is_some() || start.elapsed() > time {
                return ended;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
