//! Texts that the gateway prints when it is ready: its address, and commands for clients.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use creole::Config;
use creole::config::Key;
use creole::profile::presets::Server;
use creole::text::harmless;

use crate::cli::serve::Serve;

/// Values from which commands for clients are made.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    /// Key that clients send.
    pub(crate) key: String,
    pub(crate) model: String,
    /// The model of small tasks.
    pub(crate) small: String,
    /// The user's words in the first request.
    pub(crate) prompt: &'static str,
}

/// Returns the key and models that clients of `creole serve` have to name.
pub(crate) fn hints(options: &Serve, config: &Config) -> Hints {
    let client_key = match (options.client_key_env.first(), config.first_upstream()) {
        (Some(name), _) => format!("${name}"),
        _ if !config.client_keys.is_empty() => "KEY".to_owned(),
        // It goes up to a server that asks for it.
        (None, Some(upstream)) if upstream.key == Key::Client => {
            let vendor = Server::of_vendor(&upstream.url);
            vendor.map_or_else(|| "local".to_owned(), |vendor| format!("${}", vendor.key))
        }
        _ => "local".to_owned(),
    };
    let model = options.model.clone().unwrap_or_else(|| "MODEL".to_owned());
    let small = options.small_model.clone().unwrap_or_else(|| model.clone());
    Hints { key: client_key, model, small, prompt: "Hi" }
}

/// The gateway, as soon as clients can connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) address: SocketAddr,
    /// Whether somebody may read the page for browsers.
    pub(crate) has_page: bool,
}

impl Ready {
    /// Returns a paragraph with the address of the page; empty where there is no page.
    pub(crate) fn page(&self) -> String {
        let address = reachable(self.address);
        match self.has_page {
            true => format!("Open http://{address}/ in a browser to see what happens.\n\n"),
            false => String::new(),
        }
    }
}

/// The address goes to standard output, in a form that scripts can wait for. People also get commands.
pub(crate) fn serving(ready: Ready, hints: &Hints) {
    let mut text = listening(ready.address);
    if io::stdout().is_terminal() {
        let address = reachable(ready.address);
        let replace = match hints.model.as_str() {
            "MODEL" => {
                ", in place of MODEL with a name that the server has (with --model NAME, every name goes to that model)"
            }
            _ => "",
        };
        text.push_str(&format!(
            "\nClaude Code{replace}:\n\n{}\n\nSDKs of Anthropic: base URL http://{address}, key {}\n\ncurl:\n\n{}\n\n{}",
            hints.claude_code(address),
            hints.key,
            hints.curl(address),
            ready.page(),
        ));
    }
    print(&text);
}

pub(crate) fn listening(address: SocketAddr) -> String {
    format!("listening on http://{address}\n")
}

/// Returns the address at which this machine reaches a gateway, also if the gateway listens
/// everywhere.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()),
        false => address,
    }
}

/// Writes to standard output, all at once. The macros of the standard library would panic where nobody reads.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(harmless::lines(text).as_bytes()).and_then(|()| stdout.flush());
}

impl Hints {
    /// A request that streams its answer.
    pub(crate) fn curl(&self, address: SocketAddr) -> String {
        let Self { key, model, prompt, .. } = self;
        format!(
            r#"  curl -N http://{address}/v1/messages \
    -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' -H "x-api-key: {key}" -d '{{
      "model": "{model}", "max_tokens": 100, "stream": true,
      "messages": [{{"role": "user", "content": "{prompt}"}}]}}'"#
        )
    }

    pub(crate) fn claude_code(&self, address: SocketAddr) -> String {
        let Self { key, model, small, .. } = self;
        format!(
            "  ANTHROPIC_BASE_URL=http://{address} ANTHROPIC_AUTH_TOKEN={key} ANTHROPIC_MODEL={model} \\\n    \
             ANTHROPIC_DEFAULT_HAIKU_MODEL={small} ANTHROPIC_DEFAULT_SONNET_MODEL={model} claude"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_means_all_is_shown_as_this_machine() {
        let shown = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(shown("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(shown("[::]:1"), "127.0.0.1:1");
        assert_eq!(shown("192.168.1.5:1"), "192.168.1.5:1");
    }

    #[test]
    fn the_page_is_named_where_there_is_one() {
        let page = |has_page| Ready { address: "0.0.0.0:1".parse().unwrap(), has_page }.page();
        assert_eq!(page(true), "Open http://127.0.0.1:1/ in a browser to see what happens.\n\n");
        assert_eq!(page(false), "");
    }
}
