//! Client request in the Messages API: parsed, checked and routed to an upstream.

use crate::config::{Config, Upstream};
use crate::error::Error;
use crate::headers::Header;
use crate::json;
use crate::model::Request;
use crate::model::safeguards::dangerous_tool_use;
use crate::observe::warning::Warnings;
use crate::text::surrogates;

use super::messages::check;

/// Client request, not yet parsed, with its headers and the configuration.
#[derive(Clone, Copy)]
pub(crate) struct ClientRequest<'c> {
    pub(crate) body: &'c str,
    pub(crate) config: &'c Config,
    /// Headers of the client that are kept for the upstream.
    pub(crate) headers: &'c [Header],
    /// Fixed upstream and model name for a request of Creole's own. If set, the model map is
    /// ignored.
    pub(crate) target: Option<(&'c Upstream, &'c str)>,
}

/// Purpose for which an upstream request is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Purpose: an answer of the upstream for the client.
    Answer,
    /// Purpose: the upstream shall count the request's tokens, for which `max_tokens` is not
    /// required.
    Count,
}

/// Valid request with its upstream and the upstream's model name.
pub(crate) struct Routed<'a> {
    pub(crate) request: Request<'a>,
    /// Body from which the request was parsed.
    pub(crate) body: &'a str,
    pub(crate) upstream: &'a Upstream,
    /// Model name sent to the upstream.
    pub(crate) model: &'a str,
}

impl<'c> ClientRequest<'c> {
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

    /// Parses and checks the request, and passes the result to `write`.
    ///
    /// # Errors
    /// The request cannot be served, or `write` failed.
    pub(crate) fn read<T>(
        &self,
        purpose: Purpose,
        warnings: &mut Warnings,
        write: impl FnOnce(Routed<'_>, &mut Warnings) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = warnings.clone();
        let whole;
        let (mut body, mut request) = (self.body, self.read_body(self.body, purpose, warnings)?);
        if request.has_halves {
            *warnings = before;
            whole = surrogates::without_halves(body);
            body = &whole;
            request = self.read_body(body, purpose, warnings)?;
        }
        let name = request.model.decode();
        if request.safeguards.is_some() && !self.is_judged(request.safeguards) {
            // Clients that request verdicts accept answers without verdicts, so strict mode need
            // not refuse.
            warnings.add_named("dropped", "safeguards");
        }
        let route = self.route_of(&name);
        let (upstream, model) = check::request(&request, &name, route, self.headers, warnings)?;
        write(Routed { request, body, upstream, model }, warnings)
    }

    fn read_body<'a>(
        &self,
        body: &'a str,
        purpose: Purpose,
        warnings: &mut Warnings,
    ) -> Result<Request<'a>, Error> {
        let request = Request::read(body, warnings)?;
        if request.max_tokens.is_none() && purpose == Purpose::Answer {
            return Err(json::Error::value("Field required").in_key("max_tokens").into());
        }
        Ok(request)
    }

    /// Refuses a conversation that Anthropic's API would refuse, in strict mode.
    pub(crate) fn check_strictly(&self, request: &Request<'_>) -> Result<(), Error> {
        if self.config.settings.strict { check::strictly(request) } else { Ok(()) }
    }

    /// Returns the error for a request without an upstream: the body is invalid, or the model has
    /// no upstream.
    pub(crate) fn refusal(&self, purpose: Purpose, warnings: &mut Warnings) -> Error {
        let read = self.read(purpose, warnings, |_, _| Ok(()));
        debug_assert!(read.is_err(), "a request that has an upstream is not refused");
        read.err().unwrap_or_else(|| Error::invalid("The request body cannot be read"))
    }
}
