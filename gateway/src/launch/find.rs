//! Search for a model that a client can use. The order is: the named upstream, a running gateway, a
//! server on this machine, a vendor whose key is in the environment.

use std::iter;
use std::time::Duration;

use creole::Config;
use creole::profile::presets::{KnownServer, SERVERS};

use super::Launch;
use super::choose;
use crate::CommandFailed;
use crate::configure::{self, Chosen, Described, FilesRead};
use crate::metrics;
use crate::probe::models::{self, List, Model};
use crate::probe::owner::{self, ServerOwner, owner_of};
use crate::probe::places::Places;
use crate::probe::this_machine::{Candidate, LOCAL_TIMEOUT, answering, owner_note};
use crate::probe::{ask, look};
use crate::upstream::client::UpstreamClient;

/// Address at which `creole serve` listens by default.
const GATEWAY: &str = "http://127.0.0.1:8787";

const VENDOR_TIMEOUT: Duration = Duration::from_secs(8);

/// Description, for the user, of the demo model.
const DEMO: &str = "the demo model, where words in a prompt say what it answers";

/// Server and models that were found, and lines about them for the user.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) place: FoundPlace,
    /// Chosen model; `None` if a running gateway chooses the model.
    pub(crate) model: Option<Model>,
    pub(crate) small: Option<Model>,
    /// Models that the server lists.
    pub(crate) models: Vec<Model>,
    /// Lines for the user about what was chosen, and why.
    pub(crate) said: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum FoundPlace {
    /// Address of a gateway that is already running.
    Gateway(String),
    Upstream(Candidate),
}

impl Candidate {
    /// Returns the upstream that the flags name. The key is the one that the flags name, or the
    /// vendor's if the address is the vendor's own.
    fn given(flags: &Launch) -> Result<Option<Self>, CommandFailed> {
        if flags.upstream.is_none() && flags.profile.is_none() {
            return match flags.key_env {
                Some(_) => {
                    Err(CommandFailed::Usage("--key-env needs --upstream or --profile".to_owned()))
                }
                None => Ok(None),
            };
        }
        let chosen = Chosen { profile: flags.profile.clone(), config: None };
        let named = chosen.named(flags.upstream.as_deref());
        let Described { config, notes, .. } = configure::of(&named, &FilesRead::default())?;
        notes.iter().for_each(|note| super::say(note));
        config.check_urls().map_err(CommandFailed::Usage)?;
        let Some(upstream) = config.first_upstream() else { return Ok(None) };
        let own = KnownServer::of_vendor(&upstream.url).map(|server| server.key.to_owned());
        Ok(Some(Self {
            preset: upstream.preset,
            address: upstream.url.clone(),
            base_path: upstream.base_path.clone(),
            key: flags.key_env.clone().or(own),
        }))
    }

    /// Returns the value of the upstream's key, read from its environment variable.
    ///
    /// # Errors
    /// The environment variable is not set.
    pub(crate) fn secret(&self) -> Result<Option<String>, CommandFailed> {
        let Some(name) = &self.key else { return Ok(None) };
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(Some(value)),
            _ => Err(CommandFailed::Usage(format!("{} needs a key: set {name}", self.address))),
        }
    }

    /// Returns the configuration of a gateway in front of this upstream, as the flags of `creole
    /// serve` make it.
    pub(crate) fn config(&self) -> Result<Config, CommandFailed> {
        let mut config = Config::default();
        config.set_profile(self.preset, "--profile").map_err(CommandFailed::Usage)?;
        config.set_url(&self.base(), "--upstream").map_err(CommandFailed::Usage)?;
        let secret = self.secret()?;
        if let Some(name) = &self.key {
            let secret = |_: &str| secret.clone();
            config.set_key_from(name, "the key", secret).map_err(CommandFailed::Usage)?;
        }
        Ok(config)
    }
}

pub(crate) async fn backend(
    client: &UpstreamClient,
    flags: &Launch,
) -> Result<Found, CommandFailed> {
    if let Some(upstream) = Candidate::given(flags)? {
        return given(client, flags, upstream).await;
    }
    let mut looked = Places::default();
    let running = match flags.services.is_any() {
        true => Err("--search and --mcp need a gateway that this command starts".to_owned()),
        false => running(client, flags, &mut looked).await,
    };
    match running {
        Ok(Some(found)) => return Ok(found),
        Ok(None) => {}
        Err(reason) => looked.note(&format!("a gateway at {GATEWAY}"), &reason),
    }
    if let Some(found) = local(client, flags, &mut looked).await? {
        return Ok(found);
    }
    if let Some(found) = vendor(client, flags, &mut looked).await? {
        return Ok(found);
    }
    Err(looked.failed(
        "no model found. Start a model server, set a vendor's key, or name the server with --upstream URL.",
    ))
}

async fn given(
    client: &UpstreamClient,
    flags: &Launch,
    mut upstream: Candidate,
) -> Result<Found, CommandFailed> {
    let secret = upstream.secret()?;
    match models::list(client, &upstream.base(), secret.as_deref(), VENDOR_TIMEOUT).await {
        Ok(list) => {
            if flags.profile.is_none() && upstream.preset == "default" {
                upstream.learn(&list);
            }
            complete(client, flags, upstream, list, "you named it".to_owned()).await
        }
        Err(problem) => without_list(client, flags, upstream, &problem.text).await,
    }
}

/// Returns a named upstream that gave no list of models for `reason`. Some servers have no list,
/// but answer requests.
async fn without_list(
    client: &UpstreamClient,
    flags: &Launch,
    upstream: Candidate,
    reason: &str,
) -> Result<Found, CommandFailed> {
    let base = upstream.base();
    let config = upstream.config()?;
    let wrong = match config.first_upstream() {
        Some(upstream) => look::what_is_wrong(client, upstream).await,
        None => None,
    };
    let is_silent = wrong.as_ref().is_some_and(|problem| !problem.server_answers());
    let told = wrong.map(|problem| problem.text);
    match &flags.model {
        Some(name) if !is_silent => {
            let model = |name: &String| Model { name: name.clone(), ..Model::default() };
            let said = match told {
                Some(wrong) => format!("the client starts all the same: {wrong}"),
                None => format!("{base}: you named it; it lists no models ({reason})"),
            };
            Ok(Found {
                place: FoundPlace::Upstream(upstream),
                model: Some(model(name)),
                small: flags.small_model.as_ref().map(model),
                models: Vec::new(),
                said: vec![said],
            })
        }
        _ => Err(CommandFailed::Run(told.unwrap_or_else(|| {
            format!("{base} lists no models ({reason}): name one with --model")
        }))),
    }
}

/// Chooses the models for a client from a server's list.
async fn complete(
    client: &UpstreamClient,
    flags: &Launch,
    upstream: Candidate,
    list: List,
    why: String,
) -> Result<Found, CommandFailed> {
    let base = upstream.base();
    let mut models = list.models;
    models::complete(client, upstream.preset, &upstream.address, &mut models).await;
    let choose = |wanted: Option<&str>| {
        let chosen = match wanted {
            Some(name) => {
                models::named(&models, name).ok_or_else(|| models::lacks(&base, name, &models))
            }
            None => choose::only(&models).map_err(|reason| format!("{base}: {reason}")),
        };
        chosen.map_err(CommandFailed::Usage)
    };
    let mut model = choose(flags.model.as_deref())?;
    let small = flags.small_model.as_deref().map(|name| choose(Some(name))).transpose()?;
    if upstream.preset == "ollama" && model.window.is_none() && flags.context_window.is_none() {
        super::say(&format!("Ollama loads {}", model.name));
        models::load(client, &upstream.address, &mut model).await;
    }
    let because = match (&flags.model, model.is_loaded, models.len()) {
        (Some(_), ..) => "you named it",
        (None, _, 1) => "the only one",
        (None, true, _) => "the only one that is loaded",
        _ if choose::is_demo(&models) => DEMO,
        (None, false, _) => "the only one that answers",
    };
    let said = vec![
        format!("{} at {base}: {why}", upstream.preset),
        format!("model {}: {because}", model.name),
    ];
    Ok(Found { place: FoundPlace::Upstream(upstream), model: Some(model), small, models, said })
}

/// Returns a gateway that runs at the usual address. A gateway that requires client keys is
/// skipped.
async fn running(
    client: &UpstreamClient,
    flags: &Launch,
    looked: &mut Places,
) -> Result<Option<Found>, String> {
    let url = format!("{GATEWAY}{}", metrics::PATH);
    let told = ask::text(client, &url, None, None, LOCAL_TIMEOUT).await;
    let told = told.map_err(|problem| problem.text)?;
    if !told.contains(metrics::NAME) {
        return Err("another program answers there".to_owned());
    }
    let whose = owner_of(GATEWAY);
    if whose == ServerOwner::AnotherPersons {
        return Err(owner::ANOTHER_PERSONS.to_owned());
    }
    let list = models::list(client, &format!("{GATEWAY}/v1"), Some("local"), VENDOR_TIMEOUT).await;
    let models = list.map(|list| list.models).unwrap_or_default();
    let unlisted = |name: &String| Model { name: name.clone(), ..Model::default() };
    let model = match &flags.model {
        // A gateway that lists no models may know every name.
        Some(name) if models.is_empty() => Some(unlisted(name)),
        Some(name) => match models::named(&models, name) {
            Some(model) => Some(model),
            None => {
                looked.note_lacking(&format!("the gateway at {GATEWAY}"), name, &models);
                return Ok(None);
            }
        },
        // A gateway that maps all names lists no models, and chooses the model itself.
        None if models.is_empty() => None,
        None => Some(choose::only(&models)?),
    };
    let chosen = match &model {
        Some(model) if flags.model.is_none() && choose::is_demo(&models) => {
            format!("model {}: {DEMO}", model.name)
        }
        Some(model) => format!("model {}", model.name),
        None => "it chooses the model".to_owned(),
    };
    let said = format!("a gateway was already running at {GATEWAY}, and is used: {chosen}");
    let small = flags.small_model.as_ref().map(unlisted);
    let place = FoundPlace::Gateway(GATEWAY.to_owned());
    let said = iter::once(said).chain(owner_note(GATEWAY, whose)).collect();
    Ok(Some(Found { place, model, small, models, said }))
}

/// Returns the first server on this machine that lists models, in the order of [`SERVERS`].
async fn local(
    client: &UpstreamClient,
    flags: &Launch,
    looked: &mut Places,
) -> Result<Option<Found>, CommandFailed> {
    let (taken, mut others) = answering(client, flags.model.as_deref(), looked).await;
    let Some((upstream, list)) = taken else { return Ok(None) };
    let mut found = complete(client, flags, upstream, list, "it answers".to_owned()).await?;
    others.extend(keys().map(|server| format!("not used: {} ({})", server.preset, server.key)));
    found.said.append(&mut others);
    Ok(Some(found))
}

/// Returns the first vendor whose key is in the environment, in the order of [`SERVERS`].
async fn vendor(
    client: &UpstreamClient,
    flags: &Launch,
    looked: &mut Places,
) -> Result<Option<Found>, CommandFailed> {
    let hosted =
        || SERVERS.iter().filter(|server| !server.key.is_empty() && !server.url.is_empty());
    let mut found: Option<Found> = None;
    for server in hosted() {
        if !is_set(server) {
            looked.note(server.preset, &format!("{} is not set", server.key));
            continue;
        }
        if let Some(found) = &mut found {
            found.said.push(format!("not used: {} ({})", server.preset, server.key));
            continue;
        }
        let upstream = Candidate::of(server);
        let secret = upstream.secret()?;
        match models::list(client, &upstream.base(), secret.as_deref(), VENDOR_TIMEOUT).await {
            Ok(list) => {
                if let Some(name) = &flags.model
                    && models::named(&list.models, name).is_none()
                {
                    looked.note_lacking(server.preset, name, &list.models);
                    continue;
                }
                let why = format!("{} is set", server.key);
                found = Some(complete(client, flags, upstream, list, why).await?);
            }
            Err(problem) => {
                let place = format!("{} at {}", server.preset, upstream.base());
                looked.note(&place, &problem.text);
            }
        }
    }
    Ok(found)
}

/// Returns the vendors whose keys are in the environment.
fn keys() -> impl Iterator<Item = &'static KnownServer> {
    SERVERS.iter().filter(|server| !server.key.is_empty() && is_set(server))
}

fn is_set(server: &KnownServer) -> bool {
    std::env::var(server.key).is_ok_and(|key| !key.is_empty())
}
