//! State of the workers: a part that lasts as long as the process, and a part that is made from a
//! configuration and is replaced with it.

use std::net::SocketAddr;
use std::sync::Arc;

use creole::{Config, Refusals};
use rustls::ServerConfig;

use crate::documents::Documents;
use crate::server::budget::Budget;
use crate::server::health::ServerHealth;
use crate::server::load::Load;
use crate::server::offload::{Offload, Translations};
use crate::server::open_calls::Means;
use crate::server::origin::Callers;
use crate::server::ready::is_loopback;
use crate::server::records::Records;
use crate::server::service::{Gateway, Seeds};
use crate::telemetry::Telemetry;
use crate::upstream::call::Caller;
use crate::upstream::client;
use crate::upstream::connection::Connector;
use crate::upstream::fetch_limits::FetchLimits;

/// State of all workers that lasts as long as the process.
pub(crate) struct Process<'d> {
    /// Address at which clients connect.
    pub(crate) address: SocketAddr,
    /// Host names that requests may have.
    pub(crate) allow_host: &'d [String],
    pub(crate) budget: Arc<Budget>,
    pub(crate) seeds: Arc<Seeds>,
    pub(crate) records: Arc<Records>,
    pub(crate) translations: Offload,
    pub(crate) documents: Arc<Documents>,
    pub(crate) fetches: Arc<FetchLimits>,
    pub(crate) health: Arc<ServerHealth>,
    /// True if `/metrics` is served on the address of clients.
    pub(crate) shows_metrics: bool,
    /// TLS towards clients; `None` if clients connect without.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// Sender of spans; `None` if spans are off.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// True if images and pages that clients name are fetched through the proxy.
    pub(crate) proxy_fetches: bool,
}

/// State of all workers that is made from a configuration.
pub(crate) struct Setup {
    config: Arc<Config>,
    pub(crate) connector: Connector,
    /// Forms of requests that the upstreams refused. They are learnt anew, because an upstream may
    /// be another server in the new configuration.
    refusals: Arc<Refusals>,
    callers: Arc<Callers>,
}

impl Process<'_> {
    /// Returns the state that is made from a configuration.
    ///
    /// # Errors
    /// The same errors as for [`client::connector`], or a proxy is the gateway itself, or is
    /// missing.
    pub(crate) fn setup(&self, config: &Arc<Config>) -> Result<Setup, String> {
        let has_keys = !config.client_keys.is_empty();
        Ok(Setup {
            config: Arc::clone(config),
            connector: self.connector(config)?,
            refusals: Arc::default(),
            callers: Arc::new(Callers::new(self.address, self.allow_host, has_keys)),
        })
    }

    fn connector(&self, config: &Config) -> Result<Connector, String> {
        let connector = client::connector(config)?;
        let mut proxies = connector.proxies.addresses();
        if proxies.any(|proxy| client::is_own(&proxy, self.address)) {
            return Err("HTTPS_PROXY, HTTP_PROXY: the proxy is the gateway itself".to_owned());
        }
        drop(proxies);
        match (self.proxy_fetches, connector.proxies.is_any()) {
            (false, _) => Ok(connector),
            (true, true) => Ok(connector.with_proxies_for_clients()),
            (true, false) => {
                Err("--proxy-fetches: no proxy is named (HTTPS_PROXY, HTTP_PROXY)".to_owned())
            }
        }
    }

    /// Returns the state of one worker, with its own connections to upstreams.
    pub(crate) fn gateway(&self, setup: &Setup, load: Load) -> Gateway {
        let means = Means {
            caller: Caller::new(&setup.config, &setup.connector, &self.health.reach),
            translations: Translations::new(self.translations.clone()),
            documents: Arc::clone(&self.documents),
            fetches: Arc::clone(&self.fetches),
        };
        Gateway {
            config: Arc::clone(&setup.config),
            means: Arc::new(means),
            budget: Arc::clone(&self.budget),
            seeds: Arc::clone(&self.seeds),
            records: Arc::clone(&self.records),
            refusals: Arc::clone(&setup.refusals),
            callers: Arc::clone(&setup.callers),
            health: Arc::clone(&self.health),
            is_local: is_loopback(self.address),
            shows_metrics: self.shows_metrics,
            tls: self.tls.clone(),
            telemetry: self.telemetry.clone(),
            load,
        }
    }
}
