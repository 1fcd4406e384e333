//! Schemas for llama.cpp, which makes one grammar of all tools, so that one keyword ends every
//! request. It is left out: the client looks at inputs itself.

use super::facts::{Facts, Member, is_path};
use super::merged::{self, Which};
use super::walk::Dialect;
use crate::json::{self, ValueKind, Writer};

/// Schema that llama.cpp gets where any value will do. It takes `{}` for any object
/// (`schema.empty()` in its `json-schema-to-grammar.cpp`), and refused a schema with a description
/// alone until 2026 (llama.cpp#19716). There is no list of types, because the templates of Hermes,
/// Command R+ and GigaChat raise an error at one.
const ANY: &str = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"},{\"type\":\"boolean\"},{\"type\":\"object\"},{\"type\":\"array\"},{\"type\":\"null\"}]}";

/// Maximum number of repetitions of a rule in a grammar, by llama.cpp's own bound.
const REPETITIONS_MAX: u64 = 2000;

pub(super) struct LlamaCpp {
    /// References lead through lists of schemas, so none is written as one.
    pub(super) has_paths: bool,
}

impl Dialect for LlamaCpp {
    fn any(&self) -> &'static str {
        ANY
    }

    fn object(&mut self, schema: &str, json: &mut Writer<'_>, root: bool) {
        let mut facts = Facts::of(schema);
        // Its grammar is that of the choice alone, or of the properties alone.
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
        // Of properties beside what it makes a grammar of, it would see the properties alone.
        if facts.merges || !facts.has_branches() {
            let is_merged = facts.merges;
            self.missing_properties(&facts, merged, json, root);
            // It would see that there are none.
            if root && !(is_merged || facts.properties || facts.additional_properties) {
                json.key("additionalProperties").raw("true");
            }
        }
        json.end_object();
    }
}

/// Returns true if a member is left out for llama.cpp. Of patterns it takes few: they must have `^`
/// and `$`, and neither `\d` nor groups that look around. Lengths are bounded: Claude Code's
/// `Workflow` has a text of at most 524,288 letters. A reference must be a path. A boolean in
/// `items` hides `prefixItems`.
fn refuses(member: &Member<'_>) -> bool {
    match (member.keyword.as_ref(), member.kind()) {
        ("pattern", ValueKind::String) | ("items", ValueKind::Bool) => true,
        ("$ref", ValueKind::String) => json::string(member.value).is_some_and(|it| !is_path(it)),
        ("minLength" | "maxLength" | "minItems" | "maxItems", ValueKind::Number) => {
            member.value.parse::<u64>().map_or(true, |times| times >= REPETITIONS_MAX)
        }
        _ => false,
    }
}
