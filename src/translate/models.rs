//! `/v1/models` in the shape of the Messages API, from the model map.
//!
//! With a map the upstream is not asked: its names are not those that clients may use, and Claude Code waits
//! three seconds at most and shows only ids with `claude` in them, which are aliases in the map. Without one, every
//! name goes up as it is, and the list is the upstream's.

use crate::config::Config;
use crate::error::{Error, ErrorKind, Fault};
use crate::json::{self, Reader, Writer};
use crate::names::NameSet;
use crate::words;

/// Most models of an upstream that are told: a list of short names grows thirtyfold.
const MODELS_MAX: usize = 1000;

/// Longest name of one.
const ID_BYTES_MAX: usize = 256;

/// Names of the context window's size: vLLM, `OpenRouter`.
const SIZES: [&str; 2] = ["max_model_len", "context_length"];

/// An upstream's list, `{"data": [{"id": …}]}`; nothing where it is none. Names that stand twice are told once.
#[must_use]
pub(crate) fn of_upstream(body: &[u8]) -> Option<Vec<u8>> {
    let body = json::member(std::str::from_utf8(body).ok()?, "data")?;
    let mut reader = Reader::of(body);
    let mut models = Vec::new();
    let mut known = NameSet::default();
    reader.begin_array().ok()?;
    while reader.next_element().ok()? {
        let model = reader.skip().ok()?;
        let Some(id) = json::member(model, "id").and_then(json::string) else { continue };
        let id = id.decode().into_owned();
        if id.is_empty() || id.len() > ID_BYTES_MAX || !known.add(id.clone()) {
            continue;
        }
        let size = SIZES.iter().find_map(|name| json::member(model, name)?.parse().ok());
        models.push((id, size.unwrap_or_default()));
        if models.len() >= MODELS_MAX {
            break;
        }
    }
    Some(page(models.iter().map(|(id, size)| (id.as_str(), (*size, 0)))))
}

/// Every name that stands in the model map in full, on one page.
#[must_use]
pub(crate) fn list(config: &Config) -> Vec<u8> {
    page(config.models.names().map(|id| (id, sizes(config, id))))
}

/// Names, each with the tokens of its window and its answers; 0 where they are not known.
fn page<'n>(models: impl Iterator<Item = (&'n str, (u64, u64))>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut json = Writer::new(&mut body);
    let (mut first, mut last) = (None, None);
    json.begin_object();
    json.key("data").begin_array();
    for (id, sizes) in models {
        write(&mut json, id, sizes);
        first = first.or(Some(id));
        last = Some(id);
    }
    json.end_array();
    json.key("has_more").bool(false);
    for (key, id) in [("first_id", first), ("last_id", last)] {
        json.key(key);
        match id {
            Some(id) => json.text(id),
            None => json.null(),
        };
    }
    json.end_object();
    body
}

/// One model: any name that a request could use, so also what only a prefix or `*` covers. `id` is
/// as it stands in the path.
///
/// # Errors
/// No request for that model would have a route.
pub(crate) fn one(config: &Config, id: &str) -> Result<Vec<u8>, Error> {
    // SDKs escape the slashes and colons of an id in a path.
    let id = words::percent_decoded(id);
    if id.is_empty() || config.route(&id).is_none() {
        return Err(not_found(&id));
    }
    let mut body = Vec::new();
    write(&mut Writer::new(&mut body), &id, sizes(config, &id));
    Ok(body)
}

/// A name that nothing in the model map covers. The first half is the real API's message.
pub(super) fn not_found(id: &str) -> Error {
    let message = format!("model: {id} (this gateway's \"models\" have no entry for it)");
    Error::new(Fault::Client, ErrorKind::NotFound, message)
}

/// The tokens of a prompt and of an answer.
fn sizes(config: &Config, id: &str) -> (u64, u64) {
    let target = config.models.target(id);
    let limit = config.route(id).map_or(0, |(upstream, _)| upstream.profile.max_tokens_max);
    let (input, output) =
        target.map_or((0, 0), |target| (target.max_input_tokens, target.max_tokens));
    (input, if output == 0 { limit } else { output })
}

fn write(json: &mut Writer<'_>, id: &str, (input, output): (u64, u64)) {
    json.begin_object();
    json.kind("model");
    json.key("id").text(id);
    json.key("display_name").text(id);
    json.key("created_at").text("1970-01-01T00:00:00Z");
    json.key("lifecycle").text("active");
    json.key("line").null();
    for (key, tokens) in [("max_input_tokens", input), ("max_tokens", output)] {
        json.key(key);
        match tokens {
            0 => json.null(),
            known => json.u64(known),
        };
    }
    for unknown in ["capabilities", "deprecated_at", "retires_at"] {
        json.key(unknown).null();
    }
    json.end_object();
}

#[cfg(test)]
mod tests {
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
            let model: serde_json::Value =
                serde_json::from_slice(&one(&config, id).unwrap()).unwrap();
            assert_eq!(
                (&model["max_input_tokens"], &model["max_tokens"]),
                (&input, &output),
                "{id}"
            );
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
}
