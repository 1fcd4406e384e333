//! Tests of `images.rs`.

use crate::upstream_error::without_quotes;
use crate::upstream_error::wordings::NO_IMAGES;

fn is_images(message: &str) -> bool {
    NO_IMAGES.says(&without_quotes(message))
}

#[test]
fn the_wordings_of_servers_without_eyes_are_known() {
    for message in [
        "this model does not support image input",
        "Failed to deserialize the JSON body into the target type: messages[2]: unknown variant `image_url`, expected `text` at line 1 column 900",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "At most 0 image(s) may be provided in one prompt.",
        "No endpoints found that support image input",
        "Invalid content type. image_url is only supported by certain models.",
        "/models/qwen3 is not a multimodal model",
        "Unsupported content type 'image_url': this is a text-only model",
        // Plain wordings that any server may use.
        "This model does not support vision.",
        "vision input is not supported",
        "this model only supports text, but the message has an image",
        "image_url: the model is text only",
        "m is not multimodal",
        "m is not a multi-modal model",
        // Errors of Copilot and Zhipu.
        "model \"gpt-4.1\" not supported for vision",
        "messages.content.type 参数非法，取值范围 ['text']",
        // Errors of Groq, Ollama and other servers.
        "'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]",
        "messages[0].content must be a string",
        "this model is missing data required for image input",
        "Unknown content part type: image_url",
        "Unexpected message content type: image_url",
        "Model only supports text input",
        // Errors of mlx_lm, SiliconFlow, Mistral, Bedrock and DashScope.
        "Only 'text' content type is supported.",
        "The model is not a VLM (Vision Language Model). Please use text-only prompts.",
        "Image input is not enabled for this model",
        "This model doesn't support the image content block that you provided. Update the content block and try again.",
        "Unexpected item type in content.",
    ] {
        assert!(is_images(message), "{message}");
    }
}

#[test]
fn what_is_said_of_one_image_is_not_said_of_all() {
    for message in [
        "Unsupported image format: image/tiff",
        "The image is too large: 9000 pixels",
        "Unsupported image resolution",
        "Too many images: this model does not support more than 5",
        "unsupported media type of image: image/heic",
        // Kimi takes no image URLs, and uses this wording for a single image, too.
        "Invalid request: unsupported image url: https://example.com/a.png",
        "Unsupported image. Please try another one.",
        "unsupported image type: bmp",
        "Image URLs are not supported; please send base64 data",
        "Unsupported value: 'detail' for image_url is not supported",
        "You uploaded an unsupported image. Please make sure your image is valid.",
        "The provisioned model does not support tool use.",
        "deepseek-vision-7b does not support tools",
        "This model revision is not supported in your tier; rate limited",
        "This model does not support tools",
        "Invalid image data",
        "messages[0].role must be a string",
        "Could not download image. Please contact support.",
        "Tool choice is not enabled for this model",
    ] {
        assert!(!is_images(message), "{message}");
    }
}
