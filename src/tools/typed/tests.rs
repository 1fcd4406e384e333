//! Tests of `typed.rs`.

use super::*;
use serde_json::Value;

fn schema(tool_type: &str, zoom: bool) -> Value {
    let Some((ToolKind::Client(builtin), true)) = ToolKind::of(tool_type, zoom) else {
        panic!("{tool_type}")
    };
    serde_json::from_str(&builtin.input_schema()).unwrap()
}

#[test]
fn every_client_tool_has_its_implied_name_and_a_closed_schema() {
    for (tool_type, name, properties, required) in [
        ("bash_20241022", "bash", "command restart", ""),
        ("bash_20250124", "bash", "command restart", ""),
        (
            "text_editor_20241022",
            "str_replace_editor",
            "command file_text insert_line new_str old_str path view_range",
            "command path",
        ),
        (
            "text_editor_20250124",
            "str_replace_editor",
            "command file_text insert_line new_str old_str path view_range",
            "command path",
        ),
        (
            "text_editor_20250429",
            "str_replace_based_edit_tool",
            "command file_text insert_line insert_text new_str old_str path view_range",
            "command path",
        ),
        (
            "text_editor_20250728",
            "str_replace_based_edit_tool",
            "command file_text insert_line insert_text new_str old_str path view_range",
            "command path",
        ),
        (
            "memory_20250818",
            "memory",
            "command file_text insert_line insert_text new_path new_str old_path old_str path view_range",
            "command",
        ),
        ("computer_20241022", "computer", "action coordinate text", "action"),
        (
            "computer_20250124",
            "computer",
            "action coordinate duration scroll_amount scroll_direction start_coordinate text",
            "action",
        ),
        (
            "computer_20251124",
            "computer",
            "action coordinate duration scroll_amount scroll_direction start_coordinate text",
            "action",
        ),
    ] {
        let Some((ToolKind::Client(builtin), true)) = ToolKind::of(tool_type, false) else {
            panic!("{tool_type}")
        };
        assert_eq!(builtin.name(), name);
        let schema = schema(tool_type, false);
        let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        assert_eq!(names.join(" "), properties, "{tool_type}");
        let mut names: Vec<_> = schema["required"]
            .as_array()
            .map(|all| all.iter().map(|name| name.as_str().unwrap()).collect())
            .unwrap_or_default();
        names.sort_unstable();
        assert_eq!(names.join(" "), required, "{tool_type}");
        assert_eq!(schema["additionalProperties"], false);
    }
}

#[test]
fn options_and_versions_change_the_schema() {
    let actions = |schema: Value| schema["properties"]["action"]["enum"].to_string();
    assert!(actions(schema("computer_20251124", true)).contains("\"zoom\""));
    assert!(!actions(schema("computer_20251124", false)).contains("\"zoom\""));
    assert!(!actions(schema("computer_20250124", true)).contains("\"zoom\""));
    assert!(schema("computer_20251124", true)["properties"]["region"].is_object());
    assert!(!actions(schema("computer_20241022", true)).contains("scroll"));
    let commands = |schema: Value| schema["properties"]["command"]["enum"].to_string();
    assert!(commands(schema("text_editor_20250124", false)).contains("undo_edit"));
    assert!(!commands(schema("text_editor_20250429", false)).contains("undo_edit"));
}

#[test]
fn all_members_of_both_toolsets_have_schemas() {
    for (toolset, count) in [(COMPUTER_TOOLSET, 17), (BROWSER_TOOLSET, 31)] {
        assert_eq!(toolset.members().count(), count);
        for member in toolset.members() {
            let schema: Value = serde_json::from_str(&member.input_schema()).unwrap();
            assert_eq!(schema["type"], "object", "{}", member.name());
            assert!(schema["properties"].is_object(), "{}", member.name());
        }
        for name in toolset.disabled {
            assert!(toolset.members().any(|member| member.name() == *name));
        }
    }
    let find = |name: &str| {
        let member = BROWSER_TOOLSET.members().find(|member| member.name() == name);
        serde_json::from_str::<Value>(&member.unwrap().input_schema()).unwrap()
    };
    assert_eq!(
        find("left_click")["properties"]["target"]["anyOf"][1]["properties"]["type"]["enum"][0],
        "ref"
    );
    assert_eq!(find("scroll")["properties"]["target"]["required"][2], "y");
    assert_eq!(find("zoom")["required"][0], "region");
}

#[test]
fn a_later_version_of_a_known_family_is_taken_for_the_newest_known() {
    assert_eq!(ToolKind::of("bash_20270101", false), Some((ToolKind::Client(BASH), false)));
    assert_eq!(
        ToolKind::of("text_editor_20270101", false),
        Some((ToolKind::Client(TEXT_EDITOR), false))
    );
    assert_eq!(
        ToolKind::of("web_search_20270101", false),
        Some((ToolKind::Server("web_search"), true))
    );
    assert_eq!(ToolKind::of("teleport_20270101", false), None);
    assert_eq!(ToolKind::of("bash", false), Some((ToolKind::Client(BASH), false)));
}

#[test]
fn server_tools_are_known_by_their_names() {
    for (tool_type, name) in [
        ("web_search_20250305", "web_search"),
        ("web_search_20260209", "web_search"),
        ("web_search_20260318", "web_search"),
        ("web_fetch_20250910", "web_fetch"),
        ("web_fetch_20260318", "web_fetch"),
        ("code_execution_20250522", "code_execution"),
        ("code_execution_20260521", "code_execution"),
        ("tool_search_tool_regex_20251119", "tool_search_tool_regex"),
        ("tool_search_tool_regex", "tool_search_tool_regex"),
        ("tool_search_tool_bm25_20251119", "tool_search_tool_bm25"),
        ("tool_search_tool_bm25", "tool_search_tool_bm25"),
        ("advisor_20260301", "advisor"),
    ] {
        assert_eq!(
            ToolKind::of(tool_type, false),
            Some((ToolKind::Server(name), true)),
            "{tool_type}"
        );
    }
}
