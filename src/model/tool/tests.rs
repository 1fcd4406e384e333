//! Tests of `tool.rs`.

use super::*;
use crate::model::{Block, Request};
use crate::observe::warning::Warnings;

/// Reads a request body with the given `members` after the members that every request has.
fn request(members: &str, warnings: &mut Warnings) -> Result<Request<'static>, String> {
    let body = format!("{{\"model\":\"m\",\"messages\":[],{members}}}");
    Request::read(body.leak(), warnings).map_err(|error| error.message.clone())
}

fn tool(text: &str) -> Result<ToolDefinition<'static>, String> {
    let read =
        request(&format!("\"tools\":[{{\"name\":\"x\"}},{text}]"), &mut Warnings::new(true))?;
    Ok(read.tools.into_iter().nth(1).unwrap())
}

#[test]
fn the_order_of_fields_does_not_matter_and_null_is_absent() {
    let read = tool(
        r#"{"input_schema":{"type":"object"},"description":"say \"w\"","strict":null,"name":"w\u0065ather",
                "cache_control":{"type":"ephemeral"},"input_examples":[{"a":1}],"eager_input_streaming":true,
                "allowed_callers":["direct"],"defer_loading":true,"configs":null,"type":"custom"}"#,
    )
    .unwrap();
    assert_eq!((read.tool_type.as_ref(), read.name.as_deref()), ("custom", Some("weather")));
    assert_eq!(read.input_schema, Some(Raw::of(r#"{"type":"object"}"#)));
    assert_eq!(read.description.unwrap().raw(), r#"say \"w\""#);
    assert_eq!(read.rare().input_examples, [Raw::of(r#"{"a":1}"#)]);
    assert!(read.defer_loading && !read.strict);
}

#[test]
fn a_bad_field_is_named_by_its_path() {
    for (text, message) in [
        (r#"[]"#, "tools[1]: expected an object, but found an array"),
        (r#"{"name":7}"#, "tools[1].name: expected a string, but found a number"),
        (
            r#"{"input_schema":"{}"}"#,
            "tools[1].input_schema: expected an object, but found a string",
        ),
        (
            r#"{"input_examples":[{},1]}"#,
            "tools[1].input_examples[1]: expected an object, but found a number",
        ),
        (
            r#"{"configs":{"zoom":{"enabled":"no"}}}"#,
            "tools[1].configs.zoom.enabled: expected a boolean, but found a string",
        ),
        (
            r#"{"type":"function","function":{"name":1}}"#,
            "tools[1].function.name: expected a string, but found a number",
        ),
        (r#"{"colour":1}"#, "tools[1].colour: Extra inputs are not permitted"),
        (
            r#"{"configs":{"zoom":{"x":1}}}"#,
            "tools[1].configs.zoom.x: Extra inputs are not permitted",
        ),
    ] {
        assert_eq!(tool(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn unknown_fields_are_counted_unless_strict() {
    let mut warnings = Warnings::new(false);
    let text = r#"{"name":"w","colour":{"x":[1]},"input_schema":{}}"#;
    let read = request(&format!("\"tools\":[{text}]"), &mut warnings).unwrap();
    assert_eq!(read.tools[0].name.as_deref(), Some("w"));
    assert_eq!(warnings.header().as_deref(), Some("unknown_field:colour"));
}

#[test]
fn the_fields_of_every_kind_are_known() {
    let text = r#"{"type":"web_search_20260318","name":"web_search","max_uses":8,"allowed_domains":null,
            "blocked_domains":["a"],"user_location":{"type":"approximate"},"response_inclusion":"full",
            "citations":{},"max_content_tokens":1,"url_sources":{},"use_cache":true,"model":"m","max_tokens":1,
            "caching":{},"mcp_server_name":"s","default_config":{},"tools":[],"display_width_px":1,
            "display_height_px":2,"display_number":3,"enable_zoom":true,"max_characters":4}"#;
    let read = tool(text).unwrap();
    assert_eq!(read.rare().limits.first(), Some(&"max_uses"));
    assert!(
        !read.rare().limits.contains(&"allowed_domains")
            && read.rare().limits.contains(&"blocked_domains")
    );
    assert_eq!(
        (read.rare().computer().display_number, read.rare().max_characters),
        (Some(3), Some(4))
    );
}

#[test]
fn a_chat_completions_tool_is_read_too() {
    let text = r#"{"function":{"parameters":{"x":1},"name":"w","strict":true},"type":"function"}"#;
    let read = tool(text).unwrap();
    assert_eq!((read.name.as_deref(), read.input_schema), (Some("w"), Some(Raw::of(r#"{"x":1}"#))));
    assert_eq!(
        read.rare().function,
        Some(Raw::of(r#"{"parameters":{"x":1},"name":"w","strict":true}"#))
    );
}

fn choice(text: &str) -> Result<ToolChoice<'static>, String> {
    let read = request(&format!("\"tool_choice\":{text}"), &mut Warnings::new(true))?;
    Ok(read.tool_choice.unwrap())
}

#[test]
fn a_choice_is_one_of_four() {
    for (text, mode, alone) in [
        (r#"{"type":"auto"}"#, ChoiceMode::Auto, false),
        (r#"{"disable_parallel_tool_use":true,"type":"any"}"#, ChoiceMode::Any, true),
        (r#"{"name":"w","type":"tool"}"#, ChoiceMode::Tool("w".into()), false),
        (r#"{"type":"none","name":null}"#, ChoiceMode::None, false),
    ] {
        let expected = ToolChoice { mode, disable_parallel_tool_use: alone };
        assert_eq!(choice(text), Ok(expected), "{text}");
    }
    for (text, message) in [
        (r#""auto""#, "tool_choice: expected an object, but found a string"),
        (r#"{}"#, "tool_choice.type: Field required"),
        (r#"{"type":"tool"}"#, "tool_choice.name: Field required"),
        (
            r#"{"type":"required"}"#,
            "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
        ),
        (r#"{"type":"auto","x":1}"#, "tool_choice.x: Extra inputs are not permitted"),
    ] {
        assert_eq!(choice(text), Err(message.to_owned()), "{text}");
    }
}

fn change(text: &str, addition: bool) -> Result<ToolChange<'static>, String> {
    let tag = if addition { "tool_addition" } else { "tool_removal" };
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"system","content":[{{"type":"{tag}","tool":{text}}}]}}]}}"#
    );
    let mut read = Request::read(body.leak(), &mut Warnings::new(true))
        .map_err(|error| error.message.clone())?;
    match read.messages.remove(0).content.remove(0) {
        Block::ToolChange(change) => Ok(*change),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_change_names_or_defines_a_tool() {
    let added = change(r#"{"name":"w","type":"tool_reference"}"#, true).unwrap();
    assert!(
        matches!(added, ToolChange::Add(Reference { target: ReferencedTool::Tool(name), .. }) if name == "w")
    );
    let removed = change(r#"{"type":"mcp_tool_reference","name":"w","server_name":"s"}"#, false);
    assert!(matches!(
        removed.unwrap(),
        ToolChange::Remove(Reference { target: ReferencedTool::Mcp, .. })
    ));
    let defined =
        change(r#"{"definition":{"name":"d","input_schema":{}},"type":"tool_definition"}"#, true);
    let Ok(ToolChange::Define(definition)) = defined else { panic!("{defined:?}") };
    assert_eq!(definition.name.as_deref(), Some("d"));
    let message = change(r#"{"type":"tool_definition"}"#, false).unwrap_err();
    assert!(message.ends_with("'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference'"));
    let message = change(r#"{"type":"tool_reference"}"#, true).unwrap_err();
    assert_eq!(message, "messages[0].content[0].tool.name: Field required");
}
