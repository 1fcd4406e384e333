//! Deferred tools of a request, with the texts that are searched.

use crate::config::McpConnector;
use crate::json::{Error, Reader, ValueKind};
use crate::model::Request;
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
    let tool = |tool: &crate::model::tool::ToolDefinition<'_>| {
        let name = tool.name.as_ref()?.to_string();
        let mut texts = vec![name.clone()];
        texts.extend(tool.description.map(|text| text.decode().into_owned()));
        if let Some(schema) = tool.input_schema {
            // The schema was parsed before, so its texts are complete.
            let _ = add_texts(&mut Reader::of(schema.text()), &mut texts);
        }
        Some(DeferredTool { name, texts })
    };
    let of_servers = mcp_here::deferred(&request, mcp).into_iter().map(|tool| {
        let mut texts = vec![tool.function.clone(), tool.description];
        let _ = add_texts(&mut Reader::of(&tool.schema), &mut texts);
        DeferredTool { name: tool.function, texts }
    });
    deferred.filter_map(tool).chain(of_servers).take(TOOLS_MAX).collect()
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
