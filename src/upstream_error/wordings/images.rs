//! Error phrases about refused images and documents.

use super::wordings;

wordings! {
    /// Error phrases of a model that does not support images.
    NO_IMAGES {
        Subject: "<image" | "input_image" | "multimodal" | "multi-modal" | "for vision" | "support vision" | "vision input";
        Subject: "content.type" | "supports text input";
        // Errors about content that became a list because of an image.
        Subject: "content must be a string" | "content : value must be a string";
        Subject: "only text content type" => "mlx_lm";
        Subject: "not a vlm" => "SiliconFlow";
        Subject: "unexpected item type in content" => "DashScope and Qwen's templates";
        // Phrases that are longer than `support`, which also ends "contact support".
        Refusal: "not support" | "doesnt support" | "unsupported" | "only supported by" | "text only";
        Refusal: "unknown variant image" | "is not a multimodal" | "is not a multi-modal";
        Refusal: "is not multimodal" | "only supports text" | "must be a string" | "unknown content part type";
        Refusal: "unexpected message content type" | "no endpoints found that support" | "at most 0 image";
        Refusal: "[text]" => "Zhipu, which names the values that it takes";
        Refusal: "missing data required" => "Ollama";
        Refusal: "not enabled for this model" => "Mistral";
        Refusal: "only text content type" => "mlx_lm";
        Refusal: "not a vlm" => "SiliconFlow";
        Refusal: "unexpected item type in content" => "DashScope and Qwen's templates";
        // Errors about one image: another image would be accepted.
        Other: "format" | "mime" | "media type" | "media_type" | "image type" | "image url" | "base64" | "detail";
        Other: "too large" | "too many" | "resolution" | "pixel" | "unsupported image." | "try another" | "valid image";
        Other: "image is valid";
    }

    /// Error phrases each of which alone shows that a single image, or the number of images, is
    /// refused.
    SPOILT_IMAGE {
        Alone: "process input image" => "Gemini", "https://github.com/google-gemini/gemini-cli/issues";
        Alone: "identify image file" => "Python's library";
        Alone: "larger than factor" | "aspect ratio must be" => "Qwen's models";
        Alone: "data-uri item" => "DashScope", "https://help.aliyun.com/zh/model-studio/error-code";
        Alone: "multimodal file size" => "DashScope";
        Alone: "incorrect padding" => "Python's base64";
    }

    /// Error phrases that refuse a single image, or too many. They combine a name of an image with
    /// a complaint about its size, type, bytes, URL or number.
    ONE_IMAGE {
        Subject: "input_image" | "inline_data" | "inlinedata" | "data url" | "data uri" | "base64" | " picture " | "pixel";
        Subject: "multimodal data" | "media from url" | "media type" | "图片" | "图像";
        Refusal: "exceed" | "too large" | "too big" | "too small" | "too many" | "larger than" | "smaller than";
        Refusal: "greater than" | "less than" | "at least" | "at most" | "minimum" | "maximum" | "limit" | "restriction";
        Refusal: "dimension" | "resolution" | "provided in one prompt" | "only one" | "unsupported" | "not support";
        Refusal: "doesnt support" | "must " | "should be" | "expected" | "does not match" | "appears to be";
        Refusal: "not allowed" | "invalid" | "not valid" | "valid image" | "illegal" | "corrupt" | "truncat";
        Refusal: "malformed" | "broken" | "empty" | "missing" | "decod" | "cannot" | "could not" | "couldnt" | "unable";
        Refusal: "failed" | "failure" | "error" | "exception" | "unreachable" | "not found" | "forbidden" | "timed out";
        Refusal: "timeout" | "placeholder";
        Refusal: "格式" | "解析" | "无法" | "失败" | "过大" | "超过" | "超出" | "不支持" | "错误" | "尺寸";
        // Errors about an image to generate, a content filter, a rate limit, or a server without
        // memory.
        Other: "image generation" | "image_generation" | "generate image" | "generate an image" | "image output";
        Other: "output image" | "image editing" | "image model" | "modalities" | "safety" | "moderation" | "policy";
        Other: "policies" | "flagged" | "violat" | "inappropriate" | "sensitive" | "违规" | "敏感" | "rate limit";
        Other: "per minute" | "quota" | "too many requests" | "out of memory" | "cuda" | "overload" | "temporarily";
        Other: "try again later";
        // Errors about a conversation that is too long, tools, keys and other media.
        Other: "prompt is too long" | "context length" | "context limit" | "context window" | "max_tokens" | "tool call";
        Other: "tool_call" | "tool_use" | "tool choice" | "tool_choice" | "tools[" | "tools." | "function." | "schema";
        Other: "response_format" | "signature" | "api key" | "application/pdf" | "audio input" | "video";
    }

    /// Phrases before a list of the allowed values.
    TAKEN_IMAGES {
        Alone: "expected one of" | "must be one of" | "supported values" | "allowed values" | "input should be";
    }

    /// Error phrases beside the host of an image that could not be fetched.
    FETCHING {
        Alone: "download" | "fetch" | "retriev" | "resolve" | "connect" | "lookup" | "dial tcp" | "no such host";
        Alone: "unknown host" | "name or service" | "timed out" | "timeout" | "time out" | "forbidden" | "unauthorized";
        Alone: "not found" | "unreachable" | "certificate" | "tls" | "ssl" | "status code" | "http error";
        Alone: "client error" | "server error" | "sending request" | "max retries" | "robots.txt" | "image" | "url=";
        Alone: "下载" | "获取" | "访问" | "超时";
    }

    /// Phrases before a URL of further documentation.
    FOR_MORE {
        Alone: "see " | "visit " | "refer to" | "report" | "please" | "documentation" | "docs at" | "more information";
        Alone: "more info" | "more details" | "learn more" | "read more" | "issue at" | "issues at";
    }

    /// Error phrases of a model that does not support documents.
    NO_DOCUMENTS {
        // Errors of a server that does not know the type of a document's block or part.
        Alone: "unknown variant document" | "unknown variant file" | "input: document" | "input: file";
        Alone: "content type file" | "part type: file";
        // The full stop in `value: file.` excludes values of tools, such as `file_search`.
        Alone: "value: file." => "DashScope";
        Subject: "pdf" | "documents " | "document input";
        Refusal: "t support";
    }
}
