//! Arguments that a tool's schema wants as headers, by the annotation `x-mcp-header`.

use super::client::header_value;
use crate::headers::Header;
use crate::json::{self, Reader, ValueKind};
use crate::text::words;

/// Annotation of a parameter that is mirrored in a header.
const ANNOTATION: &str = "x-mcp-header";

/// Prefix of the header of a mirrored parameter.
const PREFIX: &str = "mcp-param-";

/// Maximum number of mirrored parameters of a tool.
const MIRRORED_MAX: usize = 32;

/// Maximum length of a mirrored value, in bytes.
const VALUE_BYTES_MAX: usize = 8 << 10;

/// Members of a schema that hold data, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Members of a schema that hold schemas by names.
const MAPS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Parameter that is mirrored in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MirroredParam {
    /// Name of the header, in lower case.
    header: String,
    /// Names of the members that lead to the parameter.
    path: Vec<String>,
}

/// Returns true if the annotations of a schema are valid, or if the schema has none.
pub(super) fn is_valid(schema: &str) -> bool {
    params(schema).is_some()
}

/// Returns the headers that mirror arguments of a call. `schema`: the schema of the tool.
pub(super) fn headers(schema: &str, arguments: &str) -> Vec<Header> {
    let params = params(schema).unwrap_or_default();
    params
        .into_iter()
        .filter_map(|MirroredParam { header, path }| {
            let value = path.iter().try_fold(arguments, |value, name| json::member(value, name))?;
            let text = match Reader::of(value).kind().ok()? {
                ValueKind::String => json::string(value)?.decode().into_owned(),
                ValueKind::Number | ValueKind::Bool => value.to_owned(),
                ValueKind::Null | ValueKind::Object | ValueKind::Array => return None,
            };
            (text.len() <= VALUE_BYTES_MAX).then(|| (header, header_value(&text)))
        })
        .collect()
}

/// Returns the mirrored parameters of a schema; `None` if an annotation breaks a rule.
fn params(schema: &str) -> Option<Vec<MirroredParam>> {
    let mut found = Vec::new();
    if !words::has(schema, ANNOTATION) {
        return Some(found);
    }
    collect(schema, Some(&mut Vec::new()), &mut found).then_some(found)
}

/// Collects the annotations of a schema. `path` leads to the schema, and is `None` for a schema
/// that not only `properties` lead to. Returns false if an annotation breaks a rule. The recursion
/// is as deep as the reader allows.
fn collect(
    schema: &str,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<MirroredParam>,
) -> bool {
    let mut annotation = None;
    let mut kind = None;
    for (key, value) in json::members(schema) {
        let key = key.decode();
        let is_fine = match key.as_ref() {
            ANNOTATION => {
                annotation = Some(value);
                true
            }
            "type" => {
                kind = Some(value);
                true
            }
            name if DATA.contains(&name) => true,
            "properties" => json::members(value).all(|(name, schema)| match path.as_deref_mut() {
                Some(path) => {
                    path.push(name.decode().into_owned());
                    let is_fine = collect(schema, Some(path), found);
                    path.pop();
                    is_fine
                }
                None => collect(schema, None, found),
            }),
            name if MAPS.contains(&name) => {
                json::members(value).all(|(_, schema)| collect(schema, None, found))
            }
            _ => {
                collect(value, None, found)
                    && json::elements(value).all(|schema| collect(schema, None, found))
            }
        };
        if !is_fine {
            return false;
        }
    }
    let Some(annotation) = annotation else { return true };
    let Some(path) = path.filter(|path| !path.is_empty()) else { return false };
    let is_simple = matches!(kind, Some("\"string\"" | "\"integer\"" | "\"boolean\""));
    let name = json::string(annotation).map(|name| name.decode().to_ascii_lowercase());
    let Some(name) = name.filter(|name| is_token(name) && is_simple) else { return false };
    let header = [PREFIX, name.as_str()].concat();
    let is_new = !found.iter().any(|known| known.header == header);
    found.push(MirroredParam { header, path: path.clone() });
    is_new && found.len() <= MIRRORED_MAX
}

/// Returns true if a text can be a part of a header's name (RFC 9110, 5.6.2).
fn is_token(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(is_letter)
}
