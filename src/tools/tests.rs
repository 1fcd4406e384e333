//! Tests of each kind of tool, and of `tool_choice`.

mod sent;

use serde_json::{Value, json};

use super::*;
use crate::model::{Block, Request};

/// Members of a request that concern tools.
#[derive(Default)]
struct Given {
    tools: Value,
    /// Changes of tools: true for an addition, and the value of `tool`.
    changes: Vec<(bool, Value)>,
    activated: Vec<&'static str>,
    choice: Value,
    history: bool,
    profile: Profile,
    strict: bool,
}

/// Result of translating the tools of a request.
struct Got {
    body: Value,
    context: request_context::Tools,
    one_tool_call: bool,
    warnings: String,
}

impl Given {
    fn tools(tools: Value) -> Self {
        Self { tools, ..Self::default() }
    }

    fn choice(mut self, choice: Value) -> Self {
        self.choice = choice;
        self
    }

    fn profile(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    fn with<T>(&self, see: impl FnOnce(&ToolSet<'_>, &mut Warnings) -> T) -> Result<T, Error> {
        let mut warnings = Warnings::new(self.strict);
        let changes = self.changes.iter().map(|(addition, tool)| {
            let tag = if *addition { "tool_addition" } else { "tool_removal" };
            json!({"type": tag, "tool": tool})
        });
        let body = json!({
            "model": "m",
            "tools": self.tools,
            "tool_choice": self.choice,
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "system", "content": changes.collect::<Vec<_>>()},
            ],
        });
        let body = body.to_string();
        let mut request = Request::read(&body, &mut warnings)?;
        let changes = request.messages.remove(1).content.into_iter().map(|block| match block {
            Block::ToolChange(change) => *change,
            other => panic!("{other:?}"),
        });
        let mut activated = NameSet::default();
        for name in &self.activated {
            activated.add(*name);
        }
        let requested = ToolRequest {
            body: &body,
            definitions: request.tools,
            servers: request.mcp_servers,
            changes: changes.collect(),
            activated,
            choice: request.tool_choice,
            runs: ToolsRunHere::default(),
            mcp_here: None,
            history_has_calls: self.history,
        };
        let set = ToolSet::new(requested, &self.profile, &mut warnings)?;
        Ok(see(&set, &mut warnings))
    }

    fn got(&self) -> Got {
        self.with(|set, warnings| {
            let mut out = Vec::new();
            let mut json = Writer::new(&mut out);
            json.begin_object();
            set.write(&mut json, None);
            json.end_object();
            Got {
                body: serde_json::from_slice(&out).unwrap(),
                context: set.context(true),
                one_tool_call: set.one_tool_call(),
                warnings: warnings.header().unwrap_or_default(),
            }
        })
        .unwrap()
    }

    fn error(&self) -> Error {
        self.with(|_, _| ()).unwrap_err()
    }

    /// Returns the tool names that the upstream gets.
    fn names(&self) -> String {
        let body = self.got().body;
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> =
            tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        names.join(" ")
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object", "properties": {}}})
}

fn deferred(name: &str) -> Value {
    json!({"name": name, "defer_loading": true, "input_schema": {"type": "object", "properties": {}}})
}

fn reference(name: &str) -> Value {
    json!({"type": "tool_reference", "name": name})
}

#[test]
fn a_custom_tool_becomes_a_function() {
    for tool_type in [json!(null), json!("custom")] {
        let got = Given::tools(json!([{
            "type": tool_type, "name": "w", "description": "Says \"hi\"\n",
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
            "cache_control": {"type": "ephemeral"}, "eager_input_streaming": true,
            "allowed_callers": ["direct", "code_execution_20260120"],
        }]))
        .got();
        assert_eq!(
            got.body,
            json!({"tools": [{"type": "function", "function": {
                "name": "w", "description": "Says \"hi\"\n",
                "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
            }}]})
        );
        assert_eq!(got.warnings, "");
    }
}

#[test]
fn what_a_custom_tool_lacks_is_added_or_named() {
    let got =
        Given::tools(json!([{"name": "a", "description": ""}, {"name": "b", "input_schema": {}}]));
    for tool in got.got().body["tools"].as_array().unwrap() {
        assert_eq!(tool["function"]["parameters"], json!({"type": "object", "properties": {}}));
        assert_eq!(tool["function"].get("description"), None);
    }
    let strict = Given { strict: true, ..Given::tools(json!([{"name": "a"}])) };
    assert_eq!(strict.error().message, "tools.0.custom.input_schema: Field required");
    let nameless = Given::tools(json!([tool("a"), {"input_schema": {}}]));
    assert_eq!(nameless.error().message, "tools.1.custom.name: Field required");
}

#[test]
fn names_are_mapped_there_and_back() {
    let long = "x".repeat(70);
    let given = Given::tools(json!([tool("my tool"), tool(&long), tool("fine")]));
    let short = format!("{}_", "x".repeat(55));
    let names = given.names();
    assert!(names.starts_with(&format!("my_tool_ba077b42 {short}")), "{names}");
    assert!(names.ends_with(" fine"));
    let context = given.got().context;
    assert_eq!(context.meant_by("my_tool_ba077b42").unwrap().name, "my tool");
    given
        .with(|set, _| {
            assert_eq!(set.outgoing_name("my tool", None), "my_tool_ba077b42");
            assert_eq!(set.outgoing_name("gone tool", None).len(), 18);
            assert_eq!(set.outgoing_name("zoom", Some("computer")), "computer__zoom");
            assert_eq!(set.schema_of("fine"), Some(r#"{"properties":{},"type":"object"}"#));
            assert_eq!(set.schema_of("gone"), None);
        })
        .unwrap();
    let unlimited = Given::tools(json!([tool(&long)])).profile(|profile| profile.max_tool_name = 0);
    assert_eq!(unlimited.names(), long);
}

#[test]
fn strict_mode_has_the_real_apis_rules_for_names() {
    for name in ["my tool", &"x".repeat(129)] {
        let strict = Given { strict: true, ..Given::tools(json!([tool("a"), tool(name)])) };
        assert_eq!(
            strict.error().message,
            "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
        );
    }
    assert!(Given::tools(json!([tool("")])).error().message.contains("should match pattern"));
}

#[test]
fn outgoing_names_are_unique() {
    for tools in [
        json!([tool("a"), tool("b"), tool("a")]),
        json!([tool("my tool"), tool("my_tool_ba077b42")]),
        json!([tool("bash"), {"type": "bash_20250124", "name": "bash"}]),
        json!([tool("computer__zoom"), {"type": "computer_toolset_20260801"}]),
        json!([{"type": "browser_toolset_20260801"}, {"type": "browser_toolset_20260801"}]),
        json!([deferred("a"), tool("a")]),
    ] {
        let error = Given::tools(tools).error();
        assert_eq!(error.message, "tools: Tool names must be unique.");
        assert_eq!(error.status, 400);
    }
    assert_eq!(Given::tools(json!([tool("a"), tool("A")])).names(), "a A");
}

#[test]
fn strict_goes_out_where_the_schema_allows_it() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (schema, supported, sent) in
        [(&closed, true, true), (&open, true, false), (&closed, false, false)]
    {
        let tools = json!([{"name": "w", "strict": true, "input_schema": schema}]);
        let given = Given::tools(tools).profile(|profile| profile.strict_tools = supported);
        let got = given.got();
        assert_eq!(
            got.body["tools"][0]["function"]["strict"],
            if sent { json!(true) } else { json!(null) }
        );
        assert_eq!(got.warnings, if sent { "" } else { "dropped:strict" });
        let strict = Given { strict: true, ..given };
        assert_eq!(strict.with(|_, _| ()).is_ok(), sent);
    }
}

#[test]
fn examples_go_into_the_description_up_to_a_limit() {
    let description = |description: Value, examples: Value| {
        let tools = json!([{"name": "w", "description": description, "input_examples": examples, "input_schema": {}}]);
        Given::tools(tools).got().body["tools"][0]["function"]["description"].clone()
    };
    assert_eq!(
        description(json!("D."), json!([{"a": 1}, {"b": "x \"y\""}, {}, {"c": 4}])),
        "D.\n\nExamples:\n{\"a\":1}\n{\"b\":\"x \\\"y\\\"\"}\n{}"
    );
    assert_eq!(description(json!(null), json!([{"a": 1}])), "Examples:\n{\"a\":1}");
    assert_eq!(description(json!("D."), json!([])), "D.");
    let big = json!({"a": "x".repeat(1500)});
    let text = description(json!("D."), json!([big, big, {"c": 4}]));
    assert!(text.as_str().unwrap().ends_with("x\"}\n{\"c\":4}"));
    assert!(text.as_str().unwrap().len() < 2100);
}

#[test]
fn a_tool_that_only_code_may_call_is_left_out() {
    let tools = json!([tool("a"), {"name": "b", "input_schema": {"type": "object"}, "allowed_callers": ["code_execution_20260120"]}]);
    let given = Given::tools(tools.clone());
    assert_eq!(given.names(), "a");
    assert_eq!(given.got().warnings, "dropped:allowed_callers");
    let strict = Given { strict: true, ..given };
    assert_eq!(
        strict.error().message,
        "tools[1].allowed_callers: this is not supported by this gateway"
    );
    let forced = Given::tools(tools).choice(json!({"type": "tool", "name": "b"}));
    assert!(forced.error().message.contains("'b' not found"));
}

#[test]
fn deferred_tools_wait_until_something_loads_them() {
    let tools = json!([
        tool("ToolSearch"),
        deferred("a"),
        deferred("b"),
        deferred("DeferredToolPlaceholder")
    ]);
    assert_eq!(Given::tools(tools.clone()).names(), "ToolSearch");
    // A model that knows a deferred tool's name may call the tool all the same.
    let context = Given::tools(tools.clone()).got().context;
    assert_eq!(context.iter().count(), 1);
    assert!(
        context.meant_by("a").is_some() && context.meant_by("DeferredToolPlaceholder").is_none()
    );
    let referred = Given { activated: vec!["b"], ..Given::tools(tools.clone()) };
    assert_eq!(referred.names(), "ToolSearch b");
    let added = Given { changes: vec![(true, reference("a"))], ..Given::tools(tools.clone()) };
    assert_eq!(added.names(), "ToolSearch a");
    let forced = Given::tools(tools).choice(json!({"type": "tool", "name": "a"}));
    assert_eq!(forced.names(), "ToolSearch a");
    // A tool reference is enough of a sign that the client loads tools.
    let plain = json!([tool("w"), deferred("a"), deferred("b")]);
    let referred = Given { activated: vec!["a"], ..Given::tools(plain) };
    assert_eq!(referred.names(), "w a");
}

#[test]
fn loaded_tools_stand_behind_all_others_in_the_order_in_which_they_were_loaded() {
    let tools = json!([
        deferred("a"),
        tool("b"),
        deferred("c"),
        tool("d"),
        deferred("e"),
        tool("ToolSearch")
    ]);
    let with = |activated: &[&'static str]| Given {
        activated: activated.to_vec(),
        ..Given::tools(tools.clone())
    };
    assert_eq!(with(&[]).names(), "b d ToolSearch");
    assert_eq!(with(&["e"]).names(), "b d ToolSearch e");
    assert_eq!(with(&["e", "d", "a", "e"]).names(), "b d ToolSearch e a");
    // Errors name a refused tool by its index in the client's `tools`.
    let context = with(&["e", "a"]).got().context;
    let places: Vec<_> = context.iter().map(|tool| tool.place).collect();
    assert_eq!(places, [Some(1), Some(3), Some(5), Some(4), Some(0)]);
    // An addition by name also loads a deferred tool, and a newly defined tool is never deferred.
    let defined = json!({"type": "tool_definition", "definition": tool("f")});
    let changes = vec![
        (true, reference("c")),
        (true, defined),
        (true, reference("e")),
        (false, reference("c")),
        (true, reference("b")),
    ];
    assert_eq!(Given { changes, ..with(&["e", "a"]) }.names(), "b d ToolSearch f e a");
    let forced = with(&["e"]).choice(json!({"type": "tool", "name": "a"}));
    assert_eq!(forced.names(), "b d ToolSearch e a");
}

#[test]
fn a_tool_that_searches_for_tools_is_known_by_its_name_or_its_description() {
    let described =
        |name: &str, text: &str| json!({"name": name, "description": text, "input_schema": {}});
    for (search, loads) in [
        (tool("find_tools"), true),
        (tool("LoadTool"), true),
        (described("catalogue", "Gives a tool_reference for each word."), true),
        (tool("search"), false),
        (tool("tool"), false),
        (described("catalogue", "Gives words."), false),
    ] {
        let names = Given::tools(json!([search, deferred("a"), deferred("b")])).names();
        assert_eq!(!names.ends_with("a b"), loads, "{search}: {names}");
    }
}

#[test]
fn deferred_tools_that_nothing_could_load_are_all_sent() {
    for tools in [
        json!([deferred("a"), deferred("b")]),
        json!([tool("w"), deferred("a"), deferred("b")]),
        json!([deferred("a"), deferred("b"), {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}]),
        json!([tool("find_tool"), deferred("a"), {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"}, deferred("b")]),
    ] {
        assert!(Given::tools(tools.clone()).names().ends_with("a b"), "{tools}");
    }
    // A tool search on the server loads all deferred tools, whatever has been found so far.
    let tools = json!([deferred("a"), deferred("b"), {"type": "tool_search_tool_bm25"}]);
    let found = Given { activated: vec!["a"], ..Given::tools(tools) };
    assert_eq!(found.names(), "a b");
    assert_eq!(found.got().warnings, "dropped:tool_search_tool_bm25");
}

#[test]
fn a_reference_to_a_tool_that_is_gone_does_not_stop_the_turn() {
    let given = Given { activated: vec!["gone"], ..Given::tools(json!([tool("w")])) };
    assert_eq!(given.got().warnings, "tool_reference_unresolved");
    let error = Given { strict: true, ..given }.error();
    assert_eq!(error.code.as_deref(), Some("tool_reference_unresolved"));
}

#[test]
fn changes_apply_in_their_order() {
    let tools = json!([tool("a"), tool("b")]);
    let with = |changes: Vec<(bool, Value)>| Given { changes, ..Given::tools(tools.clone()) };
    let defined = json!({"type": "tool_definition", "definition": tool("c")});
    assert_eq!(with(vec![(false, reference("a"))]).names(), "b");
    assert_eq!(with(vec![(false, reference("a")), (true, reference("a"))]).names(), "a b");
    assert_eq!(with(vec![(true, reference("a")), (false, reference("a"))]).names(), "b");
    assert_eq!(with(vec![(true, defined.clone())]).names(), "a b c");
    assert_eq!(with(vec![(true, defined.clone()), (false, reference("c"))]).names(), "a b");
    let again = with(vec![(true, defined.clone()), (true, defined.clone())]);
    assert_eq!(again.names(), "a b c");
    assert_eq!(Given { strict: true, ..again }.error().code.as_deref(), Some("tool_name_conflict"));
    let redefined = json!({"type": "tool_definition", "definition": {"name": "a", "description": "new", "input_schema": {}}});
    let replaced =
        with(vec![(false, reference("a")), (true, redefined.clone()), (true, reference("a"))]);
    // A replaced tool keeps its place, so that an upstream's cache of the tools stays valid.
    assert_eq!(replaced.names(), "a b");
    assert_eq!(replaced.got().body["tools"][0]["function"]["description"], "new");
    let conflict = with(vec![(true, redefined)]).error();
    assert_eq!(conflict.code.as_deref(), Some("tool_name_conflict"));
    let place = "messages[1].content[0].tool.definition";
    assert_eq!(conflict.message, format!("{place}: Tool names must be unique."));
    assert_eq!(with(vec![(false, reference("a")), (false, reference("b"))]).got().body, json!({}));
}

#[test]
fn a_change_that_names_nothing_is_rejected() {
    for addition in [true, false] {
        let changes = vec![(addition, reference("nope"))];
        let error = Given { changes, ..Given::tools(json!([tool("a")])) }.error();
        assert_eq!(error.code.as_deref(), Some("tool_reference_unresolved"));
        assert_eq!(
            error.message,
            "messages[1].content[0].tool: Tool reference 'nope' not found in available tools"
        );
        for target in [
            json!({"type": "mcp_tool_reference", "server_name": "s", "name": "a"}),
            json!({"type": "mcp_toolset_reference", "server_name": "s"}),
        ] {
            let changes = vec![(addition, target)];
            let error = Given { changes, ..Given::tools(json!([tool("a")])) }.error();
            assert!(error.message.contains("not supported by this gateway"));
        }
    }
}

#[test]
fn client_tools_get_their_implied_names_and_schemas() {
    let given = Given::tools(json!([
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9000},
        {"type": "memory_20250818", "name": "memory", "strict": true, "input_examples": [{"command": "view"}]},
        {"type": "computer_20251124", "name": "computer", "display_width_px": 1024, "display_height_px": 768,
            "display_number": 1, "enable_zoom": true},
    ]));
    assert_eq!(given.names(), "bash str_replace_based_edit_tool memory computer");
    let got = given.got();
    let function = |index: usize| got.body["tools"][index]["function"].clone();
    assert!(function(0)["parameters"]["properties"]["restart"].is_object());
    assert!(function(1)["description"].as_str().unwrap().contains("at most 9000 characters"));
    assert!(
        function(2)["description"]
            .as_str()
            .unwrap()
            .ends_with("\n\nExamples:\n{\"command\":\"view\"}")
    );
    let computer = function(3)["description"].as_str().unwrap().to_owned();
    assert!(computer.contains("1024 x 768") && computer.contains("display number is 1"));
    assert!(function(3)["parameters"]["properties"]["region"].is_object());
    assert_eq!(got.warnings, "");
}

#[test]
fn unknown_types_are_served_where_that_is_possible() {
    let given = Given::tools(
        json!([{"type": "bash_20280101", "name": "shell"}, {"type": "new_thing", "name": "n", "input_schema": {}}]),
    );
    assert_eq!(given.names(), "shell n");
    assert_eq!(given.got().warnings, "unknown_tool_type:bash_20280101,unknown_tool_type:new_thing");
    assert!(
        Given { strict: true, ..given }
            .error()
            .message
            .starts_with("tools.0: Input tag 'bash_20280101'")
    );
    let unknown = Given::tools(json!([tool("a"), {"type": "new_thing", "name": "n"}]));
    assert!(
        unknown.error().message.starts_with("tools.1: Input tag 'new_thing' found using 'type'")
    );
}

#[test]
fn an_unknown_type_is_told_by_its_beginning() {
    let long = "t".repeat(10_000);
    let tool = Given::tools(json!([{"type": long, "name": "n"}]));
    let choice = Given::tools(json!([])).choice(json!({"type": long}));
    for given in [tool, choice] {
        let message = given.error().message.clone();
        assert!(message.contains(&"t".repeat(64)) && message.len() < 300, "{message}");
    }
}

#[test]
fn toolsets_become_one_function_for_each_enabled_member() {
    let computer = Given::tools(json!([{"type": "computer_toolset_20260801", "configs": {
        "zoom": {"enabled": false}, "screenshot": {}, "key": null,
    }}]));
    let names = computer.names();
    assert_eq!(names.split(' ').count(), 16);
    assert!(names.contains("computer__left_click") && !names.contains("computer__zoom"));
    let got = computer.got();
    let context = got.context.meant_by("computer__left_click").unwrap().clone();
    assert_eq!((context.name.as_str(), context.toolset), ("left_click", Some("computer")));

    let browser = Given::tools(json!([{"type": "browser_toolset_20260801"}])).names();
    assert_eq!(browser.split(' ').count(), 27);
    assert!(!browser.contains("javascript_exec") && !browser.contains("read_console"));
    let enabled = Given::tools(
        json!([{"type": "browser_toolset_20260801", "configs": {"javascript_exec": {"enabled": true}, "teleport": {}}}]),
    );
    assert!(enabled.names().contains("browser__javascript_exec"));
    assert_eq!(enabled.got().warnings, "unknown_field:teleport");

    let tools = json!([tool("tool_search"), {"type": "browser_toolset_20260801", "configs": {
        "find": {"defer_loading": true}, "wait": {"defer_loading": true}}}]);
    let waiting = Given { activated: vec!["find"], ..Given::tools(tools.clone()) }.names();
    assert!(waiting.contains("browser__find") && !waiting.contains("browser__wait"));
    let removed = Given { changes: vec![(false, reference("browser"))], ..Given::tools(tools) };
    assert_eq!(removed.names(), "tool_search");
    let forced = Given::tools(json!([{"type": "computer_toolset_20260801"}]))
        .choice(json!({"type": "tool", "name": "zoom"}));
    assert!(forced.error().message.contains("'zoom' not found"));
}
