//! Decisions on a request that do not depend on the upstream's protocol: repaired turns, tools,
//! thinking, and the context for reading the answer.

use crate::StopReason;
use std::borrow::Cow;

use super::clearing;
use super::client::Purpose;
use super::client_request::{ClientRequest, RequestTexts, Routed};
use super::conversation;
use super::effort::{self, Effective, EffortTurn};
use super::local::{self, Local};
use super::sizes;
use super::upstream::Translated;
use super::words::SystemPrompt;
use crate::carry::marks::Marks;
use crate::carry::signature::is_own;
use crate::carry::tool_id;
use crate::config::{Config, Pairing, Protocol, ToolArguments, Upstream};
use crate::error::Error;
use crate::guards::loops::{self, Guarded, Note};
use crate::headers::{Header, is_of_claude_code};
use crate::history::clearing::clear;
use crate::history::thinking::is_required;
use crate::history::{History, Recipient, attached, pairs};
use crate::json::Str;
use crate::model::context_management::Cleared;
use crate::model::own_tool::ToolsRunHere;
use crate::model::request_context::{
    AnswerLimits, Display, Refusable, RequestContext, ThinkingContext, Withheld,
};
use crate::model::turn::{Turn, alternates, calls};
use crate::model::{Block, Message, Request, Role, Text, Thinking, ThinkingMode};
use crate::observe::warning::Warnings;
use crate::profile::{
    ImageParts, Prefill, Profile, ReasoningHistory, ResponseFormat, TextToolCalls, ThinkingSwitch,
};
use crate::text::words;
use crate::tokens;
use crate::tools::{ToolRequest, ToolSet};
use crate::upstream_error::refused::Refused;

/// Reads a client's request, makes the decisions without the parts that the upstream refused, and
/// has the upstream's protocol `write` the request.
///
/// # Errors
/// The request cannot be served.
pub(crate) fn translate(
    client: &ClientRequest<'_>,
    purpose: Purpose,
    refused: &[Refused],
    warnings: &mut Warnings,
    write: fn(Decided<'_>, &mut Warnings) -> Result<Translated, Error>,
) -> Result<Translated, Error> {
    let mut texts = RequestTexts::default();
    let read = client.read(purpose, &mut texts, warnings)?;
    match decide(client, read, purpose, refused, warnings)? {
        Decision::Write(decided) => write(*decided, warnings),
        Decision::Answer(answer) => Ok(answer),
    }
}

/// Decision on how a request is answered.
enum Decision<'a> {
    /// Answer by an upstream, to which the request is written.
    Write(Box<Decided<'a>>),
    /// Answer made by Creole.
    Answer(Translated),
}

/// Request with all decisions made, ready to be written in an upstream's protocol.
pub(crate) struct Decided<'a> {
    /// Client's request, without the parts that the other fields of [`Decided`] hold.
    pub(crate) request: Request<'a>,
    /// Body of the client's request, for the paths in errors.
    pub(crate) body: &'a str,
    /// Headers of the client that are kept for the upstream.
    pub(crate) headers: &'a [Header],
    pub(crate) upstream: &'a Upstream,
    /// Profile of the upstream, without the features that the upstream refused.
    pub(crate) profile: Cow<'a, Profile>,
    /// Model name sent to the upstream.
    pub(crate) model: &'a str,
    pub(crate) system: SystemPrompt<'a>,
    pub(crate) turns: Vec<Turn<'a>>,
    pub(crate) tools: ToolSet<'a>,
    pub(crate) effective: Effective,
    /// Facts about the request that are needed to read the answer.
    pub(crate) context: Box<RequestContext>,
}

/// Makes the decisions on a request, without the parts that the upstream refused.
///
/// # Errors
/// The request cannot be served.
fn decide<'a>(
    client: &ClientRequest<'a>,
    read: Routed<'a>,
    purpose: Purpose,
    refused: &[Refused],
    warnings: &mut Warnings,
) -> Result<Decision<'a>, Error> {
    let Routed { mut request, body, upstream, model, lost, notes } = read;
    lost.iter().for_each(|lost| lost.put_back(&mut request));
    if request.thinking.is_none() && request.effort.is_some() && is_of_claude_code(client.headers) {
        // Claude Code omits `thinking` to turn thinking off for a model whose name it does not
        // know.
        request.thinking = Some(Thinking { mode: ThinkingMode::Disabled, omitted: false });
    }
    let mut profile = Cow::Borrowed(&upstream.profile);
    let cleared = clearing::mark(&mut request, &profile);
    let uncleared = tokens::estimate(&request);
    let input_tokens = uncleared.saturating_sub(cleared.map_or(0, |it| it.tool_tokens));
    for refused in refused {
        refused.narrow(profile.to_mut(), || input_tokens, warnings)?;
    }
    let (window, local) = match purpose {
        Purpose::Answer => (
            sizes::fit(client, &request, input_tokens, &mut profile, warnings),
            local::answer(client, &request, warnings),
        ),
        Purpose::Count => (0, None),
    };
    let found = WindowFacts { window, input_tokens, cleared };
    let target = DecideTarget { client, upstream, profile: &profile, model, found };
    let plan = target.plan(&mut request, body, warnings)?;
    let Plan { mut history, tools, effective, end, mut context, .. } = plan;
    *notes = plan.notes;
    let end = end.map(|text| Local { text, stop_reason: StopReason::EndTurn });
    if let Some(Local { text, stop_reason }) = local.or(end) {
        return Ok(Decision::Answer(Translated::Answer { context, text, stop_reason }));
    }
    let mut turns = std::mem::take(&mut history.turns);
    if cleared.is_some() {
        clear(&mut turns);
    }
    loops::annotate(&mut turns, notes);
    for refused in refused {
        match refused {
            Refused::Calls(refusal) => {
                turns = loops::without_refused(turns, &tools, &profile, refusal);
            }
            Refused::Streaming(stream) if request.stream == *stream => {
                request.stream = !stream;
                context.upstream_stream = request.stream;
            }
            _ => {}
        }
    }
    let system = system_prompt(&mut request, &mut history, &profile);
    Ok(Decision::Write(Box::new(Decided {
        request,
        body,
        headers: client.headers,
        upstream,
        profile,
        model,
        system,
        turns,
        tools,
        effective,
        context,
    })))
}

/// Upstream and model of a request, and the sizes of the request and of the context window.
#[derive(Clone, Copy)]
struct DecideTarget<'t> {
    client: &'t ClientRequest<'t>,
    upstream: &'t Upstream,
    /// Profile (supported features) of the upstream, without the features that the upstream
    /// refused.
    profile: &'t Profile,
    /// Model name sent to the upstream.
    model: &'t str,
    found: WindowFacts,
}

/// Sizes of a request and of its model's context window.
#[derive(Clone, Copy)]
struct WindowFacts {
    /// Number of tokens in the model's context window; 0 if unknown.
    window: u64,
    /// Estimated number of prompt tokens, without the parts cleared at the client's request.
    input_tokens: u64,
    /// Counts of the parts cleared from the history, if the client requests clearing.
    cleared: Option<Cleared>,
}

/// Decisions on a request before the guards' notes are inserted into its turns.
struct Plan<'a> {
    history: History<'a>,
    tools: ToolSet<'a>,
    effective: Effective,
    notes: Vec<Note>,
    /// Text of an answer without an upstream call, if a guard ends the conversation.
    end: Option<String>,
    context: Box<RequestContext>,
}

impl DecideTarget<'_> {
    /// Makes the decisions on a request (history, tools, thinking, guards), before the guards'
    /// notes are inserted into the turns.
    fn plan<'a>(
        self,
        request: &mut Request<'a>,
        body: &'a str,
        warnings: &mut Warnings,
    ) -> Result<Plan<'a>, Error> {
        let Self { client, upstream, profile, model, found } = self;
        let WindowFacts { window, input_tokens, cleared } = found;
        let (config, takes_images) = (client.config, profile.image_parts != ImageParts::None);
        let (mut counts, conversation) = (tokens::counts(request), conversation::hash_of(request));
        let attached = attached::refusable(request, takes_images, profile.file_parts);
        let thought_at = self.takes_items().then(|| first_item(&request.messages)).flatten();
        let (guards, runs) = (config.guards(upstream), client.runs(request, profile));
        let may_ask_services = runs.any() || !request.mcp_servers.is_empty();
        let marks = Marks::new(config, upstream, model);
        let mut history = self.read_history(request, (guards.pairing, runs), &marks, warnings)?;
        let refusable = refusable(Refusable { thought_at, ..attached }, request, &history, profile);
        let prefilled = is_prefilled(&history.turns);
        let prefill = prefill(&history.turns, profile, warnings)?;

        let requested = ToolRequest {
            body,
            definitions: std::mem::take(&mut request.tools),
            servers: std::mem::take(&mut request.mcp_servers),
            changes: std::mem::take(&mut history.changes),
            activated: std::mem::take(&mut history.activated),
            choice: request.tool_choice.take(),
            history_has_calls: !history.ids.is_empty(),
            runs,
            mcp_here: runs.mcp.then_some(&config.settings.server_tools.mcp),
        };
        let mut tools = ToolSet::new(requested, profile, warnings)?;
        let Guarded { notes, withheld, end, .. } =
            Guarded::new(&history.turns, &mut tools, guards, warnings)?;
        let turn = EffortTurn { effort: history.effort, forced: tools.forces_call(), prefilled };
        let effective = Effective::new(request, turn, profile, warnings)?;
        tool_id::count_forms(&history.ids, &mut counts);
        let context = Box::new(RequestContext {
            model: request.model.decode().into_owned(),
            model_mapped: request.model != model,
            upstream_model: model.to_string(),
            limits: limits(request, profile, window, &tools),
            stream: request.stream,
            upstream_stream: request.stream,
            tools: tools.context(keeps_schemas(config, profile)),
            thinking: self.thinking(request, marks),
            withheld: if tools.forbids_calls() { Withheld::Forbidden } else { withheld },
            ids_used: std::mem::take(&mut history.ids),
            input_tokens,
            input_estimate: input_tokens,
            edge_key: upstream.key.is_own(),
            prefill,
            refusable,
            conversation,
            counts,
            cleared,
            searches: tools.searches(),
            calls_mcp: tools.calls_mcp(),
            may_ask_services,
            places: std::mem::take(&mut request.places),
            own_tools: tools.own(),
            pages: std::mem::take(&mut history.pages),
            withholds_own_tools: false,
            is_judged: client.is_judged(request.safeguards),
            profile: for_answer(profile, &tools),
        });
        Ok(Plan { history, tools, effective, notes, end, context })
    }

    /// Returns how the answer's reasoning is shown, marked and returned to the upstream.
    fn thinking(&self, request: &Request<'_>, marks: Marks) -> ThinkingContext {
        ThinkingContext {
            display: Display::of(request.thinking, self.client.config.settings.reasoning),
            returns: self.profile.reasoning_history != ReasoningHistory::Never,
            upstream_mark: marks.upstream,
            model_mark: marks.model,
        }
    }

    /// Returns true if reasoning of earlier turns is sent back to the upstream as reasoning items
    /// of the Responses API.
    fn takes_items(&self) -> bool {
        self.upstream.protocol == Protocol::Responses
    }

    /// Reads the turns, repaired and in the order that upstreams expect. The messages are moved out
    /// of the request.
    fn read_history<'a>(
        self,
        request: &mut Request<'a>,
        (pairing, runs): (Pairing, ToolsRunHere),
        marks: &Marks,
        warnings: &mut Warnings,
    ) -> Result<History<'a>, Error> {
        self.client.check_strictly(request)?;
        if self.client.config.settings.strict || pairing == Pairing::Reject {
            pairs::reject(&request.messages, warnings)?;
        }
        let messages = std::mem::take(&mut request.messages);
        let only_system = messages.iter().all(|message| message.role == Role::System);
        let last = messages.iter().rfind(|message| message.role != Role::System);
        let last_says_nothing = last.is_some_and(says_nothing);
        let recipient = Recipient {
            profile: self.profile,
            marks,
            keeps_ids: true,
            takes_items: self.takes_items(),
            runs,
        };
        let mut history = History::read(messages, recipient, warnings)?;
        history.repair(pairing, warnings);
        // An empty last message must not be left out after an assistant message: the answer would
        // continue the assistant's text.
        let ends_with_assistant = matches!(history.turns.last(), Some(Turn::Assistant(_)));
        if only_system {
            return Err(Error::invalid("messages: first message must use the \"user\" role"));
        }
        let nobody_speaks = history.turns.iter().all(|turn| matches!(turn, Turn::System(_)));
        if nobody_speaks || last_says_nothing && ends_with_assistant {
            return Err(Error::invalid("messages: text content blocks must be non-empty"));
        }
        Ok(history)
    }
}

/// Returns the limits of the answer.
fn limits(
    request: &Request<'_>,
    profile: &Profile,
    window: u64,
    tools: &ToolSet<'_>,
) -> AnswerLimits {
    AnswerLimits {
        max_tokens: request.max_tokens.map_or(0, |wanted| effort::limited(wanted, profile)),
        window,
        stop_sequences: owned(&request.stop_sequences),
        one_tool_call: tools.one_tool_call(),
    }
}

fn owned(texts: &[Str<'_>]) -> Vec<String> {
    texts.iter().map(|text| text.decode().into_owned()).collect()
}

/// Returns the profile for reading the answer. If the client allows no tool calls, text that looks
/// like a call stays text.
fn for_answer(profile: &Profile, tools: &ToolSet<'_>) -> Profile {
    // If the client allows no calls, text that looks like a call stays text. Harmony markup also
    // encloses ordinary text.
    let text_tool_calls = match profile.text_tool_calls {
        TextToolCalls::Harmony => TextToolCalls::Harmony,
        _ if tools.forbids_calls() => TextToolCalls::Off,
        syntax => syntax,
    };
    Profile { text_tool_calls, ..profile.clone() }
}

/// Returns flags of the request parts that are sent and that the upstream may refuse. `attached`
/// has the flags of images and files.
fn refusable(
    attached: Refusable,
    request: &Request<'_>,
    history: &History<'_>,
    profile: &Profile,
) -> Refusable {
    let thinks = request.thinking.is_some() || request.effort.is_some() || history.effort.is_some();
    Refusable {
        schema: request.output_schema.is_some(),
        reasoning: history.has_reasoning || is_required(profile),
        sampling: request.temperature.is_some() || request.top_p.is_some(),
        top_k: request.top_k.is_some(),
        thinking: thinks || profile.thinking_switch != ThinkingSwitch::None,
        user: request.user_id.is_some(),
        service_tier: request.service_tier.is_some() || request.speed.is_some(),
        neighbours: !alternates(&history.turns),
        // Whether calls are silent is known once the messages are written.
        silent_calls: false,
        ..attached
    }
}

/// Returns the indices of the message and the block of the first reasoning that carries a signature
/// made by Creole.
fn first_item(messages: &[Message<'_>]) -> Option<(usize, usize)> {
    messages.iter().enumerate().find_map(|(at, message)| {
        let carries = |block: &Block<'_>| match block {
            Block::Thinking { signature, .. } => is_own(signature.raw()),
            _ => false,
        };
        Some((at, message.content.iter().position(carries)?))
    })
}

/// Returns true if a message is a user message without text.
fn says_nothing(message: &Message<'_>) -> bool {
    let is_blank = |block: &Block<'_>| matches!(block, Block::Text(text) if text.text.is_empty());
    message.role == Role::User && message.content.iter().all(is_blank)
}

/// Returns true if the last turn is an assistant text, which the answer shall continue.
pub(crate) fn is_prefilled(turns: &[Turn<'_>]) -> bool {
    matches!(turns.last(), Some(Turn::Assistant(blocks)) if calls(blocks).next().is_none())
}

/// Returns the assistant's text at the end of the request, which the answer continues.
fn prefill(
    turns: &[Turn<'_>],
    profile: &Profile,
    warnings: &mut Warnings,
) -> Result<String, Error> {
    let Some(Turn::Assistant(blocks)) = turns.last().filter(|_| is_prefilled(turns)) else {
        return Ok(String::new());
    };
    if warnings.strict() || profile.prefill == Prefill::Reject {
        return Err(Error::invalid(
            "This model does not support assistant message prefill. The conversation must end \
             with a user message.",
        ));
    }
    if profile.prefill == Prefill::Send {
        warnings.add("prefill");
    }
    if !profile.strip_prefill_echo {
        return Ok(String::new());
    }
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.decode()),
        Block::Note => Some("\n\n".into()),
        _ => None,
    });
    Ok(texts.collect())
}

/// Returns true if tool schemas are kept for reading the answer: to find calls written as text, and
/// to check or repair inputs.
fn keeps_schemas(config: &Config, profile: &Profile) -> bool {
    profile.text_tool_calls != TextToolCalls::Off
        || config.settings.checks_inputs()
        || config.settings.tool_arguments == ToolArguments::Mend
}

fn system_prompt<'a>(
    request: &mut Request<'a>,
    history: &mut History<'a>,
    profile: &Profile,
) -> SystemPrompt<'a> {
    let mut texts = std::mem::take(&mut request.system);
    let is_billing = |text: &&mut Text<'_>| {
        let start = text.text.raw().trim_start();
        start.starts_with("x-anthropic-billing-header:")
    };
    if profile.strip_billing_header
        && let Some(first) = texts.first_mut().filter(|text| is_billing(text))
    {
        // The billing header is one line; the text after the line is the client's prompt.
        let line = words::find(first.text.raw(), "\\n").map(|at| at.saturating_add(2));
        first.text = first.text.after(line.unwrap_or(usize::MAX));
    }
    texts.append(&mut history.system);
    texts.retain(|text| !text.text.is_blank());
    SystemPrompt { texts, schema: schema_in_words(request, profile) }
}

/// Returns the JSON schema of the answer, if the schema must be written into the prompt because the
/// upstream has no parameter for schemas.
pub(crate) fn schema_in_words<'a>(request: &Request<'a>, profile: &Profile) -> Option<&'a str> {
    request.output_schema.filter(|_| profile.response_format != ResponseFormat::JsonSchema)
}
