//! Client request: parsed, checked and routed to an upstream.

use std::borrow::Cow;

use crate::config::{Config, Upstream};
use crate::error::Error;
use crate::guards::loops::Note;
use crate::headers::Header;
use crate::history::hidden_images::Hidden;
use crate::history::spoilt_inputs::{self, Lost};
use crate::json;
use crate::model::Request;
use crate::model::own_tool::ToolsRunHere;
use crate::model::safeguards::dangerous_tool_use;
use crate::observe::warning::Warnings;
use crate::profile::Profile;
use crate::text::surrogates;

use super::client::{ClientProtocol, Purpose};
use super::own_tools::runs_here;

/// Client request, not yet parsed, with its headers and the configuration.
#[derive(Clone, Copy)]
pub(crate) struct ClientRequest<'c> {
    /// Protocol of the body.
    pub(crate) protocol: &'static dyn ClientProtocol,
    pub(crate) body: &'c str,
    pub(crate) config: &'c Config,
    /// Headers of the client that are kept for the upstream.
    pub(crate) headers: &'c [Header],
    /// Fixed upstream and model name for a request of Creole's own. If set, the model map is
    /// ignored.
    pub(crate) target: Option<(&'c Upstream, &'c str)>,
    /// True if the host can run server tools between the rounds of an answer.
    pub(crate) can_run_tools: bool,
}

/// Texts that a parsed request borrows and that are not in the client's body. The caller of
/// [`ClientRequest::read`] owns them.
#[derive(Default)]
pub(crate) struct RequestTexts<'a> {
    /// Body without lone halves of surrogate pairs, if the client's body has any.
    whole: String,
    /// Name of the model without JSON escapes.
    model: Cow<'a, str>,
    lost: Vec<Lost>,
    hidden: Hidden<'a>,
    notes: Vec<Note>,
}

/// Valid request with its upstream and the upstream's model name.
pub(crate) struct Routed<'a> {
    pub(crate) request: Request<'a>,
    /// JSON body from which the client's request was parsed.
    pub(crate) body: &'a str,
    pub(crate) upstream: &'a Upstream,
    /// Model name sent to the upstream.
    pub(crate) model: &'a str,
    /// Inputs of earlier tool calls that the client lost, not yet put back into the history.
    pub(crate) lost: &'a [Lost],
    /// Storage for the notes that guards insert into the conversation, which the request borrows.
    pub(crate) notes: &'a mut Vec<Note>,
}

impl<'c> ClientRequest<'c> {
    /// Returns the server tools that the request offers and Creole runs.
    pub(crate) fn runs(&self, request: &Request<'_>, profile: &Profile) -> ToolsRunHere {
        match self.can_run_tools {
            true => runs_here(&self.config.settings.server_tools, request, profile),
            false => ToolsRunHere::default(),
        }
    }

    /// Returns the upstream of the model named in the body.
    pub(crate) fn route(&self) -> Option<&'c Upstream> {
        let model = json::member(self.body, "model").and_then(json::string)?;
        self.route_of(&model.decode()).map(|(upstream, _)| upstream)
    }

    /// Returns the upstream of a model, and the upstream's name for the model.
    pub(crate) fn route_of<'m>(&self, model: &'m str) -> Option<(&'c Upstream, &'m str)>
    where
        'c: 'm,
    {
        self.target.or_else(|| self.config.route(model))
    }

    /// Returns true if the client requests verdicts on tool calls, and a model that judges tool
    /// calls is configured.
    pub(crate) fn is_judged(&self, safeguards: Option<&str>) -> bool {
        self.config.judge().is_some() && safeguards.and_then(dangerous_tool_use).is_some()
    }

    /// Parses, checks and routes the client's request, and replaces texts that encode images with
    /// the images.
    ///
    /// # Errors
    /// The request cannot be served.
    pub(crate) fn read<'a>(
        &self,
        purpose: Purpose,
        texts: &'a mut RequestTexts<'a>,
        warnings: &mut Warnings,
    ) -> Result<Routed<'a>, Error>
    where
        'c: 'a,
    {
        let RequestTexts { whole, model, lost, hidden, notes } = texts;
        let before = warnings.clone();
        let mut body = self.body;
        let mut request = self.protocol.read(body, purpose, warnings)?;
        if request.has_halves {
            *warnings = before;
            *whole = surrogates::without_halves(body).into_owned();
            body = whole;
            request = self.protocol.read(body, purpose, warnings)?;
        }
        if request.safeguards.is_some() && !self.is_judged(request.safeguards) {
            // Clients that request verdicts accept answers without verdicts, so strict mode need
            // not refuse.
            warnings.add_named("dropped", "safeguards");
        }
        *model = request.model.decode();
        let route = self.route_of(model);
        let calls_mcp = self.can_run_tools && self.config.settings.server_tools.mcp.is_on();
        let (upstream, model) =
            self.protocol.check(&request, model, route, self.headers, calls_mcp, warnings)?;
        *lost = spoilt_inputs::find_lost(&request);
        *hidden = Hidden::find(&request, &self.config.settings);
        hidden.show(&mut request, warnings);
        Ok(Routed { request, body, upstream, model, lost, notes })
    }

    /// Refuses a conversation that the vendor's own API would refuse, in strict mode.
    pub(crate) fn check_strictly(&self, request: &Request<'_>) -> Result<(), Error> {
        if self.config.settings.strict { self.protocol.check_strictly(request) } else { Ok(()) }
    }

    /// Returns the error for a request without an upstream: the body is invalid, or the model has
    /// no upstream.
    pub(crate) fn refusal(&self, purpose: Purpose, warnings: &mut Warnings) -> Error {
        let mut texts = RequestTexts::default();
        let read = self.read(purpose, &mut texts, warnings);
        debug_assert!(read.is_err(), "a request that has an upstream is not refused");
        read.err().unwrap_or_else(|| Error::invalid("The request body cannot be read"))
    }
}
