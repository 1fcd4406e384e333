//! Tests of the step that lists tools before the call.

use super::*;
use crate::error::Error;
use crate::steps::Change;

/// Runs the step of a request. `serve` answers the requests of its jobs.
struct Lister {
    config: Config,
    memory: ToolMemory,
    report: Report,
    sent: usize,
}

impl Lister {
    fn new(mcp: &str) -> Self {
        let text = format!(
            r#"{{"upstreams":{{"u":{{"url":"http://127.0.0.1:1"}}}},"server_tools":{{"mcp":{mcp}}}}}"#
        );
        let config = Config::from_json(&text, |_| None).unwrap();
        Self { config, memory: ToolMemory::default(), report: Report::default(), sent: 0 }
    }

    /// Returns the body that the step writes; `None` if there is no step.
    fn run(&mut self, body: &str, serve: impl Fn(&Got) -> Came) -> Option<Result<String, Error>> {
        let see = See {
            protocol: crate::protocols::MESSAGES,
            config: &self.config,
            can: Can { ask_models: true, fetch: true, read_documents: true, ask_services: true },
            ids: Ids::new(1),
            headers: &[],
            body: body.as_bytes(),
            said: &[],
            began: None,
            now: 5,
            memory: Some(&self.memory),
            sessions: None,
        };
        let mut step = lists::begin(&see, &mut self.report)?;
        while step.questions_left() > 0 {
            let Some(Question::Service(question)) = step.ask(&see, 0) else { panic!() };
            self.sent = self.sent.saturating_add(1);
            step.take(serve(&Got { question }), &mut self.report);
        }
        let done = step.done(&see, &mut self.report);
        Some(done.map(|change| match change {
            Change::Opening(opening) => String::from_utf8(opening.body).unwrap(),
            _ => panic!("no body"),
        }))
    }
}

const SERVERS: &str = r#"{"servers":{"s":{"url":"http://s/mcp"},"t":{"url":"http://t/mcp"}}}"#;

fn body() -> String {
    let server =
        |name: &str| format!(r#"{{"type":"url","name":"{name}","url":"http://{name}/mcp"}}"#);
    let toolset = |name: &str| format!(r#"{{"type":"mcp_toolset","mcp_server_name":"{name}"}}"#);
    format!(
        r#"{{"model":"m","max_tokens":9,"messages":[],"mcp_servers":[{},{}],"tools":[{},{}]}}"#,
        server("s"),
        server("t"),
        toolset("t"),
        toolset("s")
    )
}

/// Serves at two addresses, each with a tool of another name.
fn serve(got: &Got) -> Came {
    let tool = if got.question.url == "http://s/mcp" { "of_s" } else { "of_t" };
    got.result(&tools(&[tool]).replace("]}", r#"],"ttlMs":1000,"cacheScope":"private"}"#))
}

#[test]
fn each_toolset_gets_the_tools_of_its_server() {
    let mut lister = Lister::new(SERVERS);
    let written = lister.run(&body(), serve).unwrap().unwrap();
    let toolsets: Vec<&str> = json::elements(json::member(&written, "tools").unwrap()).collect();
    let [of_t, of_s] = toolsets.as_slice() else { panic!() };
    assert!(of_t.contains("of_t") && of_s.contains("of_s"));
    assert_eq!(lister.sent, 2);
    // The second request finds the lists in the memory, and has the same body.
    assert_eq!(lister.run(&body(), serve).unwrap().unwrap(), written);
    assert_eq!(lister.sent, 2);
    // With its own tools, the request asks for nothing.
    assert_eq!(lister.run(&written, serve).unwrap().unwrap(), written);
    assert_eq!(lister.sent, 2);
}

#[test]
fn the_number_of_tools_is_for_all_servers_together() {
    let mut lister = Lister::new(&SERVERS.replacen('{', r#"{"tools_max":1,"#, 1));
    let written = lister.run(&body(), serve).unwrap().unwrap();
    assert!(written.contains("of_s") && !written.contains("of_t"));
    assert_eq!(lister.report.warnings.header().as_deref(), Some("mcp_tool_dropped"));
}

#[test]
fn a_server_without_a_list_ends_the_request_or_is_skipped() {
    let fails = |got: &Got| match got.question.url.as_str() {
        "http://s/mcp" => serve(got),
        _ => got.answer(503, ""),
    };
    let error = Lister::new(SERVERS).run(&body(), fails).unwrap().unwrap_err();
    let reason =
        "mcp_servers[1]: server \"t\" did not give its tools: it answered with HTTP status 503";
    assert_eq!((error.status, error.message.as_str()), (502, reason));
    let mut lister = Lister::new(&SERVERS.replacen('{', r#"{"unavailable":"skip","#, 1));
    let written = lister.run(&body(), fails).unwrap().unwrap();
    assert!(written.contains("of_s") && written.contains(r#""tools":[]"#));
    assert_eq!(lister.report.warnings.header().as_deref(), Some("mcp_unavailable:t"));
}

#[test]
fn a_request_without_servers_has_no_step_and_a_wrong_one_an_error() {
    let mut lister = Lister::new(SERVERS);
    assert!(lister.run(r#"{"model":"m","messages":[]}"#, serve).is_none());
    let wrong = body().replace("http://t/mcp", "http://evil/mcp");
    let error = lister.run(&wrong, serve).unwrap().unwrap_err();
    assert!(error.message.starts_with("mcp_servers[1].url: this server"), "{}", error.message);
    assert_eq!(lister.sent, 0);
    assert!(Lister::new("{}").run(&body(), serve).is_none());
}
