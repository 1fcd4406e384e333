//! Results of server tools, such as web searches, written as the blocks of Anthropic's server
//! tools, and citations.
//!
//! `encrypted_content` carries the text of a page in the client's history (`carry::sealed`). It is
//! empty if the text is unknown. `encrypted_index` carries the number of a page that Creole found;
//! it is empty for pages that an upstream found.

use crate::carry::sealed;
use crate::json::Writer;
use crate::model::event::{McpListing, ServerOutput, ServerResult};
use crate::model::fetch::FetchedPage;
use crate::model::search::{Citation, FoundPage};

/// Writes the block with the result of a server tool's call.
pub(super) fn write_result(result: &ServerResult<'_>, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    // The block follows a comma or a colon, which the caller wrote.
    json.out().push(b'{');
    match result.output {
        ServerOutput::Pages(pages) => {
            begin_search_result(result.id, &mut json);
            write_pages(pages, &mut json);
            write_caller(&mut json);
        }
        ServerOutput::SearchFailed(failure) => {
            begin_search_result(result.id, &mut json);
            json.begin_object().kind("web_search_tool_result_error");
            json.key("error_code").text(failure.code()).end_object();
            write_caller(&mut json);
        }
        ServerOutput::Page(page) => {
            begin_fetch_result(result.id, &mut json);
            write_page(page, &mut json);
            write_caller(&mut json);
        }
        ServerOutput::FetchFailed(failure) => {
            begin_fetch_result(result.id, &mut json);
            json.begin_object().kind("web_fetch_tool_result_error");
            json.key("error_code").text(failure.code()).end_object();
            write_caller(&mut json);
        }
        ServerOutput::Tools(names) => {
            begin_tool_search_result(result.id, &mut json);
            json.begin_object().kind("tool_search_tool_search_result");
            json.key("tool_references").begin_array();
            for name in names {
                json.begin_object().kind("tool_reference");
                json.key("tool_name").text(name).end_object();
            }
            json.end_array().end_object();
        }
        ServerOutput::ToolSearchFailed(failure) => {
            begin_tool_search_result(result.id, &mut json);
            json.begin_object().kind("tool_search_tool_result_error");
            json.key("error_code").text(failure.code());
            if let Some(message) = failure.message() {
                json.key("error_message").text(message);
            }
            json.end_object();
        }
        ServerOutput::Mcp { texts, is_error } => {
            json.kind("mcp_tool_result").key("tool_use_id").text(result.id);
            json.key("is_error").bool(is_error);
            json.key("content").begin_array();
            for text in texts {
                json.begin_object().kind("text").key("text").text(text).end_object();
            }
            json.end_array();
        }
    }
    json.end_object();
}

/// Writes the block with the tools that an MCP server listed.
pub(super) fn write_listing(listing: &McpListing<'_>, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    // The block follows a comma or a colon, which the caller wrote.
    json.out().push(b'{');
    json.kind("mcp_tool_listing").key("mcp_server_name").text(listing.server);
    json.key("tools").begin_array();
    listing.tools.iter().for_each(|tool| tool.write(&mut json));
    json.end_array().end_object();
}

fn begin_tool_search_result(id: &str, json: &mut Writer<'_>) {
    json.kind("tool_search_tool_result").key("tool_use_id").text(id);
    json.key("content");
}

fn begin_fetch_result(id: &str, json: &mut Writer<'_>) {
    json.kind("web_fetch_tool_result").key("tool_use_id").text(id);
    json.key("content");
}

/// Writes a fetched page as a document.
fn write_page(page: &FetchedPage, json: &mut Writer<'_>) {
    json.begin_object().kind("web_fetch_result").key("url").text(&page.url);
    json.key("retrieved_at");
    match &page.retrieved_at {
        Some(time) => json.text(time),
        None => json.null(),
    };
    json.key("content").begin_object().kind("document").key("source").begin_object();
    json.kind("text").key("media_type").text("text/plain").key("data").text(&page.text);
    json.end_object();
    if let Some(title) = &page.title {
        json.key("title").text(title);
    }
    if page.is_to_be_cited {
        json.key("citations").begin_object().key("enabled").bool(true).end_object();
    }
    json.end_object().end_object();
}

fn begin_search_result(id: &str, json: &mut Writer<'_>) {
    json.kind("web_search_tool_result").key("tool_use_id").text(id);
    json.key("content");
}

/// Writes the pages that a web search found.
fn write_pages(pages: &[FoundPage], json: &mut Writer<'_>) {
    json.begin_array();
    for FoundPage { url, title, text, age } in pages {
        json.begin_object().kind("web_search_result");
        json.key("url").text(url);
        json.key("title").text(title);
        let sealed = if text.is_empty() { String::new() } else { sealed::seal(text) };
        json.key("encrypted_content").text(&sealed);
        json.key("page_age");
        match age {
            Some(age) => json.text(age),
            None => json.null(),
        };
        json.end_object();
    }
    json.end_array();
}

fn write_caller(json: &mut Writer<'_>) {
    json.key("caller").begin_object().kind("direct").end_object();
}

/// Writes a citation, which names the web page that a text comes from.
pub(super) fn write_citation(citation: &Citation, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.out().extend_from_slice(b"{\"type\":\"web_search_result_location\"");
    json.key("url").text(&citation.url);
    json.key("title").text(&citation.title);
    json.key("cited_text").text(&citation.cited_text);
    let index = citation.number.map(|number| sealed::seal_index(number, &citation.url));
    json.key("encrypted_index").text(&index.unwrap_or_default());
    json.end_object();
}
