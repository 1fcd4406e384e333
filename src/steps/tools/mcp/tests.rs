//! Tests of the client of MCP servers, against scripted servers.

mod hostile;
mod listing;
mod memory;
mod sessions;

use std::sync::Arc;

use super::call::{McpCallJob, McpJob, McpListJob, McpOutcome};
use super::era::{McpEra, McpFailure};
use super::list::McpList;
use super::session::Sessions;
use super::*;
use crate::config::{Config, Settings};
use crate::headers::Headers as _;
use crate::ids::Ids;
use crate::json;
use crate::model::mcp::{ListedTool, McpOutput, McpTarget};
use crate::observe::report::Report;
use crate::steps::{Came, Can, Nothing, Question, See, ServiceQuestion, WebAnswer};

/// Schema of the tool `add`.
const SCHEMA: &str = r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#;

const NOT_INITIALIZED: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}}"#;

fn target() -> Arc<McpTarget> {
    Arc::new(McpTarget {
        name: "s".to_owned(),
        url: "http://127.0.0.1:1/mcp".to_owned(),
        token: Some("a-secret".to_owned()),
        revision: None,
        timeout_ms: 60_000,
        is_public: false,
        cluster: String::new(),
    })
}

/// Request that a scripted server got.
struct Got {
    question: ServiceQuestion,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.question.headers.value(name).unwrap_or_default()
    }

    fn body(&self) -> &str {
        std::str::from_utf8(&self.question.body).unwrap()
    }

    fn id(&self) -> &str {
        json::member(self.body(), "id").unwrap_or_default()
    }

    fn is(&self, method: &str) -> bool {
        json::member(self.body(), "method") == Some(&json::quoted(method))
    }

    /// Answers with a result.
    fn result(&self, result: &str) -> Came {
        self.answer(200, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id()))
    }

    fn error(&self, status: u16, code: i64, message: &str) -> Came {
        let id = self.id();
        let error = format!(r#"{{"code":{code},"message":{}}}"#, json::quoted(message));
        self.answer(status, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    }

    fn answer(&self, status: u16, body: &str) -> Came {
        came(status, "application/json", body)
    }
}

fn came(status: u16, content_type: &str, body: &str) -> Came {
    Came::Web(answer(status, content_type, body))
}

fn answer(status: u16, content_type: &str, body: &str) -> WebAnswer {
    WebAnswer {
        status,
        location: None,
        content_type: Some(content_type.to_owned()),
        session_id: None,
        body: body.as_bytes().to_vec(),
        is_whole: true,
    }
}

/// Client with its sessions, and the requests that its jobs sent.
#[derive(Default)]
struct Tester {
    settings: Settings,
    shared: Sessions,
    report: Report,
    /// Methods of the requests.
    sent: Vec<String>,
}

impl Tester {
    fn ask(&self, job: &dyn McpJob) -> Option<Got> {
        let config = Config::default();
        let can = Can { ask_models: true, fetch: true, read_documents: true, ask_services: true };
        let see = See {
            protocol: crate::protocols::MESSAGES,
            config: &config,
            can,
            ids: Ids::new(1),
            headers: &[],
            body: b"",
            said: &[],
            began: None,
            now: 0,
            memory: None,
            sessions: None,
        };
        match job.ask(&see, &self.shared)? {
            Question::Service(question) => Some(Got { question }),
            _ => panic!("no question for a service"),
        }
    }

    /// Runs a job to its end. `serve` answers the requests.
    fn run(&mut self, job: &mut dyn McpJob, mut serve: impl FnMut(&Got) -> Came) -> McpOutcome {
        for _ in 0..100 {
            let got = self.ask(job).unwrap();
            let method = json::member(got.body(), "method").unwrap();
            self.sent.push(method.trim_matches('"').to_owned());
            let came = serve(&got);
            if let Some(output) = job.take(came, &mut self.shared, &mut self.report) {
                return output;
            }
        }
        panic!("the job does not end");
    }

    fn list_job(&mut self, remembered: Option<McpEra>) -> McpListJob {
        McpListJob::new(target(), remembered, &self.settings, &mut self.shared)
    }

    fn call_job(&mut self, input: &str) -> McpCallJob {
        McpCallJob::new(target(), ("add", SCHEMA), input, None, &mut self.shared).unwrap()
    }

    fn list(&mut self, serve: impl FnMut(&Got) -> Came) -> Result<McpList, McpFailure> {
        let mut job = self.list_job(None);
        match self.run(&mut job, serve) {
            McpOutcome::McpList(list) => list,
            McpOutcome::Mcp(_) | McpOutcome::McpResult(_) => panic!("no list"),
        }
    }

    fn call(&mut self, input: &str, serve: impl FnMut(&Got) -> Came) -> McpOutput {
        let mut job = self.call_job(input);
        self.end(&mut job, serve)
    }

    fn end(&mut self, job: &mut dyn McpJob, serve: impl FnMut(&Got) -> Came) -> McpOutput {
        match self.run(job, serve) {
            McpOutcome::Mcp(output) => output,
            McpOutcome::McpList(_) | McpOutcome::McpResult(_) => panic!("no output"),
        }
    }

    fn warnings(&self) -> String {
        self.report.warnings.header().unwrap_or_default()
    }
}

fn tools(names: &[&str]) -> String {
    let tools = names.iter().map(|name| {
        format!(r#"{{"name":{},"description":"d","inputSchema":{SCHEMA}}}"#, json::quoted(name))
    });
    format!(r#"{{"resultType":"complete","tools":[{}]}}"#, tools.collect::<Vec<_>>().join(","))
}

fn names(list: &McpList) -> Vec<&str> {
    list.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// Serves as a modern server with the tool `add`.
fn modern(got: &Got) -> Came {
    match got.is("tools/list") {
        true => got.result(&tools(&["add"])),
        false => got.result(r#"{"content":[{"type":"text","text":"3"}]}"#),
    }
}

#[test]
fn a_modern_server_needs_one_request_for_a_list_and_one_for_a_call() {
    let mut tester = Tester::default();
    let list = tester
        .list(|got| {
            assert_eq!(got.header("mcp-protocol-version"), "2026-07-28");
            assert_eq!(got.header("mcp-method"), "tools/list");
            assert_eq!(got.header("accept"), "application/json, text/event-stream");
            assert_eq!(got.header("content-type"), "application/json");
            assert_eq!(got.header("authorization"), "Bearer a-secret");
            assert_eq!((got.header("mcp-name"), got.id()), ("", "1"));
            let params = json::member(got.body(), "params").unwrap();
            let meta = json::member(params, "_meta").unwrap();
            let version = json::member(meta, "io.modelcontextprotocol/protocolVersion");
            assert_eq!(version, Some("\"2026-07-28\""));
            modern(got)
        })
        .unwrap();
    assert_eq!(names(&list), ["add"]);
    let output = tester.call(r#"{"a":1,"b":2}"#, |got| {
        assert_eq!(got.header("mcp-method"), "tools/call");
        assert_eq!((got.header("mcp-name"), got.id()), ("add", "2"));
        assert_eq!(got.question.message_id, Some(2));
        let params = json::member(got.body(), "params").unwrap();
        assert_eq!(json::member(params, "name"), Some("\"add\""));
        assert_eq!(json::member(params, "arguments"), Some(r#"{"a":1,"b":2}"#));
        modern(got)
    });
    assert_eq!((output.text().as_str(), output.is_error), ("3", false));
    assert_eq!(tester.sent, ["tools/list", "tools/call"]);
}

#[test]
fn a_call_without_a_list_asks_for_the_era_first() {
    let mut tester = Tester::default();
    assert_eq!(tester.call("", modern).text(), "3");
    assert_eq!(tester.sent, ["tools/list", "tools/call"]);
    let mut tester = Tester::default();
    let error = McpCallJob::new(target(), ("add", SCHEMA), "[1]", None, &mut tester.shared);
    assert!(error.unwrap_err().is_error);
}

#[test]
fn each_kind_of_content_has_its_text() {
    for (result, text, is_error) in [
        (
            r#"{"content":[{"type":"text","text":"a\nb"},{"type":"text","text":"c"}]}"#,
            "a\nb\nc",
            false,
        ),
        (r#"{"content":[{"type":"text","text":"bad"}],"isError":true}"#, "bad", true),
        (
            r#"{"content":[{"type":"resource","resource":{"uri":"f:///x","text":"T"}}]}"#,
            "[f:///x]\nT",
            false,
        ),
        (r#"{"content":[{"type":"resource_link","name":"N","uri":"f:///x"}]}"#, "N f:///x", false),
        (
            r#"{"content":[{"type":"image","mimeType":"image/png","data":"AAAAAA=="}]}"#,
            "[image, image/png, 4 bytes: left out]",
            false,
        ),
        (
            r#"{"content":[{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":"AAAA"}}]}"#,
            "[resource, a/b, 3 bytes: left out]",
            false,
        ),
        (r#"{"content":[],"structuredContent":{"a":1}}"#, r#"{"a":1}"#, false),
        (r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}"#, "x", false),
        (r#"{"content":[]}"#, "(no output)", false),
        ("7", "(no output)", false),
        (r#"{"content":[{"type":"hologram"}],"isError":true}"#, "(no output)", true),
        (
            r#"{"resultType":"input_required"}"#,
            "The tool asks for input, which cannot be given here.",
            true,
        ),
    ] {
        let mut tester = Tester::default();
        tester.list(modern).unwrap();
        let output = tester.call("{}", |got| got.result(result));
        assert_eq!((output.text().as_str(), output.is_error), (text, is_error), "{result}");
    }
}

#[test]
fn a_failed_call_is_an_output_with_words() {
    type Serve = fn(&Got) -> Came;
    let failures: [(Serve, &str); 7] = [
        (|got| got.error(200, -32603, "boom"), "MCP error -32603: boom"),
        (|got| got.answer(401, ""), "The MCP server s refused the credentials."),
        (|got| got.answer(403, "{}"), "The MCP server s refused the credentials."),
        (|got| got.answer(503, "x"), "The MCP server s could not be reached."),
        (|_| Came::Nothing(Nothing::TimedOut), "The MCP server s did not answer in time."),
        (|_| Came::Nothing(Nothing::Unreachable), "The MCP server s could not be reached."),
        (|_| came(200, "text/html", "<html>"), "The MCP server s could not be reached."),
    ];
    for (serve, text) in failures {
        let mut tester = Tester::default();
        tester.list(modern).unwrap();
        tester.sent.clear();
        let output = tester.call("{}", serve);
        assert_eq!((output.text().as_str(), output.is_error), (text, true));
        // A call may have acted, so it is not repeated.
        assert_eq!(tester.sent, ["tools/call"]);
    }
}

#[test]
fn a_server_without_a_list_tells_why() {
    type Serve = fn(&Got) -> Came;
    let failures: [(Serve, u16, &str); 7] = [
        (|got| got.answer(401, ""), 400, "it refused the credentials"),
        (|got| got.answer(503, ""), 502, "it answered with HTTP status 503"),
        (|_| Came::Nothing(Nothing::Unreachable), 502, "it could not be reached"),
        (|_| Came::Nothing(Nothing::TimedOut), 504, "it did not answer in time"),
        (|_| came(200, "text/html", "<html>"), 400, "its answer is not MCP"),
        (
            |got| got.answer(307, ""),
            400,
            "it answered with HTTP status 307, and redirections are not followed: name the address \
             to which it leads",
        ),
        (|got| got.answer(410, ""), 400, "it answered with HTTP status 410"),
    ];
    for (serve, status, reason) in failures {
        let mut tester = Tester::default();
        let failure = tester.list(serve).unwrap_err();
        assert_eq!((failure.status(), failure.reason().as_str()), (status, reason));
        assert_eq!(tester.sent, ["tools/list"]);
    }
}

#[test]
fn pages_are_joined_in_their_order() {
    let mut tester = Tester::default();
    let list = tester.list(|got| {
        let params = json::member(got.body(), "params").unwrap();
        match json::member(params, "cursor") {
            None => got.result(&tools(&["a"]).replace("]}", r#"],"nextCursor":"p\"2"}"#)),
            Some(cursor) => {
                assert_eq!(cursor, r#""p\"2""#);
                got.result(&tools(&["b", "a"]))
            }
        }
    });
    assert_eq!(names(&list.unwrap()), ["a", "b"]);
    assert_eq!(tester.warnings(), "mcp_tool_dropped:a");
}

#[test]
fn a_tool_that_runs_only_as_a_task_is_dropped() {
    let mut tester = Tester::default();
    let tool = |name: &str, support: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"execution":{{{support}}}}}"#
        )
    };
    let support = |word: &str| format!(r#""taskSupport":"{word}""#);
    let listed = [
        tool("a", &support("required")),
        tool("b", &support("optional")),
        tool("c", &support("forbidden")),
        tool("d", ""),
    ];
    let list = tester.list(|got| got.result(&format!(r#"{{"tools":[{}]}}"#, listed.join(","))));
    assert_eq!(names(&list.unwrap()), ["b", "c", "d"]);
    assert_eq!(tester.warnings(), "mcp_tool_dropped:a");
}

#[test]
fn arguments_that_a_schema_wants_as_headers_are_mirrored() {
    let schema = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "n":{"type":"integer","x-mcp-header":"N"},
        "in":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}},
        "x-mcp-header":{"type":"string"}}}"#;
    assert!(mirror::is_valid(schema));
    let headers = |arguments: &str| mirror::headers(schema, arguments);
    let plain = headers(r#"{"region":"eu 1","n":7,"in":{"b":true},"x-mcp-header":"no"}"#);
    let expected = [("mcp-param-region", "eu 1"), ("mcp-param-n", "7"), ("mcp-param-b", "true")];
    assert_eq!(plain, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(headers(r#"{"region":null,"n":[1]}"#), []);
    for (text, value) in [
        ("ü", "=?base64?w7w=?="),
        (" a", "=?base64?IGE=?="),
        ("a\\r\\nb: c", "=?base64?YQ0KYjogYw==?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ] {
        let arguments = format!(r#"{{"region":"{text}"}}"#);
        let headers = headers(&arguments);
        assert_eq!(headers.value("mcp-param-region"), Some(value));
    }
}

#[test]
fn a_tool_whose_annotation_breaks_a_rule_is_dropped() {
    for properties in [
        r#""a":{"type":"string","x-mcp-header":""}"#,
        r#""a":{"type":"string","x-mcp-header":"a b"}"#,
        r#""a":{"type":"string","x-mcp-header":7}"#,
        r#""a":{"type":"number","x-mcp-header":"A"}"#,
        r#""a":{"type":["string","null"],"x-mcp-header":"A"}"#,
        r#""a":{"x-mcp-header":"A"}"#,
        r#""a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}"#,
        r#""a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#,
        r#""a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#,
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
        assert!(!mirror::is_valid(&schema), "{properties}");
    }
    assert!(!mirror::is_valid(r#"{"type":"string","x-mcp-header":"A"}"#));
    assert!(!mirror::is_valid(r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#));
    assert!(mirror::is_valid(r#"{"properties":{"a":{"default":{"x-mcp-header":""}}}}"#));
}

#[test]
fn no_secret_is_shown() {
    let mut tester = Tester::default();
    let job = tester.call_job(r#"{"a":"a-secret"}"#);
    let got = tester.ask(&job).unwrap();
    let output = McpOutput::error("a-secret");
    for shown in [format!("{job:?}"), format!("{:?}", got.question), format!("{output:?}")] {
        assert!(!shown.contains("a-secret") && !shown.contains("127.0.0.1"), "{shown}");
    }
}
