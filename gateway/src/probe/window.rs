//! Judgement of a model's context window for Claude Code, and how to get a larger one.

use std::time::Duration;

use creole::config::Upstream;
use creole::profile::presets::{KnownServer, SERVERS};

use super::{look, models};
use crate::upstream::client::UpstreamClient;

/// Context window, in tokens, below which Claude Code would compact its first request already.
const WINDOW_MIN: u64 = 40_000;

/// Context window, in tokens, below which Claude Code must be told to write shorter answers, so
/// that space is left for the conversation.
const WINDOW_ENOUGH: u64 = 64_000;

/// Context window, in tokens, that the user is advised to set: enough for work, and supported by
/// servers.
const WINDOW_ADVISED: u64 = 65_536;

/// Fitness of a context window for Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// A context window with enough space for work.
    Works,
    /// A context window with space only for short answers and few turns.
    Limited,
    /// A context window in which no work gets done, because the first requests fill it.
    Fails,
}

/// Judges a context window, in tokens.
pub(crate) fn verdict(window: u64) -> Fit {
    match window {
        ..WINDOW_MIN => Fit::Fails,
        WINDOW_MIN..WINDOW_ENOUGH => Fit::Limited,
        _ => Fit::Works,
    }
}

/// Returns the maximum number of tokens of an answer that Claude Code should request in a small
/// context window; `None` if the window is large enough for Claude Code's own number.
pub(crate) fn answer_tokens(window: u64) -> Option<u64> {
    (verdict(window) != Fit::Works).then(|| (window / 8).clamp(1024, 8192))
}

/// Returns the size of a model's context window, in tokens, as the upstream states it. `name` is
/// the upstream's name for the model. If the upstream lists no such name, its only model counts.
pub(crate) async fn of_model(
    client: &UpstreamClient,
    upstream: &Upstream,
    name: &str,
) -> Option<u64> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let mut listed = look::list(client, upstream, PATIENCE).await?.models;
    models::complete(client, upstream.preset, &upstream.url, &mut listed).await;
    let model = models::named(&listed, name).or_else(|| models::only(&listed).cloned());
    model?.window
}

/// Returns what is wrong with a context window and how to raise it, in one line. `None` if nothing
/// is wrong. `preset` is the kind of server.
pub(crate) fn advice(window: u64, preset: Option<&str>) -> Option<String> {
    let text = match verdict(window) {
        Fit::Works => return None,
        Fit::Limited => format!(
            "a window of {window} tokens is small for Claude Code: answers must be short, and it compacts often. Better \
             are 65,536: "
        ),
        Fit::Fails => format!(
            "a window of {window} tokens is too small for Claude Code: its first request has about 12,000, and it \
             compacts 33,000 before the end. It needs at least 65,536: "
        ),
    };
    Some(text + &cure(preset))
}

/// Returns the sentence that says how a larger context window is had from a kind of server.
fn cure(preset: Option<&str>) -> String {
    let local = SERVERS.iter().filter(|server| !server.window_setting.is_empty());
    let setting = |server: &KnownServer| format!("{}{WINDOW_ADVISED}", server.window_setting);
    match preset.and_then(KnownServer::of_preset) {
        Some(server) if server.window_setting.is_empty() => {
            "choose a model with a larger one".to_owned()
        }
        Some(server) => format!("raise it at the server with {}", setting(server)),
        None => {
            let settings: Vec<String> = local.map(setting).collect();
            format!("raise it at the server ({})", settings.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_judged_by_what_claude_code_needs() {
        for (window, fit, answer) in [
            (0, Fit::Fails, Some(1024)),
            (8192, Fit::Fails, Some(1024)),
            (39_999, Fit::Fails, Some(4999)),
            (40_000, Fit::Limited, Some(5000)),
            (63_999, Fit::Limited, Some(7999)),
            (64_000, Fit::Works, None),
            (u64::MAX, Fit::Works, None),
        ] {
            assert_eq!((verdict(window), answer_tokens(window)), (fit, answer), "{window}");
            assert_eq!(advice(window, None).is_none(), fit == Fit::Works, "{window}");
        }
    }

    #[test]
    fn each_server_of_ones_own_machine_is_told_its_own_setting() {
        for (preset, end) in [
            (
                Some("ollama"),
                "at least 65,536: raise it at the server with OLLAMA_CONTEXT_LENGTH=65536",
            ),
            (Some("llama.cpp"), "with --ctx-size 65536"),
            (Some("lmstudio"), "with lms load MODEL --context-length 65536"),
            (Some("vllm"), "with --max-model-len 65536"),
            (Some("sglang"), "with --context-length 65536"),
            (Some("groq"), "at least 65,536: choose a model with a larger one"),
            (None, "--max-model-len 65536, --context-length 65536)"),
            (Some("default"), "--max-model-len 65536, --context-length 65536)"),
        ] {
            let text = advice(32_768, preset).unwrap();
            assert!(text.starts_with("a window of 32768 tokens is too small for Claude Code"));
            assert!(text.ends_with(end), "{text}");
        }
        for server in SERVERS.iter().filter(|server| server.key.is_empty()) {
            assert!(!server.window_setting.is_empty(), "{}", server.preset);
        }
    }
}
