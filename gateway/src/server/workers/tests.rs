//! Tests of `workers.rs`.

use super::*;

use hyper::Response;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::server::connections::Connections;
use crate::server::response_body::Body;
use crate::server::service::tests::gateway;

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_for_longer_than_load_balancers_keep_theirs() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let service = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Body::whole("x"))) });
    let connection = builder().serve_connection(TokioIo::new(server), service).into_owned();
    tokio::spawn(async move { connection.await.is_ok() });
    let mut answer = [0; 12];
    for idle in [0, 65, 65] {
        tokio::time::sleep(Duration::from_secs(idle)).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.read_buf(&mut Vec::with_capacity(4096)).await.unwrap();
    }
    // A client that sends a piece of a head now and then is not kept.
    client.write_all(b"GET /").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    client.write_all(b" HTTP").await.unwrap();
    let since = Instant::now();
    client.read_to_end(&mut Vec::new()).await.unwrap();
    assert!(since.elapsed() <= Duration::from_secs(31), "{:?}", since.elapsed());
}

/// Listener that passes its own clients to two workers.
struct Door {
    listener: TcpListener,
    workers: Workers,
    connections: GracefulShutdown,
    clients: Arc<Connections>,
}

impl Door {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let start = move || {
            Workers::start(NonZero::new(2).unwrap(), |load| gateway(address, load)).unwrap()
        };
        let workers = tokio::task::spawn_blocking(start).await.unwrap();
        let clients = Connections::new(100);
        Self { listener, workers, connections: GracefulShutdown::new(), clients }
    }

    /// Connects a client, and returns its connection after the first answer.
    async fn client(&self) -> TcpStream {
        let mut client = TcpStream::connect(self.listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = self.listener.accept().await.unwrap();
        let place = self.clients.client().unwrap();
        self.workers.serve(stream, place, self.connections.watcher()).unwrap();
        client.write_all(b"GET /api/hello HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        client
    }

    /// Returns the load of each worker, after waiting until the loads are as wanted.
    async fn loads(&self, wanted: [usize; 2]) -> Vec<usize> {
        let loads = || self.workers.all.iter().map(|worker| worker.load.now()).collect();
        for _ in 0..1000 {
            if loads() == wanted {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        loads()
    }
}

#[tokio::test]
async fn a_connection_goes_to_the_worker_that_has_least_to_do() {
    let door = Door::open().await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(door.client().await);
    }
    assert_eq!(door.loads([2, 2]).await, [2, 2]);
    // The second and the fourth client belong to the second worker.
    clients.remove(3);
    clients.remove(1);
    assert_eq!(door.loads([2, 0]).await, [2, 0]);
    clients.push(door.client().await);
    assert_eq!(door.loads([2, 1]).await, [2, 1]);
    let streams: Vec<_> = (0..5).map(|_| door.workers.all[1].load.count()).collect();
    clients.push(door.client().await);
    assert_eq!(door.loads([3, 6]).await, [3, 6]);
    drop(streams);
    assert_eq!(door.loads([3, 1]).await, [3, 1]);
}

#[tokio::test]
async fn the_end_waits_for_the_threads_and_not_for_ever() {
    let door = Door::open().await;
    let client = door.client().await;
    let finish = |workers: Workers| {
        let since = std::time::Instant::now();
        workers.finish();
        since.elapsed()
    };
    assert!(finish(door.workers) < CUT_TIME, "nothing was being done");
    drop(client);
    let (runs, running) = mpsc::channel();
    assert!(finish(Workers { all: Vec::new(), running }) >= CUT_TIME);
    drop(runs);
}
