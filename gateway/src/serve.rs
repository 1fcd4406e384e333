//! `creole serve`: listens, serves, and stops without cutting streams.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use crate::Failed;
use crate::answer::Body;
use crate::budget::Budget;
use crate::callers::Callers;
use crate::cli::Serve;
use crate::clock::Clock;
use crate::configure;
use crate::first_request::HadRequest;
use crate::log;
use crate::metrics::{self, Metrics};
use crate::reach;
use crate::service::{Gateway, Seeds};
use crate::signals::Stop;

/// Agents open many streams over one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 1024;

/// A client that gives up many streams at once is stopping its agents, not attacking: with hyper's
/// own limit of 20, that would cut its other streams.
const HTTP2_RESETS_MAX: usize = 1024;

/// Finds clients that vanished without closing.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);

/// How long a connection may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long what is cut at the end may take.
const CUT_TIME: Duration = Duration::from_secs(1);

/// After `accept` failed, which is mostly for want of file descriptors: some may be free by then.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn run(options: &Serve) -> Result<(), Failed> {
    let config = Arc::new(configure::for_serving(options)?);
    let log = log::start(config.settings.log)
        .map_err(|error| Failed::Run(format!("cannot start: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::Run(format!("cannot start: {error}")))?;
    let served = runtime.block_on(serve(options, config));
    // Streams that were not done in time are cut here, and say so in the log.
    runtime.shutdown_timeout(CUT_TIME);
    log.finish();
    served
}

async fn serve(options: &Serve, config: Arc<creole::Config>) -> Result<(), Failed> {
    let (listener, address) = listen(&options.listen).await?;
    let own = config.upstreams.values().find(|upstream| reach::is_own(&upstream.url, address));
    if let Some(upstream) = own {
        // One request would go round until nothing is left to open a connection with.
        let (name, url) = (&upstream.name, &upstream.url);
        return Err(Failed::Usage(format!("upstream {name}: {url} is the gateway itself")));
    }
    let metrics = match &options.metrics {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let gateway = Arc::new(Gateway {
        budget: Budget::new(config.settings.buffered_bytes_max),
        client: reach::client().map_err(Failed::Run)?,
        clock: Clock::start(),
        seeds: seeds(options.seed)?,
        metrics: Arc::new(Metrics::new()),
        callers: Callers::new(address, &options.allow_host),
        // Names of models and amounts of use are not for everyone who can reach this machine.
        shows_metrics: metrics.is_none() && address.ip().is_loopback(),
        config,
    });
    let mut stop = Stop::listen().map_err(|error| Failed::Run(format!("signals: {error}")))?;
    announce(address, &gateway);
    if let Some((listener, address)) = metrics {
        tracing::info!("metrics on http://{address}{}", metrics::PATH);
        let callers = Arc::new(Callers::new(address, &options.allow_host));
        tokio::spawn(serve_metrics(listener, Arc::clone(&gateway), callers));
    }

    let connections = GracefulShutdown::new();
    loop {
        tokio::select! {
            () = stop.asked() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connect(stream, &gateway, &connections),
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let seconds = options.shutdown_timeout;
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
    Ok(())
}

async fn listen(on: &str) -> Result<(TcpListener, SocketAddr), Failed> {
    let failed = |error| Failed::Run(format!("cannot listen on {on}: {error}"));
    let listener = TcpListener::bind(on).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// `/metrics` and nothing else, for as long as the gateway runs.
async fn serve_metrics(listener: TcpListener, gateway: Arc<Gateway>, callers: Arc<Callers>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a connection for metrics: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (gateway, callers) = (Arc::clone(&gateway), Arc::clone(&callers));
        let had_request = HadRequest::default();
        let service = service_fn(had_request.note(move |request: Request<Incoming>| {
            let head = request.into_parts().0;
            let bare = |status, text| {
                let mut response = Response::new(Body::whole(text));
                *response.status_mut() = status;
                response
            };
            let response = match callers.refuse(&head) {
                Some(reason) => bare(StatusCode::FORBIDDEN, reason),
                None if head.uri.path() == metrics::PATH => gateway.metrics(),
                None => bare(StatusCode::NOT_FOUND, ""),
            };
            async move { Ok::<_, Infallible>(response) }
        }));
        let connection = builder().serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::spawn(async move {
            if let Err(error) = had_request.or_cut(connection, HEAD_TIMEOUT).await {
                tracing::debug!("connection for metrics: {error}");
            }
        });
    }
}

fn seeds(fixed: Option<u128>) -> Result<Seeds, Failed> {
    if let Some(seed) = fixed {
        return Ok(Seeds::Fixed(seed));
    }
    let mut start = [0; 16];
    getrandom::fill(&mut start)
        .map_err(|error| Failed::Run(format!("cannot get random bytes: {error}")))?;
    Ok(Seeds::Fresh(u128::from_ne_bytes(start), AtomicU64::new(0)))
}

/// The address goes to standard output, in a form that scripts can wait for.
fn announce(address: SocketAddr, gateway: &Gateway) {
    // Nobody may be reading.
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "listening on http://{address}").and_then(|()| stdout.flush());
    for upstream in gateway.config.upstreams.values() {
        tracing::info!("upstream {}: {}{}", upstream.name, upstream.url, upstream.base_path);
    }
    let has_own_key = gateway.config.upstreams.values().any(|upstream| upstream.key.is_own());
    if has_own_key && !address.ip().is_loopback() {
        tracing::warn!("everyone who can reach {address} can use this gateway's key");
    }
}

fn connect(stream: TcpStream, gateway: &Arc<Gateway>, connections: &GracefulShutdown) {
    // Events are small and must not wait for one another.
    let _ = stream.set_nodelay(true);
    let gateway = Arc::clone(gateway);
    let had_request = HadRequest::default();
    let service = service_fn(had_request.note(move |request| {
        let gateway = Arc::clone(&gateway);
        async move { Ok::<_, Infallible>(gateway.answer(request).await) }
    }));
    let mut builder = builder();
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(HTTP2_RESETS_MAX)
        .max_local_error_reset_streams(HTTP2_RESETS_MAX)
        .adaptive_window(true)
        .keep_alive_interval(HTTP2_PING_INTERVAL);
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = had_request.or_cut(connection, HEAD_TIMEOUT).await {
            tracing::debug!("connection: {error}");
        }
    });
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
}
