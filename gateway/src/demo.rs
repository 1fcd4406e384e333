//! `creole demo`: the gateway in front of the demo model, in one process.

use std::net::TcpListener;

use creole::Config;
use creole_demo::{Demo, Options};

use crate::Failed;
use crate::cli::demo::{Demo as Flags, Protocol};
use crate::cli::serve::Door;
use crate::ready::{self, Hints, Ready};
use crate::server::listen;
use crate::server::signals::Stop;

/// Seconds that streams get at the end: nobody waits for an answer that no model gives.
const SHUTDOWN_SECONDS: u64 = 2;

/// The name that the demo model lists. It answers to every name.
const MODEL: &str = "demo";

/// Prompt of the first request: the demo model answers it with words that arrive one by one.
const PROMPT: &str = "demo:slow 150 demo:say Hello, one word after another.";

pub(crate) fn run(flags: &Flags) -> Result<(), Failed> {
    let on = &flags.model_listen;
    let failed = |error| listen::cannot_listen("--model-listen", on, &error);
    let listener = TcpListener::bind(on).map_err(failed)?;
    // What a client sends is on no page of `/demo/requests`.
    let options = Options { requests_max: 0, ..Options::default() };
    let model = Demo::start_on(listener, options).map_err(failed)?;
    let mut config = configured(flags.protocol).map_err(Failed::Run)?;
    config.set_url(&format!("{}/v1", model.url()), "the demo model").map_err(Failed::Run)?;
    let door = Door::local(flags.listen.clone(), SHUTDOWN_SECONDS);
    let door = Door { view: flags.view.clone(), ..door };
    listen::run_with(&door, config, Stop::listen, |ready| announce(ready, &model.url()))
}

/// The gateway's configuration. In Responses the demo model checks what OpenAI checks, so the preset is OpenAI's.
fn configured(protocol: Protocol) -> Result<Config, String> {
    match protocol {
        Protocol::Openai => Ok(Config::default()),
        Protocol::Responses => {
            let document =
                r#"{"upstreams": {"demo": {"protocol": "responses", "profile": "openai"}}}"#;
            Config::from_json(document, |_| None).map_err(|error| error.to_string())
        }
    }
}

fn announce(ready: Ready, model: &str) {
    let address = ready.address;
    let hints = Hints {
        key: "demo".to_owned(),
        model: MODEL.to_owned(),
        small: MODEL.to_owned(),
        prompt: PROMPT,
    };
    let listening = ready::listening(address);
    let curl = hints.curl(address);
    let claude = hints.claude_code(address);
    let task =
        r#"-p 'demo:tool Bash demo:input {"command": "echo hello", "description": "Say hello"}'"#;
    let page = ready.page();
    ready::print(&format!(
        "{listening}\nCreole answers at http://{address}, in front of the demo model at {model}/v1.\nIt contains no \
         model: words in a prompt say what it answers.\n\nTry it in a second terminal:\n\n{curl}\n\nClaude Code, in \
         an empty folder:\n\n{claude} \\\n    --allowedTools Bash {task}\n\n{page}Ctrl-C stops it.\n\n"
    ));
}
