//! Images that an upstream refuses in whatever words.

use super::host::{Host, request};
use super::*;

const TOO_LARGE: &str = "messages.38.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels";

fn image() -> Value {
    let source =
        json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUg=="});
    json!({"type": "image", "source": source})
}

fn remote() -> Value {
    json!({"type": "image", "source": {"type": "url", "url": "https://u:p@Pictures.example:8443/gone.png?x"}})
}

/// A screenshot that a tool took.
fn taken(image: &Value) -> Value {
    json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "shot", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [image]}]},
    ])
}

/// An image that a person gave, and what came after it.
fn shown(image: &Value) -> Value {
    json!([
        {"role": "user", "content": [image, {"type": "text", "text": "what?"}]},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "more"},
    ])
}

fn refuses(message: &'static str) -> impl Fn(&Value) -> Option<&'static str> {
    move |sent| sent.to_string().contains("image_url").then_some(message)
}

#[test]
fn an_image_that_is_refused_in_words_nobody_knows_does_not_end_the_conversation() {
    for (status, message) in [
        (400, TOO_LARGE),
        (400, "The picture has a width of 3 pixels, which is below the minimum"),
        (422, "Failed to fetch media from URL: HTTP 404 error (image_url)"),
        (500, "Internal server error: An exception occurred while loading IMAGE data at index 0"),
        (400, "base64: invalid padding"),
        (415, "image/tiff: this image cannot be used"),
    ] {
        let refuses = refuses(message);
        let host = Host { status, ..Host::new(true, &refuses) };
        for messages in [taken(&image()), shown(&image())] {
            let got = host.ask(&request("m", json!({"messages": messages})), NOW);
            assert_eq!((got.status(), got.asked.len()), ((200, None), 2), "{message}");
            assert_eq!(got.warnings(), "dropped:image,images_refused");
            assert!(got.asked[1].to_string().contains("[image omitted"), "{:?}", got.asked[1]);
        }
        // Which image it is, only this conversation says.
        let got = host.ask(&request("m", json!({"messages": taken(&image())})), NOW);
        assert_eq!(got.asked.len(), 2);
    }
}

#[test]
fn an_image_that_cannot_be_fetched_is_the_clients_to_change() {
    for message in [
        "404, message='Not Found', url='https://pictures.example:8443/gone.png?x'",
        "Cannot connect to host pictures.example:8443 ssl:default [Name or service not known]",
        "Get \"https://pictures.example:8443/gone.png\": dial tcp: lookup pictures.example: no such host",
    ] {
        let refuses = refuses(message);
        let host = Host { status: 500, ..Host::new(true, &refuses) };
        // SDKs would send it again after a 500.
        let new = json!([{"role": "user", "content": [remote(), {"type": "text", "text": "?"}]}]);
        let got = host.ask(&request("m", json!({"messages": new})), NOW);
        assert_eq!((got.status(), got.asked.len()), ((400, None), 1), "{message}");
        let error = error_of(&got.body);
        assert_eq!(error["type"], "invalid_request_error");
        let told = error["message"].as_str().unwrap();
        assert!(told.starts_with("Could not process image ("), "{told}");
        let got = host.ask(&request("m", json!({"messages": shown(&remote())})), NOW);
        assert_eq!((got.status(), got.asked.len()), ((200, None), 2), "{message}");
        // Of an image that is in the request it says nothing.
        let got = host.ask(&request("m", json!({"messages": shown(&image())})), NOW);
        assert_eq!((got.status().0, got.asked.len()), (500, 1), "{message}");
    }
}

#[test]
fn an_image_stays_where_only_a_call_without_words_is_refused() {
    let message = "messages[1].content must be a string";
    let refuses = |sent: &Value| sent["messages"][1]["content"].is_null().then_some(message);
    let host = Host::new(true, &refuses);
    let got = host.ask(&request("m", json!({"messages": taken(&image())})), NOW);
    assert_eq!((got.status(), got.asked.len()), ((200, None), 2));
    assert_eq!(got.warnings(), "parameter_refused:empty_assistant_content");
    assert!(got.asked[1].to_string().contains("image_url"), "{:?}", got.asked[1]);
    // Where the image is meant by these words, it follows.
    let refuses = |sent: &Value| sent.to_string().contains("image_url").then_some(message);
    let host = Host::new(true, &refuses);
    let got = host.ask(&request("m", json!({"messages": taken(&image())})), NOW);
    assert_eq!((got.status(), got.asked.len()), ((200, None), 3));
    assert!(got.warnings().contains("images_refused"), "{}", got.warnings());
    // It is all that could be meant where no message has calls alone.
    let got = host.ask(&request("m", json!({"messages": shown(&image())})), NOW);
    assert_eq!((got.status(), got.asked.len()), ((200, None), 2));
    assert_eq!(got.warnings(), "dropped:image,images_refused");
}

#[test]
fn an_image_of_which_nobody_speaks_stays() {
    for (status, message) in [
        (400, "Invalid schema for function 'image_gen': no"),
        (400, "Your image was flagged by our safety system"),
        (400, "messages[0]: unknown word in 'the image could not be loaded'"),
        (429, "Too many images"),
        (503, "Failed to load image"),
        (500, "CUDA error: out of memory while encoding the image"),
    ] {
        let refuses = refuses(message);
        let host = Host { status, ..Host::new(true, &refuses) };
        let got = host.ask(&request("m", json!({"messages": taken(&image())})), NOW);
        assert_ne!(got.status().0, 200, "{message}");
        assert_eq!(got.asked.len(), 1, "{message}");
        let told = error_of(&got.body)["message"].as_str().unwrap().to_owned();
        assert!(!told.contains("Could not process image"), "{told}");
    }
}

#[test]
fn an_upstream_that_speaks_messages_is_asked_without_the_image_too() {
    let refuses = |sent: &Value| sent.to_string().contains("iVBOR").then_some(TOO_LARGE);
    let config = r#"{"upstreams": {"a": {"url": "http://a", "protocol": "anthropic"}}}"#;
    let host = Host { config: drive::config(config), ..Host::new(true, &refuses) };
    let got = host.ask(&request("m", json!({"messages": taken(&image())})), NOW);
    assert_eq!(got.asked.len(), 2);
    assert!(got.warnings().contains("images_refused"), "{}", got.warnings());
}
