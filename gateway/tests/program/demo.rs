//! `creole demo`: the gateway and the demo model in one process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::rig::{self, client, request, send};

/// It is killed when this is dropped.
struct Demo {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it printed until it was ready.
    said: String,
}

impl Demo {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_creole"))
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("Ctrl-C stops it.") {
            assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        Self { child, stdout, said }
    }

    /// What stands between two texts that it printed.
    fn between(&self, from: &str, to: &str) -> &str {
        let (_, rest) = self.said.split_once(from).expect(&self.said);
        rest.split_once(to).expect(&self.said).0
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn the_request_that_it_prints_gets_a_streamed_answer() {
    let demo = Demo::start(&[]);
    let url = demo.between("curl -N ", " ").to_owned();
    let address = demo.said.lines().next().unwrap().strip_prefix("listening on ").unwrap();
    assert_eq!(url, format!("{address}/v1/messages"));
    let body = demo.between("-d '", "'").to_owned();
    let got = send(&client(false), request("POST", &url, body)).await;
    assert_eq!(got.status, 200, "{}", got.body);
    assert!(got.body.matches("event: content_block_delta").count() > 3, "{}", got.body);
    assert!(got.body.contains("Hello,") && got.body.contains("message_stop"), "{}", got.body);
    assert!(demo.said.contains(&format!("ANTHROPIC_BASE_URL={address} ")), "{}", demo.said);
    assert_eq!(demo.between("Open ", " in a browser"), format!("{address}/"));
}

#[tokio::test]
async fn the_model_has_an_address_of_its_own_and_keeps_no_request() {
    let demo = Demo::start(&["--model-listen", "127.0.0.1:0"]);
    let model = demo.between("the demo model at ", "/v1.").to_owned();
    let body = r#"{"model":"any","messages":[{"role":"user","content":"demo:say a secret"}]}"#;
    let url = format!("{model}/v1/chat/completions");
    let got = send(&client(false), request("POST", &url, body)).await;
    assert!(got.body.contains("\"a secret\""), "{}", got.body);
    let got = send(&client(false), request("GET", &format!("{model}/demo/requests"), "")).await;
    assert_eq!(got.body, r#"{"requests":[]}"#);
}

#[tokio::test]
async fn with_the_protocol_responses_the_model_reasons_and_calls_tools_in_it() {
    let demo = Demo::start(&["--protocol", "responses"]);
    let address = demo.said.lines().next().unwrap().strip_prefix("listening on ").unwrap();
    let body = r#"{"model":"demo","max_tokens":100,"thinking":{"type":"enabled","budget_tokens":1024},
        "tools":[{"name":"get_weather","input_schema":{"type":"object"}}],
        "messages":[{"role":"user","content":"demo:tool get_weather"}]}"#;
    let got = send(&client(false), request("POST", &format!("{address}/v1/messages"), body)).await;
    let content = &got.json()["content"];
    assert_eq!(content[0]["type"], "thinking", "{}", got.body);
    // The signature of a reasoning item of Responses is long: all of the item is in it.
    assert!(content[0]["signature"].as_str().unwrap().len() > 200, "{}", got.body);
    assert_eq!(content[1]["name"], "get_weather", "{}", got.body);
}

#[tokio::test]
async fn it_takes_the_flags_of_the_page_and_the_log() {
    let file = rig::file("");
    let demo = Demo::start(&["--no-page", "--log", &file, "--log-format", "text"]);
    let address = demo.between("listening on ", "\n");
    assert!(!demo.said.contains("in a browser"), "{}", demo.said);
    let sent = request("GET", &format!("{address}/"), "");
    assert_eq!(send(&client(false), sent).await.status, 200);
    let read = || std::fs::read_to_string(&file).unwrap();
    rig::until("the line", || read().contains(" 200 GET /  ")).await;
}

#[test]
fn a_signal_ends_it_with_success() {
    let mut demo = Demo::start(&[]);
    let id = demo.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(demo.child.wait().unwrap().success());
    let mut rest = String::new();
    demo.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim(), "");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--model-listen"] {
        let args = match flag {
            "--listen" => vec!["demo", flag, &address],
            _ => vec!["demo", "--listen", "127.0.0.1:0", flag, &address],
        };
        let output = Command::new(env!("CARGO_BIN_EXE_creole")).args(args).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with(&format!("creole: cannot listen on {address}: ")), "{error}");
        assert!(error.ends_with(&format!("; {flag} 127.0.0.1:0 takes a free port\n")), "{error}");
    }
}
