//! Search for a model that a client can use. The order is: the named upstream, a running gateway, a
//! server on this machine, a vendor whose key is in the environment.

use std::iter;
use std::time::Duration;

use creole::Config;
use creole::config::Key;
use creole::profile::presets::{KnownServer, SERVERS};

use super::Launch;
use super::choose;
use super::menu::Menu;
use crate::CommandFailed;
use crate::configure::{self, Described, Document, FilesRead};
use crate::metrics;
use crate::probe::models::{self, List, Model};
use crate::probe::owner::{self, ServerOwner, owner_of};
use crate::probe::places::Places;
use crate::probe::problem::Problem;
use crate::probe::this_machine::{Candidate, LOCAL_TIMEOUT, answering, owner_note};
use crate::probe::{ask, look};
use crate::upstream::client::UpstreamClient;

/// Address at which `creole serve` listens by default.
pub(super) const GATEWAY: &str = "http://127.0.0.1:8787";

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

impl Found {
    /// Returns the preset (kind of server) of the upstream; `None` behind a running gateway.
    pub(crate) fn preset(&self) -> Option<&'static str> {
        match &self.place {
            FoundPlace::Upstream(upstream) => Some(upstream.preset),
            FoundPlace::Gateway(_) | FoundPlace::Configured(_) => None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum FoundPlace {
    /// Address of a gateway that is already running.
    Gateway(String),
    Upstream(Candidate),
    /// Configuration of the user with a map of models.
    Configured(Box<Config>),
}

impl Candidate {
    /// Returns the only upstream of a configuration. The key is the one that the flags name, or the
    /// vendor's if the address is the vendor's own.
    fn of_config(config: &Config, key_env: Option<&str>, has_document: bool) -> Option<Self> {
        let upstream = config.first_upstream()?;
        let own = KnownServer::of_vendor(&upstream.url).map(|server| server.key.to_owned());
        Some(Self {
            preset: upstream.preset,
            address: upstream.url.clone(),
            base_path: upstream.base_path.clone(),
            key: key_env.map(str::to_owned).or_else(|| own.filter(|_| upstream.key == Key::Client)),
            document: has_document.then(|| Box::new(config.clone())),
        })
    }

    /// Returns the value of the upstream's key, read from its environment variable.
    ///
    /// # Errors
    /// The environment variable is not set.
    pub(crate) fn secret(&self) -> Result<Option<String>, CommandFailed> {
        let configured = self.document.as_ref().and_then(|config| config.first_upstream());
        if let (None, Some(Key::Secret(key))) = (&self.key, configured.map(|it| &it.key)) {
            return Ok(Some(key.clone()));
        }
        let Some(name) = &self.key else { return Ok(None) };
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(Some(value)),
            _ => Err(CommandFailed::Usage(format!("{} needs a key: set {name}", self.address))),
        }
    }

    /// Returns the configuration of a gateway in front of this upstream, as the flags of `creole
    /// serve` make it.
    pub(crate) fn config(&self) -> Result<Config, CommandFailed> {
        let mut config = match &self.document {
            Some(document) => Config::clone(document),
            None => {
                let mut config = Config::default();
                config.set_profile(self.preset, "--profile").map_err(CommandFailed::Usage)?;
                config
            }
        };
        config.set_url(&self.base(), "--upstream").map_err(CommandFailed::Usage)?;
        let secret = self.secret()?;
        if let Some(name) = &self.key {
            let secret = |_: &str| secret.clone();
            config.set_key_from(name, "the key", secret).map_err(CommandFailed::Usage)?;
        }
        Ok(config)
    }
}

/// Server, or servers, that flags, variables and files of the user name.
enum NamedServers {
    /// Choice: one server, whose models are asked.
    One(Candidate),
    /// Choice: servers with a map of models.
    Mapped(Box<Config>),
}

/// Returns what flags, variables and files name; `None` if a server is to be searched for.
fn named_servers(flags: &Launch) -> Result<Option<NamedServers>, CommandFailed> {
    let named = flags.chosen.named(flags.upstream.as_deref());
    if named.url.is_none() && named.is_open() {
        return match flags.key_env {
            Some(_) => {
                Err(CommandFailed::Usage("--key-env needs --upstream or --profile".to_owned()))
            }
            None => Ok(None),
        };
    }
    if let Some(Document::File(file)) = &named.document {
        super::say(&format!("the configuration is {}", file.display()));
    }
    let Described { mut config, notes, .. } = configure::of(&named, &FilesRead::default())?;
    notes.iter().for_each(|note| super::say(note));
    let has_document = named.document.is_some();
    let key_env = flags.key_env.as_deref().or_else(|| named.key_variable());
    if let (Some(name), true) = (key_env, has_document) {
        configure::set_key(&mut config, &named, None, Some(name))?;
    }
    config.check_urls().map_err(CommandFailed::Usage)?;
    if config.models.is_empty() && config.upstreams.len() == 1 {
        let one = Candidate::of_config(&config, key_env, has_document);
        return Ok(one.map(NamedServers::One));
    }
    match &flags.model {
        Some(name) if config.route(name).is_none() => {
            let reason = format!("--model {name}: no entry of \"models\" takes this name");
            Err(CommandFailed::Usage(reason))
        }
        _ => Ok(Some(NamedServers::Mapped(Box::new(config)))),
    }
}

/// Server that was found without the user's word.
enum Offer {
    /// Models of the gateway at the usual address, and who runs it.
    Gateway(Vec<Model>, ServerOwner),
    /// Server of this machine, with its list of models.
    Local(Candidate, List),
    /// Vendor whose key is in the environment.
    Vendor(&'static KnownServer),
}

impl Offer {
    fn place(&self) -> String {
        match self {
            Self::Gateway(..) => format!("the gateway at {GATEWAY}"),
            Self::Local(upstream, _) => upstream.place(),
            Self::Vendor(server) => format!("{} ({})", server.preset, server.key),
        }
    }
}

/// Finds a server and its models, as the flags say; `menu` asks the user what they leave open.
pub(super) async fn backend(
    client: &UpstreamClient,
    flags: &Launch,
    menu: Option<&Menu>,
) -> Result<Found, CommandFailed> {
    let search = Search { client, flags, menu };
    match named_servers(flags)? {
        Some(NamedServers::One(upstream)) => return search.given(upstream).await,
        Some(NamedServers::Mapped(config)) => {
            let model = |name: &String| {
                let window = config.window(name);
                Model { name: name.clone(), window, ..Model::default() }
            };
            let (main, small) = (&flags.model, &flags.small_model);
            let (main, small) = (main.as_ref().map(model), small.as_ref().map(model));
            return Ok(Found {
                place: FoundPlace::Configured(config),
                model: main,
                small,
                models: Vec::new(),
                said: Vec::new(),
            });
        }
        None => {}
    }
    let mut looked = Places::default();
    let mut offers = search.offers(&mut looked).await;
    if let (Some(menu), 2..) = (menu, offers.len()) {
        let places: Vec<String> = offers.iter().map(Offer::place).collect();
        let chosen = menu.choose("server", &places)?;
        offers = offers.into_iter().skip(chosen).take(1).collect();
    }
    let mut found: Option<Found> = None;
    for offer in offers {
        match &mut found {
            Some(found) => found.said.push(format!("not used: {}", offer.place())),
            None => found = search.take(offer, &mut looked).await?,
        }
    }
    found.ok_or_else(|| {
        looked.failed(
            "no model found. Start a model server, set a vendor's key, or name the server with --upstream URL.",
        )
    })
}

/// Search for a server and its models.
struct Search<'a> {
    client: &'a UpstreamClient,
    flags: &'a Launch,
    menu: Option<&'a Menu>,
}

impl Search<'_> {
    /// Returns the servers that can be used, the first choice first. Notes the others in `looked`.
    async fn offers(&self, looked: &mut Places) -> Vec<Offer> {
        let mut offers = Vec::new();
        let running = match self.flags.needs_own_gateway() {
            true => {
                Err("--search, --mcp, --judge and --log need a gateway that this command starts"
                    .to_owned())
            }
            false => self.running(looked).await,
        };
        match running {
            Ok(offer) => offers.extend(offer),
            Err(reason) => looked.note(&format!("a gateway at {GATEWAY}"), &reason),
        }
        let local = answering(self.client, self.flags.model.as_deref(), looked).await;
        offers.extend(local.into_iter().map(|(upstream, list)| Offer::Local(upstream, list)));
        let hosted = |server: &&KnownServer| !server.key.is_empty() && !server.url.is_empty();
        for server in SERVERS.iter().filter(hosted) {
            if std::env::var(server.key).is_ok_and(|key| !key.is_empty()) {
                offers.push(Offer::Vendor(server));
            } else {
                looked.note(server.preset, &format!("{} is not set", server.key));
            }
        }
        offers
    }

    /// Returns the gateway that runs at the usual address. A gateway that requires client keys, or
    /// does not list the wanted model, is skipped.
    async fn running(&self, looked: &mut Places) -> Result<Option<Offer>, String> {
        let whose = is_gateway(self.client, None).await?;
        let base = format!("{GATEWAY}/v1");
        let list = models::list(self.client, &base, Some("local"), VENDOR_TIMEOUT).await;
        let models = list.map(|list| list.models).unwrap_or_default();
        match &self.flags.model {
            Some(name) if !models.is_empty() && models::named(&models, name).is_none() => {
                looked.note_lacking(&format!("the gateway at {GATEWAY}"), name, &models);
                Ok(None)
            }
            _ => Ok(Some(Offer::Gateway(models, whose))),
        }
    }

    /// Returns what was found at a server; `None` if the server cannot be used after all.
    async fn take(
        &self,
        offer: Offer,
        looked: &mut Places,
    ) -> Result<Option<Found>, CommandFailed> {
        match offer {
            Offer::Gateway(models, whose) => match self.gateway(models, whose) {
                // Another server may have a model that is the clear choice.
                Err(CommandFailed::Usage(reason)) => {
                    looked.note(&format!("a gateway at {GATEWAY}"), &reason);
                    Ok(None)
                }
                found => found.map(Some),
            },
            Offer::Local(upstream, list) => {
                let owner = owner_note(&upstream.base(), owner_of(&upstream.address));
                let mut found = self.complete(upstream, list, "it answers").await?;
                found.said.extend(owner);
                Ok(Some(found))
            }
            Offer::Vendor(server) => self.vendor(server, looked).await,
        }
    }

    fn gateway(&self, models: Vec<Model>, whose: ServerOwner) -> Result<Found, CommandFailed> {
        let unlisted = |name: &String| Model { name: name.clone(), ..Model::default() };
        let model = match &self.flags.model {
            // A gateway that maps all names lists no models: it may know every name, and chooses
            // the model itself.
            wanted if models.is_empty() => wanted.as_ref().map(unlisted),
            _ => Some(self.choose(GATEWAY, &models, self.flags.model.as_deref())?),
        };
        let chosen = match &model {
            Some(model) if self.flags.model.is_none() && choose::is_demo(&models) => {
                format!("model {}: {DEMO}", model.name)
            }
            Some(model) => format!("model {}", model.name),
            None => "it chooses the model".to_owned(),
        };
        let said = format!("a gateway was already running at {GATEWAY}, and is used: {chosen}");
        let small = self.flags.small_model.as_ref().map(unlisted);
        let place = FoundPlace::Gateway(GATEWAY.to_owned());
        let said = iter::once(said).chain(owner_note(GATEWAY, whose)).collect();
        Ok(Found { place, model, small, models, said })
    }

    async fn vendor(
        &self,
        server: &'static KnownServer,
        looked: &mut Places,
    ) -> Result<Option<Found>, CommandFailed> {
        let upstream = Candidate::of(server);
        let secret = upstream.secret()?;
        let base = upstream.base();
        match models::list(self.client, &base, secret.as_deref(), VENDOR_TIMEOUT).await {
            Ok(list) => {
                if let Some(name) = &self.flags.model
                    && models::named(&list.models, name).is_none()
                {
                    looked.note_lacking(server.preset, name, &list.models);
                    return Ok(None);
                }
                let why = format!("{} is set", server.key);
                self.complete(upstream, list, &why).await.map(Some)
            }
            Err(problem) => {
                looked.note(&upstream.place(), &problem.text);
                Ok(None)
            }
        }
    }

    /// Returns what was found at the upstream that the flags name. If another path of its server
    /// answers, that path is taken.
    async fn given(&self, mut upstream: Candidate) -> Result<Found, CommandFailed> {
        let secret = upstream.secret()?;
        let mut why = "you named it".to_owned();
        let mut is_moved = false;
        loop {
            let base = upstream.base();
            let listed = models::list(self.client, &base, secret.as_deref(), VENDOR_TIMEOUT).await;
            let reason = match listed {
                Ok(list) => {
                    if self.flags.chosen.profile.is_none() && upstream.preset == "default" {
                        upstream.learn(&list);
                    }
                    return self.complete(upstream, list, &why).await;
                }
                Err(problem) => problem.text,
            };
            let wrong = match upstream.config()?.first_upstream() {
                Some(upstream) => look::what_is_wrong(self.client, upstream).await,
                None => None,
            };
            match wrong.as_ref().and_then(|wrong| wrong.base_path.clone()) {
                Some(path) if !is_moved => {
                    is_moved = true;
                    upstream.base_path = path;
                    why = format!("there is no API at {base}, and this path answers");
                }
                _ => return self.without_list(upstream, wrong, &reason),
            }
        }
    }

    /// Returns a named upstream that gave no list of models for `reason`. Some servers have no
    /// list, but answer requests.
    fn without_list(
        &self,
        upstream: Candidate,
        wrong: Option<Problem>,
        reason: &str,
    ) -> Result<Found, CommandFailed> {
        let base = upstream.base();
        if let Some(problem) = wrong.as_ref().filter(|problem| problem.is_of_key()) {
            return Err(refused(problem, &upstream));
        }
        let is_silent = wrong.as_ref().is_some_and(|problem| !problem.server_answers());
        let told = wrong.map(|problem| problem.text);
        match &self.flags.model {
            Some(name) if !is_silent => {
                let model = |name: &String| Model { name: name.clone(), ..Model::default() };
                let said = match told {
                    Some(wrong) => format!("the client starts all the same: {wrong}"),
                    None => format!("{base}: you named it; it lists no models ({reason})"),
                };
                Ok(Found {
                    place: FoundPlace::Upstream(upstream),
                    model: Some(model(name)),
                    small: self.flags.small_model.as_ref().map(model),
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
        &self,
        upstream: Candidate,
        list: List,
        why: &str,
    ) -> Result<Found, CommandFailed> {
        let Self { client, flags, .. } = self;
        if let Some(own) = upstream.config()?.first_upstream()
            && let Some(problem) = look::refused_key(client, own).await
        {
            return Err(refused(&problem, &upstream));
        }
        let base = upstream.base();
        let mut models = list.models;
        models::complete(client, upstream.preset, &upstream.address, &mut models).await;
        let mut model = self.choose(&base, &models, flags.model.as_deref())?;
        let named = |name: &Option<String>| {
            name.as_deref().map(|name| self.choose(&base, &models, Some(name))).transpose()
        };
        let small = named(&flags.small_model)?;
        named(&flags.judge)?;
        if upstream.preset == "ollama" && model.window.is_none() && flags.context_window.is_none() {
            super::say(&format!("Ollama loads {}", model.name));
            models::load(client, &upstream.address, &mut model).await;
        }
        let because = match (&flags.model, model.is_loaded, choose::that_answer(&models).count()) {
            (Some(_), ..) => "you named it",
            (None, _, 1) => "the only one",
            (None, true, _) if choose::only(&models).is_ok() => "the only one that is loaded",
            _ if choose::is_demo(&models) => DEMO,
            _ => "you chose it",
        };
        let said = vec![
            format!("{}: {why}", upstream.place()),
            format!("model {}: {because}", model.name),
        ];
        Ok(Found { place: FoundPlace::Upstream(upstream), model: Some(model), small, models, said })
    }

    /// Returns the model that is wanted, or the one that is the clear choice, or else the one that
    /// the user chooses.
    fn choose(
        &self,
        base: &str,
        models: &[Model],
        wanted: Option<&str>,
    ) -> Result<Model, CommandFailed> {
        choose_model(base, models, wanted, self.menu)
    }
}

fn choose_model(
    base: &str,
    models: &[Model],
    wanted: Option<&str>,
    menu: Option<&Menu>,
) -> Result<Model, CommandFailed> {
    if let Some(name) = wanted {
        let model = models::named(models, name);
        return model.ok_or_else(|| CommandFailed::Usage(models::lacks(base, name, models)));
    }
    let able: Vec<&Model> = choose::that_answer(models).collect();
    match (choose::only(models), menu) {
        (Ok(model), _) => Ok(model),
        (Err(_), Some(menu)) if !able.is_empty() => {
            let names: Vec<String> = able.iter().map(|model| model.name.clone()).collect();
            let chosen = able.into_iter().nth(menu.choose("model", &names)?);
            chosen.cloned().ok_or_else(|| CommandFailed::Run("nothing was chosen".to_owned()))
        }
        (Err(reason), _) => Err(CommandFailed::Usage(format!("{base}: {reason}"))),
    }
}

/// Returns the model of a gateway, given by its URL and a client's key; `None` if the gateway lists
/// no models, and chooses the model itself.
pub(super) async fn model_of_gateway(
    client: &UpstreamClient,
    (gateway, key): (&str, &str),
    wanted: Option<&str>,
    menu: Option<&Menu>,
) -> Result<Option<Model>, CommandFailed> {
    let listed = models::list(client, &format!("{gateway}/v1"), Some(key), VENDOR_TIMEOUT).await;
    match listed {
        Ok(list) if list.models.is_empty() => {
            Ok(wanted.map(|name| Model { name: name.to_owned(), ..Model::default() }))
        }
        Ok(list) => choose_model(gateway, &list.models, wanted, menu).map(Some),
        Err(problem) if problem.code == "key" => {
            let cure = "--key-env names the variable with a key of its clients";
            Err(CommandFailed::Run(format!("{gateway}: {}: {cure}", problem.text)))
        }
        Err(problem) => {
            let cure = "creole serve starts a gateway";
            Err(CommandFailed::Run(format!("{gateway}: {}: {cure}", problem.text)))
        }
    }
}

/// Checks that a gateway answers at the usual address, and returns who runs it. Another user's
/// server does not get the client's key.
///
/// # Errors
/// No gateway answers there, or it is another user's.
pub(super) async fn is_gateway(
    client: &UpstreamClient,
    key: Option<&str>,
) -> Result<ServerOwner, String> {
    let whose = owner_of(GATEWAY);
    if whose == ServerOwner::AnotherPersons {
        return Err(owner::ANOTHER_PERSONS.to_owned());
    }
    let url = format!("{GATEWAY}{}", metrics::PATH);
    let told = ask::text(client, &url, key, None, LOCAL_TIMEOUT).await;
    let told = told.map_err(|problem| problem.text)?;
    match told.contains(metrics::NAME) {
        true => Ok(whose),
        false => Err("another program answers there".to_owned()),
    }
}

/// Returns the failure for an upstream that refuses the key or asks for one, with the cure.
fn refused(problem: &Problem, upstream: &Candidate) -> CommandFailed {
    let cure = match (problem.code, &upstream.key) {
        ("key", Some(name)) => format!("; put another one into {name}"),
        _ => String::new(),
    };
    CommandFailed::Run(format!("{}{cure}", problem.text))
}
