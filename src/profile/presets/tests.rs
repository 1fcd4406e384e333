//! Tests of `presets.rs`.

use super::*;

#[test]
fn each_preset_has_its_server_and_each_server_its_preset() {
    let of_servers: Vec<&str> = SERVERS.iter().map(|server| server.preset).collect();
    for preset in PRESETS.iter().filter(|preset| !["default", "openai-chat"].contains(preset)) {
        assert_eq!(of_servers.iter().filter(|name| *name == preset).count(), 1, "{preset}");
    }
    assert_eq!(of_servers.len() + 2, PRESETS.len());
    assert_eq!(KnownServer::of_preset("openai-chat"), KnownServer::of_preset("openai"));
}

#[test]
fn a_key_goes_only_to_the_vendor_whose_variable_holds_it() {
    let vendor = |url| KnownServer::of_vendor(url).map_or("", |server| server.preset);
    assert_eq!(vendor("https://api.openai.com"), "openai");
    assert_eq!(vendor("https://API.groq.com:443"), "groq");
    assert_eq!(vendor("https://team.openai.azure.com"), "azure");
    for other in [
        "http://api.openai.com",
        "https://api.openai.com.evil.example",
        "https://api.openai.com:8443",
        "https://evil.example/api.openai.com",
        "https://xopenai.azure.com",
        "http://localhost:11434",
        "https://localhost:11434",
        "",
    ] {
        assert_eq!(vendor(other), "", "{other}");
    }
}
