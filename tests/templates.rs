//! Requests that each family of models is sent, for `harness/templates/render.py` to render with
//! the chat template of its vendor (`cargo xtask test templates`). Here they are only checked as
//! the strictest server would.
//!
//! `CREOLE_REQUESTS_DIR` names a folder for the requests.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use support::{chat, drive, fixture};

#[test]
fn every_family_gets_requests_that_the_strictest_server_takes() {
    let conversations = read("conversations.json");
    let folder = std::env::var_os("CREOLE_REQUESTS_DIR");
    for family in read("families.json").as_array().unwrap() {
        let template = family["template"].as_str().unwrap();
        let profile = family["profile"].as_str().unwrap();
        let config = fixture::config(None, profile, family.get("profile_overrides"));
        let config = drive::config(&config.to_string());
        let mut cases = Vec::new();
        for conversation in conversations.as_array().unwrap() {
            let no_tools = family["lacks"].as_array().unwrap().contains(&"tools".into());
            if no_tools && conversation["tools"] == true {
                continue;
            }
            let request = conversation["request"].to_string();
            let body = match drive::request(&config, "/v1/messages", &[], request.as_bytes()) {
                Ok((_, upstream)) => serde_json::from_slice::<Value>(&upstream.body).unwrap(),
                Err(reply) => panic!("{template}: {}", String::from_utf8_lossy(&reply.body)),
            };
            let target = &config.upstreams.get("default").unwrap().profile;
            let rules = chat::Rules {
                name_chars_max: target.max_tool_name,
                id_chars_max: target.max_id_length,
                tool_choice_any: profile == "mistral",
            };
            chat::check(&body, rules)
                .unwrap_or_else(|error| panic!("{template}, {}: {error}", conversation["name"]));
            cases.push(json!({
                "name": conversation["name"],
                "says": conversation["says"],
                "body": body,
            }));
        }
        assert!(!cases.is_empty(), "{template} gets nothing");
        if let Some(folder) = &folder {
            let file = Path::new(folder).join(format!("{template}.json"));
            let family = json!({"drops": family["drops"], "cases": cases});
            fs::write(file, family.to_string()).unwrap();
        }
    }
}

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/templates").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap()
}
