//! Tests of `tool_names.rs`.

use super::*;

fn tools(names: &[&str]) -> Tools {
    let mut tools = Tools::default();
    for name in names {
        let name = (*name).to_owned();
        tools.push(Tool { outgoing: name.clone(), name, ..Tool::default() });
    }
    tools
}

#[test]
fn a_name_is_repaired_only_when_one_tool_is_meant() {
    let tools = tools(&["Research_Agent", "read", "Read", "list-dir"]);
    let meant = |name| tools.meant_by(name).map(|tool| tool.name.as_str());
    assert_eq!(meant("Research Agent"), Some("Research_Agent"));
    assert_eq!(meant("research-agent"), Some("Research_Agent"));
    assert_eq!(meant("ListDir"), Some("list-dir"));
    assert_eq!(meant("Read"), Some("Read"));
    assert_eq!(meant("READ"), None);
    assert_eq!(meant("Bassh"), None);
    assert_eq!(meant("_"), None);
}

#[test]
fn a_deferred_tool_is_known_but_was_not_sent() {
    let mut tools = tools(&["read"]);
    let waits = Tool { outgoing: "mcp_find".into(), name: "mcp_find".into(), ..Tool::default() };
    tools.push_deferred(waits);
    assert_eq!(tools.meant_by("mcp-find").map(|tool| tool.name.as_str()), Some("mcp_find"));
    assert_eq!(tools.iter().count(), 1);
    assert!(Withheld::Unsent.holds("mcp_find", &tools));
    assert!(!Withheld::Unsent.holds("read", &tools));
    assert!(!Withheld::These(vec!["read".to_owned()]).holds("mcp_find", &tools));
}

#[test]
fn a_prefix_of_the_models_own_markup_is_no_part_of_a_name() {
    let tools = tools(&["get", "functions.put", "put"]);
    for (name, expected) in [
        ("functions.get", Some("get")),
        ("default_api:get", Some("get")),
        ("default_api.get", Some("get")),
        ("functions.put", Some("functions.put")),
        ("functions.Put", Some("functions.put")),
        ("functions.GET", Some("get")),
        ("other.get", None),
        ("functions.", None),
        // The number of the call and other markup after the name are no part of the name either.
        ("functions.get:0", Some("get")),
        ("get[ARGS]", Some("get")),
        ("get[ARGS]{\"path\":\"/a\"}", None),
        ("get\n", Some("get")),
        ("\tget", Some("get")),
        ("get<|channel|>commentary", Some("get")),
        ("get</arg_value>", Some("get")),
        ("get</function>", Some("get")),
        ("get\n<arg_value>ls</arg_value>", None),
        ("get<arg_key>city</arg_key><arg_value>Paris</arg_value>", None),
        ("get<parameter=city>Paris", None),
        ("get <tool_call>get", None),
        ("\"get\"", Some("get")),
        ("\"get", None),
        ("functions.get:", None),
        ("<|channel|>", None),
    ] {
        assert_eq!(tools.meant_by(name).map(|tool| tool.outgoing.as_str()), expected, "{name}");
    }
}
