//! Calls that the upstream ran itself, written as the blocks of Anthropic's server tools, and
//! citations.
//!
//! `encrypted_content` and `encrypted_index` are empty: only Anthropic could read them.

use std::borrow::Cow;

use crate::json::{Writer, written};
use crate::model::hosted::{HostedCall, McpCall};
use crate::model::search::{Citation, HostedSearch};

/// Writes the block of a call that the upstream ran, with the input `input`.
pub(super) fn write_call(call: &HostedCall, input: &str, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    match call {
        HostedCall::Search(search) => {
            json.out().extend_from_slice(b"{\"type\":\"server_tool_use\"");
            json.key("id").text(&search.id);
            json.key("name").text("web_search");
            json.key("input").raw(input);
            write_caller(&mut json);
        }
        HostedCall::Mcp(call) => {
            json.out().extend_from_slice(b"{\"type\":\"mcp_tool_use\"");
            json.key("id").text(&call.id);
            json.key("name").text(&call.name);
            json.key("server_name").text(&call.server);
            json.key("input").raw(input);
        }
    }
    json.end_object();
}

/// Returns the input of a call that the upstream ran, as JSON.
pub(super) fn input_of(call: &HostedCall) -> Cow<'_, str> {
    match call {
        HostedCall::Mcp(call) => Cow::Borrowed(&call.input),
        HostedCall::Search(search) => Cow::Owned(written(|json| {
            json.begin_object();
            json.key("query").text(&search.query);
            json.end_object();
        })),
    }
}

/// Writes the block with the result of a call that the upstream ran.
pub(super) fn write_result(call: &HostedCall, out: &mut Vec<u8>) {
    match call {
        HostedCall::Search(search) => write_found(search, out),
        HostedCall::Mcp(call) => write_output(call, out),
    }
}

/// Writes the URLs that a web search found, or an error if the search failed.
fn write_found(search: &HostedSearch, out: &mut Vec<u8>) {
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
    write_caller(&mut json);
    json.end_object();
}

fn write_caller(json: &mut Writer<'_>) {
    json.key("caller").begin_object().kind("direct").end_object();
}

/// Writes the output of an MCP server's tool.
fn write_output(call: &McpCall, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.out().extend_from_slice(b"{\"type\":\"mcp_tool_result\"");
    json.key("tool_use_id").text(&call.id);
    json.key("is_error").bool(call.is_error);
    json.key("content").begin_array();
    if let Some(text) = &call.text {
        json.begin_object().kind("text").key("text").text(text).end_object();
    }
    json.end_array().end_object();
}

/// Writes a citation, which names the web page that a text comes from.
pub(super) fn write_citation(citation: &Citation, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.out().extend_from_slice(b"{\"type\":\"web_search_result_location\"");
    json.key("url").text(&citation.url);
    json.key("title").text(&citation.title);
    json.key("cited_text").text(&citation.cited_text);
    json.key("encrypted_index").text("");
    json.end_object();
}
