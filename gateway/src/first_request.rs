//! Connections on which nobody asks for anything are not kept.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;

/// Whether a connection has had a request. hyper waits for ever for the first bytes, which tell HTTP/1
/// from HTTP/2; its own timeout begins behind them.
#[derive(Clone, Debug, Default)]
pub(crate) struct HadRequest(Arc<AtomicBool>);

impl HadRequest {
    /// The service that notes it.
    pub(crate) fn note<A, R>(&self, answer: A) -> impl Fn(Request<Incoming>) -> R + use<A, R>
    where
        A: Fn(Request<Incoming>) -> R,
    {
        let had = self.clone();
        move |request| {
            had.0.store(true, Ordering::Relaxed);
            answer(request)
        }
    }

    /// Serves the connection, which is cut if it has no request in that time.
    pub(crate) async fn or_cut<E>(
        &self,
        connection: impl Future<Output = Result<(), E>>,
        time: Duration,
    ) -> Result<(), E> {
        let mut connection = pin!(connection);
        match tokio::time::timeout(time, connection.as_mut()).await {
            Ok(ended) => ended,
            Err(_) if self.0.load(Ordering::Relaxed) => connection.await,
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
