//! Tables A.6 and A.7, row by row.

use serde_json::{Value, json};

use super::*;
use crate::json::Reader;
use crate::profile::{ToolChoiceAny, ToolChoiceNamed, ToolChoiceNone};

/// A request's say about tools.
#[derive(Default)]
struct Given {
    tools: Value,
    /// `(addition, value of "tool")`
    changes: Vec<(bool, Value)>,
    activated: Vec<&'static str>,
    choice: Value,
    history: bool,
    profile: Profile,
    strict: bool,
}

/// What became of it.
struct Got {
    body: Value,
    asked: asked::Tools,
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
        let tools: Vec<String> = match self.tools.as_array() {
            Some(tools) => tools.iter().map(Value::to_string).collect(),
            None => Vec::new(),
        };
        let changes: Vec<(bool, String)> =
            self.changes.iter().map(|(addition, tool)| (*addition, tool.to_string())).collect();
        let choice = self.choice.to_string();
        let mut definitions = Vec::new();
        for (index, tool) in tools.iter().enumerate() {
            let path = format!("tools[{index}]");
            definitions.push(ToolDefinition::read(
                &mut Reader::new(tool, 128),
                &path,
                &mut warnings,
            )?);
        }
        let mut read = Vec::new();
        for (index, (addition, tool)) in changes.iter().enumerate() {
            let path = format!("messages[1].content[{index}].tool");
            let mut reader = Reader::new(tool, 128);
            read.push(ToolChange::read(&mut reader, *addition, &path, &mut warnings)?);
        }
        let choice = match choice.as_str() {
            "null" => None,
            text => Some(ToolChoice::read(&mut Reader::new(text, 128), &mut warnings)?),
        };
        let activated = self.activated.iter().map(|name| Cow::Borrowed(*name)).collect();
        let set = ToolSet::new(
            definitions,
            read,
            &activated,
            choice,
            self.history,
            &self.profile,
            &mut warnings,
        )?;
        Ok(see(&set, &mut warnings))
    }

    fn got(&self) -> Got {
        self.with(|set, warnings| {
            let mut out = Vec::new();
            let mut json = Writer::new(&mut out);
            json.begin_object();
            set.write(&mut json);
            json.end_object();
            Got {
                body: serde_json::from_slice(&out).unwrap(),
                asked: set.asked(true),
                one_tool_call: set.one_tool_call(),
                warnings: warnings.header().unwrap_or_default(),
            }
        })
        .unwrap()
    }

    fn error(&self) -> Error {
        self.with(|_, _| ()).unwrap_err()
    }

    /// The names that the upstream gets.
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
    let asked = given.got().asked;
    assert_eq!(asked.meant_by("my_tool_ba077b42").unwrap().name, "my tool");
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
    let tools = json!([tool("a"), {"name": "b", "input_schema": {}, "allowed_callers": ["code_execution_20260120"]}]);
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
    let referred = Given { activated: vec!["b"], ..Given::tools(tools.clone()) };
    assert_eq!(referred.names(), "ToolSearch b");
    let added = Given { changes: vec![(true, reference("a"))], ..Given::tools(tools.clone()) };
    assert_eq!(added.names(), "ToolSearch a");
    let forced = Given::tools(tools).choice(json!({"type": "tool", "name": "a"}));
    assert_eq!(forced.names(), "ToolSearch a");
    // A reference is enough of a sign that the client loads tools.
    let plain = json!([tool("w"), deferred("a"), deferred("b")]);
    let referred = Given { activated: vec!["a"], ..Given::tools(plain) };
    assert_eq!(referred.names(), "w a");
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
    // Searching on the server loads all of them, whatever has been found so far.
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
    assert_eq!(error.code, Some("tool_reference_unresolved"));
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
    assert_eq!(Given { strict: true, ..again }.error().code, Some("tool_name_conflict"));
    let redefined = json!({"type": "tool_definition", "definition": {"name": "a", "description": "new", "input_schema": {}}});
    let replaced =
        with(vec![(false, reference("a")), (true, redefined.clone()), (true, reference("a"))]);
    assert_eq!(replaced.names(), "b a");
    assert_eq!(replaced.got().body["tools"][1]["function"]["description"], "new");
    let conflict = with(vec![(true, redefined)]).error();
    assert_eq!(conflict.code, Some("tool_name_conflict"));
    assert_eq!(with(vec![(false, reference("a")), (false, reference("b"))]).got().body, json!({}));
}

#[test]
fn a_change_that_names_nothing_is_rejected() {
    for addition in [true, false] {
        let changes = vec![(addition, reference("nope"))];
        let error = Given { changes, ..Given::tools(json!([tool("a")])) }.error();
        assert_eq!(error.code, Some("tool_reference_unresolved"));
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
fn toolsets_become_one_function_for_each_enabled_member() {
    let computer = Given::tools(json!([{"type": "computer_toolset_20260801", "configs": {
        "zoom": {"enabled": false}, "screenshot": {}, "key": null,
    }}]));
    let names = computer.names();
    assert_eq!(names.split(' ').count(), 16);
    assert!(names.contains("computer__left_click") && !names.contains("computer__zoom"));
    let got = computer.got();
    let asked = got.asked.meant_by("computer__left_click").unwrap().clone();
    assert_eq!((asked.name.as_str(), asked.toolset), ("left_click", Some("computer")));

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

#[test]
fn server_tools_are_left_out_unless_they_are_needed() {
    for tool_type in [
        "web_search_20250305",
        "web_fetch_20260318",
        "code_execution_20250825",
        "tool_search_tool_bm25_20251119",
        "advisor_20260301",
    ] {
        let name = tool_type.rsplit_once('_').unwrap().0;
        let server = json!({"type": tool_type, "name": name, "max_uses": 8});
        let given = Given::tools(json!([server, tool("w")])).choice(json!({"type": "any"}));
        let got = given.got();
        assert_eq!(got.body["tools"].as_array().unwrap().len(), 1);
        assert_eq!(got.warnings, format!("dropped:{tool_type}"));
        let message = format!("tools[0]: the server tool {name} is not supported by this gateway");
        for needed in [
            Given { strict: true, ..given },
            Given::tools(json!([server])).choice(json!({"type": "auto"})),
            Given::tools(json!([server, tool("w")])).choice(json!({"type": "tool", "name": name})),
        ] {
            assert_eq!(needed.error().message, message);
        }
    }
}

#[test]
fn web_search_can_be_the_upstreams_own() {
    let search = |location: Value| json!({"type": "web_search_20250305", "name": "web_search", "user_location": location});
    let options = |tools: Value| {
        Given::tools(tools).profile(|profile| profile.web_search = WebSearch::WebSearchOptions)
    };
    let got = options(json!([search(json!(null))])).got();
    assert_eq!((got.body, got.warnings.as_str()), (json!({"web_search_options": {}}), ""));
    let location =
        json!({"type": "approximate", "city": "Köln", "region": null, "timezone": "Europe/Berlin"});
    let got = options(json!([tool("w"), search(location)])).got();
    assert_eq!(
        got.body["web_search_options"],
        json!({"user_location": {"type": "approximate", "approximate": {"city": "Köln", "timezone": "Europe/Berlin"}}})
    );
    let limited =
        options(json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]));
    assert_eq!(limited.got().warnings, "dropped:max_uses");
    let none = options(json!([search(json!(null))])).choice(json!({"type": "none"}));
    assert_eq!(none.got().body, json!({}));
    let forced = options(json!([search(json!(null)), tool("w")]));
    assert!(
        forced
            .choice(json!({"type": "tool", "name": "web_search"}))
            .error()
            .message
            .contains("web_search")
    );
}

#[test]
fn mcp_toolsets_are_rejected() {
    let given = Given::tools(
        json!([tool("a"), {"type": "mcp_toolset", "mcp_server_name": "s", "default_config": {"enabled": true}, "tools": null}]),
    );
    assert_eq!(given.error().message, "tools[1]: this is not supported by this gateway");
}

#[test]
fn a_chat_completions_tool_is_passed_through() {
    let function =
        json!({"name": "my.tool", "strict": true, "parameters": {"type": "object"}, "x": 1});
    let given = Given::tools(json!([{"type": "function", "function": function}]));
    assert_eq!(given.got().body["tools"], json!([{"type": "function", "function": function}]));
    given.with(|set, _| assert_eq!(set.outgoing_name("my.tool", None), "my.tool")).unwrap();
    let error = Given::tools(json!([{"type": "function", "name": "w"}])).error();
    assert_eq!(error.message, "tools[0].function: Field required");
}

#[test]
fn too_many_tools_are_rejected_with_the_limit() {
    let tools: Vec<Value> = (0..129).map(|number| tool(&format!("t{number}"))).collect();
    let given = Given::tools(json!(tools)).profile(|profile| profile.max_tools = 128);
    let message = given.error().message;
    assert!(message.contains("129") && message.contains("128"), "{message}");
    let tools: Vec<Value> = (0..128).map(|number| tool(&format!("t{number}"))).collect();
    let given = Given::tools(json!(tools)).profile(|profile| profile.max_tools = 128);
    assert_eq!(given.names().split(' ').count(), 128);
}

#[test]
fn without_tools_nothing_is_said_about_them() {
    for tools in [json!(null), json!([])] {
        for choice in [
            json!(null),
            json!({"type": "auto", "disable_parallel_tool_use": true}),
            json!({"type": "none"}),
        ] {
            let given = Given::tools(tools.clone()).choice(choice);
            assert_eq!(given.got().body, json!({}));
            assert!(given.with(|set, _| set.is_empty()).unwrap());
        }
        for choice in [json!({"type": "any"}), json!({"type": "tool", "name": "w"})] {
            assert_eq!(Given::tools(tools.clone()).choice(choice).error().status, 400);
        }
    }
}

#[test]
fn a_choice_is_said_in_the_upstreams_words() {
    let choose = |choice: Value, change: fn(&mut Profile)| {
        let got = Given::tools(json!([tool("w"), tool("v")])).choice(choice).profile(change).got();
        let count = got.body["tools"].as_array().map_or(0, Vec::len);
        (got.body["tool_choice"].clone(), count, got.warnings)
    };
    let none = String::new;
    let downgraded = || "dropped:tool_choice".to_owned();
    let named = json!({"type": "function", "function": {"name": "v"}});
    let v = || json!({"type": "tool", "name": "v"});
    let any = || json!({"type": "any"});
    assert_eq!(choose(json!(null), |_| ()), (json!(null), 2, none()));
    assert_eq!(choose(json!({"type": "auto"}), |_| ()), (json!("auto"), 2, none()));
    assert_eq!(choose(json!({"type": "none"}), |_| ()), (json!("none"), 2, none()));
    assert_eq!(choose(any(), |_| ()), (json!("required"), 2, none()));
    assert_eq!(
        choose(any(), |profile| profile.tool_choice_any = ToolChoiceAny::Any),
        (json!("any"), 2, none())
    );
    assert_eq!(
        choose(any(), |profile| profile.tool_choice_any = ToolChoiceAny::Auto),
        (json!("auto"), 2, downgraded())
    );
    assert_eq!(choose(v(), |_| ()), (named, 2, none()));
    assert_eq!(
        choose(v(), |profile| profile.tool_choice_named = ToolChoiceNamed::OnlyTool),
        (json!("required"), 1, none())
    );
    let only_auto = |profile: &mut Profile| {
        profile.tool_choice_named = ToolChoiceNamed::OnlyTool;
        profile.tool_choice_any = ToolChoiceAny::Auto;
    };
    assert_eq!(choose(v(), only_auto), (json!("auto"), 1, downgraded()));
    let unknown = Given::tools(json!([tool("w")])).choice(v()).error();
    assert_eq!(unknown.message, "tool_choice.name: Tool 'v' not found in provided tools");
    let mapped =
        Given::tools(json!([tool("my tool")])).choice(json!({"type": "tool", "name": "my tool"}));
    assert_eq!(mapped.got().body["tool_choice"]["function"]["name"], "my_tool_ba077b42");
}

#[test]
fn tools_are_left_out_for_none_only_if_the_history_has_no_calls() {
    let none = || {
        Given::tools(json!([tool("w")]))
            .choice(json!({"type": "none"}))
            .profile(|profile| profile.tool_choice_none = ToolChoiceNone::OmitTools)
    };
    assert_eq!(none().got().body, json!({}));
    let body = Given { history: true, ..none() }.got().body;
    assert_eq!(body["tool_choice"], "none");
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn parallel_calls_are_switched_off_only_where_that_is_understood() {
    for (choice, supported, sent, one) in [
        (json!({"type": "auto", "disable_parallel_tool_use": true}), true, true, true),
        (json!({"type": "any", "disable_parallel_tool_use": true}), true, true, true),
        (json!({"type": "tool", "name": "w", "disable_parallel_tool_use": true}), true, true, true),
        (json!({"type": "auto", "disable_parallel_tool_use": true}), false, false, true),
        (json!({"type": "auto", "disable_parallel_tool_use": false}), true, false, false),
        (json!({"type": "auto"}), true, false, false),
    ] {
        let got = Given::tools(json!([tool("w")]))
            .choice(choice)
            .profile(|profile| profile.parallel_tool_calls = supported)
            .got();
        assert_eq!(got.body.get("parallel_tool_calls"), sent.then_some(&json!(false)));
        assert_eq!(got.one_tool_call, one);
    }
}

#[test]
fn schemas_follow_the_profile() {
    let schema = json!({"$schema": "x", "type": "object", "properties": {"title": {"const": "a"}}, "additionalProperties": false});
    let tools = json!([{"name": "w", "input_schema": schema}]);
    let sent = |preset: &str| {
        let profile = Profile::preset(preset).unwrap();
        Given { profile, ..Given::tools(tools.clone()) }.got().body["tools"][0]["function"]["parameters"].clone()
    };
    assert_eq!(sent("openai"), schema);
    assert_eq!(sent("mistral"), json!({"type": "object", "properties": {"title": {"const": "a"}}}));
    let gemini =
        Given::tools(tools).profile(|profile| profile.tool_schema = ToolSchema::Gemini).got();
    assert_eq!(
        gemini.body["tools"][0]["function"]["parameters"]["properties"]["title"],
        json!({"enum": ["a"], "type": "string"})
    );
    assert!(gemini.asked.iter().next().unwrap().schema.as_ref().unwrap().contains("$schema"));
}
