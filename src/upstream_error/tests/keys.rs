//! Tests of credentials in error messages.

use super::*;

/// Returns the client's message for an error with this text.
fn masked(text: &str) -> String {
    let body = serde_json::json!({"error": {"message": text, "type": "BadRequestError"}});
    refused(422, &body.to_string()).message.clone()
}

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
        assert_eq!(masked(text), expected);
    }
    // Credentials are masked in plain pages and in cut texts, too.
    assert_eq!(message("<p>API key sk-0123456789 is bad</p>"), "API key *** is bad");
}

#[test]
fn a_providers_key_is_known_by_how_it_begins() {
    for key in [
        "sk-a1b2c3d4",
        // Keys of Langfuse, Clerk and Stripe.
        "sk_a1b2c3d4",
        "pk-lf-a1b2c3d4",
        "pk_a1b2c3d4",
        "rk_a1b2c3d4",
        "gsk_a1b2c3d4",
        "xai-a1b2c3d4",
        "AIzaSyA1234567890123456789",
        "hf_a1b2c3d4",
        "nvapi-a1b2c3d4",
        // Keys of Replicate.
        "r8_a1b2c3d4",
        "ghp_a1b2c3d4",
        "gho_a1b2c3d4",
        "github_pat_a1b2c3d4",
        // Keys of Fireworks and Together.
        "fw_a1b2c3d4",
        "tgp_v1_a1b2c3d4",
        "pplx-a1b2c3d4",
        // Keys of Cerebras.
        "csk-a1b2c3d4",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0",
    ] {
        assert_eq!(masked(&format!("no user for '{key}'")), "no user for '***'");
    }
}

#[test]
fn any_other_key_is_known_by_the_words_before_it() {
    let masks = |before: &str| {
        let text = masked(&format!("{before} abcdef-123456"));
        assert!(text == format!("{before} ***") || text.ends_with(" abcdef-123456"), "{text}");
        text.ends_with("***")
    };
    for word in [
        "apikey",
        "api_key",
        "api-key",
        "x-api-key",
        "Bearer",
        "Authorization",
        "secret",
        "password",
        "credential",
        "credentials",
        "access_token",
        "access-token",
        "auth_token",
        "Basic",
    ] {
        assert!(masks(&format!("{word}:")), "{word}");
    }
    for word in [
        "API",
        "access",
        "secret",
        "auth",
        "subscription",
        "incorrect",
        "invalid",
        "your",
        "bearer",
        "wrong",
        "bad",
        "provided",
    ] {
        for noun in ["key", "token"] {
            assert!(masks(&format!("{word} {noun}:")), "{word} {noun}");
        }
    }
    assert!(!masks("unknown key:") && !masks("unknown token:"));
    // The key need not be the next word, but one of the next three.
    assert!(masks("Incorrect API key provided:") && masks("Incorrect API key you gave:"));
    assert!(!masks("Incorrect API key that you gave:"));
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
