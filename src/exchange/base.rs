//! Base URLs of clients, which people write with a path, without one, or with a slash at the end.
//!
//! SDKs put `/v1/messages` behind the base URL, clients of Chat Completions `/messages`. So one
//! address is written `http://host`, `http://host/`, `http://host/v1` or `http://host/anthropic`,
//! as other services have it.

use std::borrow::Cow;

use crate::text::words;

/// Hint in the error for a client whose path is not served.
pub(super) const HINT: &str = " It serves /v1/messages and other paths below /v1/, so a client's base URL is the \
                               gateway's address alone, such as http://127.0.0.1:8787.";

/// Last segment of the base paths of other services: `/anthropic` (`DeepSeek`, Kimi),
/// `/api/anthropic` (Zhipu).
const PREFIX: &str = "/anthropic";

/// Returns true if a path is one of Creole's own, or below one, whatever the number of slashes at
/// its end.
pub(super) fn is_own(path: &str) -> bool {
    ["/v1/messages", "/v1/models"].iter().any(|own| {
        path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Removes the `/v1` of a base URL that ends so: the SDKs add `/v1/messages` behind it.
pub(super) fn without_doubled(path: &str) -> &str {
    path.strip_prefix("/v1").filter(|rest| rest.starts_with("/v1/")).unwrap_or(path)
}

/// Returns the path for [`Exchange::handle_request_head`](super::Exchange::handle_request_head) of
/// a client whose base URL has another path than it should have: none (`/messages`), `/anthropic`,
/// or a slash at its end. The result is the path for the right base URL. This is for a host that
/// serves nothing else outside of `/v1`; behind a proxy, `/anthropic` may be somebody's route.
#[must_use]
pub fn with_version(path: &str) -> Cow<'_, str> {
    let bare = words::before(path, b"?#");
    match meant(bare) {
        Some(meant) if meant != bare => {
            let query = path.get(bare.len()..).unwrap_or_default();
            [meant.as_str(), query].concat().into()
        }
        _ => path.into(),
    }
}

/// Returns the path of Creole's own that a path without a query stands for.
fn meant(bare: &str) -> Option<String> {
    let single = with_single_slashes(bare);
    let (below, has_prefix) = match without_prefix(&single) {
        Some(below) => (below, true),
        None => (single.as_str(), false),
    };
    if has_prefix && matches!(below, "" | "/" | "/api/hello") {
        return Some(["/", below.trim_start_matches('/')].concat());
    }
    let below = without_doubled(below);
    // `/messages/batches` without a version may be anybody's.
    let lacks_version =
        matches!(words::trim_end(below, b"/"), "/messages" | "/messages/count_tokens" | "/models")
            || below.starts_with("/models/");
    if lacks_version {
        return Some(["/v1", below].concat());
    }
    is_own(below).then(|| below.to_owned())
}

/// Returns the path behind a base path that ends in [`PREFIX`].
fn without_prefix(path: &str) -> Option<&str> {
    // An upstream may have such a path.
    if path.starts_with("/v1/") {
        return None;
    }
    let (_, below) = words::split_once(path, PREFIX)?;
    (below.is_empty() || below.starts_with('/')).then_some(below)
}

fn with_single_slashes(path: &str) -> String {
    let mut single = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !single.ends_with('/') {
            single.push(letter);
        }
    }
    single
}
