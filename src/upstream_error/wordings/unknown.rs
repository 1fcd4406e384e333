//! Words in errors of unknown wording: for problems that no change of a request solves, and for a
//! text in the wrong form.

use super::wordings;

wordings! {
    /// Words and codes for problems that no change of a request solves: money, keys, rates, policy,
    /// regions, models and lengths.
    VETOES {
        Alone: "quota" | "overdue" | "purchase" | "arrear" | "key is" | "signaturedoesnotmatch" | "pull image";
        Alone: "container" | "forbidden" | "balance" | "billing" | "credit" | "budget" | "spending";
        Alone: "subscription" | "upgrade" | "payment" | "recharge" | "usage limit" | "rate limit" | "ratelimit";
        Alone: "rate_limit" | "too many requests" | "per minute" | "allowance" | "premium" | "api key";
        Alone: "api-key" | "apikey" | "api_key" | "access token" | "oauth" | "authenticat" | "authoriz";
        Alone: "permission" | "have access" | "denied" | "credentials" | "account" | "policy" | "policies";
        Alone: "safety" | "flagged" | "inappropriate" | "moderation" | "inspection" | "filtered" | "violat";
        Alone: "guardrail" | "country" | "region" | "territory" | "location" | "data center" | "overloaded";
        Alone: "high demand" | "try again" | "temporarily" | "unavailable" | "timed out" | "timeout";
        Alone: "context length" | "context window" | "context limit" | "maximum context" | "token count";
        Alone: "length of the messages" | "too large" | "input length" | "does not exist" | "model identifier";
        Alone: "no endpoints" | "degraded" | "余额" | "额度" | "欠费" | "限流" | "频率" | "速率" | "上限" | "敏感" | "违规";
        Alone: "渠道" | "稍后" | "地区" | "访问量";
    }

    /// Error phrases of a server that expects a text, and got a list or another form.
    WANTS_TEXT {
        Alone: "valid string" | "array not in string" | "be a string" | "be of type string" | "expected string";
        Alone: "expected a string" | "expected str" | "not a string" | "of type string" | "string_type";
        Alone: "invalid_union" | "invalid type for" | "type mismatch" | "input text" | "unmarshal array";
        Alone: "array into" | "array instead" | "list instead" | "got array" | "got list" | "mismatch type string";
        Alone: "sequence, expected" | "start_array" | "from array value" | "cannot start list" | "not list) to str";
        Alone: "must be string" | "should be string" | "received array" | "found array" | "received list";
        Alone: "untagged enum" | "text is not set" | "text is missing" | "text field is required";
    }

    /// Error phrases for a text that is too long.
    TEXT_TOO_LONG {
        Alone: "too long" | "maximum length" | "max_length" | "above_max_length" | "过长";
    }
}
