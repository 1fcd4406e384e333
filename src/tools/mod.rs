//! Tools of a request: `tools`, `tool_choice`, `parallel_tool_calls` and `web_search_options`.
//!
//! [`ToolSet`] holds the tools to send to the upstream, and the data about them that is needed
//! later: the names for calls in the history, and the tools that an answer may call. Three steps
//! build the set from a request:
//!
//! 1. `offer` decides which tools the model gets, after additions, removals and deferral;
//! 2. server tools that the upstream cannot run are left out or rejected;
//! 3. `choice` translates `tool_choice`, and removes tools that must not be sent with this choice.

mod choice;
mod definition;
mod domain_lists;
mod function;
mod hosted;
mod mcp;
pub(crate) mod mcp_here;
mod names;
mod offer;
mod own;
mod typed;
mod web_fetch;
mod web_search;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

pub(crate) use crate::dialect::schema::mended::plain;
pub(crate) use crate::dialect::schema::strict::takes_strictly;
pub(crate) use crate::dialect::schema::write_output_schema;
pub(crate) use own::name_of as server_tool_name;

use crate::config::McpConnector;
use crate::error::Error;
use crate::json::Writer;
use crate::model::ToolUse;
use crate::model::mcp::function_name;
use crate::model::mcp_servers::McpServers;
use crate::model::own_tool::{OwnTool, ToolsRunHere};
use crate::model::request_context;
use crate::model::tool::{ChoiceMode, ToolChange, ToolChoice, ToolDefinition};
use crate::model::{CacheMark, Request};
use crate::observe::warning::Warnings;
use crate::profile::Profile;
use crate::text::names::{NameSet, Names};
use choice::SentChoice;
use function::{Function, FunctionForm};
use hosted::{Beside, Hosted};
use offer::{Offers, Sorted};

/// Tools of a request, in the form in which they are sent.
#[derive(Debug)]
pub(crate) struct ToolSet<'a> {
    functions: Vec<Function<'a>>,
    /// Index in `functions` of each function by the client's name, without members of toolsets. A
    /// long history looks up each of its calls.
    by_name: Names<'a, usize>,
    choice: SentChoice,
    /// Value of `tool_choice` that forces a call of any tool.
    any: SentChoice,
    one_tool_call: bool,
    /// True if `parallel_tool_calls: false` is sent.
    not_parallel: bool,
    hosted: Hosted,
    /// Functions that are not sent, because no tool search has loaded them.
    deferred: Vec<Function<'a>>,
    form: FunctionForm,
    names: names::NameRules,
}

/// Returns a tool's name that fits OpenAI's rules: at most 64 letters, digits, `_` and `-`.
#[must_use]
pub(crate) fn plain_name(name: &str) -> Cow<'_, str> {
    names::outgoing(name, names::NameRules::plain())
}

/// Client's `cache_control` mark on a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolMark {
    /// Index of the marked tool among the tools that are sent.
    at: usize,
    pub(crate) cached: CacheMark,
}

/// Members of a request that concern tools.
#[derive(Debug, Default)]
pub(crate) struct ToolRequest<'a, 'c> {
    /// Request body, for the paths in errors.
    pub body: &'a str,
    /// Member `tools`: definitions of the tools.
    pub definitions: Vec<ToolDefinition<'a>>,
    /// Member `mcp_servers`: servers whose tools may be called.
    pub servers: McpServers<'a>,
    /// Additions and removals of tools in the conversation, in order.
    pub changes: Vec<ToolChange<'a>>,
    /// Names of tools in the `tool_reference` blocks of the conversation.
    pub activated: NameSet<'a>,
    /// Member `tool_choice`: which tools the model may or must call.
    pub choice: Option<ToolChoice<'a>>,
    /// True if the conversation has tool calls.
    pub history_has_calls: bool,
    /// Server tools that Creole runs, so that the model gets functions for them.
    pub runs: ToolsRunHere,
    /// Settings of the MCP servers that Creole calls, if any.
    pub mcp_here: Option<&'c McpConnector>,
}

impl<'a> ToolSet<'a> {
    /// Decides which tools are sent, and in which form.
    ///
    /// # Errors
    ///
    /// A tool is not supported (MCP, a server tool that is forced or the only tool), names are not
    /// unique, a reference or the choice names no tool, or the upstream does not accept as many
    /// tools.
    pub(crate) fn new(
        requested: ToolRequest<'a, '_>,
        profile: &Profile,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let ToolRequest {
            body,
            definitions,
            servers,
            changes,
            activated,
            choice,
            history_has_calls,
            runs,
            mcp_here,
        } = requested;
        let mut offers = Offers::new(body, profile, runs);
        offers.expect(definitions.len());
        for definition in definitions {
            match mcp_here.filter(|_| definition.tool_type == "mcp_toolset") {
                Some(settings) => offers.mcp_toolset(&definition, (servers, settings), warnings)?,
                None => offers.define(definition, false, warnings)?,
            }
        }
        let added = changes.iter().any(|change| !matches!(change, ToolChange::Remove(_)));
        for change in changes {
            offers.change(change, warnings)?;
        }
        let forced = match choice.as_ref().map(|choice| &choice.mode) {
            Some(ChoiceMode::Tool(name)) => Some(name.as_ref()),
            _ => None,
        };
        offers.load(&activated, forced, added, warnings)?;

        let Sorted { mcp, mut functions, servers: hosts, deferred } = offers.sorted();
        let servers = if mcp_here.is_some() { McpServers::default() } else { servers };
        let mcp = mcp::tools(servers, &mcp, body, warnings)?;
        let choice = choice.as_ref();
        let mode = choice.map(|choice| &choice.mode);
        let others = !functions.is_empty() || !mcp.is_empty();
        let beside = Beside { body, mode, others };
        let mut hosted = Hosted::new(&hosts, beside, profile, warnings)?;
        hosted.add_mcp(mcp, mode, warnings)?;
        let sent = match hosted.choice(mode, profile) {
            Some(sent) if functions.is_empty() => sent,
            _ => SentChoice::new(choice, &mut functions, history_has_calls, profile, warnings)?,
        };
        check_number(functions.len(), profile)?;
        functions.shrink_to_fit();
        let one_tool_call = choice.is_some_and(|choice| choice.disable_parallel_tool_use);
        Ok(Self {
            not_parallel: one_tool_call
                && profile.parallel_tool_calls
                && mode != Some(&ChoiceMode::None),
            by_name: by_name(&functions),
            functions,
            deferred,
            choice: sent,
            any: SentChoice::any(profile),
            one_tool_call,
            hosted,
            form: FunctionForm::of(profile),
            names: names::NameRules::of(profile),
        })
    }

    /// Returns the upstream's name of the tool of a call in the history.
    #[must_use]
    pub(crate) fn outgoing_name_of<'n>(&self, call: &ToolUse<'n>) -> Cow<'n, str> {
        let toolset = call.toolset.map(|toolset| toolset.decode());
        match (call.name.decode(), toolset) {
            (name, Some(server)) if call.is_server => {
                let function = function_name(&server, &name);
                Cow::Owned(names::outgoing(&function, self.names).into_owned())
            }
            (Cow::Borrowed(name), toolset) => self.outgoing_name(name, toolset.as_deref()),
            (Cow::Owned(name), toolset) => {
                Cow::Owned(self.outgoing_name(&name, toolset.as_deref()).into_owned())
            }
        }
    }

    /// Returns the upstream's name of a tool, for a call in the history with this `name` and
    /// `toolset_name`. The tool need not be among the tools that are sent.
    #[must_use]
    pub(crate) fn outgoing_name<'n>(&self, name: &'n str, toolset: Option<&str>) -> Cow<'n, str> {
        let outgoing = offer::name_in_history(name, toolset, self.names);
        if toolset.is_none()
            && matches!(outgoing, Cow::Owned(_))
            && self.named(name).is_some_and(Function::is_ready)
        {
            return Cow::Borrowed(name);
        }
        outgoing
    }

    /// Returns the JSON Schema of the tool that the client calls `name`, if the tool is sent.
    /// Members of toolsets are not found.
    #[must_use]
    pub(crate) fn schema_of(&self, name: &str) -> Option<&str> {
        self.named(name).map(|function| function.schema.as_ref())
    }

    fn named(&self, name: &str) -> Option<&Function<'a>> {
        self.by_name.get(name).and_then(|index| self.functions.get(*index))
    }

    /// Withholds a tool from this request, and drops a `tool_choice` of this tool. Returns the
    /// upstream's name of the tool, if the tool was to be sent.
    pub(crate) fn withhold(&mut self, name: &str, toolset: Option<&str>) -> Option<String> {
        let found = self.functions.iter_mut().find(|function| {
            !function.withheld && function.name == name && function.toolset == toolset
        })?;
        found.withheld = true;
        let outgoing = found.outgoing.clone().into_owned();
        if self.choice == SentChoice::Function(outgoing.clone()) {
            self.choice = SentChoice::Absent;
        }
        Some(outgoing)
    }

    /// Withholds all tools but those by which an agent gives its final answer, and forces a call of
    /// one of these. Returns false if there are none.
    pub(crate) fn leave_answer_tools(&mut self) -> bool {
        let forbidden = self.forbids_calls();
        for function in &mut self.functions {
            function.withheld |= forbidden || !gives_answer(&function.name);
        }
        let has_one = !self.is_empty();
        let is_named =
            self.sent().any(|it| self.choice == SentChoice::Function(it.outgoing.to_string()));
        if has_one && !is_named {
            self.choice = self.any.clone();
        }
        has_one
    }

    fn sent(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions.iter().filter(|function| !function.withheld)
    }

    /// Returns the tools in the form that the answer's translation needs. Schemas are copied only
    /// if `keep_schemas`.
    #[must_use]
    pub(crate) fn context(&self, keep_schemas: bool) -> request_context::Tools {
        let tool = |function: &Function<'a>| request_context::Tool {
            outgoing: function.outgoing.clone().into_owned(),
            name: function.name.clone().into_owned(),
            toolset: function.toolset,
            place: function.place,
            own: function.own.clone(),
            schema: keep_schemas.then(|| Arc::from(function.schema.as_ref())),
        };
        let mut tools = request_context::Tools::default();
        tools.sent.reserve_exact(self.functions.len());
        self.sent().for_each(|function| tools.push(tool(function)));
        self.deferred.iter().for_each(|function| tools.push_deferred(tool(function)));
        tools
    }

    /// Returns true if the client allows only one tool call.
    #[must_use]
    pub(crate) fn one_tool_call(&self) -> bool {
        self.one_tool_call
    }

    /// Returns true if tools are sent that the upstream must not call.
    #[must_use]
    pub(crate) fn forbids_calls(&self) -> bool {
        self.choice == SentChoice::Forbidden
    }

    /// Returns true if the upstream must call a tool.
    #[must_use]
    pub(crate) fn forces_call(&self) -> bool {
        matches!(self.choice, SentChoice::Any(_) | SentChoice::Function(_)) && !self.is_empty()
    }

    /// Returns true if the upstream may search the web by itself.
    #[must_use]
    pub(crate) fn searches(&self) -> bool {
        self.hosted.searches()
    }

    /// Returns the server tools that Creole runs.
    #[must_use]
    pub(crate) fn own(&self) -> Vec<Arc<OwnTool>> {
        let all = self.functions.iter().chain(&self.deferred);
        all.filter_map(|function| function.own.clone()).collect()
    }

    /// Returns true if the upstream may call tools of MCP servers by itself.
    #[must_use]
    pub(crate) fn calls_mcp(&self) -> bool {
        !self.hosted.mcp.is_empty()
    }

    /// Returns true if no functions are sent.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent().next().is_none()
    }

    /// Returns the client's last `cache_control` mark on a tool, which covers all tools before that
    /// tool.
    #[must_use]
    pub(crate) fn mark(&self) -> Option<ToolMark> {
        let mark = |(at, function): (usize, &Function<'a>)| {
            function.cached.map(|cached| ToolMark { at, cached })
        };
        self.sent().enumerate().filter_map(mark).last()
    }

    /// Writes the request members that concern tools, if any. `mark` is the result of
    /// [`ToolSet::mark`] if the upstream supports the mark.
    pub(crate) fn write(&self, json: &mut Writer<'_>, mark: Option<ToolMark>) {
        // Servers refuse an empty list of tools, and refuse the other members without tools.
        if !self.is_empty() {
            json.key("tools").begin_array();
            for (at, function) in self.sent().enumerate() {
                json.make_room();
                let cached = mark.filter(|mark| mark.at == at).map(|mark| mark.cached);
                function.write(json, self.form, cached);
            }
            json.end_array();
            self.choice.write(json);
            if self.not_parallel {
                json.key("parallel_tool_calls").bool(false);
            }
        }
        if let Some(options) = &self.hosted.options {
            json.key("web_search_options").raw(options);
        }
    }

    /// Writes the members of a Responses request that concern tools, if any.
    pub(crate) fn write_flat(&self, json: &mut Writer<'_>) {
        if self.is_empty() && self.hosted.is_empty() {
            return;
        }
        json.key("tools").begin_array();
        for function in self.sent() {
            json.make_room();
            function.write_flat(json, self.form);
        }
        for tool in &self.hosted.tools {
            json.raw(tool);
        }
        for tool in &self.hosted.mcp {
            json.raw(tool.json());
        }
        json.end_array();
        self.choice.write_flat(json);
        if self.not_parallel {
            json.key("parallel_tool_calls").bool(false);
        }
        if let Some(most) = self.hosted.calls_max {
            json.key("max_tool_calls").u64(most);
        }
    }
}

/// Returns the server tools of a request that Creole runs. A definition that cannot be read is left
/// out: it is refused when the request is translated.
pub(crate) fn own_tools(
    request: &Request<'_>,
    body: &str,
    runs: ToolsRunHere,
    mcp: &McpConnector,
) -> Vec<Arc<OwnTool>> {
    let tools = request.tools.iter().filter_map(|tool| own::own_tool(tool, body, runs)?.ok());
    let mut tools: Vec<Arc<OwnTool>> = tools.map(Arc::new).collect();
    if runs.mcp {
        tools.extend(mcp_here::own_tools(request, mcp));
    }
    tools
}

/// Checks that the upstream takes as many tools.
fn check_number(tools: usize, profile: &Profile) -> Result<(), Error> {
    let most = profile.max_tools;
    if most == 0 || tools <= most {
        return Ok(());
    }
    let reason = format!("tools: {tools} tools were given, but this model takes at most {most}");
    Err(Error::invalid(reason))
}

/// Returns the indexes of the functions by the client's names, without members of toolsets.
fn by_name<'a>(functions: &[Function<'a>]) -> Names<'a, usize> {
    let mut by_name = Names::default();
    for (index, function) in functions.iter().enumerate() {
        if function.toolset.is_none() {
            by_name.insert(function.name.clone(), index);
        }
    }
    by_name
}

/// Returns true if `name` is a tool through which an agent gives its final answer, and cannot
/// answer otherwise. n8n's output parser, pydantic-ai, Claude Code and its SDK have one.
fn gives_answer(name: &str) -> bool {
    matches!(name, "format_final_json_response" | "final_result" | "StructuredOutput")
        || name.starts_with("final_result_")
}

/// Returns true if `tool_type` is that of a tool which the real API runs, or of an MCP toolset.
#[must_use]
pub(crate) fn is_of_server(tool_type: &str) -> bool {
    use typed::ToolKind;
    matches!(ToolKind::of(tool_type, false), Some((ToolKind::Server(_) | ToolKind::Mcp, _)))
}

/// Returns true if `tool_type` is that of a predefined tool that the client runs; the API defines
/// its name and schema.
#[must_use]
pub(crate) fn is_of_client(tool_type: &str) -> bool {
    use typed::ToolKind;
    matches!(ToolKind::of(tool_type, false), Some((ToolKind::Client(_) | ToolKind::Toolset(_), _)))
}
