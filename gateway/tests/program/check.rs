//! `creole check`, and what `creole serve` says of its upstreams at its start.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig::{self, Gateway, Received, Upstream, client, messages, nobody, request, send};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const KEY: &str = "sk-canary-of-the-upstream";

/// What a check printed, and its exit code.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) code: i32,
    pub(super) text: String,
    errors: String,
}

pub(super) async fn check(args: &[&str]) -> Checked {
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    command.arg("check").args(args).env("CANARY", KEY).stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = rig::soon("the check", ran).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(output.stdout), text(output.stderr));
    assert!(!out.contains(KEY) && !errors.contains(KEY), "{out}{errors}");
    Checked { code: output.status.code().unwrap(), text: out, errors }
}

impl Checked {
    /// Checks the row of a step.
    #[track_caller]
    pub(super) fn assert_row(&self, step: &str, result: &str, says: &str) {
        let row = self.text.lines().find(|line| line.split_whitespace().next() == Some(step));
        let row = row.unwrap_or_else(|| panic!("no row {step}: {}{}", self.text, self.errors));
        assert_eq!(row.split_whitespace().nth(1), Some(result), "{row}");
        assert!(row.contains(says), "{row}");
    }

    /// Checks that it failed at once, in one row.
    #[track_caller]
    fn assert_fails(&self, says: &str) {
        self.assert_row("connect", "fails", says);
        assert_eq!(self.code, 1, "{self:?}");
        assert!(self.text.contains("An agent cannot work with it"), "{self:?}");
        assert!(!self.text.contains("creole serve"), "{self:?}");
    }
}

pub(super) type Reply = (u16, &'static str, String);

pub(super) fn json(status: u16, body: &Value) -> Reply {
    (status, "application/json", body.to_string())
}

/// A server whose answers are whole.
pub(super) async fn server(says: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |asked, mut out| {
        let (status, kind, body) = says(&asked);
        tokio::spawn(async move { out.send_data(Bytes::from(body)).await });
        (status, kind)
    })
    .await
}

/// A message, as the request wants it: as a stream of some pieces, or whole.
fn message(asked: &Received, message: &Value, finish: &str) -> Reply {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13});
    let chunk = |delta: &Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    if !asked.body.contains(r#""stream":true"#) {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        return json(200, &json!({"id": "c", "model": "m", "choices": [choice], "usage": usage}));
    }
    let mut events = String::new();
    for (name, value) in message.as_object().unwrap() {
        match (name.as_str(), value.as_str()) {
            ("content", Some(text)) => {
                for word in text.split_inclusive(' ') {
                    events.push_str(&chunk(&json!({"content": word}), Value::Null));
                }
            }
            _ => events.push_str(&chunk(&json!({name: value}), Value::Null)),
        }
    }
    events.push_str(&chunk(&json!({}), finish.into()));
    events.push_str("data: [DONE]\n\n");
    (200, rig::EVENT_STREAM, events)
}

/// What a good model answers.
pub(super) fn good(asked: &Received) -> Reply {
    let says = |text: &str| message(asked, &json!({"content": text}), "stop");
    let body = &asked.body;
    if body.contains("image_url") {
        return says("Red");
    }
    if body.contains("17 times 23") {
        let answer = json!({"reasoning_content": "17 * 23", "content": "It is 391"});
        return message(asked, &answer, "stop");
    }
    if body.contains(r#""tools""#) && !body.contains(r#""role":"tool""#) {
        let function = json!({"name": "get_weather", "arguments": r#"{"city": "Paris"}"#});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        return message(asked, &json!({"tool_calls": [call]}), "tool_calls");
    }
    says("1 2 3 4")
}

fn list(owner: &str) -> Reply {
    let model = |id: &str| json!({"id": id, "owned_by": owner, "max_model_len": 131_072});
    let data = ["nomic-embed-text", "qwen3-coder:30b", "llama3.2"].map(model);
    json(200, &json!({"object": "list", "data": data}))
}

/// A good server with a list, but for the answers that `other` gives.
async fn server_but(
    other: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static,
) -> Upstream {
    server(move |asked| match asked.path.as_str() {
        "/v1/models" => list("someone"),
        _ => other(asked).unwrap_or_else(|| good(asked)),
    })
    .await
}

#[tokio::test]
async fn a_server_that_has_everything_works_and_its_list_tells_the_profile() {
    let upstream = server(|asked| match asked.path.as_str() {
        "/v1/models" => list("vllm"),
        "/tokenize" => json(200, &json!({"count": 12, "tokens": [1, 2], "max_model_len": 99})),
        _ => good(asked),
    })
    .await;
    let checked = check(&["--upstream", &upstream.url(), "--key-env", "CANARY"]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.text.contains("profile vllm, by its list of models"), "{checked:?}");
    checked.assert_row("connect", "works", "");
    checked.assert_row("models", "works", "3: nomic-embed-text, qwen3-coder:30b, llama3.2");
    checked.assert_row("answer", "works", "in ");
    checked.assert_row("stream", "works", "4 pieces");
    checked.assert_row("tools", "works", "its result was taken");
    checked.assert_row("reasoning", "works", "in the field reasoning_content");
    checked.assert_row("images", "works", "");
    checked.assert_row("counts", "limited", "\"count_tokens\": \"upstream\"");
    let serve = format!(
        "  creole serve --upstream {} --profile vllm --key-env CANARY --model qwen3-coder:30b\n",
        upstream.url()
    );
    assert!(checked.text.contains(&serve), "{checked:?}");
    let launch = serve.replace("creole serve", "creole launch claude");
    assert!(checked.text.contains(&launch), "{checked:?}");
    // A model for embeddings is not asked.
    assert!(checked.text.contains("ANTHROPIC_MODEL=qwen3-coder:30b"), "{checked:?}");
    for asked in upstream.asked.lock().unwrap().iter() {
        assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"), "{asked:?}");
    }

    let config = rig::file(
        r#"{"count_tokens": "upstream", "client_keys": [{"env": "PATH"}],
        "upstreams": {"default": {"profile": "vllm", "key": "none"}}}"#,
    );
    let args =
        ["--config", &config, "--upstream", &upstream.url(), "--model", "llama3.2", "--json"];
    let checked = check(&args).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    let told: Value = serde_json::from_str(&checked.text).unwrap();
    assert_eq!((&told["ok"], &told["upstreams"][0]["model"]), (&json!(true), &json!("llama3.2")));
    let steps = told["upstreams"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 9);
    for step in steps {
        assert_eq!(step["result"], "works", "{step}");
    }
}

/// An answer of Responses with these items; the text of a message in its words.
fn responded(asked: &Received, output: &Value) -> Reply {
    let usage = json!({"input_tokens": 9, "output_tokens": 4, "total_tokens": 13});
    let response = |status: &str, output: &Value| {
        json!({"id": "resp_1", "object": "response", "model": "m", "status": status,
            "output": output, "usage": usage})
    };
    if !asked.body.contains(r#""stream":true"#) {
        return json(200, &response("completed", output));
    }
    let event = |kind: &str, mut rest: Value| {
        rest["type"] = kind.into();
        format!("event: {kind}\ndata: {rest}\n\n")
    };
    let created = json!({"response": response("in_progress", &json!([]))});
    let mut events = event("response.created", created);
    for (at, item) in output.as_array().unwrap().iter().enumerate() {
        let text = item["content"][0]["text"].as_str().unwrap_or_default();
        for word in text.split_inclusive(' ') {
            let delta = json!({"output_index": at, "content_index": 0, "item_id": item["id"], "delta": word});
            events.push_str(&event("response.output_text.delta", delta));
        }
        let done = json!({"output_index": at, "item": item});
        events.push_str(&event("response.output_item.done", done));
    }
    let completed = json!({"response": response("completed", output)});
    events.push_str(&event("response.completed", completed));
    (200, rig::EVENT_STREAM, events)
}

#[tokio::test]
async fn the_profile_openai_is_checked_in_responses() {
    let says = |asked: &Received, text: &str| {
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed", "content": [part]});
        responded(asked, &json!([message]))
    };
    let upstream = server(move |asked| match asked.path.as_str() {
        "/v1/models" => list("system"),
        "/v1/responses/input_tokens" => json(200, &json!({"input_tokens": 12})),
        "/v1/responses" if asked.body.contains("input_image") => says(asked, "Red"),
        "/v1/responses"
            if asked.body.contains(r#""tools""#)
                && !asked.body.contains("function_call_output") =>
        {
            let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1",
                "name": "get_weather", "arguments": r#"{"city": "Paris"}"#, "status": "completed"});
            responded(asked, &json!([call]))
        }
        "/v1/responses" => says(asked, "1 2 3 4"),
        _ => json(404, &json!({"error": {"message": "not found"}})),
    })
    .await;
    let args = ["--profile", "openai", "--upstream", &upstream.url(), "--key-env", "CANARY"];
    let checked = check(&args).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.text.contains("profile openai"), "{checked:?}");
    checked.assert_row("answer", "works", "in ");
    checked.assert_row("stream", "works", "4 pieces");
    checked.assert_row("tools", "works", "its result was taken");
    checked.assert_row("images", "works", "");
    checked.assert_row("counts", "limited", "\"count_tokens\": \"upstream\"");
}

/// A certificate's file, and the server's side that has it.
fn tls() -> (TlsAcceptor, String) {
    tls_of(rcgen::IsCa::NoCa)
}

fn tls_of(is_ca: rcgen::IsCa) -> (TlsAcceptor, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = is_ca;
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), rig::file(&certificate.pem()))
}

async fn authority_as_server() -> Upstream {
    let (acceptor, _) = tls_of(rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    Upstream::start_with_tls(acceptor, |_, _| (200, "application/json")).await
}

#[tokio::test]
async fn an_upstream_that_cannot_be_asked_is_told_in_one_line_with_what_to_do() {
    let refused = nobody().await;
    check(&["--upstream", &refused]).await.assert_fails("start the server, or correct the port");
    check(&["--upstream", "http://no.such.invalid"]).await.assert_fails("could not be resolved");

    let plain = server_but(|_| None).await;
    let url = plain.url().replace("http://", "https://");
    check(&["--upstream", &url]).await.assert_fails("write http:// in place of https://");

    let (acceptor, _) = tls();
    let secure = Upstream::start_with_tls(acceptor, |_, _| (200, "application/json")).await;
    check(&["--upstream", &secure.url()]).await.assert_fails("write https:// in place of http://");
    let url = secure.url().replace("http://127.0.0.1", "https://localhost");
    check(&["--upstream", &url]).await.assert_fails("SSL_CERT_FILE");
    // As `openssl req -x509` makes it.
    let secure = authority_as_server().await;
    let checked = check(&["--upstream", &secure.url().replace("http:", "https:")]).await;
    checked
        .assert_fails("-addext basicConstraints=critical,CA:FALSE`, and name it in SSL_CERT_FILE");
    let nginx = server(|_| {
        (400, "text/html", "<html>The plain HTTP request was sent to HTTPS port".to_owned())
    })
    .await;
    check(&["--upstream", &nginx.url()]).await.assert_fails("write https:// in place of http://");

    let moved = Upstream::start_with_headers(|_, _| {
        let to = "https://other.example/v1?token=hidden".parse().unwrap();
        (301, hyper::HeaderMap::from_iter([(hyper::header::LOCATION, to)]))
    })
    .await;
    let checked = check(&["--upstream", &moved.url()]).await;
    checked.assert_fails("sends clients on to https://other.example/v1: write that address");
    let failing = server(|_| json(503, &json!({}))).await;
    check(&["--upstream", &failing.url()]).await.assert_fails("answers 503");
}

#[tokio::test]
async fn a_key_that_is_missing_or_wrong_is_told_and_never_shown() {
    let upstream = server(|asked| {
        let sent = asked.headers.get("authorization").map_or("", |key| key.to_str().unwrap());
        json(401, &json!({"error": {"message": format!("Incorrect API key: {sent}")}}))
    })
    .await;
    let url = upstream.url();
    check(&["--upstream", &url]).await.assert_fails("asks for a key (401): name the environment");
    let checked = check(&["--upstream", &url, "--key-env", "CANARY"]).await;
    checked.assert_fails("refuses the key (401)");

    // OpenRouter lists its models to everyone.
    let open = server_but(|asked| {
        let sent = asked.headers.get("authorization").map_or("", |key| key.to_str().unwrap());
        let message = format!("No cookie auth credentials found in {sent}");
        Some(json(401, &json!({"error": {"message": message, "code": 401}})))
    })
    .await;
    for (args, says) in [
        (&["--upstream", &open.url()][..], "asks for a key (401): name the environment"),
        (&["--upstream", &open.url(), "--key-env", "CANARY"], "refuses the key (401)"),
    ] {
        let checked = check(args).await;
        checked.assert_row("answer", "fails", says);
        assert_eq!(checked.code, 1, "{checked:?}");
    }
}

#[tokio::test]
async fn a_wrong_path_is_named_with_the_one_that_answers() {
    let upstream = server(|asked| match asked.path.as_str() {
        "/openai/v1/models" => list("someone"),
        _ => (404, "text/plain", "404 page not found".to_owned()),
    })
    .await;
    let address = format!("http://{}", upstream.address);
    let checked = check(&["--upstream", &address]).await;
    checked.assert_fails("GET /v1/models is answered with 404), but at ");
    checked.assert_fails(&format!("but at {address}/openai/v1: write that path"));

    let pages = server(|asked| match asked.path.as_str() {
        "/api/models" => list("someone"),
        _ => (200, "text/html", "<!doctype html><title>Chat</title>".to_owned()),
    })
    .await;
    let address = format!("http://{}", pages.address);
    let checked = check(&["--upstream", &address]).await;
    checked.assert_fails("is answered with a web page), but at ");
    checked.assert_fails(&format!("but at {address}/api: "));

    let nothing = server(|_| (404, "text/html", "<h1>Not found</h1>".to_owned())).await;
    let checked = check(&["--upstream", &nothing.url()]).await;
    checked.assert_fails("write the path that stands before /chat/completions");
}

#[tokio::test]
async fn a_server_without_a_list_works_with_a_name() {
    let upstream = server(|asked| match (asked.path.as_str(), asked.body.as_str()) {
        ("/v1/chat/completions", "{}") => json(400, &json!({"error": {"message": "no model"}})),
        ("/v1/chat/completions", _) => good(asked),
        _ => (404, "text/plain", "404 page not found".to_owned()),
    })
    .await;
    let checked = check(&["--upstream", &upstream.url()]).await;
    assert_eq!(checked.code, 1);
    checked.assert_row("models", "limited", "lists none");
    checked.assert_row("answer", "fails", "name one with --model");
    let checked = check(&["--upstream", &upstream.url(), "--model", "any"]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    checked.assert_row("tools", "works", "");

    // Nobody is told of that when the gateway starts.
    let gateway = Gateway::start_looking(&["--upstream", &upstream.url()], r#"{"log": "debug"}"#);
    rig::until("the look", || gateway.log().contains("without a list of models")).await;
    assert!(!gateway.log().contains(r#""level":"warn""#), "{}", gateway.log());
}

#[tokio::test]
async fn a_wrong_model_is_told_the_nearest_names() {
    let upstream = server_but(|asked| {
        let message =
            json!({"error": {"message": "model 'qwen3-code' not found", "type": "api_error"}});
        asked.path.starts_with("/v1/chat").then(|| json(404, &message))
    })
    .await;
    let checked = check(&["--upstream", &upstream.url(), "--model", "qwen3-code"]).await;
    assert_eq!(checked.code, 1);
    checked.assert_row("answer", "fails", "the nearest that it lists: qwen3-coder:30b");
    assert!(!checked.text.lines().any(|line| line.starts_with("stream ")), "{checked:?}");

    let config = rig::file(r#"{"upstreams": {"a": {}}, "models": {"claude-x": {"model": "m"}}}"#);
    let args = ["--config", &config, "--upstream", &upstream.url(), "--model", "other"];
    let checked = check(&args).await;
    assert_eq!(checked.code, 2);
    assert!(checked.errors.contains("--model other: no entry of \"models\" takes"), "{checked:?}");
}

#[tokio::test]
async fn a_model_that_answers_and_is_not_listed_is_told() {
    let upstream = server_but(|_| None).await;
    let checked = check(&["--upstream", &upstream.url(), "--model", "qwen3-code"]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    let told =
        "qwen3-code is not in the list (nearest: qwen3-coder:30b); the server answers anyway";
    checked.assert_row("models", "limited", told);
    assert!(checked.text.contains("creole serve --upstream"), "{checked:?}");
    assert!(!checked.text.contains("creole launch"), "it would refuse the name: {checked:?}");

    // By another name for one that is listed.
    let config = rig::file(r#"{"models": {"claude-*": {"model": "llama3.2"}}}"#);
    let args = ["--config", &config, "--upstream", &upstream.url(), "--model", "claude-x"];
    check(&args).await.assert_row("models", "works", "3: nomic-embed-text");
}

#[tokio::test]
async fn what_a_server_lacks_is_told_with_what_becomes_of_it() {
    // No stream, no images, and thoughts in the text.
    let upstream = server_but(|asked| {
        let body = asked.body.replace(r#""stream":true"#, "");
        let whole = Received { body, ..asked.clone() };
        if asked.body.contains("image_url") {
            let error = json!({"error": {"message": "image input is not supported by this model"}});
            return Some(json(400, &error));
        }
        if asked.body.contains("17 times 23") {
            let text = json!({"content": "<think>17 * 23</think>It is 391"});
            return Some(message(&whole, &text, "stop"));
        }
        Some(good(&whole))
    })
    .await;
    let checked = check(&["--upstream", &upstream.url()]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    checked.assert_row("stream", "limited", "in one piece: Creole makes a stream of it");
    checked.assert_row("tools", "works", "");
    checked.assert_row("reasoning", "limited", "\"inline_think\": true");
    checked.assert_row("images", "limited", "an image becomes a note that says so");
    checked.assert_row("counts", "limited", "clients get estimates");
    let config = rig::file(
        r#"{"upstreams": {"default": {"profile_overrides": {"inline_think": true, "image_parts": "none"}}}}"#,
    );
    let checked = check(&["--config", &config, "--upstream", &upstream.url()]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    checked.assert_row("reasoning", "works", "as <think>: becomes thinking blocks");
}

#[tokio::test]
async fn an_agent_can_work_with_the_demo_model() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_creole"))
        .args(["demo", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stdout = BufReader::new(demo.stdout.take().unwrap());
    while !said.contains("/v1.\n") {
        assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let url = said.split_once("the demo model at ").unwrap().1.split_once(".\n").unwrap().0;
    let checked = check(&["--upstream", url]).await;
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.text.contains("model      demo (one of 2; --model NAME"), "{checked:?}");
    checked.assert_row("stream", "works", "pieces");
    checked.assert_row("tools", "works", "its result was taken");
}

#[tokio::test]
async fn an_agent_cannot_work_without_tools() {
    let refusing = server_but(|asked| {
        let error = json!({"error": {"message": "registry/llama3.2 does not support tools"}});
        asked.body.contains(r#""tools""#).then(|| json(400, &error))
    })
    .await;
    let checked = check(&["--upstream", &refusing.url()]).await;
    assert_eq!(checked.code, 1, "{checked:?}");
    checked.assert_row("tools", "fails", "agents need a model with tools");
    checked.assert_row("stream", "works", "");

    for (text, says) in [
        ("I cannot look that up.", "the model calls no tool"),
        (r#"[get_weather {"city": "Paris"}]"#, "writes its calls as text"),
    ] {
        let talking = server_but(move |asked| {
            let has_tools = asked.body.contains(r#""tools""#);
            has_tools.then(|| message(asked, &json!({"content": text}), "stop"))
        })
        .await;
        let checked = check(&["--upstream", &talking.url()]).await;
        assert_eq!(checked.code, 1, "{checked:?}");
        checked.assert_row("tools", "fails", says);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_ends_the_check() {
    let upstream = Upstream::start(|asked, mut out| {
        tokio::spawn(async move {
            if asked.path == "/v1/models" {
                return drop(out.send_data(Bytes::from(list("someone").2)).await);
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(out);
        });
        (200, "application/json")
    })
    .await;
    let checked = check(&["--upstream", &upstream.url(), "--timeout", "1"]).await;
    assert_eq!(checked.code, 1);
    checked.assert_row("answer", "fails", "no answer came in time");
}

#[tokio::test]
async fn each_upstream_of_a_configuration_is_checked_with_a_model_that_leads_there() {
    let (one, other) = (server_but(|_| None).await, nobody().await);
    let other = other.trim_end_matches("/v1");
    let document = json!({
        "upstreams": {"a": {"url": format!("http://{}", one.address)}, "b": {"url": other}},
        "models": {"claude-*": {"upstream": "a", "model": "qwen3-coder:30b"},
            "small": {"upstream": "b"}}
    });
    let config = rig::file(&document.to_string());
    let checked = check(&["--config", &config, "--json"]).await;
    assert_eq!(checked.code, 1, "{checked:?}");
    let told: Value = serde_json::from_str(&checked.text).unwrap();
    let (a, b) = (&told["upstreams"][0], &told["upstreams"][1]);
    assert_eq!((&a["ok"], &a["model"]), (&json!(true), &json!("claude-qwen3-coder:30b")));
    assert_eq!((&b["ok"], &b["steps"][0]["code"]), (&json!(false), &json!("refused")));
    let checked = check(&["--config", &config, "--model", "claude-any"]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(!checked.text.contains("upstream   b"), "{checked:?}");
}

#[tokio::test]
async fn the_start_of_the_gateway_says_what_is_wrong_and_does_not_wait() {
    let (acceptor, _) = tls();
    let secure = Upstream::start_with_tls(acceptor, |_, _| (200, "application/json")).await;
    let asking = server(|_| json(401, &json!({}))).await;
    let wrong = server(|asked| match asked.path.as_str() {
        "/api/v1/models" => list("someone"),
        _ => (404, "text/plain", String::new()),
    })
    .await;
    for (url, level, says) in [
        (nobody().await, "warn", "nothing listens at"),
        (secure.url(), "warn", "write https://"),
        (wrong.url(), "warn", "/api/v1: write that path"),
        (asking.url(), "info", "asks for a key: clients' own keys go there"),
    ] {
        let gateway = Gateway::start_looking(&["--upstream", &url], "{}");
        let has_line = || {
            let lines = gateway.lines(says);
            lines.first().is_some_and(|line| line.contains(&format!(r#""level":"{level}""#)))
        };
        rig::until(says, has_line).await;
    }

    // A silent one keeps nobody waiting, and with the flag nobody asks.
    let (silent, mut outs) = Upstream::written().await;
    let began = Instant::now();
    let gateway = Gateway::start_looking(&["--upstream", &silent.url()], "{}");
    let got = send(&client(false), request("GET", &gateway.url("/"), "")).await;
    assert_eq!(got.status, 200);
    assert!(began.elapsed() < Duration::from_secs(4));
    let asked = rig::soon("the question", outs.recv()).await;
    assert_eq!(silent.last().path, "/v1/models");
    drop((asked, gateway));
    let quiet = server_but(|_| None).await;
    let gateway = Gateway::start(&quiet.url(), "{}");
    let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
    assert_eq!(send(&client(false), sent).await.status, 200);
    assert!(quiet.asked.lock().unwrap().iter().all(|asked| asked.path != "/v1/models"));
}

#[tokio::test]
async fn no_name_of_a_server_moves_the_cursor_or_turns_the_words() {
    let id = "m\u{1b}[2J\u{9b}\u{202e}\u{2066}x";
    let upstream = server(move |_| json(200, &json!({"data": [{"id": id}]}))).await;
    for format in ["--json", "--profile=default"] {
        let printed = check(&["--upstream", &upstream.url(), format]).await.text;
        assert!(!printed.replace('\n', "").contains(char::is_control), "{printed:?}");
        assert!(printed.replace("\\u001b", "�").contains("m�[2J���x"), "{printed:?}");
    }
}
