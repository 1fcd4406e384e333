//! Fields of a Responses request that are neither the conversation nor the tools.

use crate::error::Error;
use crate::headers::Header;
use crate::json::Writer;
use crate::model::Request;
use crate::model::request_context::{Display, RequestContext};
use crate::observe::warning::Warnings;
use crate::profile::{Profile, ReasoningSummary, ResponseFormat, StoreField};
use crate::protocols::effort::{Effective, limited};
use crate::protocols::fields::{write_identity, write_sampling, write_tier};
use crate::tools::{plain, takes_strictly, write_output_schema};

/// Minimum `max_output_tokens` that OpenAI accepts. Some clients test a connection with 1.
const OUTPUT_TOKENS_LEAST: u64 = 16;

/// Objects of the request that Creole writes itself and to which `extra_body` may add members.
const SHARED: [&str; 2] = ["reasoning", "text"];

/// Sources of the fields: the client's request, the effective thinking effort, the client's
/// headers, and the upstream's profile.
pub(super) struct FieldSources<'f, 'a> {
    pub(super) request: &'f Request<'a>,
    pub(super) effective: Effective,
    pub(super) headers: &'f [Header],
    pub(super) profile: &'f Profile,
}

impl FieldSources<'_, '_> {
    /// Writes the request fields other than the conversation and the tools. Stores in `context` the
    /// output limit that was sent.
    pub(super) fn write(
        &self,
        context: &mut RequestContext,
        warnings: &mut Warnings,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let (request, profile) = (self.request, self.profile);
        if profile.store_field == StoreField::False {
            json.key("store").bool(false);
        }
        if let Some(wanted) = request.max_tokens.filter(|_| profile.output_limit) {
            let limit = limited(wanted, profile).max(OUTPUT_TOKENS_LEAST);
            json.key("max_output_tokens").u64(limit);
            context.limits.max_tokens = limit;
        }
        write_sampling(request, profile, warnings, json)?;
        self.write_reasoning(context.thinking.display, json);
        self.write_text(json);
        self.write_include(context.searches, json);
        write_identity(request, profile, self.headers, json);
        write_tier(request, profile, warnings, json)?;
        if request.stream {
            json.key("stream").bool(true);
            if !profile.obfuscation {
                json.key("stream_options").begin_object();
                json.key("include_obfuscation").bool(false).end_object();
            }
        }
        profile.extra_body.write_into(&SHARED, json);
        Ok(())
    }

    fn write_reasoning(&self, display: Display, json: &mut Writer<'_>) {
        let summary = match self.profile.reasoning_summary {
            ReasoningSummary::None => None,
            summary => Some(summary.word()).filter(|_| display == Display::Shown),
        };
        let added = self.profile.added_to("reasoning");
        if self.effective.effort.is_none() && summary.is_none() && added.is_none() {
            return;
        }
        json.key("reasoning").begin_object();
        if let Some(effort) = self.effective.effort {
            json.key("effort").text(effort.word());
        }
        if let Some(summary) = summary {
            json.key("summary").text(summary);
        }
        if let Some(added) = added {
            added.write_into(&["effort", "summary"], json);
        }
        json.end_object();
    }

    fn write_text(&self, json: &mut Writer<'_>) {
        let profile = self.profile;
        let schema = self.request.output_schema;
        let schema = schema.filter(|_| profile.response_format != ResponseFormat::None);
        let added = profile.added_to("text");
        if schema.is_none() && added.is_none() {
            return;
        }
        json.key("text").begin_object();
        if let Some((schema, found)) = schema.map(plain) {
            json.key("format").begin_object();
            if profile.response_format == ResponseFormat::JsonSchema {
                json.kind("json_schema");
                json.key("name").text("output");
                write_output_schema(json.key("schema"), &schema, found, profile.tool_schema);
                let strict =
                    profile.strict_tools && takes_strictly(profile.strict_schemas, &schema);
                json.key("strict").bool(strict);
            } else {
                json.kind("json_object");
            }
            json.end_object();
        }
        if let Some(added) = added {
            added.write_into(&["format"], json);
        }
        json.end_object();
    }

    fn write_include(&self, searches: bool, json: &mut Writer<'_>) {
        let encrypted = self.profile.include_encrypted;
        if !encrypted && !searches {
            return;
        }
        json.key("include").begin_array();
        if encrypted {
            json.text("reasoning.encrypted_content");
        }
        if searches {
            json.text("web_search_call.action.sources");
        }
        json.end_array();
    }
}
