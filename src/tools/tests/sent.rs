//! Tests of the tools that are sent: server tools, limits, the choice, dialects.

use super::*;
use crate::profile::{ToolChoiceAny, ToolChoiceNamed, ToolChoiceNone};
use crate::profile::{ToolSchema, WebSearch};

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
        let mut message =
            format!("tools[0]: the server tool {name} is not supported by this gateway");
        if name == "web_search" {
            message.push_str(
                " without a search service: --search URL, or server_tools.web_search in its configuration",
            );
        }
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
    assert_eq!(given.error().message, "tools[1]: mcp_toolset is not supported by this gateway");
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
    // Members that are null are left out, because not every upstream accepts null.
    let empty =
        json!({"description": null, "name": "w", "strict": null, "parameters": {"a": null}});
    let tools = Given::tools(json!([{"type": "function", "function": empty}])).got().body;
    let sent = json!({"name": "w", "parameters": {"a": null}});
    assert_eq!(tools["tools"], json!([{"type": "function", "function": sent}]));
    // The upstream does not read a name beside `function`.
    for nameless in [json!({"name": ""}), json!({"parameters": {}}), json!({"name": null})] {
        let tools = json!([{"name": "w", "function": nameless, "type": "function"}]);
        let message = &Given::tools(tools).error().message;
        assert_eq!(message, "tools[0].function.name: Field required", "{nameless}");
    }
    let tools = json!([{"type": "function", "function": {"name": "a"}, "name": "b"}]);
    assert_eq!(Given::tools(tools).names(), "a");
}

#[test]
fn too_many_tools_are_rejected_with_the_limit() {
    let tools: Vec<Value> = (0..129).map(|number| tool(&format!("t{number}"))).collect();
    let given = Given::tools(json!(tools)).profile(|profile| profile.max_tools = 128);
    let message = &given.error().message;
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
    assert_eq!(sent("openai-chat"), schema);
    assert_eq!(sent("mistral"), json!({"type": "object", "properties": {"title": {"const": "a"}}}));
    let gemini =
        Given::tools(tools).profile(|profile| profile.tool_schema = ToolSchema::Gemini).got();
    assert_eq!(
        gemini.body["tools"][0]["function"]["parameters"]["properties"]["title"],
        json!({"enum": ["a"], "type": "string"})
    );
    assert!(gemini.context.iter().next().unwrap().schema.as_ref().unwrap().contains("$schema"));
}

#[test]
fn gemini_gets_no_empty_properties() {
    let schemas = [
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"properties": {"p": {"type": "object", "properties": {}}}}),
        json!({"type": "object", "anyOf": [{"properties": {"a": {}}}]}),
        json!({"$ref": "#/$defs/none"}),
        json!({"properties": {"p": {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}}}),
    ];
    let tools = schemas.iter().enumerate();
    let tools = tools.map(|(at, schema)| json!({"name": format!("t{at}"), "input_schema": schema}));
    let given = Given::tools(tools.collect());
    let sent = given.profile(|profile| profile.tool_schema = ToolSchema::Gemini).got().body;
    let parameters = |at: usize| sent["tools"][at]["function"].get("parameters");
    assert_eq!(parameters(0), None);
    assert_eq!(parameters(1).unwrap()["properties"], json!({"p": {"type": "object"}}));
    assert_eq!(parameters(2).unwrap()["properties"], json!({"a": {}}));
    assert_eq!(parameters(3), None);
    assert_eq!(parameters(4).unwrap()["properties"], json!({"p": {"type": "object"}}));
}

/// Tests that schemas are sent without references to missing definitions: llama.cpp, Kimi and
/// OpenAI refuse every request with such a reference.
#[test]
fn no_upstream_gets_a_reference_that_leads_nowhere() {
    let schema = json!({"type": "object", "required": ["u", "f"], "additionalProperties": false, "properties": {
        "u": {"$ref": "#/$defs/User"},
        "f": {"type": "array", "items": {"$ref": "#/$defs/F", "$defs": {"F": {"type": "string"}}}}}});
    for dialect in [
        ToolSchema::Full,
        ToolSchema::Mistral,
        ToolSchema::Gemini,
        ToolSchema::Kimi,
        ToolSchema::LlamaCpp,
        ToolSchema::Ollama,
    ] {
        let given = Given::tools(json!([{"name": "t", "input_schema": schema}]));
        let given = given.profile(|profile| {
            (profile.tool_schema, profile.strict_tools) = (dialect, true);
        });
        let function = &given.got().body["tools"][0]["function"];
        let parameters = &function["parameters"];
        assert!(parameters["properties"]["u"].get("$ref").is_none(), "{parameters}");
        let item = &parameters["properties"]["f"]["items"];
        let path = item["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
        let defined = path.map_or(item, |path| parameters.pointer(path).unwrap());
        assert_eq!(defined["type"], "string", "{parameters}");
        assert_eq!(function.get("strict"), None);
    }
}
