//! Tests of `envoy.rs`.

use std::net::Ipv4Addr;

use super::*;

#[test]
fn every_placeholder_is_filled_and_a_new_one_is_noticed() {
    let values = [("A", "{\"a\": {}}".to_owned()), ("B", "2".to_owned())];
    assert_eq!(render("x: {{A}}, {{B}} {{A}}", &values).unwrap(), "x: {\"a\": {}}, 2 {\"a\": {}}");
    let error = render("x: {{A}} {{NEW}}", &values).unwrap_err().to_string();
    assert!(error.contains("NEW"), "{error}");
}

#[test]
fn the_template_has_a_value_for_every_placeholder() {
    let template = fs::read_to_string(workspace::root().join("envoy/envoy.yaml")).unwrap();
    let plan = Plan {
        listen: (Ipv4Addr::LOCALHOST, 1).into(),
        upstream: Url::parse("http://localhost:1/v1").unwrap(),
        config: "{}".to_owned(),
        secrets: vec!["KEY".to_owned()],
        folder: PathBuf::new(),
    };
    let admin = (Ipv4Addr::LOCALHOST, 2).into();
    let values = values(&plan, admin, Path::new("f.wasm"));
    assert!(render(&template, &values).unwrap().contains("f.wasm"));
    let plain = render(&without_filter(&template).unwrap(), &values).unwrap();
    assert!(!plain.contains("f.wasm") && plain.contains("filters.http.router"));
}

#[test]
fn each_service_with_a_cluster_and_an_address_becomes_a_cluster() {
    let config = json!({"server_tools": {
        "web_search": {"kind": "searxng", "url": "http://127.0.0.1:8888/base", "cluster": "search"},
        "web_fetch": {"cluster": "pages"},
        "mcp": {"servers": {
            "a": {"url": "https://a.example/mcp", "cluster": "both"},
            "b": {"url": "https://a.example/other", "cluster": "both"},
            "c": {"url": "http://c.example/mcp"}}}}});
    let made = clusters(&config.to_string(), "roots.pem").unwrap();
    let read: Vec<Value> = made.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    let [search, both] = read.as_slice() else { panic!("{made:?}") };
    let address = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address";
    assert_eq!((&search["name"], &both["name"]), (&json!("search"), &json!("both")));
    assert_eq!(search.pointer(address), Some(&json!({"address": "127.0.0.1", "port_value": 8888})));
    assert_eq!(both.pointer(address), Some(&json!({"address": "a.example", "port_value": 443})));
    assert_eq!(both.pointer("/transport_socket/typed_config/sni"), Some(&json!("a.example")));

    let template = fs::read_to_string(workspace::root().join("envoy/envoy.yaml")).unwrap();
    let with = with_clusters(&template, &made).unwrap();
    assert!(with.contains(&format!("\n  clusters:\n  - {}\n  - {}\n  - name: ", made[0], made[1])));
    assert_eq!(with_clusters(&template, &clusters("{}", "").unwrap()).unwrap(), template);
}

#[test]
fn a_cluster_at_two_addresses_is_refused() {
    let config = json!({"server_tools": {"mcp": {"servers": {
        "a": {"url": "http://a.example/mcp", "cluster": "both"},
        "b": {"url": "http://b.example/mcp", "cluster": "both"}}}}});
    let error = clusters(&config.to_string(), "").unwrap_err().to_string();
    assert!(error.contains("the cluster both cannot be at two addresses"), "{error}");
}
