//! Definitions of tools: their kinds, and the required members of each kind.

use std::borrow::Cow;

use super::function::Function;
use super::names;
use super::typed::ToolKind;
use crate::dialect::schema::strict::takes_strictly;
use crate::error::Error;
use crate::json::{self, Reader, ValueKind};
use crate::model::tool::ToolDefinition;
use crate::model::{path_at, unknown_tag};
use crate::observe::warning::Warnings;
use crate::profile::StrictSchemas;

/// Name of a tool by which Claude Code reserves a position for tools that it may load later.
pub(super) const PLACEHOLDER: &str = "DeferredToolPlaceholder";

/// Rules for all tool definitions of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DefinitionRules<'a> {
    /// Request body with the definitions, for the paths in errors.
    pub(super) body: &'a str,
    /// Rules for tool names that the upstream accepts.
    pub(super) names: names::NameRules,
    /// Schemas that may be sent with `function.strict`; `None` if the upstream does not support
    /// that member.
    pub(super) strict_schemas: Option<StrictSchemas>,
}

/// Availability of a tool to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// Tool that the model gets.
    Offered,
    /// Tool that the model gets, because a tool search loaded it; holds its position among the
    /// loaded tools.
    Loaded(usize),
    /// Tool that the model does not get until a tool search loads it.
    Deferred,
    /// Tool that the conversation removed.
    Removed,
    /// Tool that the model must never call.
    Hidden,
}

impl Availability {
    /// Returns the initial availability of a defined tool. A tool that the conversation adds is
    /// never deferred, because it is wanted now.
    pub(super) fn first(deferred: bool, added: bool) -> Self {
        if deferred && !added { Self::Deferred } else { Self::Offered }
    }
}

/// Creates the function for a definition of kind `Client`, `Function` or `Custom`. `known` is true
/// if the exact version of its type is known.
pub(super) fn function<'a>(
    rules: DefinitionRules<'a>,
    kind: ToolKind,
    known: bool,
    mut definition: ToolDefinition<'a>,
    added: bool,
    warnings: &mut Warnings,
) -> Result<(Function<'a>, Availability), Error> {
    let DefinitionRules { body, names: rules, strict_schemas } = rules;
    let at = definition.at;
    let uncallable = definition.uncallable;
    let name = definition.name.take();
    let mut function = match kind {
        ToolKind::Client(builtin) => {
            let name = match name {
                // A later, unknown version of the predefined tool may have another name.
                Some(name) if !known => checked_name(name, body, at, warnings)?,
                _ => Cow::Borrowed(builtin.name()),
            };
            Function::client(&mut definition, builtin, name, rules)
        }
        ToolKind::Function => {
            let Some(function) = definition.rare().function else {
                let path = path_at(body, at);
                return Err(Error::invalid(format!("{path}.function: Field required")));
            };
            let name = json::member(function.text(), "name").and_then(json::string);
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                let path = path_at(body, at);
                return Err(Error::invalid(format!("{path}.function.name: Field required")));
            };
            Function::ready(&definition, function.text(), name.decode())
        }
        // Definition of a custom tool, the last of the three kinds.
        _ => {
            let name = name.ok_or_else(|| required(body, at, "name"))?;
            let name = checked_name(name, body, at, warnings)?;
            if warnings.strict() {
                // The client's schema is checked as written, before its repair.
                let Some(schema) = definition.input_schema else {
                    return Err(required(body, at, "input_schema"));
                };
                check_schema(schema.text(), body, at)?;
            }
            Function::custom(&mut definition, name, rules)
        }
    };
    function.cached = definition.cached;
    let mut state = Availability::first(definition.defer_loading, added);
    if uncallable {
        left_out(warnings, body, at, "allowed_callers")?;
        state = Availability::Hidden;
    } else if definition.defer_loading && function.name == PLACEHOLDER {
        state = Availability::Hidden;
    }
    if kind == ToolKind::Custom && definition.strict {
        function.strict =
            strict_schemas.is_some_and(|taken| takes_strictly(taken, &function.schema));
        if !function.strict {
            left_out(warnings, body, at, "strict")?;
        }
    }
    Ok((function, state))
}

/// Returns the kind of a definition, and true if the exact version of its type is known. A
/// definition of an unknown type with a schema counts as a custom tool.
pub(super) fn kind_of(
    definition: &ToolDefinition<'_>,
    body: &str,
    warnings: &mut Warnings,
) -> Result<(ToolKind, bool), Error> {
    let tool_type = definition.tool_type.as_ref();
    let (kind, known) = match ToolKind::of(tool_type, definition.rare().computer().enable_zoom) {
        Some(found) => found,
        None if definition.input_schema.is_some() => (ToolKind::Custom, false),
        None => return Err(unknown_type(definition, body)),
    };
    if !known {
        if warnings.strict() {
            return Err(unknown_type(definition, body));
        }
        warnings.add_named("unknown_tool_type", tool_type);
    }
    Ok((kind, known))
}

fn unknown_type(definition: &ToolDefinition<'_>, body: &str) -> Error {
    let reason = unknown_tag(&definition.tool_type);
    Error::invalid(format!("{}: {reason}", dotted(body, definition.at)))
}

/// Checks a tool's name. In strict mode the real API must accept the name; otherwise the name must
/// not be empty.
fn checked_name<'a>(
    name: Cow<'a, str>,
    body: &str,
    at: usize,
    warnings: &Warnings,
) -> Result<Cow<'a, str>, Error> {
    if name.is_empty() || (warnings.strict() && !names::is_valid(&name)) {
        return Err(Error::invalid(format!(
            "{}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
            dotted(body, at)
        )));
    }
    Ok(name)
}

/// Checks that a tool's schema has the shape that the real API requires.
fn check_schema(schema: &str, body: &str, at: usize) -> Result<(), Error> {
    let path = || dotted(body, at) + ".custom.input_schema";
    let top = read_shape(schema).map_err(|error| error.in_key(&path()))?;
    if let SchemaTop { object: Some(true), union: false, odd: None } = top {
        return Ok(());
    }
    let path = path();
    Err(match top {
        SchemaTop { odd: Some((key, wanted)), .. } => {
            Error::invalid(format!("{path}.{key}: Input should be a valid {wanted}"))
        }
        SchemaTop { object: None, .. } => Error::invalid(format!("{path}.type: Field required")),
        SchemaTop { object: Some(false), .. } => {
            Error::invalid(format!("{path}.type: Input should be 'object'"))
        }
        SchemaTop { object: Some(true), .. } => Error::invalid(format!(
            "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )),
    })
}

/// Facts about the top level of a schema that decide if the real API accepts it.
#[derive(Default)]
struct SchemaTop {
    /// True if the schema's `type` is `object`; `None` if there is no `type`.
    object: Option<bool>,
    /// True if the top level of the schema has a `oneOf`, `allOf` or `anyOf`.
    union: bool,
    /// Name of a schema member whose value has the wrong type, and the right type.
    odd: Option<(&'static str, &'static str)>,
}

fn read_shape(schema: &str) -> Result<SchemaTop, json::Error> {
    let mut top = SchemaTop::default();
    let mut reader = Reader::of(schema);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let kind = reader.kind()?;
        let value = reader.skip()?;
        match key.decode().as_ref() {
            "type" if kind != ValueKind::Null => top.object = Some(value == "\"object\""),
            "oneOf" | "allOf" | "anyOf" => top.union = true,
            "properties" if !matches!(kind, ValueKind::Object | ValueKind::Null) => {
                top.odd = Some(("properties", "dictionary"));
            }
            "required" if !matches!(kind, ValueKind::Array | ValueKind::Null) => {
                top.odd = Some(("required", "list"));
            }
            _ => {}
        }
    }
    Ok(top)
}

fn required(body: &str, at: usize, field: &str) -> Error {
    Error::invalid(format!("{}.custom.{field}: Field required", dotted(body, at)))
}

/// Returns the path of a tool in the real API's notation, such as `tools.3`.
fn dotted(body: &str, at: usize) -> String {
    path_at(body, at).replace('[', ".").replace(']', "")
}

/// Drops a member or a tool with a warning, or refuses the request in strict mode.
pub(super) fn left_out(
    warnings: &mut Warnings,
    body: &str,
    at: usize,
    what: &str,
) -> Result<(), Error> {
    if warnings.strict() {
        return Err(Error::unsupported(&format!("{}.{what}", path_at(body, at))));
    }
    warnings.add_named("dropped", what);
    Ok(())
}
