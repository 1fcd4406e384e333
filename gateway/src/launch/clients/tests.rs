//! Tests of `clients.rs`.

use super::*;

fn model(name: &str, window: Option<u64>, output: Option<u64>) -> Model {
    Model { name: name.to_owned(), window, output, is_loaded: true }
}

fn of(client: &str, model: Option<&Model>, small: Option<&Model>) -> Variables {
    let session = Session {
        gateway: "http://127.0.0.1:1",
        key: "K",
        model,
        small,
        window: model.and_then(|model| model.window),
        judge: None,
    };
    (named(client).unwrap().variables)(&session)
}

fn value<'a>(of: &'a [(&str, String)], name: &str) -> Option<&'a str> {
    of.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}

#[test]
fn claude_code_asks_for_the_model_under_each_of_its_names_and_for_the_small_one() {
    let (big, tiny) = (model("big", Some(200_000), None), model("tiny", None, None));
    let alone = of("claude", Some(&big), None);
    let names =
        ["ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL"];
    for name in names {
        assert_eq!(value(&alone.set, name), Some("big"), "{name}");
    }
    assert_eq!(value(&alone.set, "ANTHROPIC_DEFAULT_HAIKU_MODEL"), Some("big"));
    let both = of("claude", Some(&big), Some(&tiny));
    assert_eq!(value(&both.set, "ANTHROPIC_DEFAULT_HAIKU_MODEL"), Some("tiny"));
    assert_eq!(value(&both.set, "ANTHROPIC_AUTH_TOKEN"), Some("K"));
    let chosen_there = of("claude", None, None);
    assert_eq!(value(&chosen_there.set, "ANTHROPIC_MODEL"), None);
}

#[test]
fn claude_code_gets_the_window_and_answers_that_fit_into_it() {
    let told = |window, output| {
        let variables = of("claude", Some(&model("m", window, output)), None);
        let usual = |name| value(&variables.usual, name).map(|value| value.parse().unwrap());
        let window: Option<u64> = usual("CLAUDE_CODE_MAX_CONTEXT_TOKENS");
        (window, usual("CLAUDE_CODE_MAX_OUTPUT_TOKENS"), variables.notes.len())
    };
    assert_eq!(told(Some(200_000), None), (Some(200_000), None, 0));
    assert_eq!(told(Some(200_000), Some(8192)), (Some(200_000), Some(8192), 0));
    assert_eq!(told(Some(200_000), Some(64_000)), (Some(200_000), None, 0));
    assert_eq!(told(Some(40_960), None), (Some(40_960), Some(5120), 0));
    assert_eq!(told(Some(4096), None), (Some(4096), Some(1024), 0));
    // The user must know that the context window is unknown.
    assert_eq!(told(None, None), (None, None, 1));
}

#[test]
fn opencode_gets_one_configuration_with_both_models() {
    let (big, tiny) = (model("big", Some(100_000), None), model("tiny", None, None));
    let variables = of("opencode", Some(&big), Some(&tiny));
    let config: Value =
        serde_json::from_str(value(&variables.set, "OPENCODE_CONFIG_CONTENT").unwrap()).unwrap();
    assert_eq!(config["model"], "anthropic/big");
    assert_eq!(config["small_model"], "anthropic/tiny");
    let anthropic = &config["provider"]["anthropic"];
    assert_eq!(anthropic["options"]["baseURL"], "http://127.0.0.1:1/v1");
    assert_eq!(anthropic["models"]["big"]["limit"]["context"], 100_000);
    assert!(anthropic["models"]["tiny"].get("limit").is_none());
}

#[test]
fn a_client_that_creole_cannot_serve_is_told_with_the_reason() {
    assert!(named("codex").unwrap_err().contains("Responses API"));
    let error = named("vim").unwrap_err();
    assert_eq!(error, "expected one of claude, opencode, pi, qwen-code, but found \"vim\"");
}

#[test]
fn the_installed_version_is_the_one_that_is_tried() {
    for client in CLIENTS {
        let folder = if client.name == "claude" { "claude-code" } else { client.name };
        let root = env!("CARGO_MANIFEST_DIR");
        let path = format!("{root}/../harness/clients/{folder}/package.json");
        let tried: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let package = client.install.strip_prefix("npm install -g ").unwrap();
        let (name, version) = package.rsplit_once('@').unwrap();
        assert_eq!(tried["dependencies"][name], version, "{}", client.name);
    }
}

#[test]
fn pi_gets_an_extension_and_qwen_code_settings_that_name_the_models() {
    let (big, tiny) = (model("big", Some(100_000), Some(4096)), model("tiny", None, None));
    let variables = of("pi", Some(&big), Some(&tiny));
    let (ending, file) = variables.file.unwrap();
    let provider = file.strip_prefix("export default (pi) => pi.registerProvider(\"creole\", ");
    let provider = provider.unwrap().strip_suffix(");\n").unwrap();
    let provider: Value = serde_json::from_str(provider).unwrap();
    assert_eq!((ending, &provider["baseUrl"]), ("js", &json!("http://127.0.0.1:1")));
    assert_eq!(provider["models"][0]["contextWindow"], 100_000);
    assert_eq!(provider["models"][0]["maxTokens"], 4096);
    assert_eq!(variables.arguments, ["--provider", "creole", "--model", "big"]);
    let variables = of("qwen-code", Some(&big), Some(&tiny));
    assert_eq!(value(&variables.set, "ANTHROPIC_MODEL"), Some("big"));
    let settings: Value = serde_json::from_str(&variables.file.unwrap().1).unwrap();
    assert_eq!(settings["model"]["generationConfig"]["contextWindowSize"], 100_000);
    assert_eq!(settings["fastModel"], "tiny");
    assert_eq!(settings["security"]["auth"]["selectedType"], "anthropic");
    // A gateway that chooses the model takes any name.
    assert_eq!(value(&of("qwen-code", None, None).set, "ANTHROPIC_MODEL"), Some(ANY_NAME));
    assert!(of("pi", None, None).arguments.contains(&ANY_NAME.to_owned()));
}
