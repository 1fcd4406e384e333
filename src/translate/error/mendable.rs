//! Errors of a request that Claude Code mends by itself and sends again, in the words by which it knows them. To all
//! clients they name what they have sent: the upstream names what Creole made of it.

use super::{is_images, is_one_image, without_quotes};
use crate::asked::Asked;
use crate::words;

/// Where servers number the tools that they got: Gemini, and the others.
const NUMBERED: [&str; 3] = ["function_declarations[", "tools[", "tools."];

/// The message for the client, if that of an error with status 400 is one of these.
pub(super) fn told(message: &str, asked: &Asked) -> Option<String> {
    if words::has_any(message, &["reasoning_effort", "reasoning.effort"]) {
        return Some(format!("This model does not support the effort parameter. ({message})"));
    }
    if asked.has_images && (is_images(message) || is_one_image(message)) {
        // An image in the history comes again with each request, unless the client leaves it out.
        return Some(format!("Could not process image ({message})"));
    }
    let place = place_of_tool(message, asked)?;
    Some(format!("tools.{place}.custom.input_schema: {message}"))
}

/// The position, among the client's `tools`, of the one whose schema is refused.
fn place_of_tool(message: &str, asked: &Asked) -> Option<usize> {
    let text = without_quotes(message);
    if !words::has_any(&text, &["schema", "parameters"]) {
        return None;
    }
    let named = asked.tools.iter().find(|tool| is_quoted(message, &tool.outgoing));
    let number = || NUMBERED.iter().find_map(|word| number_behind(&text, word));
    named.or_else(|| asked.tools.iter().nth(number()?))?.place
}

fn is_quoted(message: &str, name: &str) -> bool {
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'\'' | b'"' | b'`'));
    !name.is_empty()
        && words::places(message, name).any(|at| {
            let (before, behind) = message.split_at_checked(at).unwrap_or_default();
            is_quote(before.as_bytes().last()) && is_quote(behind.as_bytes().get(name.len()))
        })
}

fn number_behind(text: &str, word: &str) -> Option<usize> {
    let (_, rest) = words::split_once(text, word)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::Tool;

    fn told_of(message: &str) -> Option<String> {
        let mut asked = Asked::default();
        for (place, name) in [(Some(0), "Read"), (None, "member"), (Some(4), "mcp__t__bad")] {
            let outgoing = name.to_owned();
            asked.tools.push(Tool { outgoing, place, ..Tool::default() });
        }
        told(message, &asked)
    }

    #[test]
    fn a_refused_schema_is_that_of_the_clients_tool() {
        for message in [
            "Invalid schema for function 'mcp__t__bad': In context=('properties', 'when'), 'weird-format' is not a valid 'format'.",
            "Tool \"mcp__t__bad\" has an invalid `parameters` schema",
            "Invalid 'tools[2].function.parameters': unknown keyword",
            "invalid JSON schema for tool, tools.2.function.parameters: no",
            "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[x].format: only 'enum' is supported",
        ] {
            let told = told_of(message);
            assert_eq!(told, Some(format!("tools.4.custom.input_schema: {message}")));
        }
        for message in [
            // Which tool it is, nobody knows; a member of a toolset has no schema of the client's.
            "tools.function.parameters is not a valid moonshot flavored json schema",
            "Invalid schema for function 'member': no",
            "Invalid 'tools[9].function.parameters': no",
            "Unknown parameter: 'mcp__t__bad'",
            "The schema is too deep, and mcp__t__bad is fine",
        ] {
            assert_eq!(told_of(message), None, "{message}");
        }
    }

    #[test]
    fn a_refused_image_is_known_as_one() {
        let asked = Asked { has_images: true, ..Asked::default() };
        for message in ["Failed to load image or audio file", "m is not a multimodal model: image"]
        {
            let expected = format!("Could not process image ({message})");
            assert_eq!(told(message, &asked), Some(expected));
            assert_eq!(told_of(message), None);
        }
        assert_eq!(told("no", &asked), None);
    }

    #[test]
    fn a_refused_effort_is_the_clients_effort() {
        let message =
            "Unsupported value: 'reasoning_effort' does not support 'high' with this model.";
        let told = told_of(message).unwrap_or_default();
        assert_eq!(told, format!("This model does not support the effort parameter. ({message})"));
        assert_eq!(told_of("Unknown parameter: 'reasoning'"), None);
    }
}
