//! Search for tools by a regular expression.

use regex_lite::{Regex, RegexBuilder};

use super::catalogue::DeferredTool;
use crate::model::own_tool::ToolSearchFailure;

/// Maximum product of the bytes that are searched and the bytes of the compiled expression: about
/// a quarter of a second.
const WORK_MAX: usize = 1 << 30;

/// Maximum size of a compiled expression in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Returns the first `limit` tools with a text that the expression matches somewhere.
///
/// # Errors
/// The text is no regular expression, or its search would take too long.
pub(super) fn find<'t>(
    pattern: &str,
    tools: &'t [DeferredTool],
    limit: usize,
) -> Result<Vec<&'t DeferredTool>, ToolSearchFailure> {
    if compiled(pattern, COMPILED_BYTES_MAX).is_none() {
        let reason = "pattern: this is no regular expression";
        return Err(ToolSearchFailure::InvalidToolInput(reason));
    }
    let texts = tools.iter().flat_map(|tool| &tool.texts);
    let bytes = texts.map(String::len).fold(1, usize::saturating_add);
    let affordable = WORK_MAX.checked_div(bytes).unwrap_or_default().min(COMPILED_BYTES_MAX);
    let regex = compiled(pattern, affordable).ok_or(ToolSearchFailure::TooSlow)?;
    let is_found = |tool: &&DeferredTool| tool.texts.iter().any(|text| regex.is_match(text));
    Ok(tools.iter().filter(is_found).take(limit).collect())
}

fn compiled(pattern: &str, bytes_max: usize) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(bytes_max).build().ok()
}
