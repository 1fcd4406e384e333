//! OpenAI's Chat Completions API.

pub(crate) mod wire;
pub(crate) mod write_request;
