//! Search for the model: at the upstream that was named, else a gateway that runs, else a server of
//! this machine, else a vendor whose key is in the environment.

use std::iter;
use std::time::Duration;

use creole::Config;
use creole::profile::presets::{SERVERS, Server};
use futures_util::future::join_all;

use super::Launch;
use super::choose;
use super::places::Places;
use crate::Failed;
use crate::configure::{self, Chosen, Described};
use crate::metrics;
use crate::probe::guess;
use crate::probe::models::{self, List, Model};
use crate::probe::owner::{self, Whose, whose};
use crate::probe::{ask, look};
use crate::upstream::client::Client;

/// Address where `creole serve` listens by default.
const GATEWAY: &str = "http://127.0.0.1:8787";

/// A server of this machine that is there answers at once.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(800);

const VENDOR_TIMEOUT: Duration = Duration::from_secs(8);

/// Description of the demo model, which lists two names.
const DEMO: &str = "the demo model, where words in a prompt say what it answers";

/// Upstream and models that were found, and what people are told of them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) place: Place,
    /// Model that was chosen; `None` where a gateway chooses by itself.
    pub(crate) model: Option<Model>,
    pub(crate) small: Option<Model>,
    /// Models that the server lists.
    pub(crate) models: Vec<Model>,
    /// Lines that say what was taken, and why.
    pub(crate) said: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Place {
    /// A gateway that runs already.
    Gateway(String),
    Upstream(Upstream),
}

/// An upstream for a gateway of our own.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) preset: &'static str,
    /// Scheme, host and port.
    pub(crate) address: String,
    pub(crate) base_path: String,
    /// The variable with its key.
    pub(crate) key: Option<String>,
}

impl Upstream {
    fn of(server: &Server) -> Self {
        Self {
            preset: server.preset,
            address: server.url.to_owned(),
            base_path: server.base_path.to_owned(),
            key: Some(server.key.to_owned()).filter(|key| !key.is_empty()),
        }
    }

    /// The flags name it. A key goes along if the flags name one, or if the address is the vendor's own.
    fn given(flags: &Launch) -> Result<Option<Self>, Failed> {
        if flags.upstream.is_none() && flags.profile.is_none() {
            return match flags.key_env {
                Some(_) => Err(Failed::Usage("--key-env needs --upstream or --profile".to_owned())),
                None => Ok(None),
            };
        }
        let chosen = Chosen { profile: flags.profile.clone(), config: None };
        let Described { config, notes, .. } = configure::of(&chosen, flags.upstream.as_deref())?;
        notes.iter().for_each(|note| super::say(note));
        config.check_urls().map_err(Failed::Usage)?;
        let Some(upstream) = config.first_upstream() else { return Ok(None) };
        let own = Server::of_vendor(&upstream.url).map(|server| server.key.to_owned());
        Ok(Some(Self {
            preset: upstream.preset,
            address: upstream.url.clone(),
            base_path: upstream.base_path.clone(),
            key: flags.key_env.clone().or(own),
        }))
    }

    fn base(&self) -> String {
        format!("{}{}", self.address, self.base_path)
    }

    /// The value of its key.
    ///
    /// # Errors
    /// The variable is not set.
    pub(crate) fn secret(&self) -> Result<Option<String>, Failed> {
        let Some(name) = &self.key else { return Ok(None) };
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(Some(value)),
            _ => Err(Failed::Usage(format!("{} needs a key: set {name}", self.address))),
        }
    }

    /// The configuration of a gateway in front of it, as the flags of `creole serve` make it.
    pub(crate) fn config(&self) -> Result<Config, Failed> {
        let mut config = Config::default();
        config.set_profile(self.preset, "--profile").map_err(Failed::Usage)?;
        config.set_url(&self.base(), "--upstream").map_err(Failed::Usage)?;
        let secret = self.secret()?;
        if let Some(name) = &self.key {
            let secret = |_: &str| secret.clone();
            config.set_key_from(name, "the key", secret).map_err(Failed::Usage)?;
        }
        Ok(config)
    }

    /// Sets the kind of server by its list of models. Another server can be at a port that
    /// only by custom is vLLM's or llama.cpp's.
    fn learn(&mut self, list: &List) {
        let guess = guess::by_list_or_port(&self.address, list.preset);
        self.preset = guess.map_or("default", |guess| guess.preset);
    }
}

pub(crate) async fn backend(client: &Client, flags: &Launch) -> Result<Found, Failed> {
    if let Some(upstream) = Upstream::given(flags)? {
        return given(client, flags, upstream).await;
    }
    let mut looked = Places::default();
    match running(client, flags, &mut looked).await {
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

async fn given(client: &Client, flags: &Launch, mut upstream: Upstream) -> Result<Found, Failed> {
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

/// An upstream that was named, and gave no list for this reason. Some servers list nothing, and answer all the same.
async fn without_list(
    client: &Client,
    flags: &Launch,
    upstream: Upstream,
    reason: &str,
) -> Result<Found, Failed> {
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
                place: Place::Upstream(upstream),
                model: Some(model(name)),
                small: flags.small_model.as_ref().map(model),
                models: Vec::new(),
                said: vec![said],
            })
        }
        _ => Err(Failed::Run(told.unwrap_or_else(|| {
            format!("{base} lists no models ({reason}): name one with --model")
        }))),
    }
}

/// The model of a server that listed some.
async fn complete(
    client: &Client,
    flags: &Launch,
    upstream: Upstream,
    list: List,
    why: String,
) -> Result<Found, Failed> {
    let base = upstream.base();
    let mut models = list.models;
    models::complete(client, upstream.preset, &upstream.address, &mut models).await;
    let choose = |wanted: Option<&str>| {
        let chosen = match wanted {
            Some(name) => {
                choose::named(&models, name).ok_or_else(|| choose::lacks(&base, name, &models))
            }
            None => choose::only(&models).map_err(|reason| format!("{base}: {reason}")),
        };
        chosen.map_err(Failed::Usage)
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
    Ok(Found { place: Place::Upstream(upstream), model: Some(model), small, models, said })
}

/// A gateway at the usual address. One that wants keys of clients is not ours to use.
async fn running(
    client: &Client,
    flags: &Launch,
    looked: &mut Places,
) -> Result<Option<Found>, String> {
    let url = format!("{GATEWAY}{}", metrics::PATH);
    let told = ask::text(client, &url, None, None, LOCAL_TIMEOUT).await;
    let told = told.map_err(|problem| problem.text)?;
    if !told.contains(metrics::NAME) {
        return Err("another program answers there".to_owned());
    }
    let whose = whose(GATEWAY);
    if whose == Whose::AnotherPersons {
        return Err(owner::ANOTHER_PERSONS.to_owned());
    }
    let list = models::list(client, &format!("{GATEWAY}/v1"), Some("local"), VENDOR_TIMEOUT).await;
    let models = list.map(|list| list.models).unwrap_or_default();
    let unlisted = |name: &String| Model { name: name.clone(), ..Model::default() };
    let model = match &flags.model {
        // Where it lists nothing, it may know every name.
        Some(name) if models.is_empty() => Some(unlisted(name)),
        Some(name) => match choose::named(&models, name) {
            Some(model) => Some(model),
            None => {
                looked.note_lacking(&format!("the gateway at {GATEWAY}"), name, &models);
                return Ok(None);
            }
        },
        // Where it maps all names, it chooses itself.
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
    let place = Place::Gateway(GATEWAY.to_owned());
    let said = iter::once(said).chain(note_on(GATEWAY, whose)).collect();
    Ok(Some(Found { place, model, small, models, said }))
}

/// The first server of this machine that lists models, in the order of [`SERVERS`].
async fn local(
    client: &Client,
    flags: &Launch,
    looked: &mut Places,
) -> Result<Option<Found>, Failed> {
    let (taken, mut others) = answering(client, flags.model.as_deref(), looked).await;
    let Some((upstream, list)) = taken else { return Ok(None) };
    let mut found = complete(client, flags, upstream, list, "it answers".to_owned()).await?;
    others.extend(keys().map(|server| format!("not used: {} ({})", server.preset, server.key)));
    found.said.append(&mut others);
    Ok(Some(found))
}

/// The first server of this machine that lists models, for `creole check`: its base URL, and what is said of it.
/// Vendors are not looked for: a check costs tokens.
pub(crate) async fn on_this_machine(
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

/// The first server of this machine that lists models, or this one, in the order of [`SERVERS`]; and what is said of
/// the others.
async fn answering(
    client: &Client,
    model: Option<&str>,
    looked: &mut Places,
) -> (Option<(Upstream, List)>, Vec<String>) {
    let servers = || SERVERS.iter().filter(|server| server.key.is_empty());
    let asked = servers().map(|server| {
        let upstream = Upstream::of(server);
        async move {
            let list = models::list(client, &upstream.base(), None, LOCAL_TIMEOUT).await;
            (upstream, list)
        }
    });
    let mut taken: Option<(Upstream, List)> = None;
    let mut others = Vec::new();
    // All are asked at once, because most of them are not there.
    for (mut upstream, list) in join_all(asked).await {
        let base = upstream.base();
        let place = format!("{} at {base}", upstream.preset);
        match list {
            Ok(list) if list.models.is_empty() => looked.note(&place, "it lists no model"),
            Ok(_) if whose(&upstream.address) == Whose::AnotherPersons => {
                looked.note(&place, owner::ANOTHER_PERSONS);
            }
            Ok(list) => {
                upstream.learn(&list);
                match model {
                    Some(name) if choose::named(&list.models, name).is_none() => {
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
        others.extend(note_on(&base, whose(&upstream.address)));
    }
    (taken, others)
}

/// Returns a line about a server whose owner is unknown.
fn note_on(url: &str, whose: Whose) -> Option<String> {
    (whose == Whose::Unknown).then(|| owner::unknown(url))
}

/// The first vendor whose key is in the environment, in the order of [`SERVERS`].
async fn vendor(
    client: &Client,
    flags: &Launch,
    looked: &mut Places,
) -> Result<Option<Found>, Failed> {
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
        let upstream = Upstream::of(server);
        let secret = upstream.secret()?;
        match models::list(client, &upstream.base(), secret.as_deref(), VENDOR_TIMEOUT).await {
            Ok(list) => {
                if let Some(name) = &flags.model
                    && choose::named(&list.models, name).is_none()
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

/// The vendors whose keys are in the environment.
fn keys() -> impl Iterator<Item = &'static Server> {
    SERVERS.iter().filter(|server| !server.key.is_empty() && is_set(server))
}

fn is_set(server: &Server) -> bool {
    std::env::var(server.key).is_ok_and(|key| !key.is_empty())
}
