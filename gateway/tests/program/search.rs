//! Web searches that the gateway runs for a model, with a scripted model server and a scripted
//! SearXNG.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::rig::{
    EVENT_STREAM, Gateway, Got, Out, Upstream, chunk, client, finish, nobody, read_until, request,
    send, soon, until,
};

/// Query of the model, which no log may contain.
const QUERY: &str = "alpha";

const RESULTS: &str =
    r#"{"results":[{"url":"https://a.example/x","title":"A","content":"Alpha is 1."}]}"#;

/// Starts a model server whose model searches once, and then answers.
async fn model() -> Upstream {
    Upstream::start(|asked, out| {
        let asked: Value = serde_json::from_str(&asked.body).unwrap();
        let is_stream = asked["stream"] == true;
        let messages = asked["messages"].as_array().unwrap();
        let has_results = messages.iter().any(|message| message["role"] == "tool");
        tokio::spawn(answer(is_stream, has_results, out));
        (200, if is_stream { EVENT_STREAM } else { "application/json" })
    })
    .await
}

async fn answer(is_stream: bool, has_results: bool, mut out: Out) {
    let arguments = json!({"query": QUERY}).to_string();
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "web_search", "arguments": arguments}});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13});
    let pieces = match (is_stream, has_results) {
        (true, true) => vec![chunk("It is 1."), finish()],
        (true, false) => {
            let delta = json!({"role": "assistant", "tool_calls": [call]});
            let calls = json!({"choices": [{"index": 0, "delta": delta}]});
            let end =
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
            vec![format!("data: {calls}\n\ndata: {end}\n\ndata: [DONE]\n\n").into()]
        }
        (false, _) => {
            let said = json!({"role": "assistant", "content": "It is 1."});
            let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
            let (message, reason) =
                if has_results { (said, "stop") } else { (calls, "tool_calls") };
            let choice = json!({"index": 0, "message": message, "finish_reason": reason});
            vec![json!({"choices": [choice], "usage": usage}).to_string().into()]
        }
    };
    for piece in pieces {
        let _ = out.send_data(piece).await;
    }
}

/// Starts a SearXNG that sends its results; if `is_silent`, the results never end.
async fn searxng(is_silent: bool) -> Upstream {
    Upstream::start(move |_, mut out| {
        tokio::spawn(async move {
            while is_silent && out.send_data(Bytes::new()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            out.send_data(Bytes::from_static(RESULTS.as_bytes())).await
        });
        (200, "application/json")
    })
    .await
}

fn gateway(model: &Upstream, search: &str) -> Gateway {
    let config = json!({
        "upstreams": {"main": {"url": model.url()}},
        "server_tools": {"web_search": {"kind": "searxng", "url": search}},
        "log": "debug",
    });
    Gateway::start_with(&[], &config.to_string(), &[])
}

fn messages(stream: bool) -> String {
    json!({
        "model": "claude-x", "max_tokens": 1000, "stream": stream,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [{"role": "user", "content": "What is it?"}],
    })
    .to_string()
}

/// Returns the message of a client's answer, streamed or whole.
fn message(got: &Got) -> Value {
    if !got.header("content-type").starts_with(EVENT_STREAM) {
        return got.json();
    }
    let (mut message, mut content) = (Value::Null, Vec::new());
    for line in got.body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let mut event: Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].take(),
            "content_block_start" => content.push(event["content_block"].take()),
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].take();
                message["usage"] = event["usage"].take();
            }
            _ => {}
        }
    }
    message["content"] = content.into();
    message
}

async fn ask(gateway: &Gateway, stream: bool) -> Got {
    let sent = request("POST", &gateway.url("/v1/messages"), messages(stream));
    let got = send(&client(false), sent).await;
    assert_eq!(got.status.as_u16(), 200, "{}", got.body);
    assert!(got.complete, "{}", got.body);
    got
}

#[tokio::test]
async fn a_search_runs_between_two_rounds_of_an_answer() {
    for stream in [false, true] {
        let (model, search) = (model().await, searxng(false).await);
        let gateway = gateway(&model, &format!("http://{}", search.address));
        let got = ask(&gateway, stream).await;
        let message = message(&got);
        let kinds: Vec<&str> = message["content"].as_array().unwrap().iter().map(kind).collect();
        assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "text"], "{}", got.body);
        assert!(got.body.contains("https://a.example/x"), "{}", got.body);
        assert!(got.body.contains("It is 1."), "{}", got.body);
        assert_eq!(message["stop_reason"], "end_turn", "{}", got.body);
        let searches = &message["usage"]["server_tool_use"]["web_search_requests"];
        assert_eq!(searches, 1, "{}", got.body);

        let asked = search.asked.lock().unwrap();
        let [asked] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!((asked.method.as_str(), asked.body.as_str()), ("GET", ""));
        assert_eq!(asked.path, "/search?q=alpha&format=json");
        let values = asked.headers.values().map(|value| value.to_str().unwrap());
        assert!(!values.collect::<String>().contains("sk-client"), "{asked:?}");
        assert!(!asked.headers.contains_key("authorization"), "{asked:?}");

        assert_eq!(model.asked.lock().unwrap().len(), 2);
        let second: Value = serde_json::from_str(&model.last().body).unwrap();
        let results = second["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(results["role"], "tool", "{second}");
        assert!(results["content"].to_string().contains("[1] A"), "{second}");
        assert!(!gateway.log().contains(QUERY), "{}", gateway.log());
    }
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap()
}

#[tokio::test]
async fn a_flag_names_the_search_service_beside_the_flag_of_the_upstream() {
    let (model, search) = (model().await, searxng(false).await);
    let (upstream, service) = (model.url(), format!("http://{}", search.address));
    let args = ["--upstream", &upstream, "--search", &service];
    for config in ["", r#"{"log": "debug"}"#] {
        let gateway = Gateway::start_with(&args, config, &[]);
        let got = ask(&gateway, false).await;
        assert_eq!(got.json()["content"][1]["content"][0]["title"], "A", "{}", got.body);
        assert_eq!(search.last().path, "/search?q=alpha&format=json");
    }
}

#[tokio::test]
async fn a_service_that_is_down_is_an_error_for_the_model_and_a_line_without_the_query() {
    let model = model().await;
    let gateway = gateway(&model, &nobody().await);
    for stream in [false, true] {
        let got = ask(&gateway, stream).await;
        let message = message(&got);
        let result = &message["content"][1];
        assert_eq!(result["content"]["error_code"], "unavailable", "{}", got.body);
        assert_eq!(message["stop_reason"], "end_turn", "{}", got.body);
    }
    until("the log", || gateway.lines("service web_search could not be called").len() == 2).await;
    assert!(!gateway.log().contains(QUERY), "{}", gateway.log());
}

#[tokio::test]
async fn a_service_gets_its_own_key_and_the_query_in_a_body() {
    let (model, search) = (model().await, searxng(false).await);
    let config = json!({
        "upstreams": {"main": {"url": model.url()}},
        "server_tools": {"web_search": {
            "kind": "tavily", "url": format!("http://{}", search.address),
            "key": {"env": "SEARCH_KEY"},
        }},
        "log": "debug",
    });
    let gateway = Gateway::start_with(&[], &config.to_string(), &[("SEARCH_KEY", "sk-search")]);
    let got = ask(&gateway, true).await;
    assert_eq!(message(&got)["content"][1]["content"][0]["title"], "A", "{}", got.body);
    let asked = search.last();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/search"));
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap()["query"], QUERY);
    assert_eq!(asked.headers["authorization"], "Bearer sk-search");
    assert_eq!(asked.headers["content-length"], asked.body.len().to_string().as_str());
    for secret in [QUERY, "sk-search"] {
        assert!(!gateway.log().contains(secret), "{}", gateway.log());
    }
}

#[tokio::test]
async fn a_redirection_of_a_service_is_not_followed() {
    let (model, elsewhere) = (model().await, searxng(false).await);
    let location = format!("http://{}/", elsewhere.address);
    let search = Upstream::start_with_headers(move |_, _| {
        let location = location.parse().unwrap();
        (302, [(hyper::header::LOCATION, location)].into_iter().collect())
    })
    .await;
    let gateway = gateway(&model, &format!("http://{}", search.address));
    let got = ask(&gateway, true).await;
    assert_eq!(message(&got)["content"][1]["content"]["error_code"], "unavailable", "{}", got.body);
    assert_eq!(search.asked.lock().unwrap().len(), 1);
    assert!(elsewhere.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_goes_takes_the_search_with_it() {
    for stream in [false, true] {
        let (model, search) = (model().await, searxng(true).await);
        let gateway = gateway(&model, &format!("http://{}", search.address));
        let sent = request("POST", &gateway.url("/v1/messages"), messages(stream));
        let http = client(false);
        let waiting = tokio::spawn(async move {
            let mut response = http.request(sent).await.unwrap();
            read_until(&mut response, &mut String::new(), "server_tool_use").await;
            response
        });
        until("the search", || !search.is_idle()).await;
        if stream {
            // The client has the call while the search runs, and leaves in the middle.
            drop(soon("the call", waiting).await.unwrap());
        } else {
            waiting.abort();
        }
        until("its end", || search.is_idle()).await;
        until("the log", || !gateway.lines("client_gone").is_empty()).await;
        assert_eq!(model.asked.lock().unwrap().len(), 1);
        assert_eq!(search.asked.lock().unwrap().len(), 1);
    }
}
