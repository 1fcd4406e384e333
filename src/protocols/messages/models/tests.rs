//! Tests of `models.rs`.

use super::*;

fn config(text: &str) -> Config {
    Config::from_json(text, |_| None).unwrap()
}

const MAP: &str = r#"{"models":{"claude-x":{"model":"m"},"a\"b":{"model":"n"}}}"#;

#[test]
fn the_list_has_the_names_of_the_map_in_its_order() {
    let body: serde_json::Value = serde_json::from_slice(&list(&config(MAP))).unwrap();
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
fn an_empty_map_has_an_empty_list() {
    assert_eq!(
        String::from_utf8(list(&Config::default())).unwrap(),
        r#"{"data":[],"has_more":false,"first_id":null,"last_id":null}"#
    );
}

#[test]
fn the_list_of_an_upstream_is_told_in_the_shape_of_the_messages_api() {
    let told = |body: &str| -> Option<serde_json::Value> {
        of_upstream(body.as_bytes()).map(|list| serde_json::from_slice(&list).unwrap())
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
    for body in ["", "[]", "{}", r#"{"data":{}}"#, r#"{"data":[{"id":"a"}"#, "<html>", "null"] {
        assert_eq!(told(body), None, "{body}");
    }
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
