//! Tests of `look.rs`.

use super::*;

use hyper::{HeaderMap, StatusCode};

fn names(body: &str) -> Option<(Vec<String>, Option<&'static str>)> {
    let list = models::read(&HeaderMap::new(), body.as_bytes())?;
    Some((list.names(), list.preset))
}

#[test]
fn the_lists_of_servers_are_read_and_tell_whose_they_are() {
    for (body, expected, preset) in [
        (
            r#"{"object":"list","data":[{"id":"qwen3:30b","object":"model","owned_by":"library"}]}"#,
            vec!["qwen3:30b"],
            Some("ollama"),
        ),
        (
            r#"{"object":"list","data":[{"id":"Qwen/Qwen3","owned_by":"vllm","max_model_len":9}]}"#,
            vec!["Qwen/Qwen3"],
            Some("vllm"),
        ),
        (r#"{"data":[{"id":"m","owned_by":"sglang"}]}"#, vec!["m"], Some("sglang")),
        (
            r#"{"models":[{"name":"x"}],"object":"list","data":[{"id":"x","owned_by":"llamacpp"}]}"#,
            vec!["x"],
            Some("llama.cpp"),
        ),
        (
            r#"{"data":[{"id":"m","object":"model","owned_by":"organization_owner"}]}"#,
            vec!["m"],
            Some("lmstudio"),
        ),
        (r#"{"data":[{"id":"gpt-5.1","owned_by":"system"}]}"#, vec!["gpt-5.1"], None),
        (r#"[{"id":"meta-llama/Llama-3","type":"chat"}]"#, vec!["meta-llama/Llama-3"], None),
        (r#"{"data":[]}"#, vec![], None),
    ] {
        let (found, by) = names(body).unwrap();
        assert_eq!((found, by), (expected.iter().map(ToString::to_string).collect(), preset));
    }
    for body in ["", "{}", "<html>", r#"{"data":{}}"#, r#"{"data":[{"id":"a"}"#, "OK"] {
        assert_eq!(names(body), None, "{body}");
    }
}

#[test]
fn an_answer_tells_what_is_wrong() {
    let read = |status, body: &str| {
        let body = body.as_bytes().to_vec();
        let status = StatusCode::from_u16(status).unwrap();
        format!("{:?}", read(&Got { status, body, ..Got::default() }))
    };
    assert!(read(200, r#"{"data":[]}"#).starts_with("Models"));
    assert_eq!(read(200, "  <!doctype html>"), "Page");
    assert_eq!(read(404, "<html>404</html>"), "Nothing(404)");
    assert_eq!(read(200, "Ollama is running"), "Nothing(200)");
    assert_eq!((read(401, "<html>"), read(403, "")), ("Key(401)".into(), "Key(403)".into()));
    assert_eq!((read(503, ""), read(501, "")), ("Failing(503)".into(), "Nothing(501)".into()));
    assert_eq!(read(400, "Client sent an HTTP request to an HTTPS server.\n"), "Plain");
    let location = HeaderMap::from_iter([(LOCATION, "https://b/v1?key=secret".parse().unwrap())]);
    let moved = super::read(&Got {
        status: StatusCode::MOVED_PERMANENTLY,
        headers: location,
        ..Got::default()
    });
    assert_eq!(format!("{moved:?}"), r#"Redirect("https://b/v1")"#);
}

#[test]
fn questions_have_the_path_and_headers_that_the_core_gives_them() {
    let mut upstream = Upstream::named("u");
    "/x".clone_into(&mut upstream.base_path);
    assert_eq!(list_head(&upstream, "/x").unwrap().0, "/x/models");
    assert_eq!(list_head(&upstream, "").unwrap().0, "/models");
    assert_eq!(answer_head(&upstream).unwrap().0, "/x/chat/completions");
    upstream.protocol = Protocol::Responses;
    assert_eq!(list_head(&upstream, "/x").unwrap().0, "/x/models");
    assert_eq!(answer_head(&upstream).unwrap().0, "/x/responses");
    upstream.protocol = Protocol::Anthropic;
    let (path, headers) = list_head(&upstream, "/x").unwrap();
    assert_eq!(path, "/x/models");
    assert!(headers.iter().any(|(name, value)| name == "x-api-key" && value == PLACEHOLDER));
    assert_eq!(answer_head(&upstream).unwrap().0, "/x/messages");
}
