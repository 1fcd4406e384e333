//! Definitions of tools: their kinds, and the members that each kind must have.

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

/// The name under which Claude Code keeps a place for tools that it may load later.
pub(super) const PLACEHOLDER: &str = "DeferredToolPlaceholder";

/// Rules that hold for all definitions of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules<'a> {
    /// The body in which the definitions stand, for the paths in errors.
    pub(super) body: &'a str,
    /// Rules for the names that the upstream takes.
    pub(super) names: names::Rules,
    /// Schemas that are sent with `function.strict`, where the upstream understands it.
    pub(super) strict_schemas: Option<StrictSchemas>,
}

/// Availability of a tool to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// The model gets the tool.
    Offered,
    /// The model gets the tool, because something loaded it: its place among the loaded ones.
    Loaded(usize),
    /// The model does not get the tool before something loads it.
    Deferred,
    /// The conversation removed the tool.
    Removed,
    /// The model must never call the tool.
    Hidden,
}

impl Availability {
    /// Returns the first state of a tool that is defined. A tool that the conversation adds is
    /// wanted now, so it is not deferred.
    pub(super) fn first(deferred: bool, added: bool) -> Self {
        if deferred && !added { Self::Deferred } else { Self::Offered }
    }
}

/// Makes the function of a definition of one of three kinds. `known` tells whether its very type is
/// known.
pub(super) fn function<'a>(
    rules: Rules<'a>,
    kind: ToolKind,
    known: bool,
    mut definition: ToolDefinition<'a>,
    added: bool,
    warnings: &mut Warnings,
) -> Result<(Function<'a>, Availability), Error> {
    let Rules { body, names: rules, strict_schemas } = rules;
    let at = definition.at;
    let uncallable = definition.uncallable;
    let name = definition.name.take();
    let mut function = match kind {
        ToolKind::Client(builtin) => {
            let name = match name {
                // A later version may have another name.
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
        // A custom tool, the last of the three.
        _ => {
            let name = name.ok_or_else(|| required(body, at, "name"))?;
            let name = checked_name(name, body, at, warnings)?;
            if warnings.strict() {
                // As the client wrote it: what is sent is mended.
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

/// Returns the kind of a definition, and whether its very type is known. A definition of an unknown
/// type is a custom tool if it brings a schema.
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

/// Checks a name: it must be one that the real API accepts, or, unless strict, one that can be
/// mapped.
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

/// Checks that a tool's schema has the shape that the real API wants.
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

/// Facts about the top level of a schema, by which the real API accepts or refuses it.
#[derive(Default)]
struct SchemaTop {
    /// True if the schema's `type`, if there is one, is `object`.
    object: Option<bool>,
    /// True if there is a `oneOf`, `allOf` or `anyOf`.
    union: bool,
    /// A member of the wrong type, and the right one.
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

/// Returns the path of a tool as the real API writes it: `tools.3`.
fn dotted(body: &str, at: usize) -> String {
    path_at(body, at).replace('[', ".").replace(']', "")
}

/// Leaves a field or a tool out with a warning, or rejects the request if strict.
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
