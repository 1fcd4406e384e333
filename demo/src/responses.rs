//! Responses API: requests are converted for the planner, and plans are formatted as answers. The
//! planner is shared with Chat Completions, so that a prompt's triggers work the same in both.

mod as_chat;
mod wire;

use serde_json::{Map, Value, json};

use crate::check::{self, Refusal};
use crate::script::Answer;
use crate::{fault, plan};

/// Returns the answer to `POST …/responses`.
pub(crate) fn answer(
    request: &Map<String, Value>,
    body: &[u8],
    words: Option<&str>,
    id_length_max: usize,
) -> Result<Answer, Refusal> {
    check::responses::request(request, id_length_max)?;
    let seed = plan::hash(body);
    let plan = plan::plan(&as_chat::request(request), seed, words).map_err(Refusal::invalid)?;
    let form = wire::Form { request, seed, input_tokens: plan::input_tokens(body) };
    let stream = request.get("stream") == Some(&Value::Bool(true));
    Ok(fault::answer(&plan, &form, stream))
}

/// Returns the answer to `POST …/responses/input_tokens`.
pub(crate) fn count(
    request: &Map<String, Value>,
    body: &[u8],
    id_length_max: usize,
) -> Result<Answer, Refusal> {
    check::responses::counted(request, id_length_max)?;
    let tokens = plan::input_tokens(body);
    let counted = json!({"object": "response.input_tokens", "input_tokens": tokens});
    Ok(Answer::json(200, counted.to_string()))
}
