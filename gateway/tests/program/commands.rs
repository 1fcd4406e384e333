//! The commands that need no network.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::rig;

fn creole(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_creole"))
        .args(args)
        .env_remove("NO_SUCH_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its flags does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[track_caller]
fn assert_refused(args: &[&str], reason: &str) {
    let output = creole(args, "");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("creole: ") && error.contains(reason), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    let words: Vec<&str> = error.split_whitespace().collect();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "a word twice: {error}");
    assert!(output.stdout.is_empty());
}

/// The reader of the command line refuses it, in its own words.
#[track_caller]
fn assert_misused(args: &[&str], reason: &str) {
    let output = creole(args, "");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains(reason), "{error}");
}

#[test]
fn flags_and_configurations_that_cannot_be_used_are_refused_in_one_line() {
    let several =
        rig::file(r#"{"upstreams": {"a": {"url": "http://a"}, "b": {"url": "http://b"}}}"#);
    let secret =
        rig::file(r#"{"upstreams": {"a": {"url": "http://a", "key": {"secret": "NO_SUCH_KEY"}}}}"#);
    let nowhere = rig::file(r#"{"upstreams": {"a": {"url": "http://a"}, "b": {}}}"#);
    let unknown = rig::file(r#"{"guards": {"pairings": "repair"}}"#);
    let path = rig::file(r#"{"upstreams": {"a": {"url": "http://a/v1?x"}}}"#);
    let upstream = "http://127.0.0.1:1";
    assert_refused(&["serve"], "no upstream: give --upstream URL");
    assert_refused(&["serve", "--upstream", "localhost:11434"], "--upstream: expected a URL");
    assert_refused(&["serve", "--upstream", "http://u:geheim@a"], "without credentials");
    assert_refused(
        &["serve", "--upstream", upstream, "--profile", "x"],
        "--profile: expected one of",
    );
    assert_refused(
        &["serve", "--upstream", upstream, "--key-env", "NO_SUCH_KEY"],
        "--key-env: expected an environment variable called \"NO_SUCH_KEY\", but found none",
    );
    assert_refused(
        &["serve", "--config", &several, "--key-env", "PATH"],
        "--key-env: the configuration has several upstreams",
    );
    assert_refused(
        &["serve", "--upstream", upstream, "--config", &several],
        "--upstream: the conf",
    );
    assert_refused(&["serve", "--config", &secret], "upstreams.a.key.secret");
    assert_refused(
        &["serve", "--config", &nowhere],
        "upstreams.b.url: expected a URL that begins with",
    );
    assert_refused(&["serve", "--config", &unknown], "guards.pairings: unknown key");
    assert_refused(&["serve", "--config", &path], "upstreams.a.url: expected a path such as");
    assert_refused(&["serve", "--config", "/no/such/file"], "/no/such/file");
    assert_refused(&["translate", "response", "--request", "/no/such/file"], "/no/such/file");
    for address in ["localhost", "8787", "127.0.0.1", "127.0.0.1:1x", ":8787", "127.0.0.1:99999"] {
        let expected = "expected an address and a port, such as 127.0.0.1:8787";
        for flag in ["--listen", "--metrics"] {
            assert_misused(&["serve", "--upstream", upstream, flag, address], expected);
        }
    }
    for host in ["", "proxy.example:8443", "https://proxy.example", "*.example"] {
        let args = ["serve", "--upstream", upstream, "--allow-host", host];
        assert_misused(&args, "--allow-host <NAME>': expected a host name");
    }
}

#[test]
fn a_key_that_everyone_could_use_is_refused_at_the_start() {
    let everywhere = ["serve", "--upstream", "http://127.0.0.1:1", "--listen", "0.0.0.0:0"];
    let key = [&everywhere[..], &["--key-env", "PATH"]].concat();
    assert_refused(
        &key,
        "--listen 0.0.0.0:0: whoever reaches it could use the key of upstream default",
    );
    let header =
        rig::file(r#"{"upstreams": {"a": {"headers": {"x-access": {"secret": "PATH"}}}}}"#);
    assert_refused(&[&everywhere[..], &["--config", &header]].concat(), "or say --allow-anyone");
    // Nobody's key goes on.
    let args = [&everywhere[..], &["--client-key-env", "PATH"]].concat();
    assert_refused(
        &args,
        "upstreams.default.key: expected {\"env\": NAME}, {\"file\": PATH} or \"none\"",
    );
    let args = [&everywhere[..], &["--client-key-env", "NO_SUCH_KEY"]].concat();
    assert_refused(
        &args,
        "--client-key-env: expected an environment variable called \"NO_SUCH_KEY\"",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    let output = command.args(&key).env("PATH", "k".repeat(40_000)).output().unwrap();
    let error = text(&output.stderr);
    assert!(
        error.contains("--key-env: expected a key of at most 32768 bytes, but found one of 40000"),
        "{error}"
    );
}

#[test]
fn an_address_in_use_ends_the_server_with_a_reason() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = creole(&["serve", "--upstream", "http://127.0.0.1:1", "--listen", &address], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&format!("creole: cannot listen on {address}: ")));
}

#[test]
fn a_gateway_is_not_its_own_upstream() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    for (listen, host) in
        [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("0.0.0.0", "127.0.0.1")]
    {
        let (url, listen) = (format!("http://{host}:{port}/v1"), format!("{listen}:{port}"));
        assert_refused(&["serve", "--upstream", &url, "--listen", &listen], "the gateway itself");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_written_is_an_error_and_no_panic() {
    let file = rig::file(r#"{"upstreams": {"a": {}}}"#);
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for args in [
        &["check-config", &file] as &[&str],
        &["check-config", "--schema"],
        &["translate", "request"],
    ] {
        let run = |stdout: Stdio, stderr: Stdio| {
            let stdin = Stdio::null();
            let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
            command.args(args).stdin(stdin).stdout(stdout).stderr(stderr).status().unwrap()
        };
        assert_eq!(run(full().into(), Stdio::null()).code(), Some(1), "{args:?}");
        assert_eq!(run(full().into(), full().into()).code(), Some(1), "{args:?}");
    }
}

#[test]
fn check_config_says_ok_or_where_the_error_is() {
    let good = rig::file(r#"{"upstreams": {"a": {"url": "http://a", "profile": "vllm"}}}"#);
    let output = creole(&["check-config", &good], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "ok\n"));
    assert_eq!(text(&output.stderr), "");

    let bad = rig::file(r#"{"upstreams": {"a": {"url": "http://a", "profile": "vlm"}}}"#);
    let output = creole(&["check-config", &bad], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("upstreams.a.profile: expected one of default,"));

    let nameless = rig::file(r#"{"upstreams": {"a": {"url": "http://a", "key": {}}}}"#);
    let output = creole(&["check-config", &nameless], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("upstreams.a.key"), "{}", text(&output.stderr));

    let elsewhere = rig::file(r#"{"upstreams": {"a": {"key": {"secret": "NO_SUCH_KEY"}}}}"#);
    let output = creole(&["check-config", &elsewhere], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "ok\n"));
    let notes = text(&output.stderr);
    assert!(
        notes.contains("NO_SUCH_KEY is not set") && notes.contains("upstreams.a.url"),
        "{notes}"
    );

    let shared = rig::file(
        r#"{"upstreams": {"a": {"url": "http://a"}}, "client_keys": [{"secret": "NO_SUCH_KEY"}]}"#,
    );
    let output = creole(&["check-config", &shared], "");
    let notes = text(&output.stderr);
    assert!(
        output.status.success() && notes.contains("note: upstreams.a.key: expected"),
        "{notes}"
    );
}

#[test]
fn a_key_in_place_of_a_name_is_not_repeated() {
    let key = "sk-proj-abcdefSECRET123";
    let file = rig::file(&format!(r#"{{"upstreams": {{"a": {{"key": {{"secret": "{key}"}}}}}}}}"#));
    let checked = creole(&["check-config", &file], "");
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        text(&checked.stderr)
            .contains("upstreams.a.key.secret: expected the name of an environment variable")
    );
    let served = creole(&["serve", "--upstream", "http://127.0.0.1:9", "--key-env", key], "");
    assert_eq!(served.status.code(), Some(2));
    assert!(
        text(&served.stderr).contains("--key-env: expected the name of an environment variable")
    );
    for output in [checked, served] {
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert!(!said.contains("SECRET123"), "{said}");
    }
}

#[test]
fn a_request_that_cannot_be_translated_is_printed_as_the_client_would_see_it() {
    let output = creole(&["translate", "request"], "{");
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["error"]["type"], "invalid_request_error");
    assert!(text(&output.stderr).starts_with("HTTP 400\n"), "{}", text(&output.stderr));
}

#[test]
fn a_request_is_printed_as_the_upstream_gets_it_and_warnings_go_to_standard_error() {
    let request = r#"{"model":"m","max_tokens":5,"no_such_field":1,"messages":[{"role":"user","content":"Hi"}]}"#;
    let output = creole(&["translate", "request", "--profile", "openai-chat"], request);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["max_completion_tokens"], 5);
    assert_eq!(json["messages"][0]["content"], "Hi");
    assert!(error.starts_with("POST /v1/chat/completions\n"), "{error}");
    assert!(error.contains("warning: unknown_field:no_such_field (1x)\n"), "{error}");
}

#[test]
fn the_profile_openai_means_responses() {
    let request = r#"{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}"#;
    let output = creole(&["translate", "request", "--profile", "openai"], request);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["max_output_tokens"], &json["store"]), (&50.into(), &false.into()));
    assert!(error.starts_with("POST /v1/responses\n"), "{error}");
}

#[test]
fn a_response_is_printed_as_the_client_gets_it_and_repeats() {
    let request = rig::file(&rig::messages(false));
    let args = ["translate", "response", "--request", &request];
    let output = creole(&args, rig::COMPLETION);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["content"][0]["text"], "Hi there");
    assert!(text(&output.stderr).starts_with("HTTP 200\ncontent-type: application/json\n"));
    assert_eq!(creole(&args, rig::COMPLETION).stdout, output.stdout);
    let mut seeded = args.to_vec();
    seeded.extend(["--seed", "7"]);
    assert_ne!(creole(&seeded, rig::COMPLETION).stdout, output.stdout);
}

#[test]
fn an_error_of_the_upstream_ends_with_exit_code_1() {
    let request = rig::file(&rig::messages(true));
    let args = ["translate", "response", "--request", &request, "--status", "429"];
    let output = creole(&args, r#"{"error":{"message":"Slow down","type":"rate_limit"}}"#);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["error"]["type"], "rate_limit_error");
    assert!(text(&output.stderr).starts_with("HTTP 429\n"));
}

#[test]
fn a_stream_in_pieces_of_any_size_ends_in_the_same_events() {
    let request = rig::file(&rig::messages(true));
    let stream = [rig::chunk("Hi"), rig::finish()].concat();
    let stream = text(&stream);
    let args = ["translate", "stream", "--request", &request];
    let whole = creole(&args, stream);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    let events = text(&whole.stdout);
    assert!(events.starts_with("event: message_start\n"), "{events}");
    assert!(
        events.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
        "{events}"
    );
    assert!(text(&whole.stderr).contains("content-type: text/event-stream"));
    for piece in ["1", "7", "100000"] {
        let mut cut = args.to_vec();
        cut.extend(["--piece", piece]);
        assert_eq!(text(&creole(&cut, stream).stdout), events, "{piece}");
    }
}

#[test]
fn no_name_of_a_configuration_moves_the_cursor_or_turns_the_words() {
    let file =
        rig::file("{\"upstreams\": {\"a\\u001b[2J\\u009b\u{202e}\\u2066b\": {\"url\": \"x\"}}}");
    for args in [&["check-config", &file] as &[&str], &["serve", "--config", &file]] {
        let output = creole(args, "");
        let error = text(&output.stderr);
        assert!(error.contains("upstreams.a�[2J���b.url"), "{error:?}");
        assert!(!error.trim_end().contains(char::is_control), "{error:?}");
    }
}

/// The flags that the help of a command lists.
fn flags_of_help(command: &str) -> BTreeSet<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_creole")).args([command, "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    let flags = help.lines().filter_map(|line| {
        let name = line.trim_start().strip_prefix("--")?.split([' ', '=']).next()?;
        (!name.is_empty()).then(|| format!("--{name}"))
    });
    flags.collect()
}

/// The flags in the first column of the first table of flags behind a line of a page.
fn flags_of_page(page: &str, line: &str) -> BTreeSet<String> {
    let (_, behind) = page.split_once(line).unwrap_or_else(|| panic!("{line:?} is not there"));
    let (_, table) = behind.split_once("| flag | meaning |\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`')).filter(|name| name.starts_with("--"));
    names.map(|name| name.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn the_page_lists_every_flag() {
    let page = std::fs::read_to_string("../docs/gateway.md").unwrap();
    for (command, line) in [
        ("launch", "a vendor whose key is in the environment"),
        ("check", "With `--config` each upstream is checked"),
        ("serve", "### Flags of `creole serve`"),
    ] {
        let (listed, known) = (flags_of_page(&page, line), flags_of_help(command));
        assert!(known.len() > 4, "{command}: {known:?}");
        assert_eq!(listed, known, "the table of `creole {command}` in docs/gateway.md");
    }
}

#[test]
fn without_a_command_the_help_is_printed() {
    let output = creole(&[], "");
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    assert!(help.contains("Usage: creole") && help.contains("launch"), "{help}");
}

#[test]
fn each_shell_gets_completions_and_each_command_has_a_manual_page() {
    for shell in ["bash", "fish", "powershell", "zsh"] {
        let output = creole(&["completions", shell], "");
        assert!(output.status.success() && text(&output.stdout).contains("first-byte-timeout"));
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual");
    std::fs::create_dir_all(&folder).unwrap();
    assert!(creole(&["manual", folder.to_str().unwrap()], "").status.success());
    let page = std::fs::read_to_string(folder.join("creole-serve.1")).unwrap();
    assert!(page.contains(".SH OPTIONS") && page.contains("UPSTREAM_URL"), "{page}");
    assert_refused(&["manual", "/no/such/folder"], "/no/such/folder: ");
}

/// Runs `creole check-config` or another command with variables.
fn creole_with(variables: &[(&str, &str)], args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_creole"))
        .args(args)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

#[test]
fn variables_name_what_flags_name_and_errors_say_which() {
    let several =
        rig::file(r#"{"upstreams": {"a": {"url": "http://a"}, "b": {"url": "http://b"}}}"#);
    let refused = |variables: &[(&str, &str)], args: &[&str], reason: &str| {
        let output = creole_with(variables, &[&["serve", "--no-check"], args].concat());
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(reason), "{error}");
    };
    refused(&[("UPSTREAM_URL", "geheim")], &[], "creole: UPSTREAM_URL: expected a URL");
    refused(&[("CREOLE_PROFILE", "x")], &[], "creole: CREOLE_PROFILE: expected one of");
    refused(
        &[("CREOLE_CONFIG", "{\"strikt\": true}")],
        &[],
        "strikt: unknown key; did you mean strict?",
    );
    refused(&[("CREOLE_CONFIG", "/no/such/file")], &[], "creole: /no/such/file: ");
    refused(
        &[("UPSTREAM_URL", "http://c"), ("CREOLE_CONFIG", &several)],
        &[],
        "UPSTREAM_URL: the configuration has several",
    );
    let url = [("UPSTREAM_URL", "http://127.0.0.1:1"), ("UPSTREAM_KEY", "")];
    refused(&url, &[], "creole: UPSTREAM_KEY: expected a key in one line");
    let key = [("UPSTREAM_URL", "http://127.0.0.1:1"), ("UPSTREAM_KEY", "k"), ("CLIENT_KEY", " ")];
    refused(&key, &[], "creole: CLIENT_KEY: expected a key in one line");
    // A key goes to no server but its own.
    let with_key = r#"{"upstreams": {"a": {"url": "http://a.test", "key": {"env": "PATH"}}}}"#;
    for other in ["http://a.test.b", "https://a.test"] {
        refused(
            &[("CREOLE_CONFIG", with_key)],
            &["--upstream", other],
            "creole: --upstream: the configuration in CREOLE_CONFIG has a key for another server",
        );
    }
    // A flag counts before its variable.
    refused(
        &[("UPSTREAM_URL", "http://c")],
        &["--upstream", "geheim"],
        "creole: --upstream: expected",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_file_in_the_folder_of_configurations_counts_where_nothing_else_is_named() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("usual");
    std::fs::create_dir_all(folder.join("creole")).unwrap();
    std::fs::write(folder.join("creole/config.json"), "{\"strikt\": true}").unwrap();
    let usual = ("XDG_CONFIG_HOME", folder.to_str().unwrap());
    let output = creole_with(&[usual], &["serve"]);
    assert!(text(&output.stderr).contains("strikt: unknown key"), "{output:?}");
    for (variables, args) in [
        (&[usual, ("UPSTREAM_URL", "geheim")][..], &["serve"][..]),
        (&[usual], &["serve", "--upstream", "geheim"]),
    ] {
        let output = creole_with(variables, args);
        assert!(text(&output.stderr).contains("expected a URL"), "{output:?}");
    }
}
