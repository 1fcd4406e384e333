//! Demo model: a small server of Chat Completions and Responses. It is the upstream of `creole
//! demo`, of `cargo xtask run` and of the tests.
//!
//! No model is inside. The answer depends on the request alone, so that equal requests get equal
//! answers: text that quotes the question, calls of the offered tools with arguments that satisfy
//! their schemas, and faults on demand. `docs/quick-start.md` lists the words in a prompt that
//! choose the answer. Invalid requests are refused with the original API's messages, so that a
//! mistake in a translated request is seen at once.
//!
//! ```text
//! request ─▶ record ─▶ check ─▶ plan (trigger, schema) ─▶ fault ─▶ Answer ─▶ sent piece by piece
//!                        │                                  ▲ forms: wire (Chat), responses
//!                        └────────── script: the next raw answers ──▲
//! ```
#![forbid(unsafe_code)]

mod check;
mod fault;
mod pieces;
mod plan;
mod record;
mod responses;
mod schema;
mod script;
mod sealed;
mod server;
mod trigger;
mod wire;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use record::{Ended, Recorded};
pub use schema::sample;
pub use script::{Answer, End, Piece};

use server::Model;

/// Options of the server, chosen at its start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names that `GET /v1/models` lists. Requests may name any model.
    pub models: Vec<String>,
    /// Key that clients must send as `authorization: Bearer KEY`; others get 401. `None` accepts
    /// everybody.
    pub key: Option<String>,
    /// Maximum length of a tool call id; 0 is no limit. The original API allows 40.
    pub id_length_max: usize,
    /// Maximum number of requests that are remembered for `GET /demo/requests`.
    pub requests_max: usize,
    /// Maximum size of a body that is remembered, in bytes; of longer bodies only the size is kept.
    pub recorded_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            models: vec!["demo".to_owned(), "demo-small".to_owned()],
            key: None,
            id_length_max: 0,
            requests_max: 256,
            recorded_bytes_max: 4 << 20,
        }
    }
}

/// Serves on `listener` until the future is dropped.
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, options: Options) -> io::Result<()> {
    server::serve(listener, Arc::new(Model::new(options))).await
}

/// Server on its own thread, for synchronous callers. Dropping the value stops the server.
#[derive(Debug)]
pub struct Demo {
    address: SocketAddr,
    model: Arc<Model>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Demo {
    /// Starts a server on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port or no thread can be had.
    pub fn start(options: Options) -> io::Result<Self> {
        Self::start_on(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, options)
    }

    /// Starts a server on `listener`.
    ///
    /// # Errors
    /// The listener fails, or no thread can be had.
    pub fn start_on(listener: std::net::TcpListener, options: Options) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let model = Arc::new(Model::new(options));
        let served = Arc::clone(&model);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread =
            std::thread::Builder::new().name("demo model".to_owned()).spawn(move || {
                runtime.block_on(async move {
                    let Ok(listener) = TcpListener::from_std(listener) else { return };
                    tokio::select! {
                        _ = server::serve(listener, served) => {}
                        _ = stopped => {}
                    }
                });
                runtime.shutdown_background();
            })?;
        Ok(Self { address, model, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's base URL, without a path: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds answers that are sent instead of generated ones, as `POST /demo/script` does.
    pub fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.model.script.add(answers);
    }

    /// Returns the requests that were received, oldest first, as `GET /demo/requests` does.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.model.record.all()
    }

    /// Forgets the remembered requests and the scripted answers.
    pub fn clear(&self) {
        self.model.record.clear();
        self.model.script.clear();
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
