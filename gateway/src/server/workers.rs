//! Worker threads that serve client connections.
//!
//! Each worker has its own runtime and its own pool of upstream connections, and a client's
//! connection stays on its thread. So arriving bytes wake only the thread that handles them. On a
//! runtime with several threads, every second chunk of a stream wakes two threads, which was a
//! fifth of the cost of a chunk.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net;
use std::num::NonZero;
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

use crate::headers::HTTP1_BYTES_MAX;
use crate::server::client_socket::ClientSocket;
use crate::server::connections::ClientConnection;
use crate::server::load::{Load, LoadUnit};
use crate::server::service::Gateway;

/// Maximum number of streams of one HTTP/2 connection: agents open many.
const HTTP2_STREAMS_MAX: u32 = 1024;

/// Maximum number of stream resets by an HTTP/2 client. A client that resets many streams at once
/// is stopping its agents, not attacking; hyper's own limit of 20 would cut its other streams.
const HTTP2_RESETS_MAX: usize = 1024;

/// Maximum size, in bytes, of a request head in HTTP/2. With hyper's own limit of 16 KiB, cookies
/// and tokens that HTTP/1.1 allows would be refused.
const HTTP2_HEAD_BYTES_MAX: u32 = 64 << 10;

/// Maximum number of unread bytes in one HTTP/2 stream. Bodies that are passed on at the speed of
/// their upstream wait here. [`PASSING_MAX`](crate::server::connections::PASSING_MAX) such streams
/// leave half of a connection's window to other streams.
const HTTP2_STREAM_WINDOW: u32 = 64 << 10;
const HTTP2_CONNECTION_WINDOW: u32 = 1 << 20;

/// Maximum number of bytes of an answer that wait in an HTTP/2 stream which its client does not
/// read.
const HTTP2_SEND_BYTES_MAX: usize = 64 << 10;

/// Interval between HTTP/2 pings, which find clients that vanished without closing the connection.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);

/// Time for which a connection may be idle, or take to send its next head; hyper has one timer for
/// both. Load balancers (nginx, AWS) close idle connections after 60 seconds. The gateway waits
/// longer, so that it never closes a connection on which a request is arriving.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum time to wait at the end for work that was cut: DNS look-ups and translations that still
/// run.
const CUT_TIME: Duration = Duration::from_secs(1);

/// Worker threads of the gateway.
#[derive(Debug)]
pub(crate) struct Workers {
    all: Vec<Worker>,
    /// Channel that closes when the last worker thread has ended.
    running: mpsc::Receiver<Infallible>,
}

#[derive(Debug)]
struct Worker {
    given: UnboundedSender<Connection>,
    load: Load,
    gateway: CurrentGateway,
}

/// State of one worker with which the next request is served. Requests that have begun keep theirs.
#[derive(Clone, Debug)]
struct CurrentGateway(Arc<RwLock<Arc<Gateway>>>);

impl CurrentGateway {
    fn new(gateway: Gateway) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(gateway))))
    }

    fn get(&self) -> Arc<Gateway> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, gateway: Gateway) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(gateway);
    }
}

/// A client's connection that is handed to a worker.
#[derive(Debug)]
struct Connection {
    stream: net::TcpStream,
    watcher: Watcher,
    client: Arc<ClientConnection>,
    counted: LoadUnit,
}

impl Workers {
    /// Starts `count` workers, each with the state that `gateway` returns for it. Must not be
    /// called within a runtime.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn start(
        count: NonZero<usize>,
        gateway: impl Fn(Load) -> Gateway,
    ) -> io::Result<Self> {
        let (runs, running) = mpsc::channel();
        let start = |_| {
            let load = Load::default();
            let gateway = CurrentGateway::new(gateway(load.clone()));
            let given = work(gateway.clone(), runs.clone())?;
            Ok(Worker { given, load, gateway })
        };
        let all = (0..count.get()).map(start).collect::<io::Result<_>>()?;
        Ok(Self { all, running })
    }

    /// Serves the next requests of each worker with the state that `gateway` returns for it.
    pub(crate) fn replace(&self, gateway: impl Fn(Load) -> Gateway) {
        self.all.iter().for_each(|worker| worker.gateway.set(gateway(worker.load.clone())));
    }

    /// Hands a connection to the worker with the lowest load.
    ///
    /// # Errors
    /// The connection cannot be moved to another thread, or no worker accepts it.
    pub(crate) fn serve(
        &self,
        stream: TcpStream,
        client: Arc<ClientConnection>,
        watcher: Watcher,
    ) -> io::Result<()> {
        let stream = stream.into_std()?;
        let alive = self.all.iter().filter(|worker| !worker.given.is_closed());
        let gone = || io::Error::other("every worker has ended");
        let worker = alive.min_by_key(|worker| worker.load.now()).ok_or_else(gone)?;
        let connection = Connection { stream, watcher, client, counted: worker.load.count() };
        worker.given.send(connection).map_err(|_| gone())
    }

    /// Ends the workers. Streams that have not ended are cut, and are logged as cut.
    pub(crate) fn finish(self) {
        drop(self.all);
        // Threads that do not end within twice `CUT_TIME` end with the process.
        let _ = self.running.recv_timeout(CUT_TIME.saturating_mul(2));
    }
}

/// Starts a thread that serves the connections it receives until the channel closes. The thread
/// keeps `runs` until then.
fn work(
    gateway: CurrentGateway,
    runs: mpsc::Sender<Infallible>,
) -> io::Result<UnboundedSender<Connection>> {
    let (given, mut connections) = unbounded_channel();
    let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let work = move || {
        runtime.block_on(async {
            while let Some(connection) = connections.recv().await {
                serve(connection, &gateway);
            }
        });
        runtime.shutdown_timeout(CUT_TIME);
        drop(runs);
    };
    thread::Builder::new().name("worker".to_owned()).spawn(work)?;
    Ok(given)
}

fn serve(connection: Connection, gateway: &CurrentGateway) {
    let Connection { stream, watcher, client, counted } = connection;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!("cannot serve a connection: {error}");
            return;
        }
    };
    // Events of a stream are small, and must not wait for one another.
    let _ = stream.set_nodelay(true);
    let (gateway, asking) = (gateway.clone(), Arc::clone(&client));
    let tls = gateway.get().tls.clone();
    let served = async move {
        match tls {
            None => {
                let (read, write) = stream.into_split();
                answer(read, write, asking, watcher, &gateway).await
            }
            // A client that does not end its handshake sends no request, and is closed for that.
            Some(tls) => {
                let (read, write) = tokio::io::split(TlsAcceptor::from(tls).accept(stream).await?);
                answer(read, write, asking, watcher, &gateway).await
            }
        }
    };
    tokio::spawn(async move {
        let _counted = counted;
        tokio::select! {
            ended = served => if let Err(error) = ended {
                tracing::debug!("connection: {error}");
            },
            reason = client.ended() => tracing::debug!("connection closed: {reason}"),
        }
    });
}

/// Answers the requests of a connection until it ends.
async fn answer<R, W>(
    read: R,
    write: W,
    client: Arc<ClientConnection>,
    watcher: Watcher,
    gateway: &CurrentGateway,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let budget = Arc::clone(&gateway.get().budget);
    let read = ClientSocket::new(read, Arc::clone(&client), budget, HTTP1_BYTES_MAX);
    let socket = tokio::io::join(read, write);
    let gateway = gateway.clone();
    let service = service_fn(move |request| gateway.get().answer(request, client.begin()));
    let mut builder = builder();
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(HTTP2_RESETS_MAX)
        .max_local_error_reset_streams(HTTP2_RESETS_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_send_buf_size(HTTP2_SEND_BYTES_MAX)
        .keep_alive_interval(HTTP2_PING_INTERVAL);
    let connection = builder.serve_connection(TokioIo::new(socket), service).into_owned();
    watcher.watch(connection).await
}

/// Returns the builder of HTTP connections. hyper waits without limit for the first bytes, which
/// distinguish HTTP/1 from HTTP/2; [`ClientConnection::ended`] limits that time.
pub(crate) fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(HTTP1_BYTES_MAX);
    builder
}

#[cfg(test)]
mod tests;
