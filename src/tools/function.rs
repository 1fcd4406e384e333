//! Function definition in an upstream's request.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use super::names;
use super::own::OwnFunction;
use super::typed::Builtin;
use crate::dialect::schema::mended::plain_of;
use crate::dialect::schema::write_schema;
use crate::json::{self, Reader, Str, Writer};
use crate::json_schema::Found;
use crate::model::CacheMark;
use crate::model::own_tool::{McpToolName, OwnTool};
use crate::model::tool::ToolDefinition;
use crate::profile::{Profile, ToolSchema};
use crate::text::words;

/// Maximum number of input examples in a function's description.
const EXAMPLES_MAX: usize = 3;
const EXAMPLE_BYTES_MAX: usize = 2048;

/// Form of function definitions that an upstream accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionForm {
    dialect: ToolSchema,
    /// True if each function needs a description, even an empty one.
    empty_description: bool,
    /// Maximum length of a function's description in characters; 0 if unlimited.
    description_max: usize,
}

impl FunctionForm {
    pub(super) fn of(profile: &Profile) -> Self {
        Self {
            dialect: profile.tool_schema,
            empty_description: profile.empty_description,
            description_max: profile.max_tool_description,
        }
    }
}

/// Function definition for the upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct Function<'a> {
    /// Name of the function in the client's request.
    pub(super) name: Cow<'a, str>,
    /// Name of the function in the upstream's request.
    pub(super) outgoing: Cow<'a, str>,
    /// Client's toolset that the function is a member of.
    pub(super) toolset: Option<&'static str>,
    /// Index of the function in the client's `tools`; `None` for a member of a toolset.
    pub(super) place: Option<usize>,
    /// JSON Schema of the function's input, before its translation to the upstream's schema
    /// dialect.
    pub(super) schema: Cow<'a, str>,
    /// Findings about the function's schema from its first reading.
    found: Found,
    /// Server tool that Creole runs when the model calls the function.
    pub(super) own: Option<Arc<OwnTool>>,
    /// Member `strict`: true if inputs must match the schema exactly.
    pub(super) strict: bool,
    /// Client's `cache_control` mark on the tool.
    pub(super) cached: Option<CacheMark>,
    /// True if a guard removes the function from this request. Calls in the history keep its name
    /// and schema.
    pub(super) withheld: bool,
    description: Str<'a>,
    /// Text about options and examples that is appended to the function's description.
    remarks: String,
    /// Function in Chat Completions form, which is sent unchanged except for members that are null.
    ready: Option<&'a str>,
}

impl<'a> Function<'a> {
    /// Creates the function of a custom tool. A missing schema counts as an empty one.
    pub(super) fn custom(
        definition: &mut ToolDefinition<'a>,
        name: Cow<'a, str>,
        rules: names::NameRules,
    ) -> Self {
        let schema = definition.input_schema.map_or("{}", |schema| schema.text());
        let (schema, found) = plain_of(schema, definition.found);
        Self {
            outgoing: accepted(&name, rules),
            name,
            schema,
            found,
            description: definition.description.unwrap_or_default(),
            ..Self::default()
        }
        .with_examples(definition)
    }

    /// Creates the function of a predefined tool that the client runs, under the name that its type
    /// implies or that it was given.
    pub(super) fn client(
        definition: &mut ToolDefinition<'a>,
        builtin: Builtin,
        name: Cow<'a, str>,
        rules: names::NameRules,
    ) -> Self {
        let mut function = Self {
            outgoing: accepted(&name, rules),
            name,
            schema: Cow::Owned(builtin.input_schema()),
            found: Found::NOTHING,
            description: definition.description.unwrap_or_else(|| builtin.description()),
            ..Self::default()
        };
        let remarks = &mut function.remarks;
        // Writing to a string cannot fail.
        let computer = definition.rare().computer();
        if let (Some(width), Some(height)) = (computer.display_width_px, computer.display_height_px)
        {
            let _ = write!(remarks, " The display is {width} x {height} pixels.");
        }
        if let Some(number) = computer.display_number {
            let _ = write!(remarks, " Its X11 display number is {number}.");
        }
        if let Some(characters) = definition.rare().max_characters {
            let _ = write!(remarks, " view returns at most {characters} characters of a file.");
        }
        function.with_examples(definition)
    }

    /// Creates the function of a member of a toolset.
    pub(super) fn member(toolset: &'static str, member: Builtin, rules: names::NameRules) -> Self {
        Self {
            name: Cow::Borrowed(member.name()),
            outgoing: member_name(member.name(), toolset, rules),
            toolset: Some(toolset),
            schema: Cow::Owned(member.input_schema()),
            found: Found::NOTHING,
            description: member.description(),
            ..Self::default()
        }
    }

    /// Creates the function of a server tool that Creole runs.
    pub(super) fn own(
        definition: &ToolDefinition<'a>,
        tool: OwnTool,
        rules: names::NameRules,
    ) -> Self {
        let name = Cow::Owned(tool.name().to_owned());
        let OwnFunction { description, parameters, remark } = OwnFunction::of(&tool);
        Self {
            outgoing: accepted(&name, rules),
            name,
            schema: Cow::Borrowed(parameters),
            found: Found::NOTHING,
            description: Str::plain(description),
            remarks: remark,
            own: Some(Arc::new(tool)),
            cached: definition.cached,
            ..Self::default()
        }
    }

    /// Creates the function of an MCP server's tool that Creole calls. An invalid schema counts as
    /// an empty one.
    pub(super) fn mcp(
        name: McpToolName,
        (description, schema): (Str<'a>, &'a str),
        rules: names::NameRules,
    ) -> Self {
        let read = Found::read(&mut Reader::of(schema));
        let (schema, found) = match read {
            Ok((schema, found)) => plain_of(schema.text(), found),
            Err(_) => plain_of("{}", Found::NOTHING),
        };
        let outgoing = Cow::Owned(name.function.clone());
        Self {
            outgoing: accepted(&outgoing, rules),
            name: outgoing,
            schema,
            found,
            description,
            own: Some(Arc::new(OwnTool::Mcp(name))),
            ..Self::default()
        }
    }

    /// Creates a function from a definition in Chat Completions form.
    pub(super) fn ready(
        definition: &ToolDefinition<'a>,
        function: &'a str,
        name: Cow<'a, str>,
    ) -> Self {
        Self {
            outgoing: name.clone(),
            name,
            schema: Cow::Borrowed(definition.input_schema.map_or("{}", |schema| schema.text())),
            ready: Some(function),
            ..Self::default()
        }
    }

    fn with_examples(mut self, definition: &ToolDefinition<'a>) -> Self {
        let mut examples = Vec::new();
        for example in definition.rare().input_examples.iter().take(EXAMPLES_MAX) {
            let before = examples.len();
            examples.push(b'\n');
            example.compact(&mut examples);
            if examples.len() > EXAMPLE_BYTES_MAX {
                examples.truncate(before);
            }
        }
        if !examples.is_empty() {
            self.remarks.push_str("\n\nExamples:");
            self.remarks.push_str(&String::from_utf8_lossy(&examples));
        }
        self
    }

    /// Returns true if the client sent the function in Chat Completions form, which is then kept.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// Returns the function's description, without remarks of Creole's.
    pub(super) fn description_text(&self) -> String {
        self.description.decode().into_owned()
    }

    /// Returns true if the function's description contains `text`.
    pub(super) fn description_mentions(&self, text: &str) -> bool {
        words::has(self.description.raw(), text)
    }

    /// Writes the function as an element of `tools` in Chat Completions form.
    pub(super) fn write(
        &self,
        json: &mut Writer<'_>,
        form: FunctionForm,
        cached: Option<CacheMark>,
    ) {
        json.begin_object().kind("function");
        json.key("function").begin_object();
        if let Some(function) = self.ready {
            // The definition in Chat Completions form was parsed before, so it is an object.
            let _ = write_given(json, function);
        } else {
            self.write_members(json, form);
            if self.strict {
                json.key("strict").bool(true);
            }
        }
        json.end_object();
        if let Some(cached) = cached {
            cached.write(json);
        }
        json.end_object();
    }

    /// Writes the function as an element of `tools` in Responses form, always with `strict`: the
    /// default of Responses is true.
    pub(super) fn write_flat(&self, json: &mut Writer<'_>, form: FunctionForm) {
        json.begin_object().kind("function");
        let mut says_strict = false;
        if let Some(function) = self.ready {
            says_strict = write_given(json, function).unwrap_or_default();
        } else {
            self.write_members(json, form);
        }
        if !says_strict {
            json.key("strict").bool(self.strict);
        }
        json.end_object();
    }

    /// Writes the members `name`, `description` and `parameters` of the function.
    fn write_members(&self, json: &mut Writer<'_>, form: FunctionForm) {
        let FunctionForm { dialect, empty_description, description_max } = form;
        json.key("name").text(&self.outgoing);
        let remarks = match self.description.is_empty() {
            true => self.remarks.trim_start(),
            false => self.remarks.as_str(),
        };
        let length = self.description.raw().len().saturating_add(remarks.len());
        if description_max > 0 && length > description_max {
            let all = format!("{}{remarks}", self.description.decode());
            let kept: String = all.chars().take(description_max).collect();
            json.key("description").text(&kept);
        } else if empty_description || length > 0 {
            json.key("description").string(|out| {
                out.extend_from_slice(self.description.raw().as_bytes());
                json::escape(out, remarks);
            });
        }
        let before = json.out().len();
        json.key("parameters");
        let start = json.out().len();
        write_schema(json, &self.schema, self.found, dialect);
        if dialect == ToolSchema::Gemini && has_no_properties(json.out().get(start..)) {
            // Gemini's endpoint refused objects without properties.
            json.out().truncate(before);
        }
    }
}

fn has_no_properties(schema: Option<&[u8]>) -> bool {
    let schema = schema.and_then(|schema| std::str::from_utf8(schema).ok());
    schema.and_then(|schema| json::member(schema, "properties")) == Some("{}")
}

/// Writes the members of an object unchanged, except those that are null, which some servers
/// refuse. Returns true if the object has a member `strict`.
fn write_given(json: &mut Writer<'_>, object: &str) -> Result<bool, json::Error> {
    let reader = &mut Reader::of(object);
    let mut says_strict = false;
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        if !reader.null()? {
            says_strict |= key == "strict";
            json.key_str(key).raw(reader.skip()?);
        }
    }
    Ok(says_strict)
}

/// Returns the upstream's name for a member of a toolset.
pub(super) fn member_name(name: &str, toolset: &str, rules: names::NameRules) -> Cow<'static, str> {
    Cow::Owned(names::outgoing(&format!("{toolset}__{name}"), rules).into_owned())
}

fn accepted<'a>(name: &Cow<'a, str>, rules: names::NameRules) -> Cow<'a, str> {
    match names::outgoing(name, rules) {
        Cow::Borrowed(_) => name.clone(),
        Cow::Owned(other) => Cow::Owned(other),
    }
}
