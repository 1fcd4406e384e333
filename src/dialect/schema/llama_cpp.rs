//! Schemas for llama.cpp, which compiles all tools into one grammar, so that a single unsupported
//! keyword fails the whole request. Unsupported keywords are left out, because the client validates
//! inputs itself.

use super::facts::{KeywordMember, SchemaFacts, is_path};
use super::merged::{self, Which};
use super::walk::Dialect;
use crate::json::{self, ValueKind, Writer};

/// Schema that is sent to llama.cpp to allow any value. llama.cpp reads `{}` as any object
/// (`schema.empty()` in its `json-schema-to-grammar.cpp`). It refused a schema with a description
/// alone until 2026 (llama.cpp#19716). A list of types is not used, because the templates of
/// Hermes, Command R+ and GigaChat raise an error for a list.
const ANY: &str = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"},{\"type\":\"boolean\"},{\"type\":\"object\"},{\"type\":\"array\"},{\"type\":\"null\"}]}";

/// Maximum number of repetitions of a grammar rule, as defined by llama.cpp.
const REPETITIONS_MAX: u64 = 2000;

pub(super) struct LlamaCpp {
    /// True if some `$ref` leads through a list such as `anyOf`: then no such list is merged.
    pub(super) has_paths: bool,
}

impl Dialect for LlamaCpp {
    fn any(&self) -> &'static str {
        ANY
    }

    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool) {
        let mut facts = SchemaFacts::of(schema);
        // llama.cpp makes its grammar of the choice alone, or of the properties alone.
        let is_hidden = facts.properties || root && !facts.all_of.is_empty();
        let merges = is_hidden && facts.reference.is_none() && !self.has_paths;
        let merged = if merges { merged::parts(&facts, Which::AllPlain, root) } else { None };
        facts.merges = merged.is_some();
        json.begin_object();
        if root && !facts.typed {
            json.kind("object");
        } else if !facts.has_kind() {
            json.key("anyOf").raw(json::member(ANY, "anyOf").unwrap_or_default());
        }
        facts
            .members_in_place()
            .filter(|it| !refuses(it))
            .for_each(|member| self.member(&member, json));
        if facts.merges && !(facts.typed || root) {
            json.kind("object");
        }
        // Properties added beside a choice would hide the choice from llama.cpp.
        if facts.merges || !facts.has_branches() {
            let is_merged = facts.merges;
            self.missing_properties(&facts, merged, json, root);
            // llama.cpp allows only objects without properties if `additionalProperties` is
            // missing.
            if root && !(is_merged || facts.properties || facts.additional_properties) {
                json.key("additionalProperties").raw("true");
            }
        }
        json.end_object();
    }
}

/// Returns true if a member is left out for llama.cpp. Patterns are supported only with `^` and
/// `$`, and without `\d` or groups that look around. Lengths are bounded: Claude Code's `Workflow`
/// has a string of at most 524,288 characters. A reference must be a path. A boolean in `items`
/// hides `prefixItems`.
fn refuses(member: &KeywordMember<'_>) -> bool {
    match (member.keyword.as_ref(), member.kind()) {
        ("pattern", ValueKind::String) | ("items", ValueKind::Bool) => true,
        ("$ref", ValueKind::String) => json::string(member.value).is_some_and(|it| !is_path(it)),
        ("minLength" | "maxLength" | "minItems" | "maxItems", ValueKind::Number) => {
            member.value.parse::<u64>().map_or(true, |times| times >= REPETITIONS_MAX)
        }
        _ => false,
    }
}
