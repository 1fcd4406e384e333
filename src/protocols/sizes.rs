//! Configured context window and maximum answer length of a model, applied to a request.

use std::borrow::Cow;

use super::client_request::ClientRequest;
use crate::config::Target;
use crate::headers::Headers as _;
use crate::model::Request;
use crate::observe::warning::Warnings;
use crate::profile::Profile;
use crate::text::words;

/// Minimum number of tokens to which an answer's limit is lowered to fit the context window. With
/// less space left, the upstream refuses the prompt and reports its length.
const ROOM_LEAST: u64 = 1024;

/// Size of the context window that a client expects when it requests the long window, in tokens.
const LONG_WINDOW: u64 = 1_000_000;

/// Lowers the limit of the answer to the model's limit, and returns the size of the model's context
/// window, or 0 if unknown. `prompt`: estimated number of prompt tokens.
pub(crate) fn fit(
    client: &ClientRequest<'_>,
    request: &Request<'_>,
    prompt: u64,
    profile: &mut Cow<'_, Profile>,
    warnings: &mut Warnings,
) -> u64 {
    // The model map applies to names of clients; a request of Creole's own uses the upstream's
    // name.
    let target = client.config.models.target(&request.model.decode());
    let Some(target) = target.filter(|_| client.target.is_none()) else { return 0 };
    let (window, wanted) = (target.max_input_tokens, request.max_tokens.unwrap_or_default());
    let asks_for_long = || {
        let betas = client.headers.value("anthropic-beta");
        betas.is_some_and(|betas| words::has(betas, "context-1m-"))
    };
    let mut is_smaller = (1..LONG_WINDOW).contains(&window) && asks_for_long();
    let mut most = if target.max_tokens == 0 { wanted } else { wanted.min(target.max_tokens) };
    if may_fill(client, target, wanted) {
        let room = window.saturating_sub(prompt);
        if room >= ROOM_LEAST {
            most = most.min(room);
        }
        is_smaller |= prompt > window;
    }
    if most < wanted {
        let profile = profile.to_mut();
        let known = profile.max_tokens_max;
        profile.max_tokens_max = if known == 0 { most } else { known.min(most) };
        warnings.add("max_tokens_lowered");
    }
    if is_smaller {
        warnings.add("window_smaller");
    }
    window
}

/// Returns true if prompt and answer may exceed the context window, based on the fact that no text
/// has more tokens than bytes.
fn may_fill(client: &ClientRequest<'_>, target: &Target, wanted: u64) -> bool {
    let most = (client.body.len() as u64).saturating_add(wanted);
    target.max_input_tokens > 0 && most > target.max_input_tokens
}
