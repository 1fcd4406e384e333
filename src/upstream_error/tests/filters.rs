//! Tests of errors about prompts that a content filter refuses.

use super::*;

#[test]
fn a_filtered_prompt_is_a_refusal_unless_configured_otherwise() {
    let azure = r#"{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true}}}}}"#;
    let databricks = behind_databricks(azure);
    for body in [
        azure,
        r#"{"error":{"message":"m","code":"content_policy_violation"}}"#,
        r#"{"error":{"message":"m","code":null,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
        r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt.","code":"invalid_prompt"}}"#,
        // Errors of DashScope, on both of its paths.
        r#"{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}"#,
        r#"{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content."}"#,
        // Errors of Zhipu, DeepSeek (alone and behind a router), One API and Ark.
        r#"{"error":{"code":"1301","message":"m"}}"#,
        r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","code":"invalid_request_error"}}"#,
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"Content Exists Risk\"}}"}}}"#,
        r#"{"error":{"code":"ContentFilter","message":"m"}}"#,
        r#"{"error":{"code":"sensitive_words_detected","message":"m"}}"#,
        r#"{"error":{"code":"InputTextSensitiveContentDetected","message":"m"}}"#,
        r#"{"error":{"code":"SensitiveContentDetected.SevereViolation","message":"m"}}"#,
        // Errors of xAI and MiniMax.
        r#"{"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: t. Failed check: SAFETY_CHECK_TYPE_BIO"}"#,
        r#"{"type":"error","error":{"type":"api_error","message":"output new_sensitive (1027)"}}"#,
        r#"{"choices":[],"base_resp":{"status_code":1026,"status_msg":"m"}}"#,
        // Errors of StepFun, Cloudflare's AI Gateway and Azure behind Databricks.
        r#"{"error":{"message":"The content you provided or machine outputted is blocked.","type":"censorship_blocked"}}"#,
        r#"{"success":false,"error":[{"code":2016,"message":"Prompt blocked due to security configurations"}]}"#,
        &databricks,
        // Errors of LiteLLM before Azure and OpenAI, and of Azure behind a gateway that drops the
        // error's code.
        r#"{"error":{"message":"litellm.BadRequestError: litellm.ContentPolicyViolationError: litellm.ContentPolicyViolationError: AzureException - The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.","type":null,"param":null,"code":"400"}}"#,
        r#"{"error":{"message":"litellm.ContentPolicyViolationError: OpenAIException - Invalid prompt: your prompt was flagged","code":"400"}}"#,
        r#"{"error":{"message":"The response was filtered due to the prompt triggering Microsoft's content management policy. Please modify your prompt and retry."}}"#,
    ] {
        let refusal = read_body(400, body.as_bytes(), &context());
        assert!(matches!(refusal, Err("refusal")), "{body}");
        let refusal = read_body(500, body.as_bytes(), &context());
        assert!(matches!(refusal, Err("refusal")), "{body}");
        assert_eq!(as_answer(body, &context()), Some("refusal"), "{body}");
    }
    assert_eq!(refused(502, azure).kind, ErrorKind::Api);
    // Quoted text does not count as the server's words.
    let quoted = r#"{"error":{"message":"Failed to parse input at pos 12: {\"c\":\"class X: input new_sensitive\""}}"#;
    assert_eq!(refused(500, quoted).kind, ErrorKind::Api);
    let other = r#"{"error":{"message":"Invalid prompt: it is empty","code":"invalid_prompt"}}"#;
    assert_eq!(refused(400, other).message, "Invalid prompt: it is empty");
}

#[test]
fn a_prompt_that_a_router_flags_is_a_refusal_and_no_wrong_credential() {
    for (status, body) in [
        (
            403,
            r#"{"error":{"code":403,"message":"openai/gpt-x requires moderation on OpenAI. Your input was flagged for \"violence\". No credits were charged.","metadata":{"reasons":["violence"],"flagged_input":"a","provider_name":"OpenAI"}}}"#,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"m","metadata":{"error_type":"content_policy_violation"}}}"#,
        ),
        (400, r#"{"error":{"code":400,"message":"m","metadata":{"error_type":"refusal"}}}"#),
    ] {
        let refusal = read_body(status, body.as_bytes(), &edge_asked());
        assert!(matches!(refusal, Err("refusal")), "{body}");
        assert_eq!(as_answer(body, &edge_asked()), Some("refusal"), "{body}");
    }
    let other = r#"{"error":{"code":403,"message":"m","metadata":{"error_type":"permission_denied","reasons":[]}}}"#;
    assert_eq!(refused(403, other).kind, ErrorKind::Permission);
}
