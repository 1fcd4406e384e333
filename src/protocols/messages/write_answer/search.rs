//! Searches of the web that the upstream ran, as the blocks that Anthropic's own search makes, and citations.
//!
//! `encrypted_content` and `encrypted_index` are empty: only Anthropic could read them.

use crate::json::{Writer, written};
use crate::model::search::{Citation, Search};

/// The block of a search, up to its input.
pub(super) fn write_call_head(search: &Search, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.out().extend_from_slice(b"{\"type\":\"server_tool_use\"");
    json.key("id").text(&search.id);
    json.key("name").text("web_search");
}

/// What was searched for.
pub(super) fn input_of(search: &Search) -> String {
    written(|json| {
        json.begin_object();
        json.key("query").text(&search.query);
        json.end_object();
    })
}

/// The block of what was found.
pub(super) fn write_result(search: &Search, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.out().extend_from_slice(b"{\"type\":\"web_search_tool_result\"");
    json.key("tool_use_id").text(&search.id);
    json.key("content");
    match &search.found {
        Some(found) => {
            json.begin_array();
            for url in found {
                json.begin_object().kind("web_search_result");
                json.key("url").text(url);
                json.key("title").text(url);
                json.key("encrypted_content").text("");
                json.key("page_age").null();
                json.end_object();
            }
            json.end_array();
        }
        None => {
            json.begin_object().kind("web_search_tool_result_error");
            json.key("error_code").text("unavailable");
            json.end_object();
        }
    }
    json.key("caller").begin_object().kind("direct").end_object();
    json.end_object();
}

/// Where a text comes from.
pub(super) fn write_citation(citation: &Citation, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.out().extend_from_slice(b"{\"type\":\"web_search_result_location\"");
    json.key("url").text(&citation.url);
    json.key("title").text(&citation.title);
    json.key("cited_text").text(&citation.cited_text);
    json.key("encrypted_index").text("");
    json.end_object();
}
