//! Error phrases for problems that a changed request does not solve: empty accounts, filters,
//! missing models and paths.

use super::wordings;

wordings! {
    /// Error phrases for an account without credit.
    UNPAID {
        Alone: "credit balance is too low" => "Claude";
        Alone: "used all available credits" => "xAI";
        Alone: "have any credits yet" => "xAI, of a new team";
        Alone: "credits are depleted" => "Gemini";
        Alone: "insufficient balance" | "not enough balance";
        Alone: "balance is insufficient" => "SiliconFlow";
        Alone: "key limit exceeded (" => "OpenRouter, of a key for which somebody set a limit";
        Alone: "reaching the monthly spending limit" => "Fireworks";
        // Phrases about the quota of a token or a user; a group's quota may be used up for only a
        // minute.
        Alone: "令牌额度已用尽" | "令牌额度不足" | "用户额度不足" => "One API and its copies";
    }

    /// Error phrases for a used-up plan, which other servers use for a limit per hours.
    USED_UP {
        Alone: "reached your usage limit" | "reached your weekly (7-day) usage limit" => "Kimi";
    }

    /// Error phrases for a rate limit per minute that comes with the code of an empty account.
    LIMITED {
        Alone: "#token-limit" | "allocated quota exceeded" => "DashScope";
    }

    /// Error phrases for a prompt refused by a provider's content filter, without an error code.
    FILTERED {
        Alone: "content exists risk" => "DeepSeek";
        Alone: "input was flagged" => "OpenRouter";
        Alone: "content violates usage guidelines" => "xAI";
        Alone: "input new_sensitive" | "output new_sensitive" => "MiniMax";
        Alone: "prompt blocked due to security configurations" => "Cloudflare's AI Gateway";
        Alone: "response blocked due to security configurations" => "Cloudflare's AI Gateway";
        Alone: "contentpolicyviolationerror" | "content management policy" => "LiteLLM, and Azure behind it";
    }

    /// Error phrases of OpenAI's content filter, whose code is ambiguous.
    INVALID_PROMPT {
        Alone: "flagged" | "usage policy" => "OpenAI";
    }

    /// Error phrases for a request body with too many bytes. Too many tokens, or an image that is
    /// too large, do not count.
    TOO_LARGE {
        Subject: "payload size" => "Gemini";
        Subject: "request body" => "Ollama and Go";
        Subject: "message size" => "Kimi";
        Subject: "request size" => "LiteLLM";
        Refusal: "too large" | "exceed";
        Other: "token" | "image" | "per message" | "max_";
    }

    /// Error phrases for an unknown model.
    UNKNOWN_MODEL {
        Alone: "model not exist" => "DeepSeek";
        Alone: "unknown model" | "模型不存在" => "Zhipu";
        Alone: "model does not exist" => "SiliconFlow";
        Alone: "is not a valid model id" => "OpenRouter";
        Alone: "invalid model name passed in" => "LiteLLM";
        Alone: "invalid model: " => "Mistral";
        Alone: "model not found";
    }

    /// Error phrases for a missing object, which count only beside the word `model` or the like.
    NOT_THERE {
        Alone: "not exist" | "not found" | "no such model" | "unknown";
    }

    /// Beginnings of error messages about a wrong API key, which Google and xAI report as a bad
    /// request.
    BAD_KEY {
        Alone: "api key not valid." => "Google";
        Alone: "incorrect api key provided:" => "xAI";
    }

    /// Error phrases which show that a model is missing, and not a path.
    OF_MODEL {
        Alone: "model" | "deployment" | "endpoints found";
    }

    /// Words of a router's error about a missing path, which contains no other words except
    /// numbers.
    NO_PATH_WORDS {
        Alone: "" | "a" | "allowed" | "apache" | "api" | "caddy" | "chat" | "completions" | "could" | "detail" | "does";
        Alone: "endpoint" | "envoy" | "error" | "exist" | "file" | "find" | "for" | "found" | "here" | "http" | "is";
        Alone: "message" | "messages" | "method" | "no" | "nginx" | "not" | "notfound" | "on" | "openai" | "openresty";
        Alone: "or" | "page" | "path" | "post" | "requested" | "resource" | "route" | "server" | "status";
        Alone: "statuscode" | "such" | "the" | "this" | "type" | "unknown" | "uri" | "url" | "v1" | "v1beta" | "v2" | "v3";
        Alone: "was";
    }

    /// Error phrases for a missing path, in longer messages.
    NO_PATH {
        Alone: "cannot post /" => "Express";
        Alone: "invalid url (" | "unknown request url" => "OpenAI";
        Alone: "requested url was not found" | "requested url /" => "Flask, Apache";
        Alone: "no route matched" | "no matching route" | "no such route" => "Kong";
        Alone: "no static resource" | "route post:/" => "Spring, Fastify";
        Alone: "unexpected endpoint or method" => "LM Studio";
        Alone: "invalid route" => "Cohere, Vertex";
    }

    /// Error phrases of a TLS port that received plain HTTP.
    WANTS_TLS {
        Alone: "client sent an http request to an https server" => "Go";
        Alone: "the plain http request was sent to https port" => "nginx";
        Alone: "speaking plain http to an ssl-enabled server port" => "Apache";
        Alone: "this combination of host and port requires tls" => "Tomcat";
    }

    /// Phrases before the time after which a retry may succeed.
    RETRY_AFTER {
        After: "retry in " | "try again in " | "retry after " | "try again after ";
    }
}
