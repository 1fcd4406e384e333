//! Search for a model server on this machine, if the user names none.

use std::time::Duration;

use creole::Config;
use creole::profile::presets::{KnownServer, SERVERS};
use futures_util::future::join_all;

use super::guess;
use super::models::{self, List};
use super::owner::{self, ServerOwner, owner_of};
use super::places::Places;
use crate::CommandFailed;
use crate::upstream::client::UpstreamClient;

/// Maximum time to wait for a server on this machine; such a server answers at once.
pub(crate) const LOCAL_TIMEOUT: Duration = Duration::from_millis(800);

/// Server that may become the upstream of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) preset: &'static str,
    /// Scheme, host and port of the server.
    pub(crate) address: String,
    pub(crate) base_path: String,
    /// Name of the environment variable with the server's key, if any.
    pub(crate) key: Option<String>,
    /// Configuration of the user, with this server as its only upstream.
    pub(crate) document: Option<Box<Config>>,
}

impl Candidate {
    pub(crate) fn of(server: &KnownServer) -> Self {
        Self {
            preset: server.preset,
            address: server.url.to_owned(),
            base_path: server.base_path.to_owned(),
            key: Some(server.key.to_owned()).filter(|key| !key.is_empty()),
            document: None,
        }
    }

    /// Returns the server's URL before the paths of the API: address and base path.
    pub(crate) fn base(&self) -> String {
        format!("{}{}", self.address, self.base_path)
    }

    /// Returns the server's kind and URL, as the user reads them.
    pub(crate) fn place(&self) -> String {
        format!("{} at {}", self.preset, self.base())
    }

    /// Sets the kind of server from its list of models. A server at the usual port of vLLM or
    /// llama.cpp may be of another kind.
    pub(crate) fn learn(&mut self, list: &List) {
        let guess = guess::by_list_or_port(&self.address, list.preset);
        self.preset = guess.map_or("default", |guess| guess.preset);
    }
}

/// Finds the first server on this machine that lists models, or the model `model`. Returns its base
/// URL, and lines about the search for the user.
pub(crate) async fn find(
    client: &UpstreamClient,
    model: Option<&str>,
) -> Result<(String, Vec<String>), CommandFailed> {
    let mut looked = Places::default();
    let mut answering = answering(client, model, &mut looked).await.into_iter();
    let Some((upstream, _)) = answering.next() else {
        return Err(looked.failed(
            "no server of this machine was found. Start one, or name the server with --upstream URL or --profile.",
        ));
    };
    let base = upstream.base();
    let mut said = vec![format!("{}: it answers", upstream.place())];
    said.extend(answering.map(|(other, _)| format!("not used: {}", other.place())));
    said.extend(owner_note(&base, owner_of(&upstream.address)));
    Ok((base, said))
}

/// Finds the servers on this machine that list models, or the model `model`, in the order of
/// [`SERVERS`]. Notes the other servers in `looked`.
pub(crate) async fn answering(
    client: &UpstreamClient,
    model: Option<&str>,
    looked: &mut Places,
) -> Vec<(Candidate, List)> {
    let servers = || SERVERS.iter().filter(|server| server.key.is_empty());
    let asked = servers().map(|server| {
        let upstream = Candidate::of(server);
        async move {
            let list = models::list(client, &upstream.base(), None, LOCAL_TIMEOUT).await;
            (upstream, list)
        }
    });
    let mut found = Vec::new();
    // All servers are asked at once, because most of them do not run.
    for (mut upstream, list) in join_all(asked).await {
        let place = upstream.place();
        match list {
            Ok(list) if list.models.is_empty() => looked.note(&place, "it lists no model"),
            Ok(_) if owner_of(&upstream.address) == ServerOwner::AnotherPersons => {
                looked.note(&place, owner::ANOTHER_PERSONS);
            }
            Ok(list) => {
                upstream.learn(&list);
                match model {
                    Some(name) if models::named(&list.models, name).is_none() => {
                        let base = upstream.base();
                        let own =
                            if upstream.preset == "default" { &base } else { upstream.preset };
                        looked.note_lacking(own, name, &list.models);
                    }
                    _ => found.push((upstream, list)),
                }
            }
            Err(problem) => looked.note(&place, &problem.text),
        }
    }
    found
}

/// Returns a line for the user about a server whose owner is unknown; `None` for a known owner.
pub(crate) fn owner_note(url: &str, whose: ServerOwner) -> Option<String> {
    (whose == ServerOwner::Unknown).then(|| owner::unknown(url))
}
