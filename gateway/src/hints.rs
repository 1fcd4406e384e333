//! Example commands for clients of the gateway, printed at its start.

use crate::probe::window;

/// Values from which the example commands are made.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    /// Key that clients send to the gateway.
    pub(crate) key: String,
    pub(crate) model: String,
    /// Name of the model for small tasks, such as titles.
    pub(crate) small: String,
    /// Size of the model's context window in tokens, if known.
    pub(crate) window: Option<u64>,
    /// Text of the user message in the example request.
    pub(crate) prompt: &'static str,
}

impl Hints {
    /// Returns a `curl` command that requests a streamed answer.
    pub(crate) fn curl(&self, url: &str) -> String {
        let Self { key, model, prompt, .. } = self;
        format!(
            r#"  curl -N {url}/v1/messages \
    -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' -H "x-api-key: {key}" -d '{{
      "model": "{model}", "max_tokens": 100, "stream": true,
      "messages": [{{"role": "user", "content": "{prompt}"}}]}}'"#
        )
    }

    pub(crate) fn claude_code(&self, url: &str) -> String {
        let Self { key, model, small, .. } = self;
        let mut sizes = String::new();
        if let Some(window) = self.window {
            sizes = format!("\\\n    CLAUDE_CODE_MAX_CONTEXT_TOKENS={window} ");
            if let Some(tokens) = window::answer_tokens(window) {
                sizes.push_str(&format!("CLAUDE_CODE_MAX_OUTPUT_TOKENS={tokens} "));
            }
        }
        format!(
            "  ANTHROPIC_BASE_URL={url} ANTHROPIC_AUTH_TOKEN={key} ANTHROPIC_MODEL={model} \\\n    \
             ANTHROPIC_DEFAULT_HAIKU_MODEL={small} ANTHROPIC_DEFAULT_SONNET_MODEL={model} {sizes}claude"
        )
    }
}
