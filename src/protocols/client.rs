//! The client's request, in the protocol that clients speak: read, checked and routed.

use crate::config::{Config, Upstream};
use crate::error::Error;
use crate::headers::Header;
use crate::json;
use crate::model::Request;
use crate::model::safeguards::dangerous_tool_use;
use crate::observe::warning::Warnings;
use crate::text::surrogates;

use super::messages::check;

/// A request as the client sent it.
#[derive(Clone, Copy)]
pub(crate) struct ClientRequest<'c> {
    pub(crate) body: &'c str,
    pub(crate) config: &'c Config,
    /// The client's headers that are kept.
    pub(crate) headers: &'c [Header],
    /// Upstream that the request goes to, whatever the model map says, and the name of the model
    /// there.
    pub(crate) target: Option<(&'c Upstream, &'c str)>,
}

/// Reason why a request is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The upstream is to answer the request.
    Answer,
    /// The upstream is to count the request's tokens, for which no limit of the output is needed.
    Count,
}

/// A request that can be served, and where it goes.
pub(crate) struct Routed<'a> {
    pub(crate) request: Request<'a>,
    /// The body that the request was read from.
    pub(crate) body: &'a str,
    pub(crate) upstream: &'a Upstream,
    /// The model as the upstream knows it.
    pub(crate) model: &'a str,
}

impl<'c> ClientRequest<'c> {
    /// Returns the upstream of the model that the body names.
    pub(crate) fn route(&self) -> Option<&'c Upstream> {
        let model = json::member(self.body, "model").and_then(json::string)?;
        self.route_of(&model.decode()).map(|(upstream, _)| upstream)
    }

    /// Returns the upstream of a model, and the upstream's name for it.
    pub(crate) fn route_of<'m>(&self, model: &'m str) -> Option<(&'c Upstream, &'m str)>
    where
        'c: 'm,
    {
        self.target.or_else(|| self.config.route(model))
    }

    /// Returns true if the client asks for verdicts on tool calls, and there is a judge.
    pub(crate) fn is_judged(&self, safeguards: Option<&str>) -> bool {
        self.config.judge().is_some() && safeguards.and_then(dangerous_tool_use).is_some()
    }

    /// Reads and checks the request, and gives it to `write`.
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
            // Clients that ask for verdicts do without where an answer has none, so strict mode
            // need not refuse.
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

    /// Refuses what the real API refuses of a conversation, in strict mode.
    pub(crate) fn check_strictly(&self, request: &Request<'_>) -> Result<(), Error> {
        if self.config.settings.strict { check::strictly(request) } else { Ok(()) }
    }

    /// Returns the error for a request that no upstream can get: its body cannot be read, or its
    /// model has no upstream.
    pub(crate) fn refusal(&self, purpose: Purpose, warnings: &mut Warnings) -> Error {
        let read = self.read(purpose, warnings, |_, _| Ok(()));
        debug_assert!(read.is_err(), "a request that has an upstream is not refused");
        read.err().unwrap_or_else(|| Error::invalid("The request body cannot be read"))
    }
}
