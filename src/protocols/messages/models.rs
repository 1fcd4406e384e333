//! `/v1/models` in the shape of the Messages API, from the model map.
//!
//! With a map the upstream is not asked: its names are not those that clients may use, and Claude Code waits
//! three seconds at most and shows only ids with `claude` in them, which are aliases in the map. Without one, every
//! name goes up as it is, and the list is the upstream's.

use crate::config::Config;
use crate::error::{Error, ErrorKind, Fault};
use crate::json::{self, Reader, Writer};
use crate::text::names::NameSet;
use crate::text::words;

/// Most models of an upstream that are listed: a list of short names grows thirtyfold.
const MODELS_MAX: usize = 1000;

/// Longest name of one.
const ID_BYTES_MAX: usize = 256;

/// Names of the context window's size: vLLM, `OpenRouter`.
const SIZES: [&str; 2] = ["max_model_len", "context_length"];

/// An upstream's list, `{"data": [{"id": …}]}`; nothing where it is none. Names that stand twice are listed once.
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
pub(crate) fn not_found(id: &str) -> Error {
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
mod tests;
