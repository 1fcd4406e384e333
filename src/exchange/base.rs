//! Base URLs of clients, which users write with a path, without a path, or with a slash at the end.
//!
//! SDKs append `/v1/messages` to the base URL, clients of Chat Completions `/messages`. So one
//! gateway is configured as `http://host`, `http://host/`, `http://host/v1` or
//! `http://host/anthropic`, after the habits of other services.

use std::borrow::Cow;

use crate::protocols;
use crate::text::words;

/// Hint in the error for a client whose path is not served.
pub(super) const HINT: &str = " It serves /v1/messages and other paths below /v1/, so a client's base URL is the \
                               gateway's address alone, such as http://127.0.0.1:8787.";

/// Last segment of the base paths of other services: `/anthropic` (`DeepSeek`, Kimi),
/// `/api/anthropic` (Zhipu).
const PREFIX: &str = "/anthropic";

/// Returns true if a path is handled by Creole: a path of a client's protocol, `/v1/models`, or a
/// path below that.
pub(super) fn is_own(path: &str) -> bool {
    let of_list = path.strip_prefix("/v1/models");
    of_list.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        || protocols::is_of_client(path)
}

/// Removes a doubled `/v1`, which results if the client's base URL ends in `/v1` and the SDK
/// appends `/v1/messages`.
pub(super) fn without_doubled(path: &str) -> &str {
    path.strip_prefix("/v1").filter(|rest| rest.starts_with("/v1/")).unwrap_or(path)
}

/// Corrects the path of a client with an unusual base URL, for
/// [`Exchange::handle_request_head`](super::Exchange::handle_request_head): without `/v1`
/// (`/messages`), with `/anthropic`, or with a slash at the end. The result is the path for the
/// right base URL. Only for a host that serves no other service outside of `/v1`: behind a proxy,
/// `/anthropic` may be another service's route.
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

/// Returns the path of Creole's API that is meant by a client's path, both without a query.
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
    // Any service may own `/messages/batches` without a version.
    let versioned = ["/v1", below].concat();
    let bare = words::trim_end(&versioned, b"/");
    let lacks_version = protocols::client_of(bare).is_some()
        || bare == "/v1/models"
        || below.starts_with("/models/");
    if lacks_version {
        return Some(versioned);
    }
    is_own(below).then(|| below.to_owned())
}

/// Returns the part of a path after a base path that ends in [`PREFIX`].
fn without_prefix(path: &str) -> Option<&str> {
    // An upstream's path may contain the prefix.
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
