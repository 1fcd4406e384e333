//! Credentials in messages.

use super::*;

#[test]
fn credentials_never_reach_the_client() {
    for (text, expected) in [
        (
            "Incorrect API key provided: sk-ab**********cdef. You can find",
            "Incorrect API key provided: ***. You can find",
        ),
        (
            "Authentication Fails, Your api key: ****1234 is invalid",
            "Authentication Fails, Your api key: *** is invalid",
        ),
        (
            "Invalid header Authorization: Bearer abcdefgh12345678",
            "Invalid header Authorization: Bearer ***",
        ),
        ("bad token 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.s5s5_x-y'", "bad token '***'"),
        ("url https://h/v1?key=AIzaSyA1234567890123456789&x=1", "url https://h/v1?key=***&x=1"),
        ("no such user for hf_AbCdEfGhIj", "no such user for ***"),
        ("Invalid API key: abcd/efgh+ijkl==", "Invalid API key: ***=="),
        ("https://h/sk-canary-1/v1 failed", "https:*** failed"),
        ("Invalid API key: secret-canary", "Invalid API key: ***"),
        ("invalid x-api-key \"canary_key_7\"", "invalid x-api-key \"***\""),
        ("Unknown key 0123456789abcdef0123456789abcdef", "Unknown key ***"),
        ("sk-canary", "***"),
    ] {
        assert_eq!(rewritten(text), expected);
    }
    // Plain pages too, and texts that were cut.
    assert_eq!(message("<p>API key sk-0123456789 is bad</p>"), "API key *** is bad");
}

#[test]
fn what_is_no_credential_stays_readable() {
    for text in [
        "You can find your API key at https://platform.openai.com/account/api-keys.",
        "API key not valid. Please pass a valid API key.",
        "Unexpected key 'tool_choice' in request",
        "unknown key: response_format",
        "Tool call id chatcmpl-tool-0123456789abcdef0123456789abcdef was not found",
        "The model `meta-llama/Llama-3.3-70B-Instruct` does not exist",
        "Rate limit reached for gpt-4o-2024-08-06: Limit 30000, Used 29000",
        "Error: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant",
        "risk-free",
        "function call is missing a thought_signature",
    ] {
        assert_eq!(message(&serde_json::json!({"error": text}).to_string()), text);
    }
}

proptest! {
    #[test]
    fn a_key_of_any_length_is_hidden(key in "sk-[A-Za-z0-9_-]{5,60}", before in "[a-z ]{0,20}") {
        let body = serde_json::json!({"error": format!("{before} '{key}' is wrong")}).to_string();
        prop_assert!(!message(&body).contains(&key));
    }
}
