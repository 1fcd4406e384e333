//! Search for a server of this machine that nobody named.

use std::time::Duration;

use creole::profile::presets::{SERVERS, Server};
use futures_util::future::join_all;

use super::guess;
use super::models::{self, List};
use super::owner::{self, ServerOwner, owner_of};
use super::places::Places;
use crate::Failed;
use crate::upstream::client::Client;

/// A server of this machine that is there answers at once.
pub(crate) const LOCAL_TIMEOUT: Duration = Duration::from_millis(800);

/// A server that a gateway could have as its upstream.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) preset: &'static str,
    /// Scheme, host and port.
    pub(crate) address: String,
    pub(crate) base_path: String,
    /// The variable with its key.
    pub(crate) key: Option<String>,
}

impl Candidate {
    pub(crate) fn of(server: &Server) -> Self {
        Self {
            preset: server.preset,
            address: server.url.to_owned(),
            base_path: server.base_path.to_owned(),
            key: Some(server.key.to_owned()).filter(|key| !key.is_empty()),
        }
    }

    /// Returns the URL before the paths of the API.
    pub(crate) fn base(&self) -> String {
        format!("{}{}", self.address, self.base_path)
    }

    /// Sets the kind of server by its list of models. Another server can be at a port that
    /// only by custom is vLLM's or llama.cpp's.
    pub(crate) fn learn(&mut self, list: &List) {
        let guess = guess::by_list_or_port(&self.address, list.preset);
        self.preset = guess.map_or("default", |guess| guess.preset);
    }
}

/// Finds the first server of this machine that lists models, or this one: its base URL, and what is
/// said of it.
pub(crate) async fn find(
    client: &Client,
    model: Option<&str>,
) -> Result<(String, Vec<String>), Failed> {
    let mut looked = Places::default();
    let (taken, mut said) = answering(client, model, &mut looked).await;
    let Some((upstream, _)) = taken else {
        return Err(looked.failed(
            "no server of this machine was found. Start one, or name the server with --upstream URL or --profile.",
        ));
    };
    let base = upstream.base();
    said.insert(0, format!("{} at {base}: it answers", upstream.preset));
    Ok((base, said))
}

/// Finds the first server of this machine that lists models, or this one, in the order of
/// [`SERVERS`]; and what is said of the others.
pub(crate) async fn answering(
    client: &Client,
    model: Option<&str>,
    looked: &mut Places,
) -> (Option<(Candidate, List)>, Vec<String>) {
    let servers = || SERVERS.iter().filter(|server| server.key.is_empty());
    let asked = servers().map(|server| {
        let upstream = Candidate::of(server);
        async move {
            let list = models::list(client, &upstream.base(), None, LOCAL_TIMEOUT).await;
            (upstream, list)
        }
    });
    let mut taken: Option<(Candidate, List)> = None;
    let mut others = Vec::new();
    // All are asked at once, because most of them are not there.
    for (mut upstream, list) in join_all(asked).await {
        let base = upstream.base();
        let place = format!("{} at {base}", upstream.preset);
        match list {
            Ok(list) if list.models.is_empty() => looked.note(&place, "it lists no model"),
            Ok(_) if owner_of(&upstream.address) == ServerOwner::AnotherPersons => {
                looked.note(&place, owner::ANOTHER_PERSONS);
            }
            Ok(list) => {
                upstream.learn(&list);
                match model {
                    Some(name) if models::named(&list.models, name).is_none() => {
                        let own =
                            if upstream.preset == "default" { &base } else { upstream.preset };
                        looked.note_lacking(own, name, &list.models);
                    }
                    _ if taken.is_none() => taken = Some((upstream, list)),
                    _ => others.push(format!("not used: {place}")),
                }
            }
            Err(problem) => looked.note(&place, &problem.text),
        }
    }
    if let Some((upstream, _)) = &taken {
        let base = upstream.base();
        others.extend(owner_note(&base, owner_of(&upstream.address)));
    }
    (taken, others)
}

/// Returns a line about a server whose owner is unknown.
pub(crate) fn owner_note(url: &str, whose: ServerOwner) -> Option<String> {
    (whose == ServerOwner::Unknown).then(|| owner::unknown(url))
}
