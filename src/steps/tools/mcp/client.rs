//! Requests to MCP servers: headers and JSON-RPC bodies. Each message is one `POST`.

use super::era::{MODERN, McpEra};
use super::session::{McpSession, SessionStage};
use crate::headers::Header;
use crate::json::{self, Writer};
use crate::model::mcp::McpTarget;
use crate::steps::ServiceQuestion;
use crate::text::base64;

/// Name of MCP servers in logs. Names of requests are never logged.
const NAME: &str = "mcp";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Message for an MCP server.
#[derive(Clone, Copy, Debug)]
pub(super) enum McpMessage<'m> {
    /// Request for a page of the list of tools.
    List { cursor: Option<&'m str> },
    /// Call of a tool, with its arguments as the JSON text of an object, and the arguments that are
    /// mirrored in headers.
    Call { tool: &'m str, arguments: &'m str, mirrored: &'m [Header] },
    /// First message of a handshake, with this version.
    Initialize(&'static str),
    /// Last message of a handshake, to which no response comes.
    Initialized,
}

impl McpMessage<'_> {
    fn method(self) -> &'static str {
        match self {
            Self::List { .. } => "tools/list",
            Self::Call { .. } => "tools/call",
            Self::Initialize(_) => "initialize",
            Self::Initialized => "notifications/initialized",
        }
    }
}

/// Returns the question that sends a message to a server. `id`: the number of the JSON-RPC request.
pub(super) fn question(
    target: &McpTarget,
    session: &McpSession,
    message: McpMessage<'_>,
    id: u64,
) -> ServiceQuestion {
    let is_notification = matches!(message, McpMessage::Initialized);
    let is_modern = match session.stage {
        SessionStage::Unknown => true,
        SessionStage::Open(era) => era == McpEra::Modern,
        SessionStage::Initialize(_) | SessionStage::Notify(_) => false,
    };
    let body = json::written(|json| {
        json.begin_object().key("jsonrpc").text("2.0");
        if !is_notification {
            json.key("id").u64(id);
        }
        json.key("method").text(message.method());
        write_params(json, message, is_modern);
        json.end_object();
    });
    ServiceQuestion {
        name: NAME,
        url: target.url.clone(),
        headers: headers(target, session, message, is_modern),
        body: body.into_bytes(),
        message_id: (!is_notification).then_some(id),
        is_public: target.is_public,
        cluster: target.cluster.clone(),
    }
}

fn write_params(json: &mut Writer<'_>, message: McpMessage<'_>, is_modern: bool) {
    if matches!(message, McpMessage::Initialized) {
        return;
    }
    json.key("params").begin_object();
    match message {
        McpMessage::List { cursor: Some(cursor) } => {
            json.key("cursor").text(cursor);
        }
        McpMessage::List { cursor: None } | McpMessage::Initialized => {}
        McpMessage::Call { tool, arguments, .. } => {
            json.key("name").text(tool);
            json.key("arguments").raw(arguments);
        }
        McpMessage::Initialize(version) => {
            json.key("protocolVersion").text(version);
            json.key("capabilities").begin_object().end_object();
            json.key("clientInfo");
            write_client(json);
        }
    }
    if is_modern {
        json.key("_meta").begin_object();
        json.key("io.modelcontextprotocol/protocolVersion").text(MODERN);
        json.key("io.modelcontextprotocol/clientInfo");
        write_client(json);
        json.key("io.modelcontextprotocol/clientCapabilities").begin_object().end_object();
        json.end_object();
    }
    json.end_object();
}

fn write_client(json: &mut Writer<'_>) {
    json.begin_object().key("name").text("creole").key("version").text(VERSION).end_object();
}

fn headers(
    target: &McpTarget,
    session: &McpSession,
    message: McpMessage<'_>,
    is_modern: bool,
) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    add("accept", "application/json, text/event-stream".to_owned());
    // The answer must be readable without decompression.
    add("accept-encoding", "identity".to_owned());
    add("content-type", "application/json".to_owned());
    add("user-agent", ["creole/", VERSION].concat());
    if let Some(token) = &target.token {
        let token = token.strip_prefix("Bearer ").map_or(token.as_str(), str::trim_start);
        add("authorization", ["Bearer ", token].concat());
    }
    let version = match session.stage {
        _ if is_modern => Some(MODERN),
        SessionStage::Open(McpEra::Legacy(version)) | SessionStage::Notify(version) => {
            Some(version)
        }
        // The version of a handshake is in its body.
        _ => None,
    };
    if let Some(version) = version {
        add("mcp-protocol-version", version.to_owned());
    }
    if let Some(id) = session.id.as_ref().filter(|_| !is_modern) {
        add("mcp-session-id", id.clone());
    }
    if is_modern {
        add("mcp-method", message.method().to_owned());
        if let McpMessage::Call { tool, mirrored, .. } = message {
            add("mcp-name", header_value(tool));
            mirrored.iter().for_each(|(name, value)| add(name, value.clone()));
        }
    }
    headers
}

/// Returns a text as the value of a header: as it is if the text is plain, else in base64.
pub(super) fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_matches(' ').len() == text.len()
        && !(text.starts_with("=?") && text.ends_with("?="));
    match is_plain {
        true => text.to_owned(),
        false => ["=?base64?", &base64::encode(text.as_bytes()), "?="].concat(),
    }
}
