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

/// What a profile sends of `top_k`, which only some servers take.
async fn sends_top_k(gateway: &Gateway, upstream: &Upstream) -> bool {
    let mut body: Value = serde_json::from_str(&messages(false)).unwrap();
    body["top_k"] = 5.into();
    let sending = request("POST", &gateway.url("/v1/messages"), body.to_string());
    assert_eq!(send(&client(false), sending).await.status, 200);
    // The check at the start may ask for the list of models behind it.
    let asked = upstream.asked.lock().unwrap();
    asked.iter().any(|received| received.body.contains("\"top_k\":5"))
}

/// The gateway asks for it before it listens: tests with it need a thread more.
const VLLM: &str = r#"{"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]}"#;

/// It lists a model as vLLM does, and answers.
async fn vllm() -> Upstream {
    Upstream::start(|asked, mut out| {
        let body = if asked.path.ends_with("/models") { VLLM } else { COMPLETION };
        tokio::spawn(async move { out.send_data(body.into()).await });
        (200, "application/json")
    })
    .await
}

#[tokio::test]
async fn the_address_of_a_vendor_tells_its_profile_and_key() {
    for (url, env, says) in [
        ("https://api.groq.com/openai/v1", "GROQ_API_KEY", "profile is groq, by its address"),
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "profile is openrouter, by its"),
    ] {
        let gateway = Gateway::start_with(&["--upstream", url], "", &[(env, "sk-canary")]);
        rig::until("the profile", || gateway.lines(says).len() == 1).await;
        rig::until("the key", || gateway.lines(&format!("variable {env}")).len() == 1).await;
        rig::until("the address", || !gateway.lines(url).is_empty()).await;
        assert!(!gateway.log().contains("sk-canary"));
    }
}

#[tokio::test]
async fn the_path_of_an_address_stays_where_its_profile_is_guessed() {
    let args = ["--upstream", "https://openrouter.ai/other"];
    let gateway = Gateway::start_with(&args, "", &[]);
    rig::until("the line", || !gateway.lines("profile is openrouter").is_empty()).await;
    rig::until("the path", || !gateway.lines("https://openrouter.ai/other").is_empty()).await;
    let gateway = Gateway::start_with(&["--upstream", "https://openrouter.ai"], "", &[]);
    rig::until("the path", || !gateway.lines("https://openrouter.ai/api/v1").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_a_local_server_tells_its_profile() {
    let upstream = vllm().await;
    let url = format!("http://{}/v1", upstream.address);
    let gateway = Gateway::start_looking(&["--upstream", &url], "");
    let says = "profile is vllm, by its list of models; --profile NAME takes another";
    rig::until("the profile", || gateway.lines(says).len() == 1).await;
    assert!(sends_top_k(&gateway, &upstream).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_profile_is_guessed_where_one_is_named_or_a_configuration_is() {
    let upstream = vllm().await;
    let url = format!("http://{}/v1", upstream.address);
    let named = Gateway::start_looking(&["--upstream", &url, "--profile", "default"], "");
    let configured = Gateway::start_looking(&["--upstream", &url], "{}");
    for gateway in [named, configured] {
        assert!(!sends_top_k(&gateway, &upstream).await);
        assert!(gateway.lines("profile").is_empty(), "{}", gateway.log());
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_holds_no_start_up_for_long() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", silent.local_addr().unwrap());
    let began = std::time::Instant::now();
    let gateway = Gateway::start_looking(&["--upstream", &url], "");
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
    rig::until("the line", || gateway.lines("profile is default, because").len() == 1).await;
    // Without the question, the start does not wait at all.
    let gateway = Gateway::start_with(&["--upstream", &url], "", &[]);
    rig::until("the line", || gateway.lines("profile is default, because").len() == 1).await;
}
