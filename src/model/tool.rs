//! Tools of a request: definitions, `tool_choice`, and changes in mid conversation.
//!
//! One struct holds the members of all kinds of tools: the `type` that tells them apart may come
//! last, and the API adds kinds with every release. So the reader does not check which members
//! belong to which kind. Absent and `null` are the same. A Chat Completions tool (`type:
//! "function"`) is read as well, because clients that speak both protocols mix them up.

use std::borrow::Cow;

use super::cache_mark::CacheMark;
use super::source::{BodySource, Read, bad_tag, missing, required};
use crate::json::{self, Raw, Str, ValueKind};
use crate::json_schema::Found;
use crate::model::limits::Many;

/// Element of `tools`, or the `definition` of a tool added in mid conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolDefinition<'a> {
    /// Byte offset of the definition in the request's body.
    pub at: usize,
    /// Member `type`; empty if absent, which means a custom tool.
    pub tool_type: Cow<'a, str>,
    /// Member `name`; for a Chat Completions tool, the name of its function.
    pub name: Option<Cow<'a, str>>,
    /// Member `description` of the tool.
    pub description: Option<Str<'a>>,
    /// Member `input_schema`, an object; for a Chat Completions tool, the member `parameters`.
    pub input_schema: Option<Raw<'a>>,
    /// Findings about `input_schema`, such as parts that an upstream refuses.
    pub found: Found,
    /// Member `cache_control`: mark up to which the prompt is to be cached.
    pub cached: Option<CacheMark>,
    /// Member `strict`: true if inputs of the tool must match its schema.
    pub strict: bool,
    /// Member `defer_loading`: true if the tool is shown to the model only after a tool search.
    pub defer_loading: bool,
    /// True if `allowed_callers` is present and excludes the model itself.
    pub uncallable: bool,
    /// Members that few tools have. They are boxed, because a request can have thousands of tools
    /// that are only three bytes of JSON.
    rare: Option<Box<Rare<'a>>>,
}

/// Members of a web search tool or a web fetch tool that are seldom used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SearchMembers<'a> {
    /// Member `user_location`, as the JSON text of an object.
    pub user_location: Option<&'a str>,
    /// Member `allowed_domains`, as JSON text.
    pub allowed_domains: Option<&'a str>,
    /// Member `blocked_domains`, as JSON text.
    pub blocked_domains: Option<&'a str>,
    /// Member `max_uses`: maximum number of calls.
    pub max_uses: Option<u64>,
    /// Member `max_content_tokens` of a web fetch tool: maximum number of tokens of a page.
    pub max_content_tokens: Option<u64>,
    /// Member `citations` of a web fetch tool, as JSON text.
    pub citations: Option<&'a str>,
    /// Member `url_sources` of a web fetch tool, as JSON text.
    pub url_sources: Option<&'a str>,
}

/// Members of an MCP toolset, as JSON text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct McpToolset<'a> {
    /// Member `mcp_server_name`, as JSON text.
    pub server_name: Option<&'a str>,
    /// Member `default_config`, as JSON text.
    pub default_config: Option<&'a str>,
    /// Member `tools`, as JSON text.
    pub tools: Option<&'a str>,
}

/// Members that only a computer tool has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Computer {
    /// Member `display_width_px`: width of the screen in pixels.
    pub display_width_px: Option<u64>,
    /// Member `display_height_px`: height of the screen in pixels.
    pub display_height_px: Option<u64>,
    /// Member `display_number`: number of the X11 display.
    pub display_number: Option<u64>,
    /// Member `enable_zoom`: true if the tool can zoom into the screen.
    pub enable_zoom: bool,
}

/// Members of a tool definition that few tools have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare<'a> {
    /// Member `input_examples`, each the JSON text of an object.
    pub input_examples: Vec<Raw<'a>>,
    /// Members that only a computer tool has.
    computer: Option<Box<Computer>>,
    /// Member `max_characters` of the text editor tool.
    pub max_characters: Option<u64>,
    /// Member `configs` of a toolset, in the client's order.
    pub configs: Vec<MemberConfig>,
    /// Members that only a web search tool or a web fetch tool has.
    search: Option<Box<SearchMembers<'a>>>,
    /// Members that only an MCP toolset has.
    mcp: Option<Box<McpToolset<'a>>>,
    /// Names of the server tool's members that the client set, such as `max_uses` or
    /// `allowed_domains`.
    pub limits: Vec<&'static str>,
    /// Member `function` of a Chat Completions tool, an object.
    pub function: Option<Raw<'a>>,
}

/// Settings of one tool in a toolset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberConfig {
    /// Name of the tool in the toolset.
    pub name: String,
    /// Member `enabled`: true if the model may use this tool of the toolset.
    pub enabled: Option<bool>,
    /// Member `defer_loading`: true if this tool of the toolset is shown only after a tool search.
    pub defer_loading: Option<bool>,
}

impl<'a> ToolDefinition<'a> {
    /// Returns the members that few tools have.
    pub(crate) fn rare(&self) -> &Rare<'a> {
        const NONE: &Rare<'static> = &Rare {
            input_examples: Vec::new(),
            computer: None,
            max_characters: None,
            configs: Vec::new(),
            search: None,
            mcp: None,
            limits: Vec::new(),
            function: None,
        };
        self.rare.as_deref().unwrap_or(NONE)
    }

    fn rare_mut(&mut self) -> &mut Rare<'a> {
        self.rare.get_or_insert_default()
    }

    pub(crate) fn read(source: &mut BodySource<'a, '_>) -> Read<Self> {
        source.reader.kind()?;
        let start = source.reader.clone();
        let mut tool = Self { at: start.offset(), ..Self::default() };
        source.object(|source, key| tool.read_member(source, key))?;
        let is_named = tool.name.is_some() || !tool.tool_type.is_empty();
        if !is_named && tool.input_schema.is_none() && tool.rare.is_none() {
            // A request can have many tools of three bytes (`{},`), so the error points to the tool
            // itself.
            source.reader = start;
            return Err(missing("name"));
        }
        Ok(tool)
    }

    fn read_member(&mut self, source: &mut BodySource<'a, '_>, key: &str) -> Read<bool> {
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
            "cache_control" => {
                let ttl = json::member(source.reader.skip()?, "ttl").and_then(json::string);
                self.cached = Some(CacheMark::of(&ttl.unwrap_or_default().decode()));
            }
            // The member `eager_input_streaming` cannot be passed on, and does not change what the
            // model may answer.
            "eager_input_streaming" => return source.skip(),
            _ => {
                let Some(limit) = SERVER_TOOL_LIMITS.iter().find(|limit| **limit == key) else {
                    return Ok(false);
                };
                let rare = self.rare_mut();
                if !rare.limits.contains(limit) {
                    rare.limits.push(limit);
                }
                let value = source.reader.skip()?;
                match *limit {
                    "allowed_domains" => rare.search_mut().allowed_domains = Some(value),
                    "blocked_domains" => rare.search_mut().blocked_domains = Some(value),
                    "max_uses" => rare.search_mut().max_uses = value.parse().ok(),
                    "max_content_tokens" => {
                        rare.search_mut().max_content_tokens = value.parse().ok();
                    }
                    "citations" => rare.search_mut().citations = Some(value),
                    "url_sources" => rare.search_mut().url_sources = Some(value),
                    "mcp_server_name" => rare.mcp_mut().server_name = Some(value),
                    "default_config" => rare.mcp_mut().default_config = Some(value),
                    "tools" => rare.mcp_mut().tools = Some(value),
                    _ => {}
                }
            }
        }
        Ok(true)
    }

    /// Reads `function` of a Chat Completions tool: the name and the schema, and the whole as JSON
    /// text.
    fn read_function(&mut self, source: &mut BodySource<'a, '_>) -> Read<()> {
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
    /// Returns the members that only a computer tool has.
    pub(crate) fn computer(&self) -> Computer {
        self.computer.as_deref().copied().unwrap_or_default()
    }

    fn computer_mut(&mut self) -> &mut Computer {
        self.computer.get_or_insert_default()
    }

    /// Returns the members that only a web search tool or a web fetch tool has.
    pub(crate) fn search(&self) -> SearchMembers<'a> {
        self.search.as_deref().copied().unwrap_or_default()
    }

    fn search_mut(&mut self) -> &mut SearchMembers<'a> {
        self.search.get_or_insert_default()
    }

    /// Returns the members that only an MCP toolset has.
    pub(crate) fn mcp(&self) -> McpToolset<'a> {
        self.mcp.as_deref().copied().unwrap_or_default()
    }

    fn mcp_mut(&mut self) -> &mut McpToolset<'a> {
        self.mcp.get_or_insert_default()
    }

    fn read_member(&mut self, source: &mut BodySource<'a, '_>, key: &str) -> Read<bool> {
        match key {
            "display_width_px" => {
                return source.whole_number(&mut self.computer_mut().display_width_px);
            }
            "display_height_px" => {
                return source.whole_number(&mut self.computer_mut().display_height_px);
            }
            "display_number" => {
                return source.whole_number(&mut self.computer_mut().display_number);
            }
            "enable_zoom" => return source.bool(&mut self.computer_mut().enable_zoom),
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
            "user_location" => {
                self.search_mut().user_location = Some(source.raw_of(ValueKind::Object)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl MemberConfig {
    fn read(source: &mut BodySource<'_, '_>, name: &str) -> Read<Self> {
        let mut config = Self { name: name.to_owned(), ..Self::default() };
        source.object(|source, key| match key {
            "enabled" => source.bool(config.enabled.insert(false)),
            "defer_loading" => source.bool(config.defer_loading.insert(false)),
            _ => Ok(false),
        })?;
        Ok(config)
    }
}

/// Names of members that only server tools and MCP toolsets have.
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

/// Value of a request's `tool_choice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolChoice<'a> {
    /// Members `type` and `name` of `tool_choice`.
    pub mode: ChoiceMode<'a>,
    /// Member `disable_parallel_tool_use`: true if the model may call at most one tool.
    pub disable_parallel_tool_use: bool,
}

/// Choice among the tools: the members `type` and `name` of `tool_choice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceMode<'a> {
    /// Choice `auto`: the model decides whether to call tools.
    Auto,
    /// Choice `any`: the model must call a tool.
    Any,
    /// Choice `tool`: the model must call the tool of this name.
    Tool(Cow<'a, str>),
    /// Choice `none`: the model must not call a tool.
    None,
}

impl<'a> ToolChoice<'a> {
    pub(crate) fn read(source: &mut BodySource<'a, '_>) -> Read<Self> {
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

/// Content of a block `tool_addition` or `tool_removal`: a change of the tools in mid conversation.
#[derive(Clone, Debug)]
pub(crate) enum ToolChange<'a> {
    /// Offers a tool of `tools` from this message on.
    Add(Reference<'a>),
    /// Withdraws a tool from this message on.
    Remove(Reference<'a>),
    /// Offers a tool that is not in `tools` from this message on.
    Define(Box<ToolDefinition<'a>>),
}

/// Reference to a tool of the request, in a change of the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    /// Byte offset of the reference in the request's body.
    pub at: usize,
    /// Tool that is referenced.
    pub target: ReferencedTool<'a>,
}

/// Tool that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReferencedTool<'a> {
    /// Tool with this name.
    Tool(Cow<'a, str>),
    /// Tool of an MCP server, or all tools of the server.
    Mcp,
}

impl<'a> ToolChange<'a> {
    /// Reads the member `tool` of a `tool_addition` block, or of a `tool_removal` block if
    /// `addition` is false.
    pub(crate) fn read(source: &mut BodySource<'a, '_>, addition: bool) -> Read<Self> {
        source.reader.kind()?;
        let at = source.reader.offset();
        let (mut tag, mut name, mut definition) = (None, None, None);
        source.object(|source, key| match key {
            "type" => source.string(&mut tag),
            // A `tool_reference` in a tool result has its name in `tool_name`, so both members are
            // read.
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
            "tool_reference" => ReferencedTool::Tool(required(name, "name")?),
            "mcp_tool_reference" | "mcp_toolset_reference" => ReferencedTool::Mcp,
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
mod tests;
