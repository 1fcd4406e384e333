//! The threads that serve connections.
//!
//! Each has a runtime and a pool of connections to upstreams of its own, and a client's connection stays with its
//! thread: what arrives wakes the thread that answers it, and no other. On a runtime of several threads most pieces of a
//! stream wake two, which was a fifth of what a chunk costs.

use std::convert::Infallible;
use std::io;
use std::net;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::mpsc;

use crate::first_request::HadRequest;
use crate::service::Gateway;

/// Agents open many streams over one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 1024;

/// A client that gives up many streams at once is stopping its agents, not attacking: with hyper's
/// own limit of 20, that would cut its other streams.
const HTTP2_RESETS_MAX: usize = 1024;

/// Finds clients that vanished without closing.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);

/// How long a connection may take to send a request's head.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long what is cut at the end may take.
const CUT_TIME: Duration = Duration::from_secs(1);

/// All of them.
#[derive(Debug)]
pub(crate) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    given: mpsc::UnboundedSender<Connection>,
    /// How many connections it has.
    open: Arc<AtomicUsize>,
    thread: thread::JoinHandle<()>,
}

/// A client's connection on its way to a worker.
#[derive(Debug)]
struct Connection {
    stream: net::TcpStream,
    watcher: Watcher,
    open: Open,
}

/// Counts a connection for as long as it lives.
#[derive(Debug)]
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// One for each processor; `gateway` makes what each of them serves.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(gateway: impl Fn() -> Gateway) -> io::Result<Self> {
        Self::some(thread::available_parallelism().map_or(1, NonZero::get), gateway)
    }

    fn some(count: usize, gateway: impl Fn() -> Gateway) -> io::Result<Self> {
        let workers = (0..count).map(|_| Worker::start(Arc::new(gateway())));
        workers.collect::<io::Result<_>>().map(Self)
    }

    /// Has a connection served by the worker that has fewest. Streams are long, so the number of connections says
    /// more than who was last.
    ///
    /// # Errors
    /// It cannot leave this thread.
    pub(crate) fn serve(&self, stream: TcpStream, watcher: Watcher) -> io::Result<()> {
        let stream = stream.into_std()?;
        let open = |worker: &&Worker| worker.open.load(Ordering::Relaxed);
        if let Some(worker) = self.0.iter().min_by_key(open) {
            let connection = Connection { stream, watcher, open: Open::new(&worker.open) };
            // A worker listens until `finish`.
            let _ = worker.given.send(connection);
        }
        Ok(())
    }

    /// Ends them. Streams that are not done are cut, and say so in the log.
    pub(crate) fn finish(self) {
        let threads: Vec<_> = self.0.into_iter().map(|Worker { thread, .. }| thread).collect();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start(gateway: Arc<Gateway>) -> io::Result<Self> {
        let (given, mut connections) = mpsc::unbounded_channel();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let work = move || {
            runtime.block_on(async {
                while let Some(connection) = connections.recv().await {
                    serve(connection, &gateway);
                }
            });
            runtime.shutdown_timeout(CUT_TIME);
        };
        let thread = thread::Builder::new().name("worker".to_owned()).spawn(work)?;
        Ok(Self { given, open: Arc::default(), thread })
    }
}

fn serve(Connection { stream, watcher, open }: Connection, gateway: &Arc<Gateway>) {
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!("cannot serve a connection: {error}");
            return;
        }
    };
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
    let connection = watcher.watch(connection);
    tokio::spawn(async move {
        let _open = open;
        if let Err(error) = had_request.or_cut(connection, HEAD_TIMEOUT).await {
            tracing::debug!("connection: {error}");
        }
    });
}

/// For connections whose head comes in time.
pub(crate) fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    use creole::Config;
    use hyper_util::server::graceful::GracefulShutdown;
    use tokio::net::TcpListener;

    use crate::budget::Budget;
    use crate::callers::Callers;
    use crate::clock::Clock;
    use crate::metrics::Metrics;
    use crate::reach;
    use crate::service::Seeds;

    fn gateway(address: SocketAddr) -> Gateway {
        Gateway {
            config: Arc::new(Config::default()),
            client: reach::client(&reach::connector().unwrap()),
            budget: Budget::new(0),
            clock: Clock::start(),
            seeds: Arc::new(Seeds::Fixed(1)),
            metrics: Arc::new(Metrics::new()),
            callers: Arc::new(Callers::new(address, &[])),
            shows_metrics: false,
        }
    }

    /// The connections of each worker, once they are so many.
    async fn open(workers: &Workers, wanted: &[usize]) -> Vec<usize> {
        let open = || workers.0.iter().map(|one| one.open.load(Ordering::Relaxed)).collect();
        for _ in 0..1000 {
            if open() == wanted {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        open()
    }

    #[tokio::test]
    async fn a_connection_goes_to_the_worker_that_has_fewest() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let workers = Workers::some(2, || gateway(address)).unwrap();
        let connections = GracefulShutdown::new();
        let connect = async || {
            let client = TcpStream::connect(address).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            workers.serve(stream, connections.watcher()).unwrap();
            client
        };
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(connect().await);
        }
        assert_eq!(open(&workers, &[2, 2]).await, [2, 2]);
        // The second and the fourth are those of the second worker.
        clients.remove(3);
        clients.remove(1);
        assert_eq!(open(&workers, &[2, 0]).await, [2, 0]);
        clients.push(connect().await);
        assert_eq!(open(&workers, &[2, 1]).await, [2, 1]);
        workers.finish();
    }
}
