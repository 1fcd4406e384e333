//! Error phrases for prompts or answers that are too long, in lower case, with quotes.

use super::wordings;

wordings! {
    /// Error phrases for a conversation that is too long.
    TOO_LONG {
        Alone: "not exceed max_" | "than max_seq_len" | "greater than `max_seq_len`" => "TensorRT-LLM";
        Alone: "equal to max_seq_len" => "SiliconFlow";
        Alone: "splited_prompt_len";
        Alone: "contextwindowexceedederror" => "LiteLLM";
        Alone: "input context is too long" => "Google";
        Alone: "tokens, which exceeds the limit of";
        Alone: "tokens in the request is too long" => "Kimi";
        Alone: "tokens exceeds the model's max of" => "Cohere";
        Alone: "prompt token count" | "`inputs` must have less than" | "allowed token size" | "maximum sequence length";
        Alone: "prompt is too long" | "prompt too long" | "input is too long" | "input too long" | "too many tokens";
        Alone: "input token count" | "input tokens exceed" | "maximum number of tokens allowed";
        Alone: "maximum prompt length" | "maximum model length" | "maximum input length" | "exceeds the max_model_len";
        Alone: "exceeded model token limit" | "range of input length" | "+ `max_new_tokens` must be";
        Alone: "reduce the length of the" | "exceeds n_ctx";
        Alone: "more than max tokens allowed" | "prompt exceeds the length limit" => "Zhipu";
        Alone: "请求的token数超过限制" | "输入内容过长" | "token数量超过限制" | "请压缩上下文";
        Alone: "in the messages, ";
        Alone: "exceed max message tokens" => "Ark";
        Alone: "while limit is" => "Cerebras";
        Alone: "context_window_exceeded";
    }

    /// Names of the context window, combined with words for exceeding it.
    WINDOW {
        Subject: "context length" | "context window" | "context size" | "context limit" | "上下文";
        // The phrase `sequence length` alone could be about a stop sequence.
        Subject: "supported sequence length" | "input sequence length" => "SambaNova, Tenstorrent";
        Refusal: "exceed" | "too long" | "too large" | "too many" | "longer than" | "larger than" | "greater than";
        Refusal: "overflow" | "maximum";
        // The word 超时 is left out, because it means a timeout.
        Refusal: "超过" | "超出" | "超长" | "过长";
    }

    /// Words for exceeding a limit, which count only if the error names a context window: other
    /// errors may be about images.
    TOO_MUCH_OF_A_WINDOW {
        Alone: "of only" | "length is only" | "window is only" | "size is only" | "only supports" | "but the configured";
        Alone: "tokens but the";
    }

    /// Error phrases that name a context window, but are about another problem than a long
    /// conversation.
    OTHERS_OF_A_WINDOW {
        Alone: "thinking budget exceeds" | "length of the tool" | "tool name";
        // Errors about the length of one text, id, name or description.
        Alone: "string should have at most" | "expected a string with maximum length" | "must be at most & characters";
    }

    /// Words for a limit, which count only if the error mentions the conversation: names, ids and
    /// accounts have limits too.
    CONVERSATION {
        Subject: "token limit" | "maximum allowed length" | "max length" | "input length" | "input token";
        Subject: "tokens in the prompt" | "超长" | "长度超过限制";
        Refusal: "prompt" | "input" | "context" | "message" | "输入";
        Other: "name" | "_id" | ".id" | " id " | "description" | "stop sequence" | "schema" | "budget" | "名";
    }

    /// Whole error messages that say nothing but that a limit is reached.
    LIMIT_REACHED {
        Alone: "token limit exceeded" | "token limit reached";
    }

    /// Error phrases for a total that is too large, at the beginning of a message.
    TOTAL_TOO_MUCH {
        Alone: "total tokens & exceeds the maximum";
    }

    /// Phrases for rate limits, which a shorter prompt does not avoid.
    RATES {
        Alone: "per minute" | "rate limit" | "daily" | "monthly" | "quota" | "please wait" | "每分钟" | "每天" | "限流";
        Alone: "频率";
    }

    /// Error phrases for a conversation that is certainly too long, even if the status is that of a
    /// server fault.
    CERTAINLY_TOO_LONG {
        Alone: "prompt is too long" | "prompt too long; exceeded" | "input is too long for requested model";
        Alone: "context size has been exceeded" | "exceeds the available context size" | "exceeds the context window";
        Alone: "exceeded model token limit" | "maximum context length is" | "model's maximum context length";
        Alone: "longer than the model's context length" | "exceeds context length";
        Alone: "too large for model with" => "Mistral";
        // Errors that may disappear with a retry, or at another server.
        Other: "loading" | "overload" | "to load" | "busy" | "retry" | "try again" | "providers failed" | "memory" | "稍后";
    }

    /// Phrases before model output that a server could not parse.
    WRITTEN_BY_A_MODEL {
        Alone: " at pos " => "llama.cpp";
        Alone: "raw=" => "Ollama";
    }

    /// Names of the limit of the answer.
    ANSWER {
        Subject: "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "max_new_tokens" | "maxoutputtokens";
        Subject: "maximum tokens you requested" | "max tokens must be";
        // An error with the word `prompt`, `input` or `message` is not only about the limit of the
        // answer.
        Other: "prompt" | "input" | "message";
    }

    /// Error phrases for a limit of the answer that is too low for a single word.
    NO_WORD {
        Alone: "could not finish the message because max_tokens" => "OpenAI";
    }

    /// Error phrases of vLLM if its context window leaves a negative number of tokens for the
    /// answer. No client requests that.
    NEGATIVE {
        Alone: "at least 1, got -" => "vLLM";
    }
}
