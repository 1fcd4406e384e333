//! Selection of the tools that are offered to the model: the elements of `tools`, with the
//! additions, removals and loaded tools of the conversation.
//!
//! ```text
//!   definition --+--> Offered <--- tool_addition, tool_reference, named by tool_choice
//!                +--> Deferred --^        |
//!                +--> Hidden              +--- tool_removal ---> Removed
//! ```
//!
//! Deferral: the real API searches deferred tools by itself, or a tool of the client names them in
//! its results. If neither is possible here, hidden tools would be lost for good, so all deferred
//! tools are offered. Loaded tools come after all other tools, in the order in which the
//! conversation loaded them (additions first, then tools that a search found), so that the
//! upstream's prompt cache stays valid for the tools before them. Claude Code sorts loaded tools
//! among the others by name, because the real API does not cache loaded tools.

use std::borrow::Cow;

use super::definition::{self, Availability, DefinitionRules, PLACEHOLDER, kind_of};
use super::function::{Function, member_name};
use super::mcp_here;
use super::names;
use super::own::own_tool;
use super::typed::{ToolKind, Toolset};
use crate::config::McpConnector;
use crate::error::Error;
use crate::model::mcp_servers::McpServers;
use crate::model::own_tool::{OwnTool, ToolsRunHere};
use crate::model::path_at;
use crate::model::tool::{Reference, ReferencedTool, ToolChange, ToolDefinition};
use crate::observe::warning::Warnings;
use crate::profile::{Mcp, Profile, ToolSchema};
use crate::text::names::{NameSet, Names};
use crate::text::words;

/// Tool of the request that may be offered.
#[derive(Debug)]
struct OfferCandidate<'a> {
    state: Availability,
    what: What<'a>,
    /// True if the tool came with a `tool_addition`.
    added: bool,
}

impl OfferCandidate<'_> {
    /// Returns true if the tool is a member of a toolset.
    fn is_member(&self) -> bool {
        matches!(&self.what, What::Function(function) if function.toolset.is_some())
    }
}

#[derive(Debug)]
enum What<'a> {
    /// Function, which the client runs.
    Function(Box<Function<'a>>),
    /// Server tool, which the real API would run.
    Server(Box<ServerTool<'a>>),
}

/// Server tool, which the real API would run.
#[derive(Debug)]
pub(super) struct ServerTool<'a> {
    pub(super) name: &'static str,
    pub(super) definition: ToolDefinition<'a>,
}

/// Tools that are not removed, by kind.
#[derive(Default)]
pub(super) struct Sorted<'a> {
    /// Toolsets of MCP servers.
    pub(super) mcp: Vec<ToolDefinition<'a>>,
    pub(super) functions: Vec<Function<'a>>,
    /// Deferred functions that no tool search has loaded.
    pub(super) deferred: Vec<Function<'a>>,
    pub(super) servers: Vec<ServerTool<'a>>,
}

/// List of every tool of a request, with its availability.
#[derive(Debug, Default)]
pub(super) struct Offers<'a> {
    rules: DefinitionRules<'a>,
    /// True if the upstream can call tools of MCP servers.
    takes_mcp: bool,
    /// Server tools that Creole runs.
    runs: ToolsRunHere,
    /// Toolsets of MCP servers.
    mcp: Vec<ToolDefinition<'a>>,
    /// Number of tool definitions added so far. The elements of `tools` come first, so this is the
    /// index of the next element.
    defined: usize,
    candidates: Vec<OfferCandidate<'a>>,
    /// Index of each candidate by its outgoing name.
    by_name: Names<'a, usize>,
    /// Indexes of the candidates that are members of toolsets; few, since names are unique.
    members: Vec<usize>,
    /// Number of deferred tools that were loaded.
    loaded: usize,
}

impl<'a> Offers<'a> {
    pub(super) fn new(body: &'a str, profile: &Profile, runs: ToolsRunHere) -> Self {
        Self {
            rules: DefinitionRules {
                body,
                names: names::NameRules::of(profile),
                // The other schema dialects lack the keywords that make a schema strict.
                strict_schemas: (profile.strict_tools && profile.tool_schema == ToolSchema::Full)
                    .then_some(profile.strict_schemas),
            },
            takes_mcp: profile.mcp == Mcp::Mcp,
            runs,
            ..Self::default()
        }
    }

    /// Reserves capacity for this number of tool definitions.
    pub(super) fn expect(&mut self, definitions: usize) {
        self.candidates.reserve_exact(definitions);
    }

    /// Adds a tool definition; `added` is true if a `tool_addition` brought the definition.
    pub(super) fn define(
        &mut self,
        definition: ToolDefinition<'a>,
        added: bool,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let at = definition.at;
        let place = (!added).then_some(self.defined);
        self.defined = self.defined.saturating_add(1);
        let (kind, known) = kind_of(&definition, self.rules.body, warnings)?;
        let (what, state) = match kind {
            ToolKind::Mcp if self.takes_mcp => {
                self.mcp.push(definition);
                return Ok(());
            }
            ToolKind::Mcp => {
                return Err(Error::unsupported_kind(&path_at(self.rules.body, at), "mcp_toolset"));
            }
            ToolKind::Server(name) => match own_tool(&definition, self.rules.body, self.runs) {
                Some(tool) => {
                    let tool = tool?;
                    if matches!(&tool, OwnTool::WebFetch(fetch) if fetch.citations) {
                        warnings.add("citations_not_made");
                    }
                    let mut function = Function::own(&definition, tool, self.rules.names);
                    function.place = place;
                    let state = Availability::first(definition.defer_loading, added);
                    (What::Function(Box::new(function)), state)
                }
                None => {
                    let server = Box::new(ServerTool { name, definition });
                    (What::Server(server), Availability::Offered)
                }
            },
            ToolKind::Toolset(toolset) => {
                return self.toolset(toolset, &definition, added, warnings);
            }
            ToolKind::Client(_) | ToolKind::Custom | ToolKind::Function => {
                let (mut function, state) =
                    definition::function(self.rules, kind, known, definition, added, warnings)?;
                function.place = place;
                (What::Function(Box::new(function)), state)
            }
        };
        self.push(OfferCandidate { state, what, added }, at, warnings)
    }

    /// Adds the enabled tools of an MCP toolset whose server Creole calls.
    pub(super) fn mcp_toolset(
        &mut self,
        definition: &ToolDefinition<'a>,
        (servers, settings): (McpServers<'_>, &McpConnector),
        warnings: &Warnings,
    ) -> Result<(), Error> {
        self.defined = self.defined.saturating_add(1);
        let functions = mcp_here::functions(definition, servers, settings, self.rules.names);
        for (function, state) in functions {
            let what = What::Function(Box::new(function));
            self.push(OfferCandidate { state, what, added: false }, definition.at, warnings)?;
        }
        Ok(())
    }

    /// Adds the enabled members of a toolset.
    fn toolset(
        &mut self,
        toolset: Toolset,
        definition: &ToolDefinition<'a>,
        added: bool,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let at = definition.at;
        for config in &definition.rare().configs {
            if !toolset.members().any(|member| member.name() == config.name) {
                let mut path = String::new();
                if warnings.strict() {
                    path = path_at(self.rules.body, at) + ".configs";
                }
                warnings.unknown_field(&path, &config.name)?;
            }
        }
        for member in toolset.members() {
            let name = member.name();
            let config = definition.rare().configs.iter().rfind(|config| config.name == name);
            let enabled = config
                .and_then(|config| config.enabled)
                .unwrap_or_else(|| !toolset.disabled.contains(&name));
            if !enabled {
                continue;
            }
            let deferred =
                definition.defer_loading || config.and_then(|it| it.defer_loading) == Some(true);
            let state = Availability::first(deferred, added);
            let function = Function::member(toolset.name, member, self.rules.names);
            let what = What::Function(Box::new(function));
            self.push(OfferCandidate { state, what, added }, at, warnings)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        candidate: OfferCandidate<'a>,
        at: usize,
        warnings: &Warnings,
    ) -> Result<(), Error> {
        let name = match &candidate.what {
            What::Function(function) => function.outgoing.clone(),
            What::Server(server) => Cow::Borrowed(server.name),
        };
        let known = self.by_name.get(&name).copied();
        let same = known.and_then(|index| self.candidates.get(index));
        // A client may repeat an addition, in the messages and in a compaction, and means the same
        // tool.
        if let Some(same) = same
            && same.state != Availability::Removed
            && (!(candidate.added && same.added) || warnings.strict())
        {
            if !candidate.added {
                return Err(Error::invalid("tools: Tool names must be unique."));
            }
            let path = path_at(self.rules.body, at);
            return Err(Error::invalid(format!("{path}: Tool names must be unique."))
                .with_code("tool_name_conflict"));
        }
        let index = known.unwrap_or(self.candidates.len());
        if candidate.is_member() && !same.is_some_and(OfferCandidate::is_member) {
            self.members.push(index);
        }
        match self.candidates.get_mut(index) {
            // A repeated tool is stored once.
            Some(same) => *same = candidate,
            None => {
                self.by_name.insert(name, index);
                self.candidates.push(candidate);
            }
        }
        Ok(())
    }

    /// Applies a change of the tools in the conversation.
    pub(super) fn change(
        &mut self,
        change: ToolChange<'a>,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let (reference, state) = match change {
            ToolChange::Define(definition) => return self.define(*definition, true, warnings),
            ToolChange::Add(reference) => (reference, Availability::Offered),
            ToolChange::Remove(reference) => (reference, Availability::Removed),
        };
        let Reference { at, target: ReferencedTool::Tool(name) } = reference else {
            let path = path_at(self.rules.body, reference.at);
            return Err(Error::unsupported_kind(&path, "a tool of an MCP server"));
        };
        let found = self.find(&name);
        if found.is_empty() {
            return Err(unresolved(&path_at(self.rules.body, at), &name));
        }
        for index in found {
            if state == Availability::Removed || !self.load_one(index) {
                self.set(index, state);
            }
        }
        Ok(())
    }

    /// Returns the tools by kind, after all changes were applied.
    pub(super) fn sorted(self) -> Sorted<'a> {
        let mut sorted = Sorted { mcp: self.mcp, ..Sorted::default() };
        let mut loaded: Vec<_> = (0..self.loaded).map(|_| None).collect();
        for candidate in self.candidates {
            match (candidate.what, candidate.state) {
                (What::Function(function), Availability::Offered) => {
                    // Capacity grows by a quarter instead of doubling: there can be thousands of
                    // tools.
                    let functions = &mut sorted.functions;
                    if functions.len() == functions.capacity() {
                        functions.reserve_exact((functions.len() / 4).max(16));
                    }
                    functions.push(*function);
                }
                (What::Function(function), Availability::Loaded(place)) => {
                    if let Some(free) = loaded.get_mut(place) {
                        *free = Some(*function);
                    }
                }
                (What::Function(function), Availability::Deferred) => {
                    sorted.deferred.push(*function)
                }
                (What::Server(server), Availability::Offered) => sorted.servers.push(*server),
                _ => {}
            }
        }
        sorted.functions.extend(loaded.into_iter().flatten());
        sorted
    }

    fn set(&mut self, index: usize, state: Availability) {
        if let Some(candidate) = self.candidates.get_mut(index)
            && candidate.state != Availability::Hidden
        {
            candidate.state = state;
        }
    }

    /// Returns the indexes of the tools that `name` refers to: a single tool, or members of a
    /// toolset.
    fn find(&self, name: &str) -> Vec<usize> {
        let outgoing = names::outgoing(name, self.rules.names);
        if let Some(index) = self.by_name.get(name).or_else(|| self.by_name.get(&outgoing)) {
            return vec![*index];
        }
        let is_named = |index: &usize| match self.candidates.get(*index).map(|one| &one.what) {
            Some(What::Function(function)) => {
                function.toolset == Some(name) || function.name == name
            }
            _ => false,
        };
        self.members.iter().copied().filter(is_named).collect()
    }

    /// Offers the deferred tools that `activated` and `forced` name, or all deferred tools.
    pub(super) fn load(
        &mut self,
        activated: &NameSet<'a>,
        forced: Option<&str>,
        added: bool,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let deferred = self.candidates.iter().any(|one| one.state == Availability::Deferred);
        let all = deferred && (self.searched_by_server() || !(added || self.can_load(activated)));
        for name in activated.keys().chain(forced) {
            let found = self.find(name);
            if found.is_empty() && forced != Some(name) {
                // The tool may be gone because its server was disconnected: the turn can continue.
                if warnings.strict() {
                    return Err(unresolved("messages", name));
                }
                warnings.add("tool_reference_unresolved");
            }
            for index in found {
                self.load_one(index);
            }
        }
        if all {
            // Deferred tools keep their positions, because each request has all of them, whatever a
            // tool search finds.
            let waits = |it: &&mut OfferCandidate<'_>| {
                matches!(it.state, Availability::Deferred | Availability::Loaded(_))
            };
            self.candidates
                .iter_mut()
                .filter(waits)
                .for_each(|one| one.state = Availability::Offered);
        }
        Ok(())
    }

    /// Loads a tool. Returns true if the tool was deferred until now.
    fn load_one(&mut self, index: usize) -> bool {
        let found =
            self.candidates.get_mut(index).filter(|one| one.state == Availability::Deferred);
        let Some(one) = found else { return false };
        one.state = Availability::Loaded(self.loaded);
        self.loaded = self.loaded.saturating_add(1);
        true
    }

    fn searched_by_server(&self) -> bool {
        self.candidates.iter().any(|one| {
            matches!(&one.what, What::Server(server) if server.name.starts_with("tool_search"))
        })
    }

    /// Returns true if the client can load deferred tools. Signs are an earlier load, Claude Code
    /// as the client, or a tool whose name or description suggests a tool search.
    fn can_load(&self, activated: &NameSet<'a>) -> bool {
        !activated.is_empty()
            || self.candidates.iter().any(|one| match &one.what {
                What::Function(function) => {
                    function.name == PLACEHOLDER
                        || one.state == Availability::Offered && searches_tools(function)
                }
                What::Server(_) => false,
            })
    }
}

fn searches_tools(function: &Function<'_>) -> bool {
    let name = function.name.to_ascii_lowercase();
    let verb = words::has_any(&name, &["search", "find", "load", "discover"]);
    (verb && words::has(&name, "tool")) || function.description_mentions("tool_reference")
}

fn unresolved(path: &str, name: &str) -> Error {
    Error::invalid(format!("{path}: Tool reference '{name}' not found in available tools"))
        .with_code("tool_reference_unresolved")
}

/// Returns the upstream's name of a tool in the history.
pub(super) fn name_in_history<'n>(
    name: &'n str,
    toolset: Option<&str>,
    rules: names::NameRules,
) -> Cow<'n, str> {
    match toolset {
        Some(toolset) => member_name(name, toolset, rules),
        None => names::outgoing(name, rules),
    }
}
