//! The walk of decisions for upstreams that speak Responses: every field of a Messages request,
//! every field that a request in Responses can have, and every field, item and event of an answer.

mod answers;
mod host;
mod requests;
mod written;

use crate::Way;

/// The profile that understands most.
fn way() -> Way {
    Way::overrides("openai", serde_json::json!({"cache_breakpoints": "prompt_cache_breakpoint"}))
}
