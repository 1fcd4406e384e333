//! Codes and types in error bodies, in lower case, by their meaning.

use super::wordings;

wordings! {
    /// Error codes of a bad request.
    CODES_400 {
        Alone: "invalid_request_error" | "invalid_request" | "badrequesterror" | "bad_request" | "invalid_argument";
        Alone: "context_length_exceeded" | "exceed_context_size_error" | "content_filter" | "tool_use_failed";
        Alone: "validation_error";
        Alone: "invalid_encrypted_content" | "integer_below_min_value" | "string_above_max_length" => "OpenAI";
        Alone: "missing_required_parameter" | "unknown_parameter" | "unsupported_parameter" => "OpenAI";
        Alone: "unsupported_value" | "invalid_prompt" => "OpenAI";
        Alone: "invalid_image" | "invalid_image_format" | "invalid_base64_image" | "invalid_image_url" => "OpenAI";
        Alone: "invalid_image_mode" | "image_too_large" | "image_too_small" | "image_parse_error" => "OpenAI";
        Alone: "image_content_policy_violation" | "image_file_too_large" | "image_file_not_found" => "OpenAI";
        Alone: "unsupported_image_media_type" | "empty_image_file" | "failed_to_download_image" => "OpenAI";
        Alone: "cyber_policy" | "bio_policy" | "misalignment_policy_violation" => "OpenAI";
    }

    /// Error codes of a wrong API key.
    CODES_401 {
        Alone: "authentication_error" | "invalid_api_key" | "unauthorized" | "unauthenticated";
    }

    /// Error codes of an empty account that stand for status 402.
    CODES_402 {
        Alone: "billing_error" | "payment_required";
        Alone: "insufficient_quota" | "usage_not_included" | "usage_limit_reached" => "OpenAI";
        Alone: "payment_required_error" => "Cerebras";
    }

    /// Error codes of an API key without permission.
    CODES_403 {
        Alone: "permission_error" | "permission_denied" | "forbidden";
    }

    /// Error codes of a missing model.
    CODES_404 {
        Alone: "not_found_error" | "model_not_found" | "notfounderror" | "not_found";
    }

    /// Error codes of a request body that is too large.
    CODES_413 {
        Alone: "request_too_large";
    }

    /// Error codes of a rate limit.
    CODES_429 {
        Alone: "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted" | "too_many_requests" | "ratelimiterror";
        // Zhipu's codes for its limits of requests, a busy model, and a used-up plan.
        Alone: "1302" | "1303" | "1304" | "1305" | "1308" => "Zhipu";
    }

    /// Error codes of an overloaded server.
    CODES_503 {
        Alone: "overloaded_error" | "overloaded" | "engine_overloaded_error" | "provider_overloaded" | "unavailable";
        Alone: "service_unavailable" | "insufficient_system_resource";
        Alone: "slow_down" | "server_is_overloaded" => "OpenAI";
    }

    /// Error codes of a server that took too long.
    CODES_504 {
        Alone: "timeout_error" | "timeout" | "deadline_exceeded" | "gateway_timeout";
    }

    /// Error codes of reasoning that the upstream cannot decrypt.
    UNREAD_CODES {
        Alone: "invalid_encrypted_content" => "OpenAI";
    }

    /// Error codes of a wrong API key, in errors with status 400.
    KEY_CODES {
        Alone: "invalid_api_key" | "api_key_invalid";
    }

    /// Error codes of a missing model, in errors with status 400.
    MODEL_CODES {
        Alone: "model_not_found" | "model_not_supported";
        Alone: "1211" => "Zhipu";
        Alone: "20012" => "SiliconFlow";
    }

    /// Error codes of a missing model, in errors with status 401.
    MODEL_ERROR_CODES {
        Alone: "modelerror" => "OpenCode Zen";
    }

    /// Error codes of a conversation that is too long.
    WINDOW_CODES {
        Alone: "context_length_exceeded" | "model_max_prompt_tokens_exceeded" | "exceed_context_size_error";
        Alone: "model_context_window_exceeded";
        Alone: "tokens_limit_reached" => "GitHub Models";
        Alone: "1261" | "tokens_too_long" => "Zhipu, Qianfan";
        Alone: "prompt_too_long" => "vMLX";
    }

    /// Error codes of a provider's content filter.
    FILTER_CODES {
        Alone: "content_filter" | "contentfilter" | "content_policy_violation" | "responsibleaipolicyviolation";
        Alone: "refusal" => "OpenRouter";
        Alone: "cyber_policy" | "bio_policy" | "misalignment_policy_violation" => "OpenAI";
        Alone: "data_inspection_failed" | "datainspectionfailed" => "Qwen's own service";
        Alone: "1301" | "sensitive_words_detected" => "Zhipu, One API";
        Alone: "censorship_blocked" => "StepFun";
    }

    /// Error codes of a prompt that OpenAI refuses, by its content filter or for another reason.
    INVALID_PROMPT_CODES {
        Alone: "invalid_prompt" => "OpenAI";
    }

    /// Error codes of an empty account that come with the status of a rate limit or of a bad
    /// request.
    UNPAID_CODES {
        Alone: "exceeded_current_quota_error" => "Moonshot";
        Alone: "1113" => "Zhipu";
        Alone: "arrearage" | "allocationquota.freetieronly" | "postpaidbilloverdue" => "DashScope";
        Alone: "accountoverdueerror" => "Ark";
        Alone: "pre_consume_token_quota_failed" => "One API";
        Alone: "budget_exceeded" => "LiteLLM";
        Alone: "usage_not_included" | "usage_limit_reached" => "OpenAI, for subscriptions";
        Alone: "billing_not_active" | "billing_hard_limit_reached" | "credit_balance_exhausted" => "OpenAI";
        Alone: "organization_spend_limit_exceeded" | "project_spend_limit_exceeded" => "OpenAI";
        Alone: "organization_usage_limit_exceeded" => "OpenAI";
        Alone: "creditserror" | "monthlylimiterror" | "userlimiterror" => "OpenCode Zen";
    }
}
