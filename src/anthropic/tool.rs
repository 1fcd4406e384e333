//! What a request says about tools: definitions, the choice among them, and changes in mid
//! conversation.
//!
//! All kinds of tools share one wide struct: the `type` that tells them apart may come last, and
//! kinds are added with every release of the API, so which fields belong to which kind is no matter
//! of reading. Absent and `null` are the same. A Chat Completions tool (`type: "function"`) is read
//! as well: clients that speak both protocols mix them up.

use std::borrow::Cow;

use super::source::unknown_tag;
use crate::error::Error;
use crate::json::{self, Kind, Raw, Reader, Str};
use crate::warning::Warnings;

/// An element of `tools`, or the `definition` of an added tool.
#[derive(Clone, Debug, Default)]
pub struct ToolDefinition<'a> {
    /// Where it stands, as the client would write it: `tools[3]`.
    pub path: String,
    /// `type`; empty if absent, which means a custom tool.
    pub tool_type: Cow<'a, str>,
    /// `name`, for a Chat Completions tool that of its function.
    pub name: Option<Cow<'a, str>>,
    /// `description`
    pub description: Option<Str<'a>>,
    /// `input_schema`, an object; for a Chat Completions tool the `parameters`.
    pub input_schema: Option<Raw<'a>>,
    /// Whether there is a `cache_control`.
    pub cached: bool,
    /// `input_examples`, each an object.
    pub input_examples: Vec<Raw<'a>>,
    /// `strict`
    pub strict: bool,
    /// `defer_loading`
    pub defer_loading: bool,
    /// `allowed_callers`
    pub allowed_callers: Option<Vec<Cow<'a, str>>>,
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
    pub configs: Vec<MemberConfig<'a>>,
    /// `user_location` (web search), an object.
    pub user_location: Option<&'a str>,
    /// Limits of a server tool that are given: `max_uses`, `allowed_domains` and the like.
    pub limits: Vec<&'static str>,
    /// `function` of a Chat Completions tool, an object.
    pub function: Option<Raw<'a>>,
}

/// What a toolset says about one of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberConfig<'a> {
    /// The member.
    pub name: Cow<'a, str>,
    /// `enabled`
    pub enabled: Option<bool>,
    /// `defer_loading`
    pub defer_loading: bool,
}

impl<'a> ToolDefinition<'a> {
    /// Reads one definition; `path` is where it stands.
    ///
    /// # Errors
    /// It is not an object, or a field has a wrong type. In strict mode also: unknown fields.
    pub fn read(
        reader: &mut Reader<'a>,
        path: String,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let at = |error: json::Error| Error::from(error.in_key(&path));
        let mut tool = Self::default();
        reader.begin_object().map_err(at)?;
        while let Some(key) = reader.next_key().map_err(at)? {
            let key = key.decode();
            if key == "configs" {
                tool.configs = read_configs(reader, &format!("{path}.configs"), warnings)?;
                continue;
            }
            if !tool.read_member(reader, &key).map_err(|error| at(error.in_key(&key)))? {
                reader.skip().map_err(at)?;
                warnings.unknown_field(&path, &key)?;
            }
        }
        tool.path = path;
        Ok(tool)
    }

    /// Reads the value of `key`, unless that is unknown.
    fn read_member(&mut self, reader: &mut Reader<'a>, key: &str) -> Result<bool, json::Error> {
        match key {
            "type" => self.tool_type = optional(reader, text)?.unwrap_or_default(),
            "name" => self.name = optional(reader, text)?,
            "description" => self.description = optional(reader, Reader::string)?,
            "input_schema" => self.input_schema = optional(reader, object)?,
            "input_examples" => self.input_examples = list(reader, object)?.unwrap_or_default(),
            "strict" => self.strict = optional(reader, Reader::bool)?.unwrap_or_default(),
            "defer_loading" => {
                self.defer_loading = optional(reader, Reader::bool)?.unwrap_or_default();
            }
            "allowed_callers" => self.allowed_callers = list(reader, text)?,
            "display_width_px" => self.display_width_px = optional(reader, Reader::u64)?,
            "display_height_px" => self.display_height_px = optional(reader, Reader::u64)?,
            "display_number" => self.display_number = optional(reader, Reader::u64)?,
            "enable_zoom" => self.enable_zoom = optional(reader, Reader::bool)?.unwrap_or_default(),
            "max_characters" => self.max_characters = optional(reader, Reader::u64)?,
            "user_location" => {
                self.user_location = optional(reader, object)?.map(|location| location.text())
            }
            "function" => {
                self.function = optional(reader, object)?;
                self.read_function()?;
            }
            // What cannot be passed on, and changes nothing in what the model may answer.
            "cache_control" => self.cached = optional(reader, Reader::skip)?.is_some(),
            "eager_input_streaming" => drop(reader.skip()?),
            _ => {
                let Some(limit) = SERVER_TOOL_LIMITS.iter().find(|limit| **limit == key) else {
                    return Ok(false);
                };
                if !reader.null()? {
                    reader.skip()?;
                    self.limits.push(limit);
                }
            }
        }
        Ok(true)
    }

    /// Takes from `function` what is asked about any tool.
    fn read_function(&mut self) -> Result<(), json::Error> {
        let Some(function) = self.function else { return Ok(()) };
        let mut reader = Reader::of(function.text());
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let key = key.decode();
            let read = match key.as_ref() {
                "name" => optional(&mut reader, text).map(|name| self.name = name),
                "parameters" => {
                    optional(&mut reader, object).map(|schema| self.input_schema = schema)
                }
                _ => reader.skip().map(drop),
            };
            read.map_err(|error| error.in_key(&key))?;
        }
        Ok(())
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

fn read_configs<'a>(
    reader: &mut Reader<'a>,
    path: &str,
    warnings: &mut Warnings,
) -> Result<Vec<MemberConfig<'a>>, Error> {
    let at = |error: json::Error| Error::from(error.in_key(path));
    let mut configs = Vec::new();
    if reader.null().map_err(at)? {
        return Ok(configs);
    }
    reader.begin_object().map_err(at)?;
    while let Some(name) = reader.next_key().map_err(at)? {
        let name = name.decode();
        let at = |error: json::Error| at(error.in_key(&name));
        if reader.null().map_err(at)? {
            continue;
        }
        let mut config = MemberConfig::default();
        reader.begin_object().map_err(at)?;
        while let Some(key) = reader.next_key().map_err(at)? {
            let key = key.decode();
            let read = match key.as_ref() {
                "enabled" => optional(reader, Reader::bool).map(|value| config.enabled = value),
                "defer_loading" => optional(reader, Reader::bool)
                    .map(|value| config.defer_loading = value.unwrap_or_default()),
                _ => {
                    warnings.unknown_field(&format!("{path}.{name}"), &key)?;
                    reader.skip().map(drop)
                }
            };
            read.map_err(|error| at(error.in_key(&key)))?;
        }
        config.name = name;
        configs.push(config);
    }
    Ok(configs)
}

/// `tool_choice`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolChoice<'a> {
    /// `type` and `name`
    pub mode: ChoiceMode<'a>,
    /// `disable_parallel_tool_use`
    pub disable_parallel_tool_use: bool,
}

/// Who chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceMode<'a> {
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
    /// Reads the value of `tool_choice`.
    ///
    /// # Errors
    /// It is not an object, or names no known type. In strict mode also: unknown fields.
    pub fn read(reader: &mut Reader<'a>, warnings: &mut Warnings) -> Result<Self, Error> {
        const PATH: &str = "tool_choice";
        let at = |error: json::Error| Error::from(error.in_key(PATH));
        let mut tag = None;
        let mut name = None;
        let mut disable_parallel_tool_use = false;
        reader.begin_object().map_err(at)?;
        while let Some(key) = reader.next_key().map_err(at)? {
            let key = key.decode();
            let read = match key.as_ref() {
                "type" => optional(reader, text).map(|value| tag = value),
                "name" => optional(reader, text).map(|value| name = value),
                "disable_parallel_tool_use" => optional(reader, Reader::bool)
                    .map(|value| disable_parallel_tool_use = value.unwrap_or_default()),
                _ => {
                    warnings.unknown_field(PATH, &key)?;
                    reader.skip().map(drop)
                }
            };
            read.map_err(|error| at(error.in_key(&key)))?;
        }
        let mode = match tag.as_deref() {
            Some("auto") => ChoiceMode::Auto,
            Some("any") => ChoiceMode::Any,
            Some("none") => ChoiceMode::None,
            Some("tool") => ChoiceMode::Tool(name.ok_or_else(|| required("tool_choice.name"))?),
            Some(other) => return Err(bad_tag(PATH, other, "'auto', 'any', 'tool', 'none'")),
            None => return Err(required("tool_choice.type")),
        };
        Ok(Self { mode, disable_parallel_tool_use })
    }
}

/// A `tool_addition` or `tool_removal`: a change of the tools in mid conversation.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "definitions are what most changes are")]
pub enum ToolChange<'a> {
    /// A tool of `tools` is offered from here on.
    Add(Reference<'a>),
    /// It is offered no longer.
    Remove(Reference<'a>),
    /// A tool that is not in `tools` is offered from here on.
    Define(ToolDefinition<'a>),
}

/// Names a tool of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// Where it stands.
    pub path: String,
    /// To what.
    pub target: Target<'a>,
}

/// What a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A tool, by its name.
    Tool(Cow<'a, str>),
    /// A tool of an MCP server, or all of them.
    Mcp,
}

impl<'a> ToolChange<'a> {
    /// Reads the value of `tool` in a `tool_addition` block, or (`addition` is false) in a
    /// `tool_removal` block; `path` is where it stands.
    ///
    /// # Errors
    /// It is not an object, or names no known type. In strict mode also: unknown fields.
    pub fn read(
        reader: &mut Reader<'a>,
        addition: bool,
        path: &str,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let at = |error: json::Error| Error::from(error.in_key(path));
        let mut tag = None;
        let mut name = None;
        let mut definition = None;
        reader.begin_object().map_err(at)?;
        while let Some(key) = reader.next_key().map_err(at)? {
            let key = key.decode();
            let read = match key.as_ref() {
                "type" => optional(reader, text).map(|value| tag = value),
                // `tool_name` is what the block of the same type inside a tool result says.
                "name" | "tool_name" => optional(reader, text).map(|value| name = value),
                "server_name" | "cache_control" => reader.skip().map(drop),
                "definition" if addition => {
                    let path = format!("{path}.definition");
                    definition = Some(ToolDefinition::read(reader, path, warnings)?);
                    Ok(())
                }
                _ => {
                    warnings.unknown_field(path, &key)?;
                    reader.skip().map(drop)
                }
            };
            read.map_err(|error| at(error.in_key(&key)))?;
        }
        let target = match tag.as_deref() {
            Some("tool_definition") if addition => {
                return definition
                    .map(Self::Define)
                    .ok_or_else(|| required(&format!("{path}.definition")));
            }
            Some("tool_reference") => {
                Target::Tool(name.ok_or_else(|| required(&format!("{path}.name")))?)
            }
            Some("mcp_tool_reference" | "mcp_toolset_reference") => Target::Mcp,
            Some(other) => {
                let mut known =
                    "'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference'".to_owned();
                if addition {
                    known.push_str(", 'tool_definition'");
                }
                return Err(bad_tag(path, other, &known));
            }
            None => return Err(required(&format!("{path}.type"))),
        };
        let reference = Reference { path: path.to_owned(), target };
        Ok(if addition { Self::Add(reference) } else { Self::Remove(reference) })
    }
}

fn required(path: &str) -> Error {
    Error::invalid(format!("{path}: Field required"))
}

fn bad_tag(path: &str, tag: &str, known: &str) -> Error {
    Error::invalid([path, ": ", &unknown_tag(tag), ": ", known].concat())
}

/// Reads a value, or a `null` in its place.
fn optional<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, json::Error>,
) -> Result<Option<T>, json::Error> {
    if reader.null()? { Ok(None) } else { read(reader).map(Some) }
}

/// Reads an array, or a `null` in its place.
fn list<'a, T>(
    reader: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<T, json::Error>,
) -> Result<Option<Vec<T>>, json::Error> {
    optional(reader, |reader| {
        let mut values = Vec::new();
        reader.begin_array()?;
        while reader.next_element()? {
            values.push(read(reader).map_err(|error| error.at_index(values.len()))?);
        }
        Ok(values)
    })
}

fn text<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, json::Error> {
    Ok(reader.string()?.decode())
}

/// Reads an object and gives its text.
fn object<'a>(reader: &mut Reader<'a>) -> Result<Raw<'a>, json::Error> {
    match reader.kind()? {
        Kind::Object => reader.raw(),
        found => Err(json::Error::value(format!("expected an object, but found {}", found.name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &str) -> Result<ToolDefinition<'_>, String> {
        let mut warnings = Warnings::new(true);
        ToolDefinition::read(&mut Reader::new(text, 128), "tools[3]".to_owned(), &mut warnings)
            .map_err(|error| error.message.clone())
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
        assert_eq!(read.input_examples, [Raw::of(r#"{"a":1}"#)]);
        assert!(read.defer_loading && !read.strict);
    }

    #[test]
    fn a_bad_field_is_named_by_its_path() {
        for (text, message) in [
            (r#"[]"#, "tools[3]: expected an object, but found an array"),
            (r#"{"name":7}"#, "tools[3].name: expected a string, but found a number"),
            (
                r#"{"input_schema":"{}"}"#,
                "tools[3].input_schema: expected an object, but found a string",
            ),
            (
                r#"{"input_examples":[{},1]}"#,
                "tools[3].input_examples[1]: expected an object, but found a number",
            ),
            (
                r#"{"configs":{"zoom":{"enabled":"no"}}}"#,
                "tools[3].configs.zoom.enabled: expected a boolean, but found a string",
            ),
            (
                r#"{"type":"function","function":{"name":1}}"#,
                "tools[3].function.name: expected a string, but found a number",
            ),
            (r#"{"colour":1}"#, "tools[3].colour: Extra inputs are not permitted"),
            (
                r#"{"configs":{"zoom":{"x":1}}}"#,
                "tools[3].configs.zoom.x: Extra inputs are not permitted",
            ),
        ] {
            assert_eq!(tool(text).unwrap_err(), message, "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_counted_unless_strict() {
        let mut warnings = Warnings::new(false);
        let text = r#"{"name":"w","colour":{"x":[1]},"input_schema":{}}"#;
        let read =
            ToolDefinition::read(&mut Reader::new(text, 128), "tools[0]".to_owned(), &mut warnings);
        assert_eq!(read.unwrap().name.as_deref(), Some("w"));
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
        assert_eq!(read.limits.first(), Some(&"max_uses"));
        assert!(
            !read.limits.contains(&"allowed_domains") && read.limits.contains(&"blocked_domains")
        );
        assert_eq!((read.display_number, read.max_characters), (Some(3), Some(4)));
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
            read.function,
            Some(Raw::of(r#"{"parameters":{"x":1},"name":"w","strict":true}"#))
        );
    }

    fn choice(text: &str) -> Result<ToolChoice<'_>, String> {
        ToolChoice::read(&mut Reader::new(text, 128), &mut Warnings::new(true))
            .map_err(|error| error.message.clone())
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

    fn change(text: &str, addition: bool) -> Result<ToolChange<'_>, String> {
        let mut reader = Reader::new(text, 128);
        ToolChange::read(
            &mut reader,
            addition,
            "messages[1].content[0].tool",
            &mut Warnings::new(true),
        )
        .map_err(|error| error.message.clone())
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
        assert_eq!(definition.path, "messages[1].content[0].tool.definition");
        let message = change(r#"{"type":"tool_definition"}"#, false).unwrap_err();
        assert!(
            message.ends_with("'tool_reference', 'mcp_tool_reference', 'mcp_toolset_reference'")
        );
        let message = change(r#"{"type":"tool_reference"}"#, true).unwrap_err();
        assert_eq!(message, "messages[1].content[0].tool.name: Field required");
    }
}
