//! The server of `creole serve`: listens, serves clients, and stops without cutting streams.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use creole::Config;
use creole::config::Upstream;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::CommandFailed;
use crate::documents::Documents;
use crate::log;
use crate::log::rate_limit::RateLimit;
use crate::metrics;
use crate::page::Board;
use crate::private_files;
use crate::probe::{again, at_start};
use crate::server::budget::Budget;
use crate::server::connections::{Connections, Stage};
use crate::server::door::{Door, View};
use crate::server::gauges;
use crate::server::health::ServerHealth;
use crate::server::offload::Offload;
use crate::server::origin::Callers;
use crate::server::ready::{Ready, is_loopback};
use crate::server::records::Records;
use crate::server::reload::{self, ConfigSource};
use crate::server::reply::without_body;
use crate::server::response_body::Body;
use crate::server::service::Seeds;
use crate::server::setup::{Process, Setup};
use crate::server::signals::Stop;
use crate::server::tls;
use crate::server::watched_body::WatchedBody;
use crate::server::workers::{self, Workers};
use crate::telemetry::Telemetry;
use crate::upstream::client;
use crate::upstream::connection::Connector;
use crate::upstream::fetch_limits::FetchLimits;
use crate::upstream::reach::Reach;

/// Pause after `accept` failed. Without free file descriptors, `accept` fails again at once until
/// some are closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of connections to the metrics address at one time.
const METRICS_CONNECTIONS_MAX: usize = 64;

/// Serves clients until the process is asked to stop. The configuration is read again from `source`
/// when its files change, or at SIGHUP. Calls `ready` with the server's address, as
/// soon as clients can connect.
pub(crate) fn run_with(
    door: &Door,
    config: Config,
    source: Option<ConfigSource<'_>>,
    stop: impl FnOnce() -> io::Result<Stop>,
    ready: impl FnOnce(Ready),
) -> Result<(), CommandFailed> {
    let View { no_page, log, log_format, failures } = &door.view;
    let file = log.as_deref().map(log_file).transpose()?;
    let format = log_format.unwrap_or_else(|| log::Format::of_reader(file.as_ref()));
    let log = log::start(config.settings.log, format, file)
        .map_err(|error| CommandFailed::Run(format!("cannot start: {error}")))?;
    // The runtime accepts connections, and serves the metrics if they have their own address.
    let runtime = crate::runtime()?;
    let mut records = Records::new(format, (!no_page).then(Board::default));
    records.failures = failures.clone();
    let records = Arc::new(records);
    let served = serve(&runtime, door, (Arc::new(config), records), source, stop, ready);
    log.finish();
    served
}

/// Opens the log file for appending. Each line is written to the current end, so a file that was
/// truncated meanwhile begins anew.
pub(crate) fn log_file(path: &Path) -> Result<File, CommandFailed> {
    // The log has the names of keys and models.
    private_files::append(path)
        .map_err(|error| CommandFailed::Usage(format!("--log {}: {error}", path.display())))
}

/// Checks that the gateway may serve clients at an address.
///
/// # Errors
/// Returns an error if, at this address, an upstream would be the gateway itself, or every caller
/// could use the operator's upstream key.
fn check_address(config: &Config, address: SocketAddr, door: &Door) -> Result<(), CommandFailed> {
    let own = config.upstreams.values().find(|upstream| client::is_own(&upstream.url, address));
    if let Some(upstream) = own {
        // An upstream that is this gateway would send each request back to it, until no more
        // connections can be opened.
        let (name, url) = (&upstream.name, &upstream.url);
        return Err(CommandFailed::Usage(format!("upstream {name}: {url} is the gateway itself")));
    }
    if let Some(upstream) = exposed(config, address, door.allow_anyone) {
        return Err(CommandFailed::Usage(format!(
            "--listen {}: whoever reaches it could use the key of upstream {}; give clients keys (client_keys, \
             --client-key-env), or say --allow-anyone",
            door.listen, upstream.name
        )));
    }
    Ok(())
}

fn serve(
    runtime: &Runtime,
    door: &Door,
    (config, records): (Arc<Config>, Arc<Records>),
    source: Option<ConfigSource<'_>>,
    stop: impl FnOnce() -> io::Result<Stop>,
    ready: impl FnOnce(Ready),
) -> Result<(), CommandFailed> {
    let (listener, address) = runtime.block_on(listen("--listen", &door.listen))?;
    check_address(&config, address, door)?;
    let apart = door.metrics.as_deref().map(|on| runtime.block_on(listen("--metrics", on)));
    let apart = apart.transpose()?;
    let count = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let connections = Connections::of_system(count.get());
    let reach = Arc::<Reach>::default();
    reach.take(&config);
    let no_thread = |error| CommandFailed::Run(format!("cannot start a thread: {error}"));
    let process = Process {
        address,
        allow_host: &door.allow_host,
        budget: Budget::new(config.settings.buffered_bytes_max),
        seeds: Arc::new(seeds(door.seed)?),
        records: Arc::clone(&records),
        translations: Offload::start(count).map_err(no_thread)?,
        documents: Arc::new(Documents::new()),
        fetches: Arc::new(FetchLimits::new()),
        health: Arc::new(ServerHealth::new(&reach)),
        // Names of models and amounts of use are not for everyone who can reach this machine.
        shows_metrics: apart.is_none() && is_loopback(address),
        tls: tls::of_clients(door)?,
        telemetry: telemetry(runtime)?,
        proxy_fetches: door.proxy_fetches,
    };
    gauges::add(&records, &connections, &process, config.settings.buffered_bytes_max);
    let setup = process.setup(&config).map_err(CommandFailed::Run)?;
    let workers = Workers::start(count, |load| process.gateway(&setup, load)).map_err(no_thread)?;
    let ended = runtime.block_on(async {
        let stop = stop().map_err(|error| CommandFailed::Run(format!("signals: {error}")))?;
        announce(address, &config, &setup.connector);
        let has_page = records.board.is_some() && is_read(&config, address);
        ready(Ready { address, has_page, is_tls: process.tls.is_some() });
        let client = watch_upstreams(&setup, &config, &reach, door.no_check);
        if let Some(apart) = apart {
            spawn_metrics(apart, &process, door);
        }
        let replace = |changed: Config| {
            check_address(&changed, address, door).map_err(CommandFailed::reason)?;
            let changed = Arc::new(changed);
            let setup = process.setup(&changed)?;
            workers.replace(|load| process.gateway(&setup, load));
            client.send_replace(client::UpstreamClient::new(&setup.connector));
            reach.take(&changed);
            Ok(())
        };
        let told = (&*records, &*process.health);
        tokio::select! {
            () = accept(listener, &workers, &connections, stop, door.shutdown_timeout, told) => {}
            never = reload::run(source, &records.metrics, replace) => match never {},
        }
        Ok(())
    });
    workers.finish();
    if let Some(telemetry) = process.telemetry.clone() {
        // The exchanges that were cut have spans, too. The runtime sends them meanwhile.
        let _ = runtime.block_on(async { spawn_blocking(move || telemetry.finish()).await });
    }
    ended
}

/// Returns the sender of spans, if the variables of OpenTelemetry name a collector.
fn telemetry(runtime: &Runtime) -> Result<Option<Arc<Telemetry>>, CommandFailed> {
    let telemetry = Telemetry::from_env(client::UpstreamClient::connect, runtime.handle().clone());
    telemetry.map(|on| on.map(Arc::new)).map_err(CommandFailed::Run)
}

/// Serves the metrics on their own address.
fn spawn_metrics(
    (listener, address): (TcpListener, SocketAddr),
    process: &Process<'_>,
    door: &Door,
) {
    tracing::info!("metrics on http://{address}{}", metrics::PATH);
    let told = (Arc::clone(&process.records), Arc::clone(&process.health));
    let callers = Callers::of_metrics(address, &door.allow_host);
    tokio::spawn(serve_metrics(listener, told, callers));
}

/// Asks upstreams for their models, now and while they cannot be reached. Returns the sender of the
/// client of a new configuration.
fn watch_upstreams(
    setup: &Setup,
    config: &Arc<Config>,
    reach: &Arc<Reach>,
    no_check: bool,
) -> watch::Sender<client::UpstreamClient> {
    let (sender, client) = watch::channel(client::UpstreamClient::new(&setup.connector));
    if !no_check {
        at_start::look_at_all(&client.borrow(), config, reach);
    }
    tokio::spawn(again::ask(client, Arc::clone(reach)));
    sender
}

/// Hands new connections to the workers until the process is asked to stop. Then waits for
/// the end of open connections, for a limited time.
async fn accept(
    listener: TcpListener,
    workers: &Workers,
    clients: &Arc<Connections>,
    mut stop: Stop,
    seconds: u64,
    (records, health): (&Records, &ServerHealth),
) {
    let connections = GracefulShutdown::new();
    let (mut full, mut failed) = (RateLimit::default(), RateLimit::default());
    loop {
        tokio::select! {
            () = stop.asked() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let Some(client) = clients.client() else {
                        if full.is_due() {
                            let max = clients.clients_max();
                            tracing::warn!(
                                "a connection was refused: all {max} that may be open have requests"
                            );
                        }
                        continue;
                    };
                    if let Err(error) = workers.serve(stream, client, connections.watcher()) {
                        tracing::warn!("cannot serve a connection: {error}");
                    }
                }
                Err(error) => {
                    if failed.is_due() {
                        tracing::warn!("cannot accept a connection: {error}");
                    }
                    make_room(&error, clients).await;
                }
            },
        }
    }
    drop(listener);
    health.stop();
    records.close();
    tracing::info!(
        "stopping; {} connections have {seconds} s to end; a second signal cuts them",
        connections.count()
    );
    tokio::select! {
        () = connections.shutdown() => tracing::info!("stopped"),
        () = stop.asked() => tracing::warn!("stopped at once"),
        () = tokio::time::sleep(Duration::from_secs(seconds)) => {
            tracing::warn!("stopped; streams that were still going on were cut");
        }
    }
}

/// Waits after `accept` failed. If file descriptors ran out, closes one connection without a
/// request; only one, because its descriptor is freed a little later.
async fn make_room(error: &io::Error, clients: &Connections) {
    // Other errors concern only the connection that was to be accepted.
    if client::is_out_of_files(error) {
        let _ = clients.close_one();
    }
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Returns an upstream whose key everybody who can reach an address could use without a client key.
fn exposed(config: &Config, address: SocketAddr, allow_anyone: bool) -> Option<&Upstream> {
    if allow_anyone || !config.client_keys.is_empty() || is_loopback(address) {
        return None;
    }
    config.upstreams.values().find(|upstream| upstream.has_secrets())
}

/// Returns true if anybody may read the web page: on a loopback address everyone, elsewhere only
/// with a client key.
fn is_read(config: &Config, address: SocketAddr) -> bool {
    !config.client_keys.is_empty() || is_loopback(address)
}

async fn listen(flag: &str, on: &str) -> Result<(TcpListener, SocketAddr), CommandFailed> {
    let failed = |error| cannot_listen(flag, on, &error);
    let listener = TcpListener::bind(on).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Returns the error for an address, named by the flag `flag`, at which the gateway cannot listen.
pub(crate) fn cannot_listen(flag: &str, on: &str, error: &io::Error) -> CommandFailed {
    let mut reason = format!("cannot listen on {on}: {error}");
    if let (io::ErrorKind::AddrInUse, Some((host, _))) = (error.kind(), on.rsplit_once(':')) {
        reason.push_str(&format!("; {flag} {host}:0 takes a free port"));
    }
    CommandFailed::Run(reason)
}

/// Serves `/metrics` and the health, and no other path, while the gateway runs.
async fn serve_metrics(
    listener: TcpListener,
    (records, health): (Arc<Records>, Arc<ServerHealth>),
    callers: Callers,
) {
    let callers = Arc::new(callers);
    let clients = Connections::new(METRICS_CONNECTIONS_MAX);
    let mut failed = RateLimit::default();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if failed.is_due() {
                    tracing::warn!("cannot accept a connection for metrics: {error}");
                }
                make_room(&error, &clients).await;
                continue;
            }
        };
        let Some(client) = clients.client() else { continue };
        let (records, callers) = (Arc::clone(&records), Arc::clone(&callers));
        let health = Arc::clone(&health);
        let asking = Arc::clone(&client);
        let service = service_fn(move |request: Request<Incoming>| {
            let (head, mut busy) = (request.into_parts().0, asking.begin());
            let bare = |status, text| {
                let mut response = Response::new(Body::whole(text));
                *response.status_mut() = status;
                response
            };
            let response = match callers.refuse(&head) {
                Some(reason) => bare(StatusCode::FORBIDDEN, reason),
                None if head.uri.path() == metrics::PATH => {
                    busy.reach(Stage::Whole);
                    records.metrics.response(&head.headers).map(Body::whole)
                }
                None => match health.answer(&head, true) {
                    Some(response) => response.map(Body::whole),
                    None => bare(StatusCode::NOT_FOUND, ""),
                },
            };
            let is_head = head.method == Method::HEAD;
            let response = if is_head { without_body(response) } else { response };
            async move { Ok::<_, Infallible>(response.map(|body| WatchedBody::new(body, busy))) }
        });
        let connection =
            workers::builder().serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!("connection for metrics: {error}");
                },
                reason = client.ended() => tracing::debug!("connection for metrics: {reason}"),
            }
        });
    }
}

fn seeds(fixed: Option<u128>) -> Result<Seeds, CommandFailed> {
    if let Some(seed) = fixed {
        return Ok(Seeds::Fixed(seed));
    }
    let mut start = [0; 16];
    getrandom::fill(&mut start)
        .map_err(|error| CommandFailed::Run(format!("cannot get random bytes: {error}")))?;
    Ok(Seeds::Fresh(u128::from_ne_bytes(start), AtomicU64::new(0)))
}

fn announce(address: SocketAddr, config: &Config, connector: &Connector) {
    for Upstream { name, url, base_path, .. } in config.upstreams.values() {
        match connector.proxies.shown(url) {
            Some(proxy) => tracing::info!("upstream {name}: {url}{base_path}, through {proxy}"),
            None => tracing::info!("upstream {name}: {url}{base_path}"),
        }
    }
    if connector.has_proxies_for_clients() {
        tracing::warn!(
            "images and pages that clients name are fetched through the proxy, which must keep them out of private \
             networks"
        );
    }
    if exposed(config, address, false).is_some() {
        tracing::warn!("everyone who can reach {address} can use this gateway's key");
    }
}

#[cfg(test)]
mod tests;
