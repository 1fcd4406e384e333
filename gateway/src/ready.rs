//! What the gateway says when it is ready: commands for clients.

use std::io::{self, Write};
use std::net::SocketAddr;

/// What commands for clients are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready<'a> {
    pub(crate) address: SocketAddr,
    /// What clients send as their key.
    pub(crate) key: &'a str,
    pub(crate) model: &'a str,
    pub(crate) prompt: &'a str,
}

impl Ready<'_> {
    /// A request that streams its answer.
    pub(crate) fn curl(&self) -> String {
        let Self { address, key, model, prompt } = self;
        format!(
            r#"  curl -N http://{address}/v1/messages \
    -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' -H "x-api-key: {key}" -d '{{
      "model": "{model}", "max_tokens": 100, "stream": true,
      "messages": [{{"role": "user", "content": "{prompt}"}}]}}'"#
        )
    }

    pub(crate) fn claude_code(&self) -> String {
        let Self { address, key, model, .. } = self;
        format!(
            "  ANTHROPIC_BASE_URL=http://{address} ANTHROPIC_AUTH_TOKEN={key} ANTHROPIC_MODEL={model} \\\n    \
             ANTHROPIC_DEFAULT_HAIKU_MODEL={model} ANTHROPIC_DEFAULT_SONNET_MODEL={model} claude"
        )
    }
}

/// Writes all of it at once. The macros of the standard library would panic where it cannot be written.
pub(crate) fn print(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
