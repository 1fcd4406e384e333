//! Tests of `connections.rs`.

use super::*;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

/// Begins a request with a whole body.
fn begin(client: &Arc<Client>) -> Busy {
    let busy = client.begin();
    busy.set_whole();
    busy
}

fn is_closed(client: &Client) -> bool {
    pin!(client.ended()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn the_oldest_silent_connection_goes_first_and_then_the_oldest_idle_one() {
    let connections = Connections::new(4);
    let open = || connections.client().unwrap();
    let [idle, silent, busy, later] = [open(), open(), open(), open()];
    drop(begin(&idle));
    let _request = begin(&busy);
    drop(begin(&later));
    let mut requests = Vec::new();
    for gone in [&silent, &idle, &later] {
        let new = connections.client().unwrap();
        requests.push(begin(&new));
        assert!(is_closed(gone));
    }
    assert!(!is_closed(&busy));
    assert!(connections.client().is_none(), "all of them have requests");
}

#[tokio::test]
async fn a_connection_whose_request_does_not_come_to_its_end_gives_way() {
    let connections = Connections::new(3);
    let open = || connections.client().unwrap();
    let [first, whole, second] = [open(), open(), open()];
    let _requests = [first.begin(), whole.begin(), begin(&whole), second.begin(), second.begin()];
    let mut new = Vec::new();
    for gone in [&first, &second] {
        new.push(begin(&open()));
        assert!(is_closed(gone));
    }
    assert!(connections.client().is_none() && !is_closed(&whole));
}

#[tokio::test]
async fn a_connection_that_has_got_a_request_is_not_closed() {
    let connections = Connections::new(1);
    let first = connections.client().unwrap();
    let _second = connections.client().unwrap();
    // It was told to go, and its request was already there.
    let request = begin(&first);
    assert!(!is_closed(&first));
    drop(request);
    assert!(connections.client().is_some());
}

#[tokio::test]
async fn a_connection_that_is_gone_leaves_its_place() {
    let connections = Connections::new(3);
    let clients: Vec<_> = (0..3).map(|_| connections.client().unwrap()).collect();
    let requests: Vec<_> = clients.iter().map(begin).collect();
    assert!(connections.client().is_none());
    drop((clients, requests));
    assert!(connections.client().is_some() && locked(&connections.clients).idle.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_not_kept() {
    let connections = Connections::new(9);
    let [silent, late] = [connections.client(), connections.client()].map(Option::unwrap);
    let since = tokio::time::Instant::now();
    let request = async {
        sleep(Duration::from_secs(29)).await;
        begin(&late)
    };
    let (request, reason) = tokio::join!(request, silent.ended());
    assert_eq!((reason, since.elapsed()), ("no request came", LOOK_INTERVAL));
    // An upstream may take long, and the next request too.
    let waits = || tokio::time::timeout(Duration::from_secs(1000), late.ended());
    assert!(waits().await.is_err());
    drop(request);
    assert!(waits().await.is_err());
}
