//! Tests of errors about images that an upstream cannot fetch or read, or about too many images.

use super::*;
use crate::model::request_context::Refusable;
use crate::upstream_error::images::is_one_image;
use crate::upstream_error::wordings::NO_IMAGES;

/// Server, URL of the report, status, and error message.
type Row = (&'static str, &'static str, u16, &'static str);

const ROWS: &[Row] = &[
    // Errors about the sizes of images.
    (
        "Claude",
        "https://github.com/anthropics/claude-code/issues/14412",
        400,
        "messages.59.content.12.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
    ),
    (
        "Claude",
        "https://github.com/anthropics/claude-code/issues/2939",
        400,
        "messages.16.content.2.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum: 6521204 bytes > 5242880 bytes",
    ),
    (
        "Claude",
        "https://docs.anthropic.com/en/docs/build-with-claude/vision",
        400,
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
    ),
    (
        "Ark",
        "https://github.com/infiniflow/ragflow/issues/13063",
        400,
        "Image 0 failed: Image exceeds the maximum allowed total pixels. Current dimensions: 4634x12324 = 57109416 pixels. Maximum allowed: 36000000 pixels. Request id: 0217706121",
    ),
    (
        "Qwen behind LiteLLM",
        "https://help.aliyun.com/zh/model-studio/error-code",
        400,
        "litellm.BadRequestError: OpenAIException - <400> InternalError.Algo.InvalidParameter: The image length and width do not meet the model restrictions. [height:2 or width:2 must be larger than 10]. Received Model Group=qwen3.6-plus",
    ),
    (
        "DashScope",
        "https://help.aliyun.com/zh/model-studio/error-code",
        400,
        "Exceeded limit on max bytes per data-uri item : 10485760'.",
    ),
    (
        "vLLM",
        "https://github.com/vllm-project/vllm/blob/main/vllm/multimodal/media/image.py",
        400,
        "Image dimensions 20000x20000 (400000000 pixels) exceed the maximum of 178956970 pixels. Set VLLM_MAX_IMAGE_PIXELS to increase this limit.",
    ),
    ("a server", "", 413, "image is too large: 9000 kB"),
    ("OpenAI", "", 400, "The image dimensions are too small: 1x1. The minimum is 10x10 pixels."),
    // Errors about the types of images.
    (
        "OpenAI",
        "https://github.com/openai/codex",
        400,
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
    ),
    (
        "Claude behind a router",
        "https://docs.anthropic.com/en/api/messages",
        400,
        "messages.0.content.1.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    ),
    (
        "Claude",
        "https://github.com/anthropics/claude-code/issues",
        400,
        "messages.4.content.0.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image",
    ),
    ("Kimi", "", 400, "Invalid request: unsupported image url: /tmp/photo.avif"),
    ("Kimi", "", 400, "The mime_type must accurately match the actual image format"),
    ("xAI", "", 415, "Unsupported content-type encountered when downloading image: text/html"),
    (
        "Ollama",
        "",
        500,
        "Failed to create new sequence: failed to process inputs: image: unknown format",
    ),
    ("OpenAI", "", 400, "Invalid MIME type. Only image types are supported."),
    // Errors about the bytes of an image.
    (
        "OpenAI",
        "https://github.com/openai/codex",
        400,
        "The image data you provided does not represent a valid image. Please check your input and try again with one of the following image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
    ),
    (
        "Gemini behind OpenRouter",
        "https://github.com/musistudio/claude-code-router/issues/845",
        400,
        "Provider returned error: Invalid value at 'contents[0].parts[2].inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"data:image/png;base64\"",
    ),
    (
        "Gemini",
        "https://github.com/danny-avila/LibreChat/issues/6593",
        400,
        "Invalid value at 'contents[0].parts[2].inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"https://xxx.s3.xxx.xxx/images/image.png\"",
    ),
    (
        "Gemini",
        "https://github.com/AmberSahdev/Open-Interface/issues/64",
        400,
        "Provided image is not valid",
    ),
    (
        "Gemini",
        "https://github.com/google-gemini/gemini-cli/issues",
        400,
        "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
    ),
    (
        "SGLang",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/multimodal/processors/base_processor.py",
        500,
        "Internal server error: An exception occurred while loading IMAGE data at index 0: Error while loading data ImageData(url='data:application/xml;base64,..'): cannot identify image file",
    ),
    (
        "Claude",
        "https://github.com/anthropics/claude-code/issues/15478",
        400,
        "Could not process image",
    ),
    (
        "vLLM",
        "https://github.com/vllm-project/vllm/blob/main/vllm/multimodal/media/image.py",
        400,
        "Failed to load image: cannot identify image file <_io.BytesIO object at 0x7f2a>",
    ),
    ("vLLM", "", 500, "image file is truncated (4 bytes not processed)"),
    ("Ollama", "", 400, "illegal base64 data at input byte 4"),
    ("Python's base64", "", 500, "Incorrect padding"),
    (
        "llama.cpp",
        "https://github.com/ggml-org/llama.cpp",
        400,
        "Failed to load image or audio file",
    ),
    ("Zhipu", "https://docs.z.ai/api-reference/api-code", 400, "图片输入格式/解析错误"),
    ("Claude", "", 400, "messages.0.content.0.image.source.base64: image cannot be empty"),
    // Errors about the addresses of images.
    (
        "vLLM",
        "https://github.com/vllm-project/vllm/blob/main/vllm/multimodal/media/connector.py",
        422,
        "Failed to fetch media from URL: HTTP 404 error",
    ),
    (
        "vLLM",
        "https://github.com/vllm-project/vllm/issues/21254",
        500,
        "404, message='Not Found', url='https://Pictures.example/gone.png'",
    ),
    (
        "vLLM",
        "https://github.com/vllm-project/vllm/issues/40856",
        500,
        "Cannot connect to host pictures.example:443 ssl:default [Name or service not known]",
    ),
    (
        "Python's requests",
        "https://github.com/raullenchai/Rapid-MLX/issues/457",
        500,
        "404 Client Error: Not Found for url: https://pictures.example/gone.png",
    ),
    (
        "OpenAI",
        "https://platform.openai.com/docs/guides/images",
        400,
        "Error while downloading https://pictures.example/gone.png. Upstream status code: 404.",
    ),
    ("OpenAI", "", 400, "Timeout while downloading https://pictures.example/gone.png."),
    (
        "Go",
        "",
        500,
        "Get \"https://pictures.example/gone.png\": dial tcp: lookup pictures.example: no such host",
    ),
    ("Rust", "", 500, "error sending request for url (https://pictures.example/gone.png)"),
    ("Claude", "", 400, "Unable to download the image. Please verify the URL and try again."),
    ("Zhipu", "", 400, "source image is unreachable"),
    // Errors about numbers of images.
    (
        "vLLM",
        "https://docs.vllm.ai/en/latest/features/multimodal_inputs.html",
        400,
        "At most 1 image(s) may be provided in one prompt.",
    ),
    (
        "Groq",
        "https://console.groq.com/docs/vision",
        400,
        "Too many images provided. This model supports up to 5 images",
    ),
    ("Claude", "", 400, "messages: too many images: 101 images > 100 maximum"),
    ("SGLang", "", 400, "prompt has 1 image placeholder token(s) but 2 image(s) were provided"),
];

/// Returns the context of a conversation with an older image from the host `pictures.example`, and
/// without a new image.
fn seen() -> RequestContext {
    RequestContext {
        refusable: Refusable {
            images: true,
            image_hosts: vec!["pictures.example".to_owned()],
            ..Refusable::default()
        },
        ..limited(1_000)
    }
}

#[test]
fn an_image_that_is_refused_in_whatever_words_is_known() {
    for (who, link, status, message) in ROWS.iter().copied() {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let error = refused_for(status, &body, &seen());
        assert_eq!(error.status, 400, "{who}: {message} {link}");
        let known = NO_IMAGES.says(&without_quotes(&error.message))
            || is_one_image(&error.message, None, &seen());
        assert!(known, "{who}: {message} {link}");
        // Claude Code continues without the image if the message has this phrase.
        let complaint = error.rejection().and_then(Rejection::in_clients_words);
        let complaint = complaint.unwrap_or_else(|| error.message.clone());
        assert!(
            complaint.to_ascii_lowercase().contains("could not process image"),
            "{who}: {complaint}"
        );
    }
    // vLLM names the image only in the error's parameter.
    let message = "Failed to fetch: HTTP 404 error";
    assert!(is_one_image(message, Some("image_url"), &seen()));
    assert!(!is_one_image(message, Some("messages"), &seen()));
}

#[test]
fn an_error_that_only_mentions_an_image_is_about_something_else() {
    for message in [
        "The model `gpt-image-1` does not exist or you do not have access to it.",
        "imagen-3 is not a chat model",
        "The tool 'generate_image' is not supported",
        "Invalid schema for function 'image_gen': In context=(), 'additionalProperties' is required",
        "tools.3.custom.input_schema: image must be a string",
        "Image generation is not supported for this model",
        "This model only supports image output modalities",
        "Your input image may contain content that is not allowed by our safety system.",
        "The image was flagged by the moderation: violence",
        "Rate limit reached for input-images per minute: limit 50",
        "CUDA error: out of memory while encoding the image",
        "The image encoder is overloaded, please try again later",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens. However, your image and text resulted in 9000 tokens",
        "max_tokens is too large: 9000, and the image counts too",
        // Text of a user, a tool or a model, quoted in the error.
        "Invalid 'messages[2].content': unknown word in \"the image could not be loaded from disk\"",
        "[{'loc': ('body', 'x'), 'msg': 'no', 'input': 'invalid image, cannot open'}]",
        "Extra inputs are not permitted, field: 'messages[8].reasoning', value: 'Now I cannot open the image'",
        "Failed to parse input at pos 12: the image is invalid",
        "tool call validation failed: the image must be a string",
        "Invalid JSON: unexpected token in 'and then the image failed to load'",
        // Errors that are not about images.
        "Unsupported MIME type: application/pdf",
        "messages: at least one message is required",
        "temperature must be at most 2",
        "Cannot connect to host api.example.com:443 ssl:default [Name or service not known]",
        "Client error '404 Not Found' for url 'https://api.example.com/v1/chat/completions'",
        "Cannot connect to host mypictures.example.org:443",
        "Invalid file data: the document is empty",
        "",
    ] {
        assert!(!is_one_image(message, None, &seen()), "{message}");
    }
}

#[test]
fn a_server_that_is_down_or_busy_is_not_the_images_fault() {
    for (status, message) in [
        (500, "CUDA error: out of memory while encoding the image"),
        (503, "Failed to load image: the server is starting"),
        (429, "Too many images per minute"),
        (500, "Internal server error"),
        (502, "Bad gateway"),
        (401, "invalid key for the image host pictures.example"),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert_ne!(refused_for(status, &body, &seen()).status, 400, "{status} {message}");
    }
    // An image error without images in the request is the server's fault.
    let body = r#"{"error":{"message":"Failed to load image: cannot identify image file"}}"#;
    assert_eq!(refused(500, body).status, 500);
}

#[test]
fn a_link_of_the_server_is_no_image_that_could_not_be_fetched() {
    for message in [
        "Internal error. Please open a ticket: https://pictures.example/issues/new",
        "The engine died. See https://pictures.example/vllm/issues/1 for details",
        "model not found; for more information visit https://pictures.example/docs",
        "Engine loop has died (https://pictures.example/vllm)",
        "KeyError in https://pictures.example/repo/server.py",
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let Ok(error) = read_body(500, body.as_bytes(), &seen()) else { panic!("{message}") };
        assert_eq!(error.status, 500, "{message}");
    }
}

#[test]
fn a_server_that_does_not_take_the_type_of_a_body_speaks_of_no_image() {
    for (message, status) in [
        ("Unsupported Media Type", 415),
        ("Unsupported media type 'text/plain' in request.", 415),
        ("415 Unsupported Media Type: expected application/json", 415),
        ("Unsupported media type: image/tiff", 400),
        ("Unsupported media type in data URL", 400),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let Ok(error) = read_body(415, body.as_bytes(), &seen()) else { panic!("{message}") };
        assert_eq!(error.status, status, "{message}");
    }
}
