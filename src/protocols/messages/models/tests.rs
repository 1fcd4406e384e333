//! Tests of `models.rs`.

use super::*;

fn config(text: &str) -> Config {
    Config::from_json(text, |_| None).unwrap()
}

const MAP: &str = r#"{"models":{"claude-x":{"model":"m"},"a\"b":{"model":"n"}}}"#;

#[test]
fn the_list_has_the_names_of_the_map_in_its_order() {
    let body: serde_json::Value =
        serde_json::from_slice(&list(&config(MAP), ListFor::Anyone)).unwrap();
    assert_eq!(body["has_more"], false);
    assert_eq!(body["first_id"], "claude-x");
    assert_eq!(body["last_id"], "a\"b");
    assert_eq!(
        body["data"][0],
        serde_json::json!({
            "type": "model", "id": "claude-x", "display_name": "claude-x",
            "created_at": "1970-01-01T00:00:00Z", "lifecycle": "active", "line": null,
            "max_input_tokens": null, "max_tokens": null, "capabilities": null,
            "deprecated_at": null, "retires_at": null,
        })
    );
}

#[test]
fn sizes_are_told_where_they_are_known() {
    let config = config(
        r#"{"upstreams":{"a":{"profile_overrides":{"max_tokens_max":9}},"b":{}},"models":{
                "x":{"upstream":"a","max_input_tokens":7},"y":{"upstream":"b","max_tokens":8},
                "z*":{"upstream":"a","max_tokens":3}}}"#,
    );
    for (id, input, output) in [
        ("x", 7.into(), 9.into()),
        ("x[1m]", 7.into(), 9.into()),
        ("y", serde_json::Value::Null, 8.into()),
        ("z1", serde_json::Value::Null, 3.into()),
    ] {
        let model: serde_json::Value = serde_json::from_slice(&one(&config, id).unwrap()).unwrap();
        assert_eq!((&model["max_input_tokens"], &model["max_tokens"]), (&input, &output), "{id}");
    }
}

#[test]
fn windows_and_limits_of_an_upstream_are_told_by_any_name_of_theirs() {
    for (model, window, output) in [
        (r#"{"id":"vllm","max_model_len":40960}"#, 40_960, 0),
        (
            r#"{"id":"openrouter","context_length":200000,"top_provider":{"max_completion_tokens":8192}}"#,
            200_000,
            8192,
        ),
        (r#"{"id":"groq","context_window":131072,"max_completion_tokens":65536}"#, 131_072, 65_536),
        (r#"{"id":"mistral","max_context_length":32768}"#, 32_768, 0),
        (r#"{"id":"llama.cpp","meta":{"n_ctx_train":131072}}"#, 131_072, 0),
        (r#"{"id":"llama.cpp","meta":{"n_ctx_train":131072,"n_ctx":8192}}"#, 8192, 0),
        (r#"{"id":"odd","max_model_len":"many","meta":7,"top_provider":null}"#, 0, 0),
    ] {
        assert_eq!(told_sizes(model), (window, output), "{model}");
    }
}

#[test]
fn an_empty_map_has_an_empty_list() {
    assert_eq!(
        String::from_utf8(list(&Config::default(), ListFor::Anyone)).unwrap(),
        r#"{"data":[],"has_more":false,"first_id":null,"last_id":null}"#
    );
}

#[test]
fn the_list_of_an_upstream_is_told_in_the_shape_of_the_messages_api() {
    let told = |body: &str| -> Option<serde_json::Value> {
        of_upstream(body.as_bytes(), ListFor::Anyone)
            .map(|list| serde_json::from_slice(&list).unwrap())
    };
    let list = told(
        r#"{"object":"list","data":[{"id":"qwen","object":"model","created":1,"max_model_len":4096},
                {"id":"qwen"},{"object":"model"},"x",{"id":7},{"id":""},
                {"id":"a\"b","context_length":null}],"models":[{"id":"other"}]}"#,
    )
    .unwrap();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["qwen", "a\"b"]);
    assert_eq!((&list["first_id"], &list["last_id"]), (&"qwen".into(), &"a\"b".into()));
    assert_eq!(list["data"][0]["max_input_tokens"], 4096);
    assert_eq!(list["data"][1]["max_input_tokens"], serde_json::Value::Null);
    assert_eq!((&list["data"][0]["type"], &list["has_more"]), (&"model".into(), &false.into()));
    for body in ["", "[", "{}", r#"{"data":{}}"#, r#"{"data":[{"id":"a"}"#, "<html>", "null"] {
        assert_eq!(told(body), None, "{body}");
    }
    assert_eq!(told(r#" [{"id":"together"}]"#).unwrap()["first_id"], "together");
    let many = format!("{{\"data\":[{}]}}", vec![r#"{"id":"a"}"#; 5000].join(","));
    assert_eq!(told(&many).unwrap()["data"].as_array().unwrap().len(), 1);
    let many: Vec<String> = (0..5000).map(|number| format!(r#"{{"id":"{number}"}}"#)).collect();
    let many = format!("{{\"data\":[{}]}}", many.join(","));
    assert_eq!(told(&many).unwrap()["data"].as_array().unwrap().len(), MODELS_MAX);
}

#[test]
fn a_model_without_a_route_is_not_found() {
    for id in ["gpt", "claude", ""] {
        let error = one(&config(MAP), id).unwrap_err();
        assert_eq!((error.status, error.kind), (404, ErrorKind::NotFound));
        assert!(error.message.starts_with(&format!("model: {id} (this gateway's")), "{error}");
    }
    assert!(one(&config(MAP), "claude-x").is_ok());
}

#[test]
fn a_model_that_would_be_routed_is_found() {
    let prefix = config(r#"{"models":{"claude-*":{"model":"m"}}}"#);
    assert!(one(&prefix, "claude-9").is_ok());
    assert!(one(&prefix, "gpt").is_err());
    assert!(one(&config(r#"{"models":{"*":{}}}"#), "gpt").is_ok());
    assert!(one(&Config::default(), "gpt").is_ok());
    assert!(one(&Config::default(), "").is_err());
}

#[test]
fn an_escaped_id_is_read() {
    for (path, id) in [
        ("meta-llama%2FLlama-3.3", "meta-llama/Llama-3.3"),
        ("a%3ab", "a:b"),
        ("%E6%BC%A2", "漢"),
        ("100%", "100%"),
        ("%+f", "%+f"),
        ("%ff", "%ff"),
        ("é%2", "é%2"),
    ] {
        let body = one(&Config::default(), path).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["id"], id);
    }
}

/// Returns the ids in a list of models, each with the model's display name.
fn ids(list: &[u8]) -> Vec<(String, String)> {
    let list: serde_json::Value = serde_json::from_slice(list).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let models = list["data"].as_array().unwrap();
    models.iter().map(|model| (text(&model["id"]), text(&model["display_name"]))).collect()
}

#[test]
fn an_entry_with_a_star_lists_a_name_that_leads_to_its_model() {
    let listed = |map: &str| -> Vec<String> {
        let config = config(&format!(r#"{{"upstreams":{{"a":{{}},"b":{{}}}},"models":{map}}}"#));
        ids(&list(&config, ListFor::Anyone)).into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(listed(r#"{"*":{"upstream":"a","model":"qwen3"}}"#), ["qwen3"]);
    assert_eq!(listed(r#"{"claude-*":{"upstream":"a","model":"qwen3"}}"#), ["claude-qwen3"]);
    // Each entry lists its own model, by a name that no other entry takes.
    assert_eq!(
        listed(
            r#"{"claude-*":{"upstream":"a","model":"big"},"claude-haiku-*":{"upstream":"b","model":"small"},
                "*":{"upstream":"b","model":"big"}}"#
        ),
        ["claude-haiku-small", "claude-big", "big"]
    );
    assert_eq!(
        listed(r#"{"qwen3":{"upstream":"a"},"*":{"upstream":"a","model":"qwen3"}}"#),
        ["qwen3"]
    );
    // A name that another entry takes would lead elsewhere.
    assert_eq!(
        listed(r#"{"qwen3":{"upstream":"a","model":"x"},"*":{"upstream":"a","model":"qwen3"}}"#),
        ["qwen3"]
    );
    // Entries without a model accept any name, so no name is listed.
    assert!(listed(r#"{"*":{"upstream":"a"},"x-*":{"upstream":"a"}}"#).is_empty());
}

#[test]
fn claude_code_gets_ids_that_it_shows_and_they_lead_to_the_models() {
    let upstreams = br#"{"data":[{"id":"qwen3:30b"},{"id":"anthropic/x"},{"id":"my-Claude"}]}"#;
    let shown = ids(&of_upstream(upstreams, ListFor::ClaudeCode).unwrap());
    assert_eq!(
        shown,
        [
            ("claude-creole/qwen3:30b", "qwen3:30b"),
            ("anthropic/x", "anthropic/x"),
            ("my-Claude", "my-Claude")
        ]
        .map(|(id, name)| (id.to_owned(), name.to_owned()))
    );
    let default = Config::default();
    for (id, model) in [
        ("claude-creole/qwen3:30b", "qwen3:30b"),
        ("claude-creole/qwen3:30b[1m]", "qwen3:30b"),
        ("claude-creole/", "claude-creole/"),
        ("anthropic/x", "anthropic/x"),
    ] {
        assert_eq!(default.route(id).unwrap().1, model);
    }
    let map = config(r#"{"models":{"m":{"model":"n"},"claude-creole/x":{"model":"y"}}}"#);
    let list = ids(&list(&map, ListFor::ClaudeCode));
    assert_eq!(list[0], ("claude-creole/m".to_owned(), "m".to_owned()));
    assert_eq!(map.route("claude-creole/m").unwrap().1, "n");
    // An entry with exactly this name takes precedence over the prefix.
    assert_eq!(map.route("claude-creole/x").unwrap().1, "y");
    assert_eq!(map.route("claude-creole/z"), None);
}

#[test]
fn claude_code_is_known_by_the_name_under_which_it_asks_for_the_list() {
    assert_eq!(list_for(Some("claude-code/2.1.332")), ListFor::ClaudeCode);
    for other in [None, Some("claude-cli/2.1.332 (external, cli)"), Some("Anthropic/JS 0.95.0")] {
        assert_eq!(list_for(other), ListFor::Anyone);
    }
}
