//! Writes the fields of a request that are neither the conversation nor the tools.

use super::effort;
use crate::error::Error;
use crate::headers::Header;
use crate::json::Writer;
use crate::model::Request;
use crate::observe::warning::Warnings;
use crate::profile::{MaxTokensField, Profile, ResponseFormat, SHARED_MEMBERS};
use crate::protocols::effort::{Effective, limited};
use crate::protocols::fields::{write_identity, write_sampling, write_tier};
use crate::tools::{plain, takes_strictly, write_output_schema};

/// Writes limits, sampling, thinking, response format, identity, tier and streaming, and then the
/// members of `extra_body`.
pub(crate) fn write(
    request: &Request<'_>,
    effective: &Effective,
    profile: &Profile,
    headers: &[Header],
    warnings: &mut Warnings,
    json: &mut Writer<'_>,
) -> Result<(), Error> {
    write_limits(request, profile, json);
    write_sampling(request, profile, warnings, json)?;
    effort::write(effective, profile, json);
    write_response_format(request, profile, json);
    write_identity(request, profile, headers, json);
    write_tier(request, profile, warnings, json)?;
    if request.stream {
        json.key("stream").bool(true);
        if profile.stream_usage {
            json.key("stream_options").begin_object().key("include_usage").bool(true).end_object();
        }
    }
    profile.extra_body.write_into(&SHARED_MEMBERS, json);
    Ok(())
}

fn write_limits(request: &Request<'_>, profile: &Profile, json: &mut Writer<'_>) {
    if let Some(wanted) = request.max_tokens {
        json.key(match profile.max_tokens_field {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        });
        json.u64(limited(wanted, profile));
    }
    if profile.stop && !request.stop_sequences.is_empty() {
        let most = if profile.max_stop == 0 { usize::MAX } else { profile.max_stop };
        json.key("stop").begin_array();
        for stop in request.stop_sequences.iter().take(most) {
            json.str(*stop);
        }
        json.end_array();
    }
}

fn write_response_format(request: &Request<'_>, profile: &Profile, json: &mut Writer<'_>) {
    let Some((schema, found)) = request.output_schema.map(plain) else { return };
    if profile.response_format == ResponseFormat::None {
        // The upstream refused `response_format` in an earlier attempt. If the configuration
        // excludes response formats, the request was already rejected (`messages::check`).
        return;
    }
    json.key("response_format").begin_object();
    match profile.response_format {
        ResponseFormat::JsonSchema => {
            json.kind("json_schema");
            json.key("json_schema").begin_object().key("name").text("output");
            write_output_schema(json.key("schema"), &schema, found, profile.tool_schema);
            if profile.strict_tools {
                json.key("strict").bool(takes_strictly(profile.strict_schemas, &schema));
            }
            json.end_object();
        }
        _ => {
            json.kind("json_object");
        }
    }
    json.end_object();
}
