//! Test of a new server tool, which needs a folder and a row: the tool throws dice at a service.

use std::sync::Arc;

use super::OwnCalls;
use crate::config::{Config, Settings};
use crate::ids::Ids;
use crate::model::event::{ServerCall, ServerOutput};
use crate::model::mcp::McpOutput;
use crate::model::member_places::MemberPlaces;
use crate::model::own_tool::{McpToolName, OwnTool};
use crate::observe::report::Report;
use crate::steps::tools::job::{Begun, Job, OwnOutput, Work};
use crate::steps::{
    Between as _, Came, Can, EndedRound, Question, ReadLimits, See, ServiceQuestion, Step as _,
    WebAnswer,
};

/// Folder of the tool: its work, with one question.
mod dice {
    use super::*;

    #[derive(Debug)]
    struct Throw;

    pub(super) fn begin(_: &ServerCall) -> Begun {
        Begun { key: None, work: Work::Asks(Box::new(Throw)) }
    }

    impl Job for Throw {
        fn ask(&self, _: &See<'_>) -> Option<Question<'static>> {
            Some(Question::Service(ServiceQuestion {
                name: "dice",
                url: "http://dice/throw".to_owned(),
                headers: Vec::new(),
                body: Vec::new(),
                message_id: None,
                is_public: false,
                cluster: String::new(),
            }))
        }

        fn limits(&self, _: u16, _: &Settings) -> ReadLimits {
            ReadLimits { bytes_max: 1, is_half_enough: false }
        }

        fn take(&mut self, came: Came, _: &mut Report) -> Option<OwnOutput> {
            let Came::Web(answer) = came else {
                return Some(OwnOutput::Mcp(McpOutput::error("The dice are lost.")));
            };
            let eyes = String::from_utf8_lossy(&answer.body).into_owned();
            Some(OwnOutput::Mcp(McpOutput { texts: vec![eyes], is_error: false }))
        }

        fn timeout_ms(&self, _: &Settings) -> u64 {
            100
        }

        fn held_bytes(&self) -> usize {
            0
        }
    }
}

/// Row of the tool in the table of kinds.
fn row(_: &OwnTool, call: &ServerCall, _: &See<'_>) -> Result<Begun, OwnOutput> {
    Ok(dice::begin(call))
}

#[test]
fn a_new_tool_with_a_question_is_a_folder_and_a_row() {
    let config = Config::default();
    let can = Can { ask_models: true, fetch: false, read_documents: false, ask_services: true };
    let see = See {
        protocol: crate::protocols::MESSAGES,
        config: &config,
        can,
        ids: Ids::new(1),
        headers: &[],
        body: b"{}",
        said: &[],
        began: None,
        now: 0,
        memory: None,
        sessions: None,
    };
    let name = McpToolName {
        function: "dice".to_owned(),
        server: "toys".to_owned(),
        tool: "dice".to_owned(),
    };
    let tools = vec![Arc::new(OwnTool::Mcp(name))];
    let mut calls = OwnCalls::with(row, tools, &config.settings.server_tools);
    let call = |id: &str| ServerCall {
        id: id.to_owned(),
        name: "dice".to_owned(),
        input: "{}".to_owned(),
    };
    let round = vec![call("a"), call("b")];
    let ended = EndedRound {
        calls: round,
        output_tokens: 0,
        since_ms: 0,
        is_mixed: false,
        places: MemberPlaces::default(),
    };
    calls.take_round(ended, &see);
    let settings = &config.settings;
    assert_eq!((calls.questions_left(), calls.question_timeout_ms(1, settings)), (2, 100));
    assert_eq!(calls.limits(0, 200, settings).bytes_max, 1);
    for place in [0, 1] {
        let Some(Question::Service(question)) = calls.ask(&see, place) else { panic!("no call") };
        assert_eq!(question.url, "http://dice/throw");
    }
    let mut report = Report::default();
    for eyes in ["6", "1"] {
        calls.take(
            Came::Web(WebAnswer {
                status: 200,
                location: None,
                content_type: None,
                session_id: None,
                body: eyes.into(),
                is_whole: true,
            }),
            &mut report,
        );
        let result = calls.next_result().unwrap();
        let ServerOutput::Mcp { texts, is_error: false } = result.output else { panic!("no text") };
        assert_eq!(texts, [eyes]);
    }
    assert_eq!(calls.questions_left(), 0);
}
