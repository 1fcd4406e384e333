//! Errors that no second try can mend: the provider's filter, accounts without credit, conversations that are too
//! long, bodies that are too large, and models that nobody knows, whatever status says so.

use super::error_body::ErrorBody;
use super::window;
use crate::text::words::{self, phrases};

/// What is said of an account that is empty, in lower case.
const UNPAID: &str = phrases![
    // Anthropic
    "credit balance is too low",
    // xAI
    "used all available credits",
    // Gemini
    "credits are depleted",
    "insufficient balance",
    "not enough balance",
    // SiliconFlow
    "balance is insufficient",
    // OpenRouter, of a key for which somebody set a limit
    "key limit exceeded (",
    // Fireworks
    "reaching the monthly spending limit",
    // xAI, of a new team
    "have any credits yet",
    // One API and its copies, of a key and of a user. A group may lack as much for a minute.
    "令牌额度已用尽",
    "令牌额度不足",
    "用户额度不足",
];
/// What Kimi says of a plan, in the words that others have for a limit of hours.
const USED_UP: &str =
    phrases!["reached your usage limit", "reached your weekly (7-day) usage limit"];
/// What DashScope says of a limit per minute, with the code of an empty account.
const LIMITED: &str = phrases!["#token-limit", "allocated quota exceeded"];

/// What filters say that have no code.
const FILTERED: &str = phrases![
    "Content Exists Risk",
    "input was flagged",
    "Content violates usage guidelines",
    "input new_sensitive",
    "output new_sensitive",
    // Cloudflare's AI Gateway
    "Prompt blocked due to security configurations",
    "Response blocked due to security configurations",
    // LiteLLM, whose code is the status, and Azure behind it and others
    "ContentPolicyViolationError",
    "content management policy",
];

/// What says that a conversation is too long even where a server reports a fault of its own.
const CERTAIN: &str = phrases![
    "prompt is too long",
    "prompt too long; exceeded",
    "input is too long for requested model",
    "context size has been exceeded",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeded model token limit",
    "maximum context length is",
    "model's maximum context length",
    "longer than the model's context length",
    "exceeds context length",
    // Mistral
    "too large for model with",
];
/// Unless it also says that it might do better later, or elsewhere.
const PASSING: &str = phrases![
    "loading",
    "overload",
    "to load",
    "busy",
    "retry",
    "try again",
    "providers failed",
    "memory",
    "稍后",
];

/// What a body is called whose bytes are too many: Gemini, Ollama and Go, Kimi, LiteLLM.
const BODIES: &str = phrases!["payload size", "request body", "message size", "request size"];

/// What is said of a model that nobody knows: DeepSeek and Zhipu, SiliconFlow, OpenRouter, LiteLLM, Mistral.
const UNKNOWN_MODEL: &str = phrases![
    "model not exist",
    "unknown model",
    "模型不存在",
    "model does not exist",
    "is not a valid model id",
    "invalid model name passed in",
    "invalid model: ",
    "model not found",
];

/// The words of routers that say that a path is not there, in lower case: `404 page not found`, `Not Found`,
/// `Resource not found`, `405 Method Not Allowed nginx`. Numbers are among them, too.
const NO_PATH: &str = "a allowed apache api caddy chat completions could detail does endpoint envoy error exist file \
                       find for found here http is message messages method no nginx not notfound on openai openresty or \
                       page path post requested resource route server status statuscode such the this type unknown \
                       uri url v1 v1beta v2 v3 was";
/// What they say with more around it, in lower case.
const OF_PATH: &str = phrases![
    // Express
    "cannot post /",
    // OpenAI
    "invalid url (",
    "unknown request url",
    // Flask, Apache
    "requested url was not found",
    "requested url /",
    // Kong
    "no route matched",
    "no matching route",
    "no such route",
    // Spring, Fastify
    "no static resource",
    "route post:/",
    // LM Studio
    "unexpected endpoint or method",
    // Cohere, Vertex
    "invalid route",
];
/// What is longer says more than that a path is not there.
const NO_PATH_BYTES_MAX: usize = 500;

/// What is longer quotes something.
const OWN_WORDS_BYTES_MAX: usize = 512;
/// What is longer says more than that a model is not there.
const MODEL_BYTES_MAX: usize = 200;

impl ErrorBody {
    /// Whether a server that reports a fault of its own says that the conversation is too long: llama.cpp finds it
    /// out while it answers, and routers have a status of their own for what another server says.
    pub(super) fn is_too_long(&self) -> bool {
        let text = window::lowered(&self.message);
        self.has_code(window::CODES)
            || self.prompt_tokens > self.context_tokens && self.context_tokens.is_some()
            || words::has_one_of(&text, CERTAIN) && !words::has_one_of(&text, PASSING)
    }

    /// Whether the provider's filter refused the prompt.
    pub(super) fn is_content_filter(&self) -> bool {
        self.has_code(phrases![
            "content_filter",
            "contentfilter",
            "content_policy_violation",
            // OpenRouter
            "refusal",
            "responsibleaipolicyviolation",
            // Qwen's own service
            "data_inspection_failed",
            "datainspectionfailed",
            // Zhipu, One API
            "1301",
            "sensitive_words_detected",
            // StepFun
            "censorship_blocked",
        ])
        // Ark says of what before it, and of which kind behind it.
        || self.codes.iter().any(|code| words::has(code, "sensitivecontentdetected"))
        // MiniMax: the prompt, the answer.
        || matches!(self.base_resp, 1026 | 1027)
        // DeepSeek, OpenRouter, xAI and MiniMax have no code for it, and OpenAI one that says less.
        || words::has_one_of(self.own_words(), FILTERED)
        || self.has_code("invalid_prompt")
            && words::has_one_of(&self.message, phrases!["flagged", "usage policy"])
    }

    /// Whether it is a limit of a minute, whatever its code says.
    pub(super) fn is_limited(&self) -> bool {
        words::has_one_of(&self.own_words().to_ascii_lowercase(), LIMITED)
    }

    /// Whether the body is too large in bytes. Fewer tokens, or fewer bytes of one image, would be another matter.
    pub(super) fn is_too_large(&self) -> bool {
        let text = self.own_words().to_ascii_lowercase();
        words::has_one_of(&text, BODIES)
            && words::has_one_of(&text, phrases!["too large", "exceed"])
            && !words::has_one_of(&text, phrases!["token", "image", "per message", "max_"])
    }

    /// Whether nobody knows the model.
    pub(super) fn is_unknown_model(&self) -> bool {
        let text = self.own_words().to_ascii_lowercase();
        // Zhipu's and SiliconFlow's, too.
        self.has_code("model_not_found model_not_supported 1211 20012")
            || text.len() <= MODEL_BYTES_MAX && words::has_one_of(&text, UNKNOWN_MODEL)
    }

    /// Whether a server says of a path, and of nothing else, that it is not there: a page of a router, or nothing at
    /// all.
    pub(super) fn is_no_path(&self, model: &str) -> bool {
        let text = super::without_quotes(&self.message);
        let is_of_model = |text: &str| {
            words::has_one_of(text, phrases!["model", "deployment", "endpoints found"])
                || model.len() > 2 && words::has(text, &model.to_ascii_lowercase())
        };
        if is_of_model(&text)
            || is_of_model(&self.rest.to_ascii_lowercase())
            || self.codes.iter().any(|code| is_of_model(code))
        {
            return false;
        }
        let is_routers = |word: &str| {
            word.bytes().all(|byte| byte.is_ascii_digit()) || words::is_among(NO_PATH, word)
        };
        text.len() <= NO_PATH_BYTES_MAX
            && (text.split(|letter: char| !letter.is_ascii_alphanumeric()).all(is_routers)
                && text.is_ascii()
                || words::has_one_of(&text, OF_PATH))
    }

    /// Whether a status for what is not there is about the model: the sentence names it, as vLLM's does.
    pub(super) fn lacks_model(&self) -> bool {
        let text = self.own_words().to_ascii_lowercase();
        let is_gone = phrases!["not exist", "not found", "no such model", "unknown"];
        let says = text.len() <= MODEL_BYTES_MAX
            && words::names(&text, "model").next().is_some()
            && words::has_one_of(&text, is_gone);
        says || self.is_unknown_model()
    }

    /// Whether there is no credit left, told as a rate limit or as a wrong request. No waiting helps here.
    pub(super) fn is_unpaid(&self) -> bool {
        // `insufficient_quota`, `insufficient_user_quota`, `insufficient_balance`
        let lacks = |code: &String| {
            // A sentence is none.
            !words::has_byte(code, b' ')
                && words::has(code, "insufficient")
                && words::has_one_of(code, phrases!["quota", "balance", "credit"])
        };
        if self.is_limited() {
            return false;
        }
        let text = self.own_words().to_ascii_lowercase();
        self.codes.iter().any(lacks)
            || self.has_code(phrases![
                // Moonshot, Zhipu, DashScope
                "exceeded_current_quota_error",
                "1113",
                "arrearage",
                // Ark, One API, LiteLLM
                "accountoverdueerror",
                "pre_consume_token_quota_failed",
                "budget_exceeded",
                // OpenAI
                "billing_not_active",
                "billing_hard_limit_reached",
                "credit_balance_exhausted",
                "organization_spend_limit_exceeded",
                "project_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                // DashScope
                "allocationquota.freetieronly",
                "postpaidbilloverdue",
                // OpenCode Zen
                "creditserror",
                "monthlylimiterror",
                "userlimiterror",
            ])
            // Many have no code for it.
            || words::has_one_of(&text, UNPAID)
            || words::has_one_of(&text, USED_UP)
                && self.retry_after().is_none()
                && !words::has_one_of(&text, window::RATES)
                && !words::has(&text, "try again")
    }

    /// The message up to where it may quote a request or an answer.
    fn own_words(&self) -> &str {
        let text = words::beginning(&self.message, OWN_WORDS_BYTES_MAX);
        let end = text.bytes().position(|byte| matches!(byte, b'{' | b'\n'));
        text.get(..end.unwrap_or(text.len())).unwrap_or_default()
    }
}
