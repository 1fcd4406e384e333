//! Meanings of warnings and guards. The gateway's page and the tables of `docs/troubleshooting.md`
//! and `docs/guards.md` are made from this table.
//!
//! `CREOLE_WRITE=1 cargo test -p creole --test troubleshooting` writes the tables of the documents.

/// Meaning of a warning or a guard, for a person who has found its code in a header or log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMeaning {
    /// Code of the warning in `x-creole-warnings`, or of the guard in `x-creole-guard`.
    pub code: &'static str,
    /// Description of what happened, in one line of plain text.
    pub what: &'static str,
    /// Details and remedy, in Markdown for a page in `docs/`; empty if `what` is enough.
    pub more: &'static str,
}

const fn row(code: &'static str, what: &'static str, more: &'static str) -> CodeMeaning {
    CodeMeaning { code, what, more }
}

/// Meanings of the warnings that the core gives, sorted by code.
pub const WARNINGS: &[CodeMeaning] = &[
    row(
        "answer_empty",
        "the model stopped without text, a call or reasoning",
        "After a tool that was the answer, this is right. If it happens often, look at \
         the server's parsers, its chat template and its own stop words",
    ),
    row(
        "answer_only_reasoning",
        "the model thought and stopped without text or a call",
        "If the answer stands in the reasoning, start the server with the parser of this \
         model (vLLM, SGLang: `--reasoning-parser`) or without one. If the reasoning ends \
         with a call, set [`text_tool_calls`](configuration.md#flags-of-a-profile). \
         `\"reasoning_only\": \"text\"` gives the reasoning as text. Otherwise the model \
         does so now and then; Claude Code asks once more",
    ),
    row(
        "answered_locally",
        "no model was asked: the configuration wants this answered here",
        "`answer_locally`: `quota_probe` or `title`",
    ),
    row(
        "beginning_missing",
        "a user message was put before a history without one",
        "The first user message is empty or was cut away, or the assistant begins and the \
         profile has `alternating_roles`",
    ),
    row(
        "choice_dropped",
        "the upstream gave several answers; the first was kept",
        "`n` is set in `extra_body` or at the server",
    ),
    row("content_dropped", "content of an unknown kind was left out of the answer", ""),
    row("count_estimated", "the token count is an estimate", "[Counting](tokens.md)"),
    row(
        "document_cut",
        "a PDF was read only in part, and the model is told so",
        "It takes more than a quarter of `read_documents.timeout_ms`, or its reader ran \
         out of memory or crashed",
    ),
    row(
        "document_not_read",
        "a PDF could not be read; the model is told why",
        "`encrypted`, `malformed`, `no_text` (a scan), `no_letters` (fonts without \
         letters), `too_slow`, `no_time` (other PDFs took it), `too_many` \
         (the newest 100 are read), `failed` (the reader crashed or did not start; the \
         log says why)",
    ),
    row(
        "document_read",
        "the model takes no files, and got the text of a PDF",
        "Its images are lost: [PDFs](gateway.md#pdfs)",
    ),
    row(
        "documents_refused",
        "the upstream refused PDFs; it was asked again without them",
        "`\"file_parts\": false` in the profile",
    ),
    row(
        "dropped",
        "a field or tool that the upstream has no counterpart for was left out",
        "`dropped:NAME`",
    ),
    row(
        "empty_text",
        "empty texts were left out",
        "The upstream speaks Messages, which refuses them",
    ),
    row(
        "extension_refused",
        "the upstream refused extensions of the Messages API; it was asked again without them",
        "`dropped:NAME` names them: `context_management`, a mark for the cache",
    ),
    row("finish_reason_unknown", "an unknown finish reason became end_turn", ""),
    row(
        "guards_skipped",
        "a request too new to be read was sent without a check of its turns",
        "The upstream speaks Messages",
    ),
    row(
        "image_described",
        "the model sees no images, and read another one's description",
        "[`vision`](configuration.md#images-for-a-model-that-sees-none)",
    ),
    row(
        "image_in_text",
        "the text of a result was an image, which the model got as one",
        "`strict` leaves it as text",
    ),
    row(
        "image_not_fetched",
        "an image of the history could not be fetched, and the model was told",
        "It is gone, or a limit of [`fetch_images`](configuration.md#images-by-url) is \
         too low",
    ),
    row(
        "images_refused",
        "the upstream refused images; it was asked again without them",
        "If the model takes none, `\"image_parts\": \"none\"` in the profile. Else the \
         format or size: llama.cpp and Ollama read no WebP, Gemini no GIF",
    ),
    row(
        "judge_failed",
        "the judge of tool calls gave no verdict",
        "Claude Code then asks the user. `timeout`: raise `safeguards.timeout_ms`, or \
         take a faster model. `incomplete`: take a better model. `error`, `rate_limited`, \
         `refused`, `input_too_long`: its upstream's log, or `creole check`",
    ),
    row("late_tool_fragment", "a piece of a call came after the call was complete", ""),
    row(
        "max_tokens_lowered",
        "the model gives fewer tokens; the upstream was asked for fewer",
        "`max_tokens` or `max_input_tokens` in `models`",
    ),
    row(
        "max_tokens_refused",
        "the upstream gives fewer tokens; it was asked again for fewer",
        "The model's limit, its window or the account's credit. `\"max_tokens_max\"` in \
         the profile",
    ),
    row(
        "media_type_corrected",
        "an image was of another type than its client said, and got its own",
        "Mend the client or the tool: other servers refuse such a request",
    ),
    row(
        "output_item_dropped",
        "an image, a search of files or a call of an MCP server was left out",
        "`output_item_dropped:TYPE` of Responses. `mcp_list_tools` comes with each use of \
         an MCP server",
    ),
    row(
        "own_thinking",
        "thinking that Creole signed was left out",
        "The upstream speaks Messages, and has not signed it",
    ),
    row(
        "pairing_refused",
        "the upstream refused calls and results; it was asked again without them",
        "The calls became text",
    ),
    row("parallel_cut", "the client allows one call; the first of several was kept", ""),
    row(
        "parameter_refused",
        "the upstream refused a parameter; it was asked again without it",
        "`parameter_refused:KEY`: [the key of the \
         profile](troubleshooting.md#parameters-that-an-upstream-refuses)",
    ),
    row("prefill", "the last message is the assistant's; many models start a new answer", ""),
    row(
        "reasoning_as_text",
        "the answer was reasoning alone, which is said once more as text",
        "`\"reasoning_only\": \"text\"`",
    ),
    row(
        "reasoning_item_late",
        "encrypted reasoning came too late; the next turn is sent without it",
        "",
    ),
    row(
        "reasoning_refused",
        "the upstream refused reasoning of earlier turns; it was asked again without it",
        "`\"reasoning_history\": \"never\"` in the profile",
    ),
    row(
        "reasoning_withheld",
        "the upstream kept reasoning of earlier turns from the model",
        "It says why: `reasoning_withheld:model_mismatch`",
    ),
    row(
        "repaired",
        "the upstream broke the Messages protocol, which was repaired",
        "`repaired:WHAT`",
    ),
    row(
        "response_format_refused",
        "the upstream refused response_format; the schema went into the prompt",
        "No server holds the model to it. `\"response_format\": \"json_object\"` in the \
         profile, if the upstream takes that",
    ),
    row(
        "citations_not_made",
        "the client wants citations of fetched pages, which Creole does not make",
        "Pages of `web_search` are cited",
    ),
    row(
        "mcp_content_dropped",
        "an MCP server gave content that is no text; the model was told its type and size",
        "`mcp_content_dropped:TYPE`",
    ),
    row(
        "mcp_tool_dropped",
        "a tool of an MCP server has a name or a schema that models cannot take, runs only as a task, \
         or is one too many",
        "`mcp_tool_dropped:NAME`: `tools_max` of [MCP servers](server-tools.md#mcp-servers), or the \
         server's own definition",
    ),
    row(
        "mcp_unavailable",
        "an MCP server did not list its tools; the model did without them",
        "`mcp_unavailable:NAME`. `\"unavailable\": \"error\"` refuses such requests",
    ),
    row(
        "search_as_text",
        "searches that Creole ran became texts, without citations of their pages",
        "The upstream speaks Messages, and accepts only results that it has sealed itself",
    ),
    row(
        "server_call_dropped",
        "a call of a server tool was not run, and the model was told so",
        "The client went on without its result. The real API refuses such a request",
    ),
    row(
        "server_tool_failed",
        "a server tool that Creole ran gave an error as its result",
        "The model was told, and the answer went on. [When a call \
         fails](server-tools.md#when-a-call-fails) says how to find out why",
    ),
    row(
        "signature_too_long",
        "reasoning was too long for a signature; it will not be sent back",
        "",
    ),
    row(
        "stream_options_refused",
        "the upstream refused stream_options; tokens are estimated",
        "`\"stream_usage\": false` in the profile",
    ),
    row(
        "stream_refused",
        "the upstream refused a stream, or an answer without one; it gave the other",
        "",
    ),
    row(
        "system_moved_to_top",
        "a later system message went into the system prompt; no cached prompt fits",
        "`mid_system: \"merge_to_top\"`",
    ),
    row(
        "text_conflict",
        "the upstream said a text again, otherwise; what came in pieces counts",
        "The upstream speaks Responses",
    ),
    row("thinking_modified", "the client changed a thinking block; its text was not sent back", ""),
    row(
        "thinking_without_budget",
        "thinking without a budget was read as adaptive",
        "So is `auto`; the real API refuses both",
    ),
    row(
        "tool_argument_mended",
        "an argument that the client would refuse was left out of a call",
        "The tool is named: \
         [`tool_arguments`](guards.md#an-argument-that-the-client-would-refuse)",
    ),
    row("tool_call_cut_off", "the answer ended inside of a call, which was left out", ""),
    row(
        "tool_call_missing",
        "the upstream announced a call that did not come: look at its tool parser",
        "vLLM and SGLang: `--tool-call-parser`; llama.cpp: `--jinja`. If calls stand in \
         the text: [`text_tool_calls`](configuration.md#flags-of-a-profile). If it \
         happens rarely with the right parser, the model wrote a call that nobody can \
         read",
    ),
    row(
        "tool_call_withheld",
        "a call with an invalid input was left out",
        "`invalid_tool_call: \"hold\"`",
    ),
    row(
        "tool_failing",
        "a tool failed over and over, and the model was told",
        "The tool is named: [a tool that fails](guards.md#a-tool-that-fails)",
    ),
    row(
        "tool_input_conflict",
        "the upstream sent different inputs for one call",
        "Two inputs in one text are invalid (`tool_input_invalid`). Of two fragments the \
         last counts",
    ),
    row(
        "tool_input_invalid",
        "an input that is not valid JSON reached the client, marked as such",
        "`{\"INVALID_JSON\": \"…\"}` with the model's text; a part already streamed stays",
    ),
    row(
        "tool_input_not_object",
        "the input of a call in the history was no object and was made one",
        "From a JSON string, or else `{}`",
    ),
    row(
        "tool_input_repaired",
        "an input that was not valid JSON was repaired",
        "Values in strings, too: [`invalid_tool_call`](guards.md#a-call-that-is-not-valid)",
    ),
    row("tool_input_violates_schema", "an input does not fit the tool's schema", ""),
    row("tool_name_conflict", "the model changed the name of a call; the first was kept", ""),
    row(
        "tool_name_repaired",
        "the model spelt a tool's name otherwise; the real name was sent",
        "",
    ),
    row("tool_reference_unresolved", "a reference to a tool that is gone was left out", ""),
    row(
        "tool_repeating",
        "a call gave the same result over and over, and the model was told",
        "The tool is named: [a tool that fails](guards.md#a-tool-that-fails)",
    ),
    row("tool_result_duplicate", "of several results of one call the last was kept", ""),
    row("tool_result_missing", "a call without a result got a result that says so", ""),
    row("tool_result_moved", "a result stood in another turn and was put behind its call", ""),
    row("tool_result_orphan", "a result without a call became text", ""),
    row("tool_unknown", "the model called a tool that does not exist", ""),
    row("tool_use_duplicate", "of two calls with one id the first was kept", ""),
    row(
        "tool_withheld",
        "the circuit breaker left a tool out of the request",
        "[A tool that fails](guards.md#a-tool-that-fails)",
    ),
    row("unknown_block", "a content block of an unknown type was left out", ""),
    row("unknown_field", "a field that Creole does not know was left out", "`unknown_field:NAME`"),
    row(
        "unknown_tool_type",
        "a tool of an unknown type was taken for the nearest known one",
        "`bash_…` for `bash`; with an `input_schema`, a tool of the client's own",
    ),
    row("upstream_encoding", "the upstream's error was compressed and could not be read", ""),
    row(
        "upstream_event_dropped",
        "an event of the upstream was left out",
        "Unreadable, without anything that Creole knows, or an error beside a complete answer",
    ),
    row("upstream_json_repaired", "an event that was not quite JSON was repaired", ""),
    row("usage_estimated", "the upstream sent no usage; tokens are estimated", ""),
    row(
        "vision_failed",
        "the model that describes images did not; a text says that one was left out",
        "`timeout`: raise `vision.timeout_ms`, lower `vision.images_max`, or take a \
         faster model. `url`: [`fetch_images`](configuration.md#images-by-url) does not \
         fetch it. `empty`: the model said nothing. `unsupported`: this host cannot ask \
         it. `error`, `rate_limited`, `refused`: its upstream's log, or `creole check`",
    ),
    row(
        "window_smaller",
        "the client believes in a larger window than the model has",
        "Tell the client: Claude Code reads `CLAUDE_CODE_MAX_CONTEXT_TOKENS`",
    ),
    row(
        "withheld_tool_called",
        "the model called a withheld tool, or one that tool_choice forbids; the client \
         did not get the call",
        "",
    ),
];

/// Meanings of the guards that can act, sorted by code.
pub const GUARDS: &[CodeMeaning] = &[
    row(
        "breaker",
        "a tool that failed or repeated itself was stopped",
        "[A tool that fails](guards.md#a-tool-that-fails)",
    ),
    row(
        "pairing",
        "calls and results did not fit together and were repaired",
        "[Calls without results](guards.md#calls-without-results)",
    ),
    row(
        "server_turns",
        "the model had to answer without server tools, after many rounds or equal searches",
        "[Limits of server tools](server-tools.md#limits)",
    ),
    row(
        "stall",
        "the upstream was silent for too long",
        "[A stream that stands still](guards.md#a-stream-that-stands-still)",
    ),
    row(
        "tool_turns",
        "the limit of turns with tool calls was reached",
        "[An agent without end](guards.md#an-agent-without-end)",
    ),
];
