//! Addresses that a conversation names: only these are fetched, so that no page can make the model
//! send data out in an address.
//!
//! An address counts as named if it is in a text of the user, in a result of a client's tool, or in
//! a result of `web_search` or `web_fetch`. Texts of the assistant do not count. Each text is
//! searched for the hosts of the wanted addresses, so the time is linear in the body for each call.

use super::address::PageAddress;
use crate::carry::sealed;
use crate::config::usual_port;
use crate::json;
use crate::model::fetch::{ToolFilter, UrlSources};
use crate::model::{
    Block, DocumentSource, ImageSource, Request, Role, ServerResultKind, ServerToolResult,
};
use crate::text::names::Names;
use crate::text::words;

/// Returns true if the conversation names an address.
pub(super) fn is_named(request: &Request<'_>, sources: &UrlSources, wanted: &PageAddress) -> bool {
    let mut search = AddressSearch { wanted, is_found: false };
    let tools = tool_names(request, sources);
    for message in request.messages.iter().rev() {
        for block in &message.content {
            match block {
                Block::ServerToolResult(result)
                    if sources.server_tools.selects(tools.name_of(&result.id.decode())) =>
                {
                    search.look_at_server_result(result);
                }
                block if message.role == Role::User => search.look_at_user(block, sources, &tools),
                _ => {}
            }
        }
        if search.is_found {
            break;
        }
    }
    search.is_found
}

/// Names of tools by the ids of their calls.
struct CallNames<'a>(Names<'a, String>);

impl CallNames<'_> {
    fn name_of(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}

/// Collects the names of the tools that the conversation called; none unless `url_sources` limits a
/// source to some tools.
fn tool_names<'a>(request: &'a Request<'a>, sources: &UrlSources) -> CallNames<'a> {
    let needs_names = |filter: &ToolFilter| !matches!(filter, ToolFilter::All | ToolFilter::None);
    let mut names = Names::default();
    if needs_names(&sources.client_tools) || needs_names(&sources.server_tools) {
        for block in request.messages.iter().flat_map(|message| &message.content) {
            let (id, name) = match block {
                Block::ToolUse(call) => (call.id, call.name),
                Block::ServerToolUse(call) => (call.id, call.name),
                _ => continue,
            };
            names.insert(id.decode(), name.decode().into_owned());
        }
    }
    CallNames(names)
}

/// Search for the wanted address in the texts of a conversation.
struct AddressSearch<'w> {
    wanted: &'w PageAddress,
    is_found: bool,
}

impl AddressSearch<'_> {
    fn look_at_user(&mut self, block: &Block<'_>, sources: &UrlSources, tools: &CallNames<'_>) {
        match block {
            Block::ToolResult(result)
                if sources.client_tools.selects(tools.name_of(&result.id.decode())) =>
            {
                result.content.iter().for_each(|block| self.look_at(block));
            }
            Block::ToolResult(_) => {}
            block if !sources.is_user_excluded => self.look_at(block),
            _ => {}
        }
    }

    /// Looks at a block that is not the result of a tool.
    fn look_at(&mut self, block: &Block<'_>) {
        match block {
            Block::Text(text) => self.look_in(&text.text.decode()),
            Block::Image(image) => {
                if let ImageSource::Url(url) = &image.source {
                    self.look_in(&url.decode());
                }
            }
            Block::Document(document) => {
                let texts = [document.title, document.context];
                texts.iter().flatten().for_each(|text| self.look_in(&text.decode()));
                match &document.source {
                    DocumentSource::Text(text) | DocumentSource::Url(text) => {
                        self.look_in(&text.decode());
                    }
                    // Blocks in a document are texts and images, so this goes one level deep.
                    DocumentSource::Content(blocks) => {
                        blocks.iter().for_each(|block| self.look_at(block));
                    }
                    DocumentSource::Base64 { .. } | DocumentSource::File => {}
                }
            }
            Block::SearchResult(result) => {
                self.look_in(&result.source.decode());
                self.look_in(&result.title.decode());
                result.content.iter().for_each(|block| self.look_at(block));
            }
            _ => {}
        }
    }

    /// Looks at a result of `web_search` or `web_fetch`. Results of other server tools name no
    /// address.
    fn look_at_server_result(&mut self, result: &ServerToolResult<'_>) {
        let text = |value, name| json::member(value, name).and_then(json::string);
        if result.kind == ServerResultKind::WebSearch {
            for page in json::elements(result.content) {
                if let Some(url) = text(page, "url") {
                    self.look_in(&url.decode());
                }
                let sealed = text(page, "encrypted_content");
                if let Some(text) = sealed.and_then(|sealed| sealed::open(&sealed.decode())) {
                    self.look_in(&text);
                }
            }
            return;
        }
        if text(result.content, "type").is_some_and(|kind| kind == "web_fetch_result") {
            let document = json::member(result.content, "content").unwrap_or_default();
            let source = json::member(document, "source").unwrap_or_default();
            let is_text = text(source, "type").is_some_and(|kind| kind == "text");
            let data = text(source, "data").filter(|_| is_text);
            for text in [text(result.content, "url"), data].into_iter().flatten() {
                self.look_in(&text.decode());
            }
        }
    }

    fn look_in(&mut self, text: &str) {
        self.is_found = self.is_found || names(text, &text.to_ascii_lowercase(), self.wanted);
    }
}

/// Returns true if a text names an address. `lower`: the text in lower case.
fn names(text: &str, lower: &str, address: &PageAddress) -> bool {
    words::places(lower, address.host()).any(|at| {
        let (before, rest) = words::split_at(text, at);
        let rest = rest.get(address.host().len()..).unwrap_or_default();
        let Some(tls) = scheme_before(before) else { return false };
        tls == address.tls()
            && after_port(rest, address.port(), tls)
                .and_then(|rest| after_path(rest, address.bare_path()))
                .is_some_and(ends)
    })
}

/// Returns true for an address with `https`, or without a scheme, according to the text before its
/// host. `None` if the host is a part of a longer name.
fn scheme_before(text: &str) -> Option<bool> {
    if let Some(before) = text.strip_suffix("://") {
        let scheme = words::end(before, "https".len());
        return if scheme.eq_ignore_ascii_case("https") {
            Some(true)
        } else {
            words::end(before, "http".len()).eq_ignore_ascii_case("http").then_some(false)
        };
    }
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._@/%:=&?+".contains(byte);
    (!text.as_bytes().last().is_some_and(goes_on)).then_some(true)
}

/// Returns the text behind the port of an address, if it has this port. The usual port may be
/// absent.
fn after_port(text: &str, port: u16, tls: bool) -> Option<&str> {
    // A name may end with the dot of the root.
    let text = text.strip_prefix('.').filter(|rest| rest.starts_with([':', '/'])).unwrap_or(text);
    let is_usual = port == usual_port(tls);
    let after = text.strip_prefix(':').map(|rest| (rest, words::trim_start(rest, b"0123456789")));
    match after {
        Some((from, rest)) if from.len() > rest.len() => {
            let digits = from.get(..from.len().saturating_sub(rest.len()))?;
            (digits.parse() == Ok(port)).then_some(rest)
        }
        _ => is_usual.then_some(text),
    }
}

/// Returns the text behind a path, if the text begins with the path. Characters that are not ASCII
/// may be percent-encoded in the path and not in the text.
fn after_path<'t>(text: &'t str, path: &str) -> Option<&'t str> {
    // The path of `https://a.example?q` is `/?q`.
    let path = if text.starts_with('?') { path.strip_prefix('/').unwrap_or(path) } else { path };
    if let Some(rest) = text.strip_prefix(path) {
        return Some(rest);
    }
    if !words::has_byte(path, b'%') {
        return None;
    }
    let (mut left, mut wanted) = (text.as_bytes(), path.as_bytes());
    while let [first, rest @ ..] = wanted {
        let (byte, after) = left.split_first()?;
        wanted = match rest {
            rest if byte == first => rest,
            // Digits in another case would be a choice, with which the model could send data out.
            rest if *first == b'%'
                && !byte.is_ascii()
                && !rest.iter().take(2).any(u8::is_ascii_lowercase) =>
            {
                words::hex_byte(rest).filter(|(encoded, _)| encoded == byte)?.1
            }
            _ => return None,
        };
        left = after;
    }
    text.get(text.len().saturating_sub(left.len())..)
}

/// Returns true if an address can end before this text.
fn ends(text: &str) -> bool {
    let text = text.strip_prefix('/').unwrap_or(text);
    // Punctuation at the end of a sentence is no part of an address.
    let behind = words::trim_start(text, b".:!?*_~");
    let is_end = |byte: u8| {
        byte.is_ascii_whitespace()
            || byte.is_ascii_control()
            || !byte.is_ascii()
            || b"#\"'<>\\^`{|}()[],;".contains(&byte)
    };
    behind.bytes().next().is_none_or(is_end)
}

#[cfg(test)]
mod tests;
