//! Context windows in `creole check` and at the start of `creole serve`.

use serde_json::json;

use crate::check::{check, good, json, server};
use crate::rig::{self, Gateway, Upstream};

/// A good server whose only model has a context window of this size, if the server states one.
async fn server_with_window(window: Option<u64>) -> Upstream {
    server(move |asked| match asked.path.as_str() {
        "/v1/models" => {
            let model = json!({"id": "m", "owned_by": "vllm", "max_model_len": window});
            json(200, &json!({"object": "list", "data": [model]}))
        }
        _ => good(asked),
    })
    .await
}

#[tokio::test]
async fn a_small_window_is_told_with_the_flag_that_raises_it() {
    let large = server_with_window(Some(131_072)).await;
    let checked = check(&["--upstream", &large.url()]).await;
    checked.assert_row("window", "works", "131072 tokens, enough for Claude Code");
    let sizes = "\n    CLAUDE_CODE_MAX_CONTEXT_TOKENS=131072 claude\n";
    assert!(checked.text.contains(sizes), "{checked:?}");

    let limited = server_with_window(Some(49_152)).await;
    let checked = check(&["--upstream", &limited.url()]).await;
    checked.assert_row("window", "limited", "49152 tokens is small for Claude Code");
    checked.assert_row("window", "limited", "with --max-model-len 65536");
    let sizes = "CLAUDE_CODE_MAX_CONTEXT_TOKENS=49152 CLAUDE_CODE_MAX_OUTPUT_TOKENS=6144 claude";
    assert!(checked.code == 0 && checked.text.contains(sizes), "{checked:?}");

    let failing = server_with_window(Some(8192)).await;
    let checked = check(&["--upstream", &failing.url()]).await;
    checked.assert_row("window", "fails", "8192 tokens is too small for Claude Code");
    assert_eq!(checked.code, 1, "{checked:?}");

    let silent = server_with_window(None).await;
    let checked = check(&["--upstream", &silent.url()]).await;
    checked.assert_row("window", "limited", "set CLAUDE_CODE_MAX_CONTEXT_TOKENS");
    let (_, commands) = checked.text.split_once("An agent can work with it").unwrap();
    assert!(!commands.contains("MAX_CONTEXT_TOKENS"), "{checked:?}");
    // The operator's own number counts before the server's.
    let config = r#"{"upstreams": {"v": {"profile": "vllm"}},
        "models": {"*": {"model": "m", "max_input_tokens": 200000}}}"#;
    let config = rig::file(config);
    let args = ["--config", &config, "--upstream", &failing.url(), "--model", "m"];
    let checked = check(&args).await;
    checked.assert_row("window", "works", "200000 tokens");
}

#[tokio::test]
async fn the_start_says_what_the_window_of_the_model_is() {
    for (window, level, says) in [
        (8192, "warn", "m: a window of 8192 tokens is too small for Claude Code"),
        (131_072, "info", "m has a window of 131072 tokens"),
    ] {
        let upstream = server_with_window(Some(window)).await;
        // With and without a model map: the only model is meant.
        for model in [&[][..], &["--model", "m"]] {
            let url = upstream.url();
            let gateway = Gateway::start_looking(&[&["--upstream", &url], model].concat(), "{}");
            let has_line = || {
                let lines = gateway.lines(says);
                lines.first().is_some_and(|line| line.contains(&format!(r#""level":"{level}""#)))
            };
            rig::until(says, has_line).await;
        }
    }
}
