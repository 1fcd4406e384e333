//! JSON Schemas of tools, rewritten into the dialect that an upstream supports.
//!
//! A schema is copied byte for byte wherever that is possible. The other dialects are subsets, with
//! one file each, and share the traversal in `walk`. First, `references` and `mended` turn a
//! client's schema into one that every dialect can read; `facts` holds the facts about one schema,
//! and `merged` merges several schemas into one.

mod facts;
mod full;
mod gemini;
mod kimi;
mod llama_cpp;
pub(crate) mod mended;
mod merged;
mod ollama;
mod references;
pub(crate) mod strict;
mod walk;

use crate::json::{Reader, Writer};
use crate::json_schema::Found;
use crate::profile::ToolSchema;
use walk::Dialect;

/// Writes `schema`, a plain object, as the `parameters` of a function. Adds a missing `type` or
/// `properties`, because several servers refuse a schema without them. Servers also refuse a root
/// that is a choice and, at any depth, an array without `items`, a boolean in place of a schema and
/// a pattern that not every engine supports.
pub(crate) fn write_schema(json: &mut Writer<'_>, schema: &str, found: Found, dialect: ToolSchema) {
    let dialect = match dialect {
        ToolSchema::Ollama if !ollama::loses(schema) => ToolSchema::Full,
        dialect => dialect,
    };
    if dialect == ToolSchema::Full && found.is_complete && !found.is_refused {
        json.raw(schema);
    } else {
        walk(json, schema, dialect, true);
    }
}

/// Writes the schema of `response_format`, without adding anything to its root. Only llama.cpp
/// (which makes a grammar of it) and Kimi are known to check this schema like those of tools. For
/// other upstreams, only constructs that many servers refuse are replaced.
pub(crate) fn write_output_schema(
    json: &mut Writer<'_>,
    schema: &str,
    found: Found,
    tools: ToolSchema,
) {
    if matches!(tools, ToolSchema::LlamaCpp | ToolSchema::Kimi) {
        walk(json, schema, tools, false);
    } else if found.is_refused {
        walk(json, schema, ToolSchema::Full, false);
    } else {
        json.raw(schema);
    }
}

fn walk(json: &mut Writer<'_>, schema: &str, dialect: ToolSchema, function: bool) {
    if !Reader::of(schema).is_whole() {
        // Invalid JSON, which a schema that was read from a request never is.
        json.raw(schema);
        return;
    }
    json.value();
    let has_paths = || references::lead_through_lists(schema);
    match dialect {
        ToolSchema::Full => {
            write(&mut full::Full { has_paths: has_paths() }, schema, json, function)
        }
        ToolSchema::Mistral => write(&mut full::Mistral, schema, json, function),
        ToolSchema::Gemini => write(&mut gemini::Gemini, schema, json, function),
        ToolSchema::Kimi => kimi::write(schema, json, function),
        ToolSchema::LlamaCpp => {
            write(&mut llama_cpp::LlamaCpp { has_paths: has_paths() }, schema, json, function);
        }
        ToolSchema::Ollama => write(&mut ollama::Ollama::of(schema), schema, json, function),
    }
}

fn write(dialect: &mut impl Dialect, schema: &str, json: &mut Writer<'_>, function: bool) {
    match schema.starts_with('{') {
        true => dialect.object(schema, json, function),
        false => dialect.schema(schema, json),
    }
}

#[cfg(test)]
mod tests;
