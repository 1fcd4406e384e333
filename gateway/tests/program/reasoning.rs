//! A loop of tools with reasoning over Responses: the gateway between a client and the demo model.

use crate::rig::{Gateway, client, request, send};
use creole_demo::{Demo, Options, Recorded};
use serde_json::{Value, json};

const TURNS: usize = 10;

fn gateway(demo: &Demo) -> Gateway {
    let upstream = json!({"protocol": "responses", "profile": "openai"});
    let config = json!({"count_tokens": "upstream", "upstreams": {"demo": upstream}});
    Gateway::start(&format!("{}/v1", demo.url()), &config.to_string())
}

fn body(messages: &[Value], stream: bool) -> String {
    let schema = json!({
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]
    });
    let tools = json!([{"name": "get_weather", "description": "Weather", "input_schema": schema}]);
    json!({
        "model": "demo", "max_tokens": 1000, "stream": stream, "system": "Be short.",
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": tools,
        "messages": messages
    })
    .to_string()
}

/// The blocks of a streamed answer.
fn blocks(stream: &str) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    for event in data.map(|data| serde_json::from_str::<Value>(data).unwrap()) {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                blocks.push(event["content_block"].clone());
                if event["content_block"]["type"] == "tool_use" {
                    blocks.last_mut().unwrap()["input"] = "".into();
                }
            }
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                let delta = event["delta"].as_object().unwrap();
                let (name, more) = delta.iter().find(|(name, _)| *name != "type").unwrap();
                let name = if name == "partial_json" { "input" } else { name };
                let before = block[name].as_str().unwrap_or_default().to_owned();
                block[name] = format!("{before}{}", more.as_str().unwrap()).into();
            }
            "content_block_stop" => {
                let block = blocks.last_mut().unwrap();
                if let Some(input) = block["input"].as_str() {
                    block["input"] = serde_json::from_str(input).unwrap();
                }
            }
            "error" => panic!("{event}"),
            _ => {}
        }
    }
    blocks
}

/// Has the whole conversation, and gives what the demo model got.
async fn converse(demo: &Demo, stream: bool) -> Vec<Recorded> {
    let gateway = gateway(demo);
    let prompt = format!("demo:tool get_weather demo:{TURNS}turns");
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for turn in 0..=TURNS {
        let asked = request("POST", &gateway.url("/v1/messages"), body(&messages, stream));
        let got = send(&client(false), asked).await;
        assert_eq!(got.status, 200, "turn {turn}: {}", got.body);
        let content = match stream {
            true => blocks(&got.body),
            false => got.json()["content"].as_array().unwrap().clone(),
        };
        assert_eq!(content.len(), 2, "turn {turn}: {content:?}");
        assert_eq!(content[0]["type"], "thinking");
        assert!(content[0]["thinking"].as_str().unwrap().contains("wants an answer"));
        messages.push(json!({"role": "assistant", "content": content}));
        if turn < TURNS {
            assert_eq!(content[1]["input"], json!({"city": "Paris"}), "turn {turn}");
            let id = &content[1]["id"];
            let text = format!("{turn} degrees");
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
            messages.push(json!({"role": "user", "content": [result]}));
        } else {
            assert_eq!(content[1]["text"], "get_weather answered: 9 degrees");
        }
    }
    demo.requests()
}

/// The reasoning item that the demo model answered to a request. The same request gets the same
/// answer again.
async fn reasoning(demo: &Demo, recorded: &Recorded) -> String {
    let url = format!("{}{}", demo.url(), recorded.path);
    let got = send(&client(false), request("POST", &url, recorded.body.clone())).await;
    let items = got.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut items = items
        .map(|data| serde_json::from_str::<Value>(data).unwrap())
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|mut event| event["item"].take())
        .collect::<Vec<_>>();
    if items.is_empty() {
        items.clone_from(got.json()["output"].as_array().unwrap());
    }
    let item = items.iter().find(|item| item["type"] == "reasoning").unwrap().to_string();
    // What was read is written as it was sent.
    assert!(got.body.contains(&item), "{item}");
    assert!(item.contains("encrypted_content"), "{item}");
    item
}

async fn is_kept(stream: bool) {
    let demo = Demo::start(Options::default()).unwrap();
    let requests = converse(&demo, stream).await;
    assert_eq!(requests.len(), TURNS + 1);
    let mut items: Vec<String> = Vec::new();
    for (turn, recorded) in requests.iter().enumerate() {
        assert_eq!((recorded.path.as_str(), recorded.status), ("/v1/responses", 200));
        let sent: Value = serde_json::from_str(&recorded.body).unwrap();
        assert_eq!(sent["store"], false);
        assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
        let mut rest = recorded.body.as_str();
        for item in &items {
            let found = rest.split_once(item.as_str());
            rest = found.unwrap_or_else(|| panic!("turn {turn}: {item} in {}", recorded.body)).1;
        }
        assert_eq!(recorded.body.matches(r#""type":"reasoning""#).count(), items.len());
        if let Some(before) = turn.checked_sub(1).map(|before| &requests[before].body) {
            let open = before.strip_suffix("]}").expect("input is the last member");
            assert!(recorded.body.starts_with(open), "turn {turn}: {open}\n{}", recorded.body);
        }
        items.push(reasoning(&demo, recorded).await);
    }
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), TURNS + 1, "each turn has an item of its own");
}

#[tokio::test]
async fn ten_turns_keep_every_reasoning_item_and_extend_each_request_in_a_stream() {
    is_kept(true).await;
}

#[tokio::test]
async fn ten_turns_keep_every_reasoning_item_and_extend_each_request_in_whole_answers() {
    is_kept(false).await;
}

#[tokio::test]
async fn the_demo_model_counts_the_tokens_of_a_request() {
    let demo = Demo::start(Options::default()).unwrap();
    let gateway = gateway(&demo);
    let mut asked: Value =
        serde_json::from_str(&body(&[json!({"role": "user", "content": "Hi"})], false)).unwrap();
    for member in ["stream", "max_tokens"] {
        asked.as_object_mut().unwrap().remove(member);
    }
    let url = gateway.url("/v1/messages/count_tokens");
    let got = send(&client(false), request("POST", &url, asked.to_string())).await;
    let requests = demo.requests();
    assert_eq!(requests[0].path, "/v1/responses/input_tokens");
    assert_eq!(requests[0].status, 200, "{}", requests[0].body);
    assert_eq!(got.json()["input_tokens"], requests[0].bytes.div_ceil(4), "{}", got.body);
}
