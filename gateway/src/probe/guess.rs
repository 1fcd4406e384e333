//! Guess of an upstream's kind of server, if the user names none: by a vendor's address, else by
//! the list of models, else by the port.

use creole::config::Address;
use creole::profile::presets::KnownServer;

use crate::probe::private_network::is_in_private_network;

/// Guessed preset of an upstream: a set of defaults for one kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guess {
    /// Name of the guessed preset.
    pub(crate) preset: &'static str,
    /// Clue that led to the preset, as words that follow "by".
    pub(crate) by: &'static str,
}

/// Returns the preset of a vendor whose own address the URL has.
pub(crate) fn by_address(url: &str) -> Option<Guess> {
    KnownServer::of_vendor(url).map(|server| Guess { preset: server.preset, by: "its address" })
}

/// Returns the preset of the server that sent a list of models. The clues are the owner that the
/// list names, and the header `server`.
pub(crate) fn preset_of_list(owner: &str, server: &str) -> Option<&'static str> {
    match (owner, server) {
        ("vllm", _) => Some("vllm"),
        ("sglang", _) => Some("sglang"),
        ("llamacpp", _) | (_, "llama.cpp") => Some("llama.cpp"),
        ("library", _) => Some("ollama"),
        ("organization_owner", _) => Some("lmstudio"),
        _ => None,
    }
}

/// Returns the preset that the list of models shows, or else the preset for the port.
pub(crate) fn by_list_or_port(url: &str, listed: Option<&'static str>) -> Option<Guess> {
    let of_list = listed.map(|preset| Guess { preset, by: "its list of models" });
    of_list.or_else(|| by_port(url))
}

/// Returns the preset for a port that only one kind of server usually has. Any server may be at
/// port 8000 or 8080.
fn by_port(url: &str) -> Option<Guess> {
    let (_, port) = Address::parse(url).ok()?.authority.rsplit_once(':')?;
    let preset = match port {
        "11434" => "ollama",
        "1234" => "lmstudio",
        _ => return None,
    };
    // Any server may be at a port of a public host.
    is_in_private_network(url).then_some(Guess { preset, by: "its port" })
}

#[cfg(test)]
mod tests {
    use creole::profile::presets::PRESETS;

    use super::*;

    #[test]
    fn a_vendor_is_known_by_its_own_address_alone() {
        let of = |url| by_address(url).map(|guess| guess.preset);
        for (url, preset) in [
            ("https://api.groq.com", "groq"),
            ("https://API.Groq.com:443", "groq"),
            ("https://openrouter.ai", "openrouter"),
            ("https://api.openai.com", "openai"),
            ("https://mine.openai.azure.com", "azure"),
        ] {
            assert_eq!(of(url), Some(preset), "{url}");
        }
        for url in [
            "http://api.groq.com",
            "https://api.groq.com.evil.example",
            "https://groq.example",
            "https://openai.azure.com",
            "http://127.0.0.1:11434",
        ] {
            assert_eq!(of(url), None, "{url}");
        }
    }

    #[test]
    fn the_list_of_models_wins_over_the_port_and_only_ports_of_one_server_tell() {
        let guess =
            |url: &str, listed| by_list_or_port(url, listed).map(|guess| (guess.preset, guess.by));
        let listed = Some(("vllm", "its list of models"));
        assert_eq!(guess("http://127.0.0.1:11434", Some("vllm")), listed);
        assert_eq!(guess("http://127.0.0.1:11434", None), Some(("ollama", "its port")));
        assert_eq!(guess("http://ollama:11434", None), Some(("ollama", "its port")));
        assert_eq!(guess("http://[::1]:1234", None), Some(("lmstudio", "its port")));
        for url in ["http://localhost:8000", "http://localhost", "https://models.example:11434"] {
            assert_eq!(guess(url, None), None, "{url}");
        }
    }

    #[test]
    fn what_lists_tell_are_presets() {
        for owner in ["vllm", "sglang", "llamacpp", "library", "organization_owner"] {
            let preset = preset_of_list(owner, "").unwrap();
            assert!(PRESETS.contains(&preset), "{preset}");
        }
        assert_eq!(preset_of_list("me", "llama.cpp"), Some("llama.cpp"));
        assert_eq!(preset_of_list("system", "uvicorn"), None);
    }
}
