//! Short questions to servers that may be there: what they list, and how long their windows are.

use std::time::Duration;

use bytes::Bytes;
use creole::config::Upstream;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use serde_json::Value;

use crate::Failed;
use crate::probe::look;
use crate::probe::problem::Problem;
use crate::upstream::client::{self, Client};

/// Maximum size of an answer: longer ones are no lists of models.
const BYTES_MAX: usize = 16 << 20;

/// A model that a server lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) name: String,
    /// Size of the context window in tokens, where the server says so.
    pub(crate) window: Option<u64>,
    /// Maximum number of tokens of an answer, where the server says so.
    pub(crate) output: Option<u64>,
    /// True if the server says that the model is in memory.
    pub(crate) is_loaded: bool,
}

/// Models that a server lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) models: Vec<Model>,
    /// Owner of the models, in the server's own words: `vllm`, `llamacpp`.
    pub(crate) owner: String,
}

#[derive(Debug)]
pub(crate) struct Asker(Client);

impl Asker {
    pub(crate) fn new() -> Result<Self, Failed> {
        Ok(Self(Client::new(&client::connector().map_err(Failed::Run)?)))
    }

    /// # Errors
    /// What the server did, for people.
    pub(crate) async fn text(
        &self,
        url: &str,
        key: Option<&str>,
        body: Option<&str>,
        timeout: Duration,
    ) -> Result<String, String> {
        let mut request = Request::new(Full::new(Bytes::from(body.unwrap_or_default().to_owned())));
        *request.uri_mut() = url.parse().map_err(|_| "not a URL".to_owned())?;
        if body.is_some() {
            *request.method_mut() = Method::POST;
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| "the key has characters that no header can have".to_owned())?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let asked = async {
            let response = self.0.send(request).await.map_err(|error| client::why(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), BYTES_MAX).collect().await;
            let body = body.map_err(|_| "its answer broke off".to_owned())?.to_bytes();
            match status.as_u16() {
                200..=299 => Ok(String::from_utf8_lossy(&body).into_owned()),
                401 | 403 => Err(format!("it refused the key (HTTP {status})")),
                _ => Err(format!("HTTP {status}")),
            }
        };
        match tokio::time::timeout(timeout, asked).await {
            Ok(answered) => answered,
            Err(_) => Err(format!("no answer in {} ms", timeout.as_millis())),
        }
    }

    /// Explains why a server gave no list, and what to do; `None` where the server is right without
    /// one.
    pub(crate) async fn what_is_wrong(&self, upstream: &Upstream) -> Option<Problem> {
        look::what_is_wrong(&self.0, upstream).await
    }

    async fn json(&self, url: &str, body: Option<&str>, timeout: Duration) -> Option<Value> {
        serde_json::from_str(&self.text(url, None, body, timeout).await.ok()?).ok()
    }

    /// The models that a server lists.
    ///
    /// # Errors
    /// What the server did, for people.
    pub(crate) async fn models(
        &self,
        base: &str,
        key: Option<&str>,
        timeout: Duration,
    ) -> Result<List, String> {
        let text = self.text(&format!("{base}/models"), key, None, timeout).await?;
        read_list(&text).ok_or_else(|| "its answer is no list of models".to_owned())
    }

    /// Adds what a kind of server says of its models elsewhere: which are loaded, with which window.
    pub(crate) async fn complete(&self, preset: &str, address: &str, models: &mut [Model]) {
        const TIMEOUT: Duration = Duration::from_secs(1);
        let ask = |path: &str| format!("{address}{path}");
        match preset {
            "ollama" => {
                let Some(ran) = self.json(&ask("/api/ps"), None, TIMEOUT).await else { return };
                for entry in entries(&ran, "models") {
                    note(models, text(entry, "name"), number(entry, &["context_length"]));
                }
            }
            "lmstudio" => {
                let listed = self.json(&ask("/api/v0/models"), None, TIMEOUT).await;
                let listed = listed.unwrap_or_default();
                let is_loaded = |entry: &&Value| text(entry, "state") == "loaded";
                for entry in entries(&listed, "data").iter().filter(is_loaded) {
                    let window = number(entry, &["loaded_context_length"]);
                    note(models, text(entry, "id"), window);
                }
            }
            "llama.cpp" => {
                let said = self.json(&ask("/props"), None, TIMEOUT).await.unwrap_or_default();
                let window = said.pointer("/default_generation_settings/n_ctx");
                if let ([model], Some(window)) = (models, window.and_then(Value::as_u64)) {
                    model.window = Some(window);
                }
            }
            _ => {}
        }
    }

    /// Lets Ollama load a model, because only then it says how long the window is.
    pub(crate) async fn load(&self, address: &str, model: &mut Model) {
        const TIMEOUT: Duration = Duration::from_secs(120);
        let body = serde_json::json!({"model": model.name, "stream": false}).to_string();
        let url = format!("{address}/api/generate");
        if self.text(&url, None, Some(&body), TIMEOUT).await.is_ok() {
            self.complete("ollama", address, std::slice::from_mut(model)).await;
        }
    }
}

fn note(models: &mut [Model], name: &str, window: Option<u64>) {
    for model in models.iter_mut().filter(|model| model.name == name) {
        model.is_loaded = true;
        model.window = window.or(model.window);
    }
}

/// Reads a list of models as the many servers write it.
fn read_list(text: &str) -> Option<List> {
    // The last is Creole's own list.
    const WINDOW: &[&str] = &[
        "max_model_len",
        "context_length",
        "context_window",
        "max_context_length",
        "max_input_tokens",
    ];
    let list: Value = serde_json::from_str(text).ok()?;
    let listed = list.get("data").unwrap_or(&list).as_array()?;
    let mut found = List::default();
    for entry in listed {
        let name = text_of(entry.get("id"));
        if name.is_empty() || name.chars().any(char::is_control) {
            continue;
        }
        if found.owner.is_empty() {
            text_of(entry.get("owned_by")).clone_into(&mut found.owner);
        }
        let provider = entry.get("top_provider").unwrap_or(&Value::Null);
        let meta = entry.get("meta").unwrap_or(&Value::Null);
        let output = number(entry, &["max_completion_tokens"]);
        // By this name, other servers mean other things.
        let is_ours = text_of(entry.get("type")) == "model";
        let output = output.or_else(|| number(entry, &["max_tokens"]).filter(|_| is_ours));
        found.models.push(Model {
            name: name.to_owned(),
            window: number(entry, WINDOW).or_else(|| number(meta, &["n_ctx", "n_ctx_train"])),
            output: output.or_else(|| number(provider, &["max_completion_tokens"])),
            is_loaded: false,
        });
    }
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

/// The first of these members that is a number above 0.
fn number(value: &Value, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| value.get(key).and_then(Value::as_u64).filter(|found| *found > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_many_servers_tell_names_owner_windows_and_outputs() {
        let read = |text: &str| read_list(text).unwrap();
        let vllm = read(r#"{"data":[{"id":"q","owned_by":"vllm","max_model_len":40960}]}"#);
        assert_eq!((vllm.owner.as_str(), vllm.models[0].window), ("vllm", Some(40_960)));
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
            assert!(read_list(other).is_none(), "{other}");
        }
    }
}
