//! Deferred tools of a request, with the texts that are searched.

use crate::config::McpConnector;
use crate::json::{Error, Reader, ValueKind};
use crate::model::Request;
use crate::model::tool::ToolDefinition;
use crate::observe::warning::Warnings;
use crate::tools::mcp_here;

/// Maximum number of deferred tools that are searched.
const TOOLS_MAX: usize = 10_000;

/// Deferred tool of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DeferredTool {
    pub(super) name: String,
    /// Name, description, and names and descriptions of arguments of the tool.
    pub(super) texts: Vec<String>,
}

/// Returns the deferred tools of a request, in its order, those of MCP servers last. A body that
/// cannot be read has none.
pub(super) fn of(body: &str, mcp: &McpConnector) -> Vec<DeferredTool> {
    let Ok(request) = Request::read(body, &mut Warnings::new(false)) else { return Vec::new() };
    let deferred = request.tools.iter().filter(|tool| tool.defer_loading && !tool.uncallable);
    let tool = |tool: &ToolDefinition<'_>| {
        let description = tool.description.map(|text| text.decode().into_owned());
        let schema = tool.input_schema.map_or("{}", |schema| schema.text());
        Some(DeferredTool::new(tool.name.as_ref()?.to_string(), description, schema))
    };
    let of_servers = mcp_here::deferred(&request, mcp).into_iter();
    let of_servers = of_servers
        .map(|tool| DeferredTool::new(tool.function, Some(tool.description), &tool.schema));
    deferred.filter_map(tool).chain(of_servers).take(TOOLS_MAX).collect()
}

impl DeferredTool {
    fn new(name: String, description: Option<String>, schema: &str) -> Self {
        let mut texts = vec![name.clone()];
        texts.extend(description);
        // The schema was parsed before, so its texts are complete.
        let _ = add_texts(&mut Reader::of(schema), &mut texts);
        Self { name, texts }
    }
}

/// Adds the names and descriptions of the arguments in a schema, at any depth. The reader limits
/// the depth, so the recursion ends.
fn add_texts(schema: &mut Reader<'_>, texts: &mut Vec<String>) -> Result<(), Error> {
    match schema.kind()? {
        ValueKind::Array => {
            schema.begin_array()?;
            while schema.next_element()? {
                add_texts(schema, texts)?;
            }
        }
        ValueKind::Object => {
            schema.begin_object()?;
            while let Some(key) = schema.next_key()? {
                match (key.decode().as_ref(), schema.kind()?) {
                    ("description", ValueKind::String) => {
                        texts.push(schema.string()?.decode().into_owned());
                    }
                    ("properties", ValueKind::Object) => {
                        schema.begin_object()?;
                        while let Some(name) = schema.next_key()? {
                            texts.push(name.decode().into_owned());
                            add_texts(schema, texts)?;
                        }
                    }
                    // A value of these members is no schema.
                    ("enum" | "const" | "default" | "examples", _) => {
                        schema.skip()?;
                    }
                    _ => add_texts(schema, texts)?,
                }
            }
        }
        _ => {
            schema.skip()?;
        }
    }
    Ok(())
}
