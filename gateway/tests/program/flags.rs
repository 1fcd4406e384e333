//! What the flags of `creole serve` make of one upstream.

use crate::rig::{self, COMPLETION, Gateway, Upstream, client, messages, request, send};
use serde_json::Value;

async fn answering() -> Upstream {
    Upstream::answering(200, "application/json", COMPLETION).await
}

#[tokio::test]
async fn a_profile_alone_knows_where_its_vendor_is() {
    let gateway = Gateway::start_with(&["--profile", "groq"], "{}", &[("GROQ_API_KEY", "sk-g")]);
    rig::until("the line", || !gateway.lines("https://api.groq.com/openai/v1").is_empty()).await;
    rig::until("the variable", || !gateway.lines("variable GROQ_API_KEY").is_empty()).await;
    assert!(!gateway.log().contains("sk-g"));
}

#[tokio::test]
async fn a_vendors_key_does_not_go_to_another_address() {
    let upstream = answering().await;
    let url = format!("http://{}/v1", upstream.address);
    let args = ["--profile", "openai", "--upstream", &url];
    let gateway = Gateway::start_with(&args, "{}", &[("OPENAI_API_KEY", "sk-openai")]);
    let sending = request("POST", &gateway.url("/v1/messages"), messages(false));
    assert_eq!(send(&client(false), sending).await.status, 200);
    assert_eq!(upstream.last().headers["authorization"], "Bearer sk-client");
    assert!(gateway.lines("OPENAI_API_KEY").is_empty());
}

#[tokio::test]
async fn each_name_goes_to_the_model_and_small_names_to_the_small_one() {
    let upstream = answering().await;
    let url = format!("http://{}/v1", upstream.address);
    let args = ["--upstream", &url, "--model", "big", "--small-model", "tiny"];
    let gateway = Gateway::start_with(&args, "{}", &[]);
    for (asked, sent) in [("claude-sonnet-5", "big"), ("claude-haiku-4-5-20251001", "tiny")] {
        let mut body: Value = serde_json::from_str(&messages(false)).unwrap();
        body["model"] = asked.into();
        let sending = request("POST", &gateway.url("/v1/messages"), body.to_string());
        assert_eq!(send(&client(false), sending).await.status, 200);
        let body: Value = serde_json::from_str(&upstream.last().body).unwrap();
        assert_eq!(body["model"], sent, "{asked}");
    }
    let mut asking = request("GET", &gateway.url("/v1/models"), "");
    asking.headers_mut().insert("anthropic-version", "2023-06-01".parse().unwrap());
    let listed = send(&client(false), asking).await.body;
    assert!(listed.contains("\"big\"") && listed.contains("\"tiny\""), "{listed}");
}
