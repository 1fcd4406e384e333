//! Tests of errors about accounts without credit.

use super::*;

#[test]
fn a_quota_is_billing_and_is_not_retried() {
    for body in [
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        r#"{"error":{"message":"m","type":"insufficient_quota","code":null}}"#,
        r#"{"error":{"message":"m","type":"exceeded_current_quota_error"}}"#,
        r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package."}}"#,
    ] {
        for error in [refused(429, body), from_object(body, &context())] {
            assert_eq!((error.status, error.kind), (402, ErrorKind::Billing));
            assert_eq!(error.should_retry, Some(false));
        }
    }
    let limited =
        refused(429, r#"{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}"#);
    assert_eq!(
        (limited.status, limited.kind, limited.should_retry),
        (429, ErrorKind::RateLimit, None)
    );
}

#[test]
fn an_empty_account_that_is_told_as_a_wrong_request_is_billing() {
    // Errors of Anthropic and DashScope.
    for (body, error_body) in [
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
            "credit balance is too low",
        ),
        (
            r#"{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing.","type":"Arrearage"}}"#,
            "good standing",
        ),
    ] {
        for status in [400, 403] {
            let refusal = read_body(status, body.as_bytes(), &edge_asked());
            let Ok(own) = refusal else { panic!("an error") };
            assert_eq!(
                (own.status, own.kind, own.fault()),
                (402, ErrorKind::Billing, Fault::Operator)
            );
            assert_eq!(own.should_retry, Some(false));
            // Claude Code recognizes an empty account by this text in the message.
            let complaint = if status == 403 { UNPAID } else { error_body };
            assert!(own.message.contains(complaint), "{}", own.message);
            assert_eq!(refused(status, body).fault(), Fault::Client);
        }
        assert_eq!(from_object(body, &context()).status, 402);
    }
    let words =
        r#"{"error":{"type":"invalid_request_error","message":"tools.0: the balance is too low"}}"#;
    assert_eq!(refused(400, words).status, 400);
}

#[test]
fn an_empty_account_of_the_gateways_own_key_is_told_in_our_words() {
    let body =
        r#"{"error":{"message":"Key canary of alice@corp.example: credit balance is too low"}}"#;
    let refusal = read_body(403, body.as_bytes(), &edge_asked());
    let Ok(own) = refusal else { panic!("an error") };
    assert_eq!((own.status, own.message.as_str()), (402, UNPAID));
    assert!(
        own.rejection()
            .and_then(Rejection::hidden)
            .is_some_and(|error_body| error_body.contains("canary"))
    );
}

#[test]
fn an_empty_account_is_known_by_its_words_and_by_its_code() {
    for body in [
        // Errors of xAI and Gemini.
        r#""Your team t has either used all available credits or reached its monthly spending limit.""#,
        r#"{"error":{"code":429,"message":"Your prepayment credits are depleted. Please go to AI Studio.","status":"RESOURCE_EXHAUSTED"}}"#,
        // Errors of One API and its copies.
        r#"{"error":{"message":"预扣费额度失败","type":"new_api_error","code":"insufficient_user_quota"}}"#,
        r#"{"error":{"message":"token quota is not enough","code":"pre_consume_token_quota_failed"}}"#,
        r#"{"error":{"message":"该令牌额度已用尽 (request id: 2025)","type":"new_api_error"}}"#,
        r#"{"error":{"message":"令牌额度不足","type":"one_api_error"}}"#,
        r#"{"error":{"message":"用户额度不足","type":"one_api_error"}}"#,
        // Errors of Ark, SiliconFlow, Novita and LiteLLM.
        r#"{"error":{"code":"AccountOverdueError","message":"m"}}"#,
        r#"{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}"#,
        r#"{"code":403,"reason":"NOT_ENOUGH_BALANCE","message":"not enough balance","metadata":{}}"#,
        r#"{"error":{"message":"Budget has been exceeded! Current cost: 2, Max budget: 1","type":"budget_exceeded"}}"#,
        // Errors of OpenAI.
        r#"{"error":{"message":"m","type":"billing","code":"credit_balance_exhausted"}}"#,
        r#"{"error":{"message":"m","type":"requests","code":"project_spend_limit_exceeded"}}"#,
        r#"{"error":{"message":"Your account is not active, please check your billing details on our website.","type":"billing_not_active","code":"billing_not_active"}}"#,
        // Errors of DashScope, OpenRouter, Fireworks and xAI.
        r#"{"error":{"code":"AllocationQuota.FreeTierOnly","message":"The free tier of the model has been exhausted."}}"#,
        r#"{"error":{"code":403,"message":"Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys"}}"#,
        r#"{"error":"Account a is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}"#,
        r#"{"code":"c","error":"Your newly created team doesn't have any credits yet."}"#,
    ] {
        for status in [400, 401, 403, 412, 429] {
            let error = refused(status, body);
            assert_eq!((error.status, error.kind), (402, ErrorKind::Billing), "{status} {body}");
            assert_eq!(error.should_retry, Some(false), "{body}");
        }
        let error = from_object(body, &context());
        assert_eq!((error.status, error.should_retry), (402, Some(false)), "{body}");
    }
    // Errors about limits that the next minute may lift.
    for body in [
        r#"{"error":{"message":"You exceeded your current quota, please retry in 5s","status":"RESOURCE_EXHAUSTED"}}"#,
        r#"{"error":{"message":"load balancer: not enough capacity","code":"insufficient_system_resource"}}"#,
        r#"{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 requests"}}"#,
        r#"{"error":{"message":"Insufficient capacity behind the load balancer: try again later"}}"#,
        r#"{"error":{"message":"API key limit exceeded: 60 requests per minute, retry in 12 seconds","code":429}}"#,
        r#"{"error":{"message":"Rate limit reached. Increase your monthly spending limit to get higher limits."}}"#,
        r#"{"error":{"message":"当前分组每分钟额度不足，请稍后再试"}}"#,
        r#"{"error":{"message":"Invalid arguments: {'c': 'assert insufficient balance'}"}}"#,
    ] {
        assert_eq!(refused(429, body).status, 429, "{body}");
    }
}
