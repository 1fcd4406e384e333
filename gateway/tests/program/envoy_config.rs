//! `creole envoy-config`. That an Envoy takes what it prints is tested where there is an Envoy.

use std::process::{Command, Output};

use crate::rig;

fn run(flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    command.arg("envoy-config").args(flags).env_remove("SSL_CERT_FILE").output().unwrap()
}

/// Returns what a successful command prints.
#[track_caller]
fn printed(flags: &[&str]) -> String {
    let output = run(flags);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn assert_refused(flags: &[&str], reason: &str) {
    let output = run(flags);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
    assert!(error.starts_with("creole: ") && error.contains(reason), "{error}");
}

#[track_caller]
fn assert_has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn a_local_server_gets_a_whole_file_with_the_guard() {
    let yaml = printed(&["--upstream", "http://localhost:11434/v1", "--model", "m"]);
    let address = r#"socket_address: {address: "127.0.0.1", port_value: 11434}"#;
    let model = "\n                        \"*\": {\n                          \"model\": \"m\"\n";
    assert_has(&yaml, &["- name: creole\n", "- name: creole-guard\n", address, model, "RawBuffer"]);
    assert_has(&yaml, &[r#""profile": "ollama""#, "host_env_keys: []", "stats_tags:"]);
    assert!(!yaml.contains("{{"), "{yaml}");
}

#[test]
fn a_vendor_gets_tls_and_its_key_by_name() {
    let keys = ["--client-key-env", "TEAM_A", "--client-key-env", "TEAM_B"];
    let flags = [&["--profile", "groq", "--listen", "0.0.0.0:80", "--wasm", "a\\\"b"], &keys[..]];
    let yaml = printed(&flags.concat());
    let secrets = r#"host_env_keys: ["GROQ_API_KEY","TEAM_A","TEAM_B"]"#;
    assert_has(
        &yaml,
        &[secrets, r#""sni":"api.groq.com""#, "auto_sni_san_validation", r#"a\\\"b""#],
    );
    assert_has(&yaml, &[r#"{address: "api.groq.com", port_value: 443}"#, r#"{address: "0.0.0.0""#]);
    assert_refused(&["--profile", "groq", "--listen", "0.0.0.0:80"], "--client-key-env");
    // Keys of clients are not sent on to a server without a key.
    let flags = ["--upstream", "http://h:1", "--client-key-env", "TEAM_A"];
    assert_has(&printed(&flags), &[r#""key": "none""#]);
}

#[test]
fn a_document_is_kept_and_its_services_become_clusters() {
    let config = rig::file(
        r#"{"upstreams": {"own": {"profile": "vllm", "profile_overrides": {"max_tokens_max": 9}}},
        "server_tools": {"web_search": {"kind": "searxng", "url": "https://s.example/x?k=1", "cluster": "find"}}}"#,
    );
    let yaml = printed(&["--config", &config, "--upstream", "http://h:1/base"]);
    assert_has(
        &yaml,
        &[r#""max_tokens_max": 9"#, r#""base_path": "/base""#, r#""profile": "vllm""#],
    );
    assert_has(&yaml, &[r#"  - {"connect_timeout":"5s","#, r#""sni":"s.example""#]);
    let filters = printed(&["--config", &config, "--upstream", "http://h:1", "--filters", "big"]);
    assert!(filters.starts_with("- name: creole\n"), "{filters}");
    assert_has(&filters, &[r#""cluster": "big""#, "\n- name: creole-guard\n"]);
    assert!(!filters.contains("admin:") && !filters.contains("router"), "{filters}");
}

#[test]
fn what_envoy_would_refuse_is_refused_before() {
    let several =
        rig::file(r#"{"upstreams": {"a": {"url": "http://a"}, "b": {"url": "http://b"}}}"#);
    let unknown = rig::file(r#"{"guards": {"pairings": "repair"}}"#);
    let without = r#"{"upstreams": {"a": {"url": "http://a"}}, "server_tools": {"web_fetch": {}}}"#;
    assert_refused(&[], "no upstream: give --upstream URL");
    assert_refused(&["--upstream", "h:1"], "--upstream: expected a URL");
    assert_refused(&["--config", &several], "expected one upstream");
    assert_refused(&["--config", &unknown], "guards.pairings");
    assert_refused(&["--config", &rig::file(without)], "server_tools.web_fetch.cluster");
    assert_refused(&["--config", "/no/such/file"], "--config: ");
    assert_refused(
        &["--upstream", "http://h:1", "--key-env", "sk-own key"],
        "names of environment variables",
    );
}
