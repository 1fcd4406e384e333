//! What a request says about tools: definitions, the choice among them, and changes in mid
//! conversation.
//!
//! All kinds of tools share one wide struct: the `type` that tells them apart may come last, and
//! kinds are added with every release of the API, so which fields belong to which kind is no matter
//! of reading. Absent and `null` are the same. A Chat Completions tool (`type: "function"`) is read
//! as well: clients that speak both protocols mix them up.

use std::borrow::Cow;

use super::source::{Read, Source, bad_tag, missing, required};
use crate::json::{Raw, Str, ValueKind};
use crate::json_schema::Found;
use crate::limits::Many;

/// An element of `tools`, or the `definition` of an added tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolDefinition<'a> {
    /// Where it stands in the body.
    pub at: usize,
    /// `type`; empty if absent, which means a custom tool.
    pub tool_type: Cow<'a, str>,
    /// `name`, for a Chat Completions tool that of its function.
    pub name: Option<Cow<'a, str>>,
    /// `description`
    pub description: Option<Str<'a>>,
    /// `input_schema`, an object; for a Chat Completions tool the `parameters`.
    pub input_schema: Option<Raw<'a>>,
    /// What was found in `input_schema`.
    pub found: Found,
    /// Whether there is a `cache_control`.
    pub cached: bool,
    /// `strict`
    pub strict: bool,
    /// `defer_loading`
    pub defer_loading: bool,
    /// `allowed_callers` are given, and the model itself is none of them.
    pub uncallable: bool,
    /// What few tools have. A definition may be three bytes long, and a request have thousands.
    rare: Option<Box<Rare<'a>>>,
}

/// Members of a definition that few tools have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare<'a> {
    /// `input_examples`, each an object.
    pub input_examples: Vec<Raw<'a>>,
    /// `display_width_px` (computer)
    pub display_width_px: Option<u64>,
    /// `display_height_px` (computer)
    pub display_height_px: Option<u64>,
    /// `display_number` (computer)
    pub display_number: Option<u64>,
    /// `enable_zoom` (computer)
    pub enable_zoom: bool,
    /// `max_characters` (text editor)
    pub max_characters: Option<u64>,
    /// `configs` of a toolset, in their order.
    pub configs: Vec<MemberConfig>,
    /// `user_location` (web search), an object.
    pub user_location: Option<&'a str>,
    /// Limits of a server tool that are given: `max_uses`, `allowed_domains` and the like.
    pub limits: Vec<&'static str>,
    /// `function` of a Chat Completions tool, an object.
    pub function: Option<Raw<'a>>,
}

/// What a toolset says about one of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberConfig {
    /// The member.
    pub name: String,
    /// `enabled`
    pub enabled: Option<bool>,
    /// `defer_loading`
    pub defer_loading: bool,
}

impl<'a> ToolDefinition<'a> {
    /// What few tools have.
    pub(crate) fn rare(&self) -> &Rare<'a> {
        const NONE: &Rare<'static> = &Rare {
            input_examples: Vec::new(),
            display_width_px: None,
            display_height_px: None,
            display_number: None,
            enable_zoom: false,
            max_characters: None,
            configs: Vec::new(),
            user_location: None,
            limits: Vec::new(),
            function: None,
        };
        self.rare.as_deref().unwrap_or(NONE)
    }

    fn rare_mut(&mut self) -> &mut Rare<'a> {
        self.rare.get_or_insert_default()
    }

    pub(super) fn read(source: &mut Source<'a, '_>) -> Read<Self> {
        source.reader.kind()?;
        let start = source.reader.clone();
        let mut tool = Self { at: start.offset(), ..Self::default() };
        source.object(|source, key| tool.read_member(source, key))?;
        let is_named = tool.name.is_some() || !tool.tool_type.is_empty();
        if !is_named && tool.input_schema.is_none() && tool.rare.is_none() {
            // There can be many of three bytes.
            source.reader = start;
            return Err(missing("name"));
        }
        Ok(tool)
    }

    fn read_member(&mut self, source: &mut Source<'a, '_>, key: &str) -> Read<bool> {
        match key {
            "type" => self.tool_type = source.reader.string()?.decode(),
            "name" => return source.word(&mut self.name),
            "description" => return source.string(&mut self.description),
            "input_schema" => {
                source.expect(ValueKind::Object)?;
                let (schema, found) = Found::read(&mut source.reader)?;
                (self.input_schema, self.found) = (Some(schema), found);
            }
            "input_examples" => {
                let examples = &mut self.rare_mut().input_examples;
                examples.clear();
                source.array(Many::Examples, |source| {
                    let mut example = None;
                    source.raw_object(&mut example)?;
                    examples.extend(example);
                    Ok(())
                })?;
            }
            "strict" => return source.bool(&mut self.strict),
            "defer_loading" => return source.bool(&mut self.defer_loading),
            "allowed_callers" => {
                self.uncallable = true;
                source.array(Many::Fields, |source| {
                    self.uncallable &= source.reader.string()? != "direct";
                    Ok(())
                })?;
            }
            "display_width_px" | "display_height_px" | "display_number" | "enable_zoom"
            | "max_characters" | "configs" | "user_location" => {
                return self.rare_mut().read_member(source, key);
            }
            "function" => self.read_function(source)?,
            // What cannot be passed on, and changes nothing in what the model may answer.
            "cache_control" => return source.given(&mut self.cached),
            "eager_input_streaming" => return source.skip(),
            _ => {
                let Some(limit) = SERVER_TOOL_LIMITS.iter().find(|limit| **limit == key) else {
                    return Ok(false);
                };
                let limits = &mut self.rare_mut().limits;
                if !limits.contains(limit) {
                    limits.push(limit);
                }
                return source.skip();
            }
        }
        Ok(true)
    }

    /// Takes from `function` what is asked about any tool.
    fn read_function(&mut self, source: &mut Source<'a, '_>) -> Read<()> {
        let mut function = source.reader.clone();
        source.object(|source, key| match key {
            "name" => source.word(&mut self.name),
            "parameters" => source.raw_object(&mut self.input_schema),
            _ => source.skip(),
        })?;
        self.rare_mut().function = Some(function.raw()?);
        Ok(())
    }
}

impl<'a> Rare<'a> {
    fn read_member(&mut self, source: &mut Source<'a, '_>, key: &str) -> Read<bool> {
        match key {
            "display_width_px" => return source.whole_number(&mut self.display_width_px),
            "display_height_px" => return source.whole_number(&mut self.display_height_px),
            "display_number" => return source.whole_number(&mut self.display_number),
            "enable_zoom" => return source.bool(&mut self.enable_zoom),
            "max_characters" => return source.whole_number(&mut self.max_characters),
            "configs" => {
                source.reader.kind()?;
                let start = source.reader.offset();
                source.object(|source, name| {
                    source.count(Many::Configs, start)?;
                    self.configs.push(MemberConfig::read(source, name)?);
                    Ok(true)
                })?;
            }
            "user_location" => self.user_location = Some(source.raw_of(ValueKind::Object)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl MemberConfig {
    fn read(source: &mut Source<'_, '_>, name: &str) -> Read<Self> {
        let mut config = Self { name: name.to_owned(), ..Self::default() };
        source.object(|source, key| match key {
            "enabled" => source.bool(config.enabled.insert(false)),
            "defer_loading" => source.bool(&mut config.defer_loading),
            _ => Ok(false),
        })?;
        Ok(config)
    }
}

/// The fields of server tools and of MCP toolsets, beside the common ones.
const SERVER_TOOL_LIMITS: [&str; 14] = [
    "max_uses",
    "allowed_domains",
    "blocked_domains",
    "response_inclusion",
    "citations",
    "max_content_tokens",
    "url_sources",
    "use_cache",
    "model",
    "max_tokens",
    "caching",
    "mcp_server_name",
    "default_config",
    "tools",
];

/// `tool_choice`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolChoice<'a> {
    /// `type` and `name`
    pub mode: ChoiceMode<'a>,
    /// `disable_parallel_tool_use`
    pub disable_parallel_tool_use: bool,
}

/// Who chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceMode<'a> {
    /// The model calls tools or does not.
    Auto,
    /// It must call one.
    Any,
    /// It must call this one.
    Tool(Cow<'a, str>),
    /// It must not call any.
    None,
}

impl<'a> ToolChoice<'a> {
    pub(super) fn read(source: &mut Source<'a, '_>) -> Read<Self> {
        let (mut tag, mut name, mut disable_parallel_tool_use) = (None, None, false);
        source.object(|source, key| match key {
            "type" => source.string(&mut tag),
            "name" => source.word(&mut name),
            "disable_parallel_tool_use" => source.bool(&mut disable_parallel_tool_use),
            _ => Ok(false),
        })?;
        let tag = required(tag, "type")?;
        let mode = match tag.decode().as_ref() {
            "auto" => ChoiceMode::Auto,
            "any" => ChoiceMode::Any,
            "none" => ChoiceMode::None,
            "tool" => ChoiceMode::Tool(required(name, "name")?),
            _ => return Err(bad_tag(tag, "'auto', 'any', 'tool', 'none'")),
        };
        Ok(Self { mode, disable_parallel_tool_use })
    }
}

/// A `tool_addition` or `tool_removal`: a change of the tools in mid conversation.
#[derive(Clone, Debug)]
pub(crate) enum ToolChange<'a> {
    /// A tool of `tools` is offered from here on.
    Add(Reference<'a>),
    /// It is offered no longer.
    Remove(Reference<'a>),
    /// A tool that is not in `tools` is offered from here on.
    Define(Box<ToolDefinition<'a>>),
}

/// Names a tool of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    /// Where it stands in the body.
    pub at: usize,
    /// To what.
    pub target: Target<'a>,
}

/// What a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// A tool, by its name.
    Tool(Cow<'a, str>),
    /// A tool of an MCP server, or all of them.
    Mcp,
}

impl<'a> ToolChange<'a> {
    /// Reads the value of `tool` in a `tool_addition` block, or (`addition` is false) in a
    /// `tool_removal` block.
    pub(super) fn read(source: &mut Source<'a, '_>, addition: bool) -> Read<Self> {
        source.reader.kind()?;
        let at = source.reader.offset();
        let (mut tag, mut name, mut definition) = (None, None, None);
        source.object(|source, key| match key {
            "type" => source.string(&mut tag),
            // `tool_name` is what the block of the same type inside a tool result says.
            "name" | "tool_name" => source.word(&mut name),
            "server_name" | "cache_control" => source.skip(),
            "definition" if addition => {
                source.count(Many::Tools, at)?;
                definition = Some(Box::new(ToolDefinition::read(source)?));
                Ok(true)
            }
            _ => Ok(false),
        })?;
        let tag = required(tag, "type")?;
        let target = match tag.decode().as_ref() {
            "tool_definition" if addition => {
                return Ok(Self::Define(required(definition, "definition")?));
            }
            "tool_reference" => Target::Tool(required(name, "name")?),
            "mcp_tool_reference" | "mcp_toolset_reference" => Target::Mcp,
            _ => {
                let known = match addition {
                    true => {
                        "'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference', \
                         'tool_definition'"
                    }
                    false => "'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference'",
                };
                return Err(bad_tag(tag, known));
            }
        };
        let reference = Reference { at, target };
        Ok(if addition { Self::Add(reference) } else { Self::Remove(reference) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::{Block, Request};
    use crate::warning::Warnings;

    /// Reads a body with `members` beside those that every request has.
    fn request(members: &str, warnings: &mut Warnings) -> Result<Request<'static>, String> {
        let body = format!("{{\"model\":\"m\",\"messages\":[],{members}}}");
        Request::read(body.leak(), 128, warnings).map_err(|error| error.message.clone())
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
        assert_eq!((read.rare().display_number, read.rare().max_characters), (Some(3), Some(4)));
    }

    #[test]
    fn a_chat_completions_tool_is_read_too() {
        let text =
            r#"{"function":{"parameters":{"x":1},"name":"w","strict":true},"type":"function"}"#;
        let read = tool(text).unwrap();
        assert_eq!(
            (read.name.as_deref(), read.input_schema),
            (Some("w"), Some(Raw::of(r#"{"x":1}"#)))
        );
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
        let mut read = Request::read(body.leak(), 128, &mut Warnings::new(true))
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
            matches!(added, ToolChange::Add(Reference { target: Target::Tool(name), .. }) if name == "w")
        );
        let removed =
            change(r#"{"type":"mcp_tool_reference","name":"w","server_name":"s"}"#, false);
        assert!(matches!(
            removed.unwrap(),
            ToolChange::Remove(Reference { target: Target::Mcp, .. })
        ));
        let defined = change(
            r#"{"definition":{"name":"d","input_schema":{}},"type":"tool_definition"}"#,
            true,
        );
        let Ok(ToolChange::Define(definition)) = defined else { panic!("{defined:?}") };
        assert_eq!(definition.name.as_deref(), Some("d"));
        let message = change(r#"{"type":"tool_definition"}"#, false).unwrap_err();
        assert!(
            message.ends_with("'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference'")
        );
        let message = change(r#"{"type":"tool_reference"}"#, true).unwrap_err();
        assert_eq!(message, "messages[0].content[0].tool.name: Field required");
    }
}
