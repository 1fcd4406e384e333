//! Clients that can be launched, each with the environment variables that direct it to the gateway.

use serde_json::{Map, Value, json};

use crate::probe::models::Model;
use crate::probe::window;

/// Name of a model for a gateway that chooses the model itself.
const ANY_NAME: &str = "claude-sonnet-5";

/// Context window, in tokens, that pi assumes if none is known.
const PI_WINDOW: u64 = 128_000;

/// Client that can be launched, such as Claude Code.
#[derive(Debug)]
pub(crate) struct Client {
    /// Name of the client on the command line.
    pub(crate) name: &'static str,
    /// Name of the client's program file.
    pub(crate) program: &'static str,
    /// Command that installs the version of the client that was tried.
    pub(crate) install: &'static str,
    pub(crate) variables: fn(&Session<'_>) -> Variables,
    /// Name by which the client gets the path of a file, if it needs one.
    pub(crate) file: Option<FileName>,
    /// True for Claude Code, which needs a large context window, has an auto mode, and searches the
    /// web by the server tool `web_search` of the API.
    pub(crate) is_claude_code: bool,
    /// Flag of the client that goes on with its last session in this folder.
    pub(crate) resume: &'static str,
    /// Arguments with which the client prints one answer, and does not take over the terminal.
    pub(crate) print: &'static [&'static str],
}

/// Name by which a client gets the path of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileName {
    Flag(&'static str),
    Variable(&'static str),
}

/// Facts about the gateway and its models, from which the environment variables of a client are
/// made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session<'a> {
    /// URL of the gateway.
    pub(crate) gateway: &'a str,
    /// Client key that the gateway accepts.
    pub(crate) key: &'a str,
    /// Model that the client requests; `None` if a running gateway chooses the model.
    pub(crate) model: Option<&'a Model>,
    pub(crate) small: Option<&'a Model>,
    /// Size of the model's context window in tokens, if known.
    pub(crate) window: Option<u64>,
    /// Model that judges tool calls for the client.
    pub(crate) judge: Option<&'a str>,
}

/// Environment variables to set and unset for a client.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// Variables that are always set, such as the gateway's URL and key.
    pub(crate) set: Vec<(&'static str, String)>,
    /// Variables that are set unless the user has set them.
    pub(crate) usual: Vec<(&'static str, String)>,
    /// Variables that are removed, because they would lead to another server or reveal a key.
    pub(crate) unset: &'static [&'static str],
    /// Ending and contents of the file for the client.
    pub(crate) file: Option<(&'static str, String)>,
    /// Arguments before those of the user.
    pub(crate) arguments: Vec<String>,
    /// Notes for the user about this launch.
    pub(crate) notes: Vec<String>,
}

pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "claude",
        program: "claude",
        install: "npm install -g @anthropic-ai/claude-code@2.1.332",
        variables: claude,
        // Variables in the user's own settings win over the environment.
        file: Some(FileName::Flag("--settings")),
        is_claude_code: true,
        resume: "--continue",
        print: &["-p", "--print"],
    },
    Client {
        name: "opencode",
        program: "opencode",
        install: "npm install -g opencode-ai@1.18.33",
        variables: opencode,
        file: None,
        is_claude_code: false,
        resume: "--continue",
        print: &["run"],
    },
    Client {
        name: "pi",
        program: "pi",
        install: "npm install -g @mariozechner/pi-coding-agent@0.73.1",
        variables: pi,
        file: Some(FileName::Flag("--extension")),
        is_claude_code: false,
        resume: "--continue",
        print: &["-p", "--print"],
    },
    Client {
        name: "qwen-code",
        program: "qwen",
        install: "npm install -g @qwen-code/qwen-code@0.24.4",
        variables: qwen_code,
        file: Some(FileName::Variable("QWEN_CODE_SYSTEM_SETTINGS_PATH")),
        is_claude_code: false,
        resume: "--continue",
        print: &["-p", "--prompt"],
    },
];

/// Returns the client with this name on the command line.
///
/// # Errors
/// The client is unknown; the error text names the known clients.
pub(crate) fn named(name: &str) -> Result<&'static Client, String> {
    if let Some(client) = CLIENTS.iter().find(|client| client.name == name) {
        return Ok(client);
    }
    let known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    let known = known.join(", ");
    match name {
        "codex" => Err(format!(
            "Codex speaks the Responses API, which Creole does not serve yet; it launches {known}"
        )),
        _ => Err(format!("expected one of {known}, but found {name:?}")),
    }
}

/// Returns the variables of Claude Code. It knows only Claude models, so the abilities of other
/// models must be set.
pub(crate) fn claude(session: &Session<'_>) -> Variables {
    let mut set = vec![
        ("ANTHROPIC_BASE_URL", session.gateway.to_owned()),
        ("ANTHROPIC_AUTH_TOKEN", session.key.to_owned()),
    ];
    if let Some(model) = session.model {
        let small = session.small.unwrap_or(model);
        set.push(("ANTHROPIC_MODEL", model.name.clone()));
        // Models for Claude Code's words `opus`, `sonnet` and `haiku`; `sonnet` also judges
        // commands in auto mode.
        for name in ["ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL"] {
            set.push((name, model.name.clone()));
        }
        set.push(("ANTHROPIC_DEFAULT_HAIKU_MODEL", small.name.clone()));
    }
    let mut usual = vec![
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1".to_owned()),
    ];
    if session.judge.is_none() {
        // With 0, Claude Code's own judge asks the model. The API's judge does not exist here, and
        // its absence would be shown as an error.
        usual.push(("CLAUDE_CODE_AUTO_MODE_SERVER", "0".to_owned()));
    }
    let mut notes = Vec::new();
    match session.window {
        Some(window) => {
            usual.push(("CLAUDE_CODE_MAX_CONTEXT_TOKENS", window.to_string()));
        }
        None => notes.push(
            "the context window is not known, and Claude Code takes it for 1,000,000 tokens: name it with \
             --context-window"
                .to_owned(),
        ),
    }
    let output = session.model.and_then(|model| model.output);
    // Claude Code requests 32,000 tokens by default.
    let limit = output.filter(|most| *most < 32_000);
    let room = session.window.and_then(window::answer_tokens);
    if let Some(most) = room.or(limit) {
        let most = output.map_or(most, |output| most.min(output));
        usual.push(("CLAUDE_CODE_MAX_OUTPUT_TOKENS", most.to_string()));
    }
    let unset = &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CODE_USE_VERTEX",
        "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL",
    ];
    Variables { set, usual, unset, notes, ..Variables::default() }
}

/// Returns the variables of opencode: a configuration that is merged with the user's own.
fn opencode(session: &Session<'_>) -> Variables {
    let options = json!({"baseURL": format!("{}/v1", session.gateway), "apiKey": session.key});
    let mut anthropic = Map::from_iter([("options".to_owned(), options)]);
    let mut config = Map::new();
    let mut notes = Vec::new();
    match session.model {
        Some(model) => {
            let small = session.small.unwrap_or(model);
            let described = |of: &Model, window| (of.name.clone(), opencode_model(of, window));
            // The main model comes last, because its entry counts if both models are the same.
            let models = [described(small, small.window), described(model, session.window)];
            anthropic.insert("models".to_owned(), Value::Object(Map::from_iter(models)));
            config.insert("model".to_owned(), json!(format!("anthropic/{}", model.name)));
            config.insert("small_model".to_owned(), json!(format!("anthropic/{}", small.name)));
        }
        None => notes.push("name the model with --model: opencode lists Claude models".to_owned()),
    }
    config.insert("provider".to_owned(), json!({ "anthropic": anthropic }));
    let set = vec![("OPENCODE_CONFIG_CONTENT", Value::Object(config).to_string())];
    Variables { set, unset: &["ANTHROPIC_API_KEY"], notes, ..Variables::default() }
}

fn opencode_model(model: &Model, window: Option<u64>) -> Value {
    match window {
        Some(window) => {
            let output = model.output.unwrap_or(8192).min(window / 2);
            json!({"name": model.name, "limit": {"context": window, "output": output}})
        }
        None => json!({"name": model.name}),
    }
}

/// Returns what pi gets: an extension with a provider, beside the user's own settings. It has no
/// small model.
fn pi(session: &Session<'_>) -> Variables {
    let name = session.model.map_or(ANY_NAME, |model| &model.name);
    let window = session.window.unwrap_or(PI_WINDOW);
    let output = session.model.and_then(|model| model.output).unwrap_or(8192).min(window / 2);
    let model = json!({
        "id": name, "name": name, "reasoning": false, "input": ["text", "image"],
        "contextWindow": window, "maxTokens": output,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    });
    let provider = json!({
        "baseUrl": session.gateway, "apiKey": session.key, "api": "anthropic-messages",
        "models": [model],
    });
    let file = format!("export default (pi) => pi.registerProvider(\"creole\", {provider});\n");
    let arguments = ["--provider", "creole", "--model", name].map(str::to_owned).into();
    Variables { file: Some(("js", file)), arguments, ..Variables::default() }
}

/// Returns what Qwen Code gets: settings that win over the user's own.
fn qwen_code(session: &Session<'_>) -> Variables {
    let name = session.model.map_or(ANY_NAME, |model| &model.name);
    let mut model = json!({"name": name});
    if let (Some(window), Some(model)) = (session.window, model.as_object_mut()) {
        model.insert("generationConfig".to_owned(), json!({"contextWindowSize": window}));
    }
    let small = session.small.map_or(name, |small| &small.name);
    let file = json!({
        "security": {"auth": {"selectedType": "anthropic"}}, "model": model, "fastModel": small,
    });
    let set = vec![
        ("ANTHROPIC_BASE_URL", session.gateway.to_owned()),
        ("ANTHROPIC_API_KEY", session.key.to_owned()),
        ("ANTHROPIC_MODEL", name.to_owned()),
    ];
    Variables { set, file: Some(("json", file.to_string())), ..Variables::default() }
}

#[cfg(test)]
mod tests;
