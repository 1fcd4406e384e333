//! Models of a server: which are listed, which are loaded, and the sizes of their context windows.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::SERVER;
use serde_json::Value;

use super::model_names::{closest, is_same};
use super::problem::Problem;
use super::{ask, guess};
use crate::upstream::client::UpstreamClient;

/// Maximum length of a model's name, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Model in a server's list of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) name: String,
    /// Size of the context window in tokens, if the server states it.
    pub(crate) window: Option<u64>,
    /// Maximum number of tokens of an answer, if the server states it.
    pub(crate) output: Option<u64>,
    /// True if the server states that the model is in memory.
    pub(crate) is_loaded: bool,
}

/// List of models that a server returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) models: Vec<Model>,
    /// Preset (kind of server), if the list shows it.
    pub(crate) preset: Option<&'static str>,
}

impl List {
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.models)
    }
}

pub(crate) fn names(models: &[Model]) -> Vec<String> {
    models.iter().map(|model| model.name.clone()).collect()
}

/// Returns true for embedding models: servers list them with other models, but no client can use
/// them for messages.
pub(crate) fn is_embedding(model: &Model) -> bool {
    model.name.to_ascii_lowercase().contains("embed")
}

/// Returns the only model that is loaded, else the only model. Embedding models do not count.
pub(crate) fn only(models: &[Model]) -> Option<&Model> {
    let can_answer = || models.iter().filter(|model| !is_embedding(model));
    let loaded = || can_answer().filter(|model| model.is_loaded);
    match (loaded().count(), can_answer().count()) {
        (1, _) => loaded().next(),
        (0, 1) => can_answer().next(),
        _ => None,
    }
}

/// Finds a model by its name. An exact match is preferred to a name without `:latest`.
pub(crate) fn named(models: &[Model], wanted: &str) -> Option<Model> {
    let whole = models.iter().find(|model| model.name == wanted);
    whole.or_else(|| models.iter().find(|model| is_same(&model.name, wanted))).cloned()
}

/// Returns the message that a server does not list a model, with similar names that may be meant.
pub(crate) fn lacks(place: &str, wanted: &str, models: &[Model]) -> String {
    let names = names(models);
    let near = match closest(wanted, &names) {
        near if near.is_empty() => "it lists none".to_owned(),
        near => format!("the nearest: {}", near.join(", ")),
    };
    format!("{place} does not list {wanted}; {near}")
}

/// Requests the list of models from a server.
///
/// # Errors
/// The server returned no list.
pub(crate) async fn list(
    client: &UpstreamClient,
    base: &str,
    key: Option<&str>,
    patience: Duration,
) -> Result<List, Problem> {
    let got = ask::good(client, &format!("{base}/models"), key, None, patience).await?;
    read(&got.headers, &got.body)
        .ok_or_else(|| Problem::new("no_list", "its answer is no list of models"))
}

/// Adds details of the models from other paths of the server: which models are loaded, and their
/// context windows.
pub(crate) async fn complete(
    client: &UpstreamClient,
    preset: &str,
    address: &str,
    models: &mut [Model],
) {
    const TIMEOUT: Duration = Duration::from_secs(1);
    let url = |path: &str| format!("{address}{path}");
    match preset {
        "ollama" => {
            let Some(ran) = json(client, &url("/api/ps"), None, TIMEOUT).await else { return };
            for entry in entries(&ran, "models") {
                note(models, text(entry, "name"), number(entry, &["context_length"]));
            }
        }
        "lmstudio" => {
            let listed = json(client, &url("/api/v0/models"), None, TIMEOUT).await;
            let listed = listed.unwrap_or_default();
            let is_loaded = |entry: &&Value| text(entry, "state") == "loaded";
            for entry in entries(&listed, "data").iter().filter(is_loaded) {
                let window = number(entry, &["loaded_context_length"]);
                note(models, text(entry, "id"), window);
            }
        }
        "llama.cpp" => {
            let said = json(client, &url("/props"), None, TIMEOUT).await.unwrap_or_default();
            let window = said.pointer("/default_generation_settings/n_ctx");
            if let ([model], Some(window)) = (models, window.and_then(Value::as_u64)) {
                model.window = Some(window);
            }
        }
        _ => {}
    }
}

/// Makes Ollama load a model, because Ollama reports the size of the context window only for loaded
/// models.
pub(crate) async fn load(client: &UpstreamClient, address: &str, model: &mut Model) {
    const TIMEOUT: Duration = Duration::from_secs(120);
    let body = serde_json::json!({"model": model.name, "stream": false}).to_string();
    let url = format!("{address}/api/generate");
    if ask::text(client, &url, None, Some(&body), TIMEOUT).await.is_ok() {
        complete(client, "ollama", address, std::slice::from_mut(model)).await;
    }
}

async fn json(
    client: &UpstreamClient,
    url: &str,
    body: Option<&str>,
    patience: Duration,
) -> Option<Value> {
    let got = ask::good(client, url, None, body, patience).await.ok()?;
    serde_json::from_slice(&got.body).ok()
}

fn note(models: &mut [Model], name: &str, window: Option<u64>) {
    for model in models.iter_mut().filter(|model| model.name == name) {
        model.is_loaded = true;
        model.window = window.or(model.window);
    }
}

/// Reads a list of models in any of the forms that servers use.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Option<List> {
    // Members that state a context window; the last one is used by Creole's own list.
    const WINDOW: &[&str] = &[
        "max_model_len",
        "context_length",
        "context_window",
        "max_context_length",
        "max_input_tokens",
    ];
    let list: Value = serde_json::from_slice(body).ok()?;
    let listed = list.get("data").unwrap_or(&list).as_array()?;
    let mut found = List::default();
    let mut owner = "";
    for entry in listed {
        let name = text_of(entry.get("id"));
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            continue;
        }
        if owner.is_empty() {
            owner = text_of(entry.get("owned_by"));
        }
        let provider = entry.get("top_provider").unwrap_or(&Value::Null);
        let meta = entry.get("meta").unwrap_or(&Value::Null);
        let output = number(entry, &["max_completion_tokens"]);
        // Other servers use `max_tokens` for other values.
        let is_ours = text_of(entry.get("type")) == "model";
        let output = output.or_else(|| number(entry, &["max_tokens"]).filter(|_| is_ours));
        found.models.push(Model {
            name: name.to_owned(),
            window: number(entry, WINDOW).or_else(|| number(meta, &["n_ctx", "n_ctx_train"])),
            output: output.or_else(|| number(provider, &["max_completion_tokens"])),
            is_loaded: false,
        });
    }
    let server = headers.get(SERVER).and_then(|server| server.to_str().ok()).unwrap_or_default();
    found.preset = guess::preset_of_list(owner, server);
    Some(found)
}

fn entries<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    text_of(value.get(key))
}

fn text_of(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the value of the first member of a JSON object, of those named in `keys`, that is a
/// number above 0.
fn number(value: &Value, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| value.get(key).and_then(Value::as_u64).filter(|found| *found > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_many_servers_tell_names_owner_windows_and_outputs() {
        let of = |text: &str| read(&HeaderMap::new(), text.as_bytes());
        let read = |text: &str| of(text).unwrap();
        let vllm = read(r#"{"data":[{"id":"q","owned_by":"vllm","max_model_len":40960}]}"#);
        assert_eq!((vllm.preset, vllm.models[0].window), (Some("vllm"), Some(40_960)));
        let router = read(
            r#"{"data":[{"id":"z/glm","context_length":200000,"top_provider":{"max_completion_tokens":8192}}]}"#,
        );
        assert_eq!(router.models[0].output, Some(8192));
        let llama = read(r#"{"data":[{"id":"m","meta":{"n_ctx_train":131072}}]}"#);
        assert_eq!(llama.models[0].window, Some(131_072));
        let creole =
            read(r#"{"data":[{"type":"model","id":"m","max_input_tokens":9000,"max_tokens":90}]}"#);
        assert_eq!((creole.models[0].window, creole.models[0].output), (Some(9000), Some(90)));
        let bare =
            read(r#"[{"id":"m","context_window":0},{"id":""},{"name":"no id"},{"id":"a\nb"}]"#);
        assert_eq!(bare.models, [Model { name: "m".to_owned(), ..Model::default() }]);
        for other in ["<html>", "{}", r#"{"data":{}}"#, r#"{"error":"no"}"#] {
            assert!(of(other).is_none(), "{other}");
        }
    }
}
