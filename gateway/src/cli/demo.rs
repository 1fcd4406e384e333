//! `creole demo`: runs the gateway together with a scripted demo model, in one process.

use std::net::TcpListener;

use clap::{Args, ValueEnum};
use creole::Config;
use creole_demo::{Demo as Model, Options};

use crate::CommandFailed;
use crate::hints::Hints;
use crate::server::door::{Door, View, address};
use crate::server::listen;
use crate::server::ready::Ready;
use crate::server::signals::Stop;
use crate::terminal;

/// Time, in seconds, for which streams may continue after the stop signal. It is short, because no
/// real model answers.
const SHUTDOWN_SECONDS: u64 = 2;

/// Name that the demo model lists. The demo model accepts any name.
const MODEL: &str = "demo";

/// Prompt of the example request: the demo model answers with words that arrive one by one.
const PROMPT: &str = "demo:slow 150 demo:say Hello, one word after another.";

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Address and port of the gateway; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// Address and port of the demo model itself, which speaks both protocols: for another host of
    /// Creole
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) model_listen: String,
    /// What the gateway and the demo model speak with each other: Chat Completions (openai) or
    /// Responses
    #[arg(long, value_enum, value_name = "NAME", default_value = "openai")]
    pub(crate) protocol: Protocol,
    #[command(flatten)]
    pub(crate) view: View,
}

/// Protocols of the demo model, by their names in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    Openai,
    Responses,
}

pub(crate) fn run(flags: &Demo) -> Result<(), CommandFailed> {
    let on = &flags.model_listen;
    let failed = |error| listen::cannot_listen("--model-listen", on, &error);
    let listener = TcpListener::bind(on).map_err(failed)?;
    // No request is remembered, so that `/demo/requests` does not show what clients send.
    let options = Options { requests_max: 0, ..Options::default() };
    let model = Model::start_on(listener, options).map_err(failed)?;
    let mut config = configured(flags.protocol).map_err(CommandFailed::Run)?;
    config.set_url(&format!("{}/v1", model.url()), "the demo model").map_err(CommandFailed::Run)?;
    let door = Door::local(flags.listen.clone(), SHUTDOWN_SECONDS);
    let door = Door { view: flags.view.clone(), ..door };
    listen::run_with(&door, config, None, Stop::listen, |ready| announce(ready, &model.url()))
}

/// Returns the gateway's configuration. For Responses the preset is OpenAI's, because the demo
/// model then checks requests as OpenAI does.
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
    let url = &ready.url();
    let hints = Hints {
        key: "demo".to_owned(),
        model: MODEL.to_owned(),
        small: MODEL.to_owned(),
        window: None,
        prompt: PROMPT,
    };
    let first = ready.listening();
    let curl = hints.curl(url);
    let claude = hints.claude_code(url);
    let task =
        r#"-p 'demo:tool Bash demo:input {"command": "echo hello", "description": "Say hello"}'"#;
    let page = ready.page();
    terminal::print(&format!(
        "{first}\nCreole answers at {url}, in front of the demo model at {model}/v1.\nIt contains no \
         model: words in a prompt say what it answers.\n\nTry it in a second terminal:\n\n{curl}\n\nClaude Code, in \
         an empty folder:\n\n{claude} \\\n    --allowedTools Bash {task}\n\n{page}Ctrl-C stops it.\n\n"
    ));
}
