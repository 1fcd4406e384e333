//! Tests of the keys of `server_tools.mcp`.

use super::*;
use crate::Config;

fn read(mcp: &str) -> Result<McpConnector, String> {
    let text = format!(r#"{{"server_tools":{{"mcp":{mcp}}}}}"#);
    let secret = |name: &str| (name == "MCP_KEY").then(|| " a-secret\n".to_owned());
    let config = Config::from_json(&text, secret).map_err(|error| error.to_string())?;
    Ok(config.settings.server_tools.mcp)
}

#[track_caller]
fn refused(mcp: &str, expected: &str) {
    let error = read(mcp).unwrap_err();
    let found = error.strip_prefix("configuration: server_tools.mcp.").unwrap_or(&error);
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn nothing_is_called_unless_a_server_is_named_or_requests_may_name_one() {
    assert!(!McpConnector::default().is_on());
    assert!(!read("{}").unwrap().is_on());
    assert!(read(r#"{"from_requests":["mcp.example"]}"#).unwrap().is_on());
    let text = r#"{"server_tools":{"mcp":{"servers":{"s":{"url":"http://s"}}}}}"#;
    let config = Config::from_json(text, |_| None).unwrap();
    assert!(config.check_no_services().is_err());
}

#[test]
fn a_flag_adds_a_server_whose_tools_all_clients_get() {
    let mut config = Config::default();
    config.offer_mcp_server("notes=http://127.0.0.1:3000/mcp?a=b", "--mcp").unwrap();
    let servers: Vec<_> = config.settings.server_tools.mcp.servers.iter().collect();
    let [(name, server)] = servers.as_slice() else { panic!("{servers:?}") };
    assert_eq!((*name, server.url.as_str()), ("notes", "http://127.0.0.1:3000/mcp?a=b"));
    assert!(server.offer && server.key == McpKey::None);
    for (given, reason) in [
        ("http://127.0.0.1:3000/mcp", "--mcp: expected NAME=URL"),
        ("notes=http://127.0.0.1:3001/mcp", "--mcp: there already is an MCP server notes"),
        ("other=127.0.0.1:3000?key=sk-1", "--mcp: expected a URL that begins with http://"),
        ("http://a?key=sk-1", "--mcp: expected a name of letters"),
    ] {
        let error = config.offer_mcp_server(given, "--mcp").unwrap_err();
        assert!(error.starts_with(reason) && !error.contains("sk-1"), "{error}");
    }
    config.offer_mcp_server("other=http://127.0.0.1:3001/mcp", "--mcp").unwrap();
    let servers = &mut config.settings.server_tools.mcp.servers;
    servers.keep_only("other");
    assert_eq!(servers.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["other"]);
}

#[test]
fn a_server_has_its_own_key_or_the_clients() {
    let servers = r#"{"servers":{
        "a":{"url":"https://a.example/mcp","key":{"env":"MCP_KEY"},"revision":"2025-06-18"},
        "b":{"url":"http://127.0.0.1:1/mcp","key":"client"},
        "c":{"url":"http://c/mcp?x=1","allowed_tools":["x","y"],"blocked_tools":["y"],"offer":true}}}"#;
    let read = read(servers).unwrap();
    let [(_, own), (_, client), (_, none)] = read.servers.0.as_slice() else { panic!() };
    assert!(matches!(&own.key, McpKey::Own(key) if key.secret() == Some("a-secret")));
    assert_eq!((own.revision.version(), client.revision.version()), (Some("2025-06-18"), None));
    assert_eq!((&client.key, &none.key), (&McpKey::Client, &McpKey::None));
    assert_eq!(["x", "y", "z"].map(|tool| none.permits(tool)), [true, false, false]);
    assert!(!format!("{read:?}").contains("a-secret"));
}

#[test]
fn a_wrong_key_is_refused_with_its_path() {
    for (servers, expected) in [
        (r#"{"s":{}}"#, "servers.s.url: expected a URL"),
        (r#"{"s":{"url":"s.example"}}"#, "servers.s.url: expected a URL"),
        (r#"{"s t":{"url":"http://s"}}"#, "servers.s t: expected a name"),
        (r#"{"s":{"url":"http://s","key":{"env":"NO_KEY"}}}"#, "servers.s.key.env: expected an"),
        (r#"{"s":{"url":"http://s","revision":"2025"}}"#, "servers.s.revision: expected one of"),
        (r#"{"s":{"url":"http://s","key":"client","offer":true}}"#, "servers.s.offer: expected"),
        (r#"{"s":{"url":"http://s","transport":"sse"}}"#, "servers.s.transport: unknown key"),
    ] {
        refused(&format!(r#"{{"servers":{servers}}}"#), expected);
    }
    refused(r#"{"from_requests":"all"}"#, "from_requests: expected \"configured\", \"public\"");
    refused(r#"{"from_requests":["a","https://b"]}"#, "from_requests[1]: expected a host");
}

#[test]
fn only_https_servers_at_permitted_hosts_may_be_named_by_requests() {
    let hosts = McpFromRequests::Hosts(vec!["mcp.example".to_owned(), "b.example:8443".to_owned()]);
    for (url, by_host, public) in [
        ("https://mcp.example/x", true, true),
        ("https://MCP.example:443/x", true, true),
        ("https://b.example:8443/", true, false),
        ("http://mcp.example/x", false, false),
        ("https://mcp.example.evil.test/", false, true),
        ("https://mcp.example@evil.test/", false, false),
        ("https://evil.test\\.mcp.example/", false, false),
        ("https://127.0.0.1/", false, false),
        ("https://2130706433/", false, false),
        ("https://0x7f.1/", false, false),
        ("https://[::1]/", false, false),
        ("https://localhost/", false, false),
        ("https://a.internal/", false, false),
        ("https://printer.local./", false, false),
        ("mcp:s", false, false),
        ("", false, false),
    ] {
        assert_eq!(hosts.permits(url), by_host, "{url}");
        assert_eq!(McpFromRequests::Public.permits(url), public, "{url}");
        assert!(!McpFromRequests::Configured.permits(url));
    }
}
