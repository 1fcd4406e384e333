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
