//! Phrases beside the numbers of an error message: sizes of prompts, answers and context windows.

use super::wordings;

wordings! {
    /// Phrases beside the size of the context window.
    WINDOW_SIZE {
        After: "not exceed max_" | "max_seq_len" | "context length" | "context window" | "available context size";
        After: "context size" | "context limit" | "maximum number of tokens allowed" | "maximum model length";
        After: "maximum prompt length" | "token limit" | "configured limit" | "must be <=" | "cannot exceed";
        After: "maximum input length" | "exceeds the limit of" | "must have less than" | "allowed token size";
        After: "maximum sequence length" | "maximum allowed length" | "max_model_len" | "model's limit";
        After: "maximum allowed input length" | "while limit is" | "only supports up to" | "最大上下文长度";
        After: "exceeds the maximum" | "max_input_length" | "total tokens limit" | "n_ctx";
        After: "sequence length is just" | "input sequence length";
        Before: "maximum context length" | "maximum" | ". however, answering";
    }

    /// Phrases beside the number of tokens of the prompt.
    PROMPT_TOKENS {
        Before: "in the messages" | "in your prompt" | "input tokens" | "tokens from the input" | "of text input";
        Before: "`inputs` tokens" | "tokens in the prompt";
        After: "request (" | "input token count" | "prompt contains" | "prompt has" | "prompt (" | "the input (";
        After: "prompt is" | "prompt too long" | "current length is" | "input is too long" | "request contains";
        After: "resulted in" | "received" | "first" | "prompt token count of" | "given" | "input length";
        After: "prompt length" | "prompt_tokens" | "input tokens (" | "number of input tokens" | "total tokens";
    }

    /// Phrases beside the number of tokens reserved for the answer.
    ANSWER_TOKENS {
        Before: "in the completion" | "for the completion" | "in the output" | "output tokens";
        Before: "tokens for the completion" | "completion tokens" | "`max_new_tokens`";
        After: "is too large" | "max_tokens (" | "max tokens (" | "so generating";
    }

    /// Phrases beside the number of tokens of prompt and answer together.
    TOTAL_TOKENS {
        After: "total of" | "contains at least" | "you requested" | "requested";
    }

    /// Phrases beside the number of tokens of prompt and answer together, without the parts: the
    /// answer's part is `max_tokens`.
    SUM_TOKENS {
        After: "input and maximum output tokens (" => "Cloudflare";
        After: "answering your request will take" => "SambaNova";
        After: "max_total_tokens (" => "SiliconFlow";
    }

    /// Phrases before the maximum number of tokens of an answer.
    ANSWER_MOST {
        After: "`max_new_tokens` must be <=" | "less than or equal to `" | "less than or equal to" | "max_model_len=";
        After: "a value <=" | "model limit of";
    }

    /// Phrases before the maximum number of tokens of an answer, if the error names that limit,
    /// since other numbers have limits too.
    ANSWER_MOST_BESIDE {
        After: "at most" | "[1," | "cannot exceed";
    }

    /// Phrases before the maximum number of tokens of an answer, if the error mentions nothing
    /// else.
    ANSWER_MOST_ELSE {
        After: "exceeds the maximum" | "maximum is" | "context window (" | "context window of" | "context length of";
        After: "context length (";
    }

    /// Phrases after an exclusive limit of the answer: the actual maximum is one token less.
    ANSWER_BOUND {
        Before: "(exclusive)" => "Google";
    }

    /// Phrases after the maximum number of tokens of an answer.
    ANSWER_UNITS {
        Alone: "completion tokens" | "output tokens" | "tokens in the completion";
    }

    /// Phrases before the minimum number of tokens of an answer.
    ANSWER_LEAST {
        After: "a value >=" | "must be at least" | "must be greater than or equal to";
        After: "should be greater than or equal to";
    }

    /// Phrases before an exclusive minimum of the answer: the actual minimum is one token more.
    ANSWER_ABOVE {
        After: "must be greater than";
    }

    /// Phrases before the number of tokens that an account can afford.
    AFFORDABLE {
        After: "can only afford" => "OpenRouter";
    }

    /// Phrases before the maximum number of stop sequences.
    STOP_SEQUENCES_MOST {
        After: "at most" | "maximum length" | "maximum number of items is" | "maximum number of stop sequences is";
        After: "maximum of" | "maximum is" | "max of" | "(max" | "up to" | "more than" | "less than or equal to";
        After: "not exceed" | "cannot exceed" | "exceeds the limit of" | "limited to" | "limit of" | "limit is";
        After: "maxitems" | "must be <=";
    }
}
