//! Errors that say that a model has no eyes, or cannot see one image.

use super::without_quotes;
use crate::words::{self, phrases};

/// What is sent, in lower case and without quotes.
const SUBJECTS: &str = phrases![
    "input_image",
    "multimodal",
    "multi-modal",
    "for vision",
    "support vision",
    "vision input",
    "content.type",
    "supports text input",
    // Where an image makes a list of the content.
    "content must be a string",
    "content : value must be a string",
    // mlx_lm, SiliconFlow, DashScope and Qwen's templates, which say no more: see below.
    "only text content type",
    "not a vlm",
    "unexpected item type in content",
];

/// What is said of it.
const REFUSALS: &str = phrases![
    "not support",
    // Not the end of "contact support".
    "doesnt support",
    "unsupported",
    "only supported by",
    "text-only",
    "expected text",
    // Zhipu names what it takes: `messages.content.type 参数非法，取值范围 ['text']`
    "[text]",
    "unknown variant image",
    "at most 0 image",
    "is not a multimodal",
    "is not a multi-modal",
    "is not multimodal",
    "only supports text",
    "text only",
    "no endpoints found that support",
    "mmproj",
    "must be a string",
    "unknown content part type",
    "unexpected message content type",
    // Ollama
    "missing data required",
    // Mistral
    "not enabled for this model",
    "only text content type",
    "not a vlm",
    "unexpected item type in content",
];

/// Words about one image, another of which would be taken.
const OF_ONE: &str = phrases![
    "format",
    "mime",
    "media type",
    "media_type",
    "image type",
    "image url",
    "base64",
    "detail",
    "too large",
    "too many",
    "resolution",
    "pixel",
    "unsupported image.",
    "try another",
    "valid image",
    "image is valid",
];

/// Whether an upstream's error message says that its model takes no images.
#[must_use]
pub(crate) fn is_images(message: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    (speaks_of_image(&text) || has(SUBJECTS)) && has(REFUSALS) && !has(OF_ONE)
}

/// Whether it speaks of an image, and not of `generate_image` or `gpt-image-1`.
fn speaks_of_image(text: &str) -> bool {
    words::places(text, "image").any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        !before.is_some_and(|byte| words::is_name_byte(*byte))
    })
}

/// What is said where one image is spoilt, of a type that the server cannot read or one too many, in lower case and
/// without quotes.
const UNSEEN: &str = phrases![
    // `invalid image input` (Ollama), and `does not represent a valid image`
    "valid image",
    "unsupported image",
    // llama.cpp, of WebP
    "load image",
    // Kimi, of GIF and WebP
    "decode image",
    "process image",
    // Gemini
    "process input image",
    "unsupported mime type: image/",
    // Python's library
    "identify image file",
    "image type",
    "image format",
    // LM Studio
    "base64 encoded image",
    "too many images",
    // vLLM: `At most 1 image(s) may be provided in one prompt.`
    "image(s) may be provided",
    "image is too large",
    "image exceeds",
    // Qwen's models
    "larger than factor",
    "aspect ratio must be",
    // Zhipu
    "图片输入格式",
    // DashScope
    "data-uri item",
    "multimodal file size",
];

/// Whether an upstream's error message says that it does not take one of the images, or so many.
#[must_use]
pub(crate) fn is_one_image(message: &str) -> bool {
    words::has_one_of(&without_quotes(message), UNSEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // As anybody would say it
            "This model does not support vision.",
            "vision input is not supported",
            "this model only supports text, but the message has an image",
            "image_url: the model is text only",
            "m is not multimodal",
            "m is not a multi-modal model",
            // Copilot, Zhipu
            "model \"gpt-4.1\" not supported for vision",
            "messages.content.type 参数非法，取值范围 ['text']",
            // Groq, Ollama and others
            "'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]",
            "messages[0].content must be a string",
            "this model is missing data required for image input",
            "Unknown content part type: image_url",
            "Unexpected message content type: image_url",
            "Model only supports text input",
            // mlx_lm, SiliconFlow, Mistral, Bedrock, DashScope
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
            // Kimi takes no URLs, and says so of one picture, too.
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

    #[test]
    fn the_wordings_of_servers_that_cannot_read_an_image_are_known() {
        for message in [
            "invalid image input",
            "Failed to load image or audio file",
            "Invalid request: failed to decode image",
            "Unsupported MIME type: image/gif",
            "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
            "You uploaded an unsupported image. Please make sure your image is valid.",
            "The image data you provided does not represent a valid image. Please check your input and try again with one of the following image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
            "cannot identify image file <_io.BytesIO object at 0x7f2a>",
            "'url' field must be a base64 encoded image.",
            "Could not process image",
            "The image format Gif is not supported",
            "At most 1 image(s) may be provided in one prompt.",
            "Too many images: this model does not support more than 5",
            "height:1 and width:1 must be larger than factor:28",
            "absolute aspect ratio must be smaller than 200, got 300.0",
            "图片输入格式/解析错误",
            "Exceeded limit on max bytes per data-uri item",
        ] {
            assert!(is_one_image(message), "{message}");
        }
        for message in [
            "This model does not support tools",
            "Unsupported MIME type: application/pdf",
            "messages: at least one message is required",
            "imagen-3 is not a chat model",
        ] {
            assert!(!is_one_image(message), "{message}");
        }
    }
}
