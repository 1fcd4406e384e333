//! Wordings of errors that no second request mends: empty accounts, filters, missing models and
//! paths.

use super::wordings;

wordings! {
    /// Wordings of an empty account.
    UNPAID {
        Alone: "credit balance is too low" => "Claude";
        Alone: "used all available credits" => "xAI";
        Alone: "have any credits yet" => "xAI, of a new team";
        Alone: "credits are depleted" => "Gemini";
        Alone: "insufficient balance" | "not enough balance";
        Alone: "balance is insufficient" => "SiliconFlow";
        Alone: "key limit exceeded (" => "OpenRouter, of a key for which somebody set a limit";
        Alone: "reaching the monthly spending limit" => "Fireworks";
        // A group may lack as much for a minute.
        Alone: "令牌额度已用尽" | "令牌额度不足" | "用户额度不足" => "One API and its copies";
    }

    /// Wordings of a plan that is used up, which others have for a limit of hours.
    USED_UP {
        Alone: "reached your usage limit" | "reached your weekly (7-day) usage limit" => "Kimi";
    }

    /// Wordings of a limit of a minute, with the code of an empty account.
    LIMITED {
        Alone: "#token-limit" | "allocated quota exceeded" => "DashScope";
    }

    /// Wordings of a provider's filter that refused the prompt, and has no code for it.
    FILTERED {
        Alone: "content exists risk" => "DeepSeek";
        Alone: "input was flagged" => "OpenRouter";
        Alone: "content violates usage guidelines" => "xAI";
        Alone: "input new_sensitive" | "output new_sensitive" => "MiniMax";
        Alone: "prompt blocked due to security configurations" => "Cloudflare's AI Gateway";
        Alone: "response blocked due to security configurations" => "Cloudflare's AI Gateway";
        Alone: "contentpolicyviolationerror" | "content management policy" => "LiteLLM, and Azure behind it";
    }

    /// Wordings of OpenAI's filter, whose code says less.
    INVALID_PROMPT {
        Alone: "flagged" | "usage policy" => "OpenAI";
    }

    /// Wordings of a body with too many bytes. Fewer tokens, or fewer bytes of one image, would be
    /// another matter.
    TOO_LARGE {
        Subject: "payload size" => "Gemini";
        Subject: "request body" => "Ollama and Go";
        Subject: "message size" => "Kimi";
        Subject: "request size" => "LiteLLM";
        Refusal: "too large" | "exceed";
        Other: "token" | "image" | "per message" | "max_";
    }

    /// Wordings of an unknown model.
    UNKNOWN_MODEL {
        Alone: "model not exist" => "DeepSeek";
        Alone: "unknown model" | "模型不存在" => "Zhipu";
        Alone: "model does not exist" => "SiliconFlow";
        Alone: "is not a valid model id" => "OpenRouter";
        Alone: "invalid model name passed in" => "LiteLLM";
        Alone: "invalid model: " => "Mistral";
        Alone: "model not found";
    }

    /// Words for a thing that is not there, beside the word for a model.
    NOT_THERE {
        Alone: "not exist" | "not found" | "no such model" | "unknown";
    }

    /// Beginnings of errors about a wrong key that Google and xAI call a bad request.
    BAD_KEY {
        Alone: "api key not valid." => "Google";
        Alone: "incorrect api key provided:" => "xAI";
    }

    /// Words which show that a model, and not a path, is not there.
    OF_MODEL {
        Alone: "model" | "deployment" | "endpoints found";
    }

    /// Words in which routers say that a path is not there. They use no others, apart from numbers.
    NO_PATH_WORDS {
        Alone: "" | "a" | "allowed" | "apache" | "api" | "caddy" | "chat" | "completions" | "could" | "detail" | "does";
        Alone: "endpoint" | "envoy" | "error" | "exist" | "file" | "find" | "for" | "found" | "here" | "http" | "is";
        Alone: "message" | "messages" | "method" | "no" | "nginx" | "not" | "notfound" | "on" | "openai" | "openresty";
        Alone: "or" | "page" | "path" | "post" | "requested" | "resource" | "route" | "server" | "status";
        Alone: "statuscode" | "such" | "the" | "this" | "type" | "unknown" | "uri" | "url" | "v1" | "v1beta" | "v2" | "v3";
        Alone: "was";
    }

    /// Wordings of a path that is not there, with more words around it.
    NO_PATH {
        Alone: "cannot post /" => "Express";
        Alone: "invalid url (" | "unknown request url" => "OpenAI";
        Alone: "requested url was not found" | "requested url /" => "Flask, Apache";
        Alone: "no route matched" | "no matching route" | "no such route" => "Kong";
        Alone: "no static resource" | "route post:/" => "Spring, Fastify";
        Alone: "unexpected endpoint or method" => "LM Studio";
        Alone: "invalid route" => "Cohere, Vertex";
    }

    /// Words with which the port of a server that wants TLS answers HTTP without it.
    WANTS_TLS {
        Alone: "client sent an http request to an https server" => "Go";
        Alone: "the plain http request was sent to https port" => "nginx";
        Alone: "speaking plain http to an ssl-enabled server port" => "Apache";
        Alone: "this combination of host and port requires tls" => "Tomcat";
    }

    /// Words before the time after which a retry may succeed.
    RETRY_AFTER {
        After: "retry in " | "try again in " | "retry after " | "try again after ";
    }
}
