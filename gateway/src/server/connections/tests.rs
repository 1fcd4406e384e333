//! Tests of `connections.rs`.

use super::*;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

/// Begins a request with a whole body.
fn begin(client: &Arc<ClientConnection>) -> Busy {
    begin_until(client, Stage::Whole)
}

fn begin_until(client: &Arc<ClientConnection>, stage: Stage) -> Busy {
    let mut busy = client.begin();
    busy.reach(stage);
    busy
}

fn is_closed(client: &ClientConnection) -> bool {
    pin!(client.ended()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn the_oldest_idle_connection_goes_first_where_strangers_are_few() {
    let connections = Connections::new(4);
    let open = || connections.client().unwrap();
    let [idle, silent, busy, later] = [open(), open(), open(), open()];
    drop(begin(&idle));
    let _request = begin(&busy);
    drop(begin(&later));
    let mut requests = Vec::new();
    for gone in [&idle, &later, &silent] {
        let new = connections.client().unwrap();
        requests.push(begin(&new));
        assert!(is_closed(gone));
    }
    assert!(!is_closed(&busy));
    assert!(connections.client().is_none(), "all of them have requests");
}

#[tokio::test]
async fn a_newcomer_has_time_for_its_head_where_one_client_keeps_all_places() {
    const MAX: usize = 40;
    let connections = Connections::new(MAX);
    let open = || connections.client().unwrap();
    let idle: Vec<_> = (0..MAX).map(|_| open()).collect();
    idle.iter().for_each(|client| drop(begin(client)));
    let newcomer = open();
    let bare: Vec<_> = (0..4).map(|_| open()).collect();
    assert!(!is_closed(&newcomer) && idle[..5].iter().all(|client| is_closed(client)));
    drop(begin(&newcomer));
    // Connections without requests, beyond the part of strangers, close each other.
    let more: Vec<_> = (0..20).map(|_| open()).collect();
    assert!(bare.iter().chain(&more[..14]).all(|client| is_closed(client)));
    let is_kept = |client: &Arc<ClientConnection>| !is_closed(client);
    assert!(is_kept(&newcomer) && idle[7..].iter().chain(&more[14..]).all(is_kept));
}

#[tokio::test]
async fn an_upload_gives_way_to_a_request_and_not_to_a_bare_connection() {
    let connections = Connections::new(16);
    let open = || connections.client().unwrap();
    let mut uploads: Vec<_> = (0..14).map(|_| begin_until(&open(), Stage::LetIn)).collect();
    let [whole, many] = [open(), open()];
    uploads.extend([Stage::LetIn; 2].map(|stage| begin_until(&many, stage)));
    let _upload = begin_until(&whole, Stage::LetIn);
    let mut requests = vec![begin(&whole)];
    let is_closed = |upload: &Busy| is_closed(&upload.client);
    let bare: Vec<_> = (0..20).map(|_| open()).collect();
    assert!(!uploads.iter().any(is_closed), "bare connections close each other");
    drop(bare);
    while !uploads.is_empty() {
        let new = open();
        assert!(!is_closed(&uploads[0]));
        requests.push(begin(&new));
        let gone = uploads.remove(0);
        assert!(is_closed(&gone));
        uploads.retain(|upload| !Arc::ptr_eq(&upload.client, &gone.client));
    }
    drop(many);
    assert!(connections.client().is_none() && !requests.iter().any(is_closed));
}

#[tokio::test]
async fn few_connections_are_too_many_where_uploads_end_before_they_give_way() {
    let connections = Connections::new(16);
    let mut all: Vec<Busy> = Vec::new();
    while let Some(client) = connections.client().filter(|_| all.len() < 99) {
        all.iter_mut().for_each(|busy| busy.reach(Stage::Whole));
        all.push(begin_until(&client, Stage::LetIn));
    }
    assert_eq!(all.len(), 18, "an eighth");
}

#[tokio::test]
async fn refused_and_idle_connections_go_before_uploads() {
    let connections = Connections::new(5);
    let open = || connections.client().unwrap();
    let [uploading, whole, idle, refused, waiting] = [open(), open(), open(), open(), open()];
    let upload = begin_until(&uploading, Stage::LetIn);
    let mut soon_whole = begin_until(&whole, Stage::LetIn);
    soon_whole.reach(Stage::Whole);
    soon_whole.reach(Stage::LetIn);
    drop(begin_until(&idle, Stage::LetIn));
    drop(begin_until(&refused, Stage::Begun));
    let refused_request = begin_until(&waiting, Stage::Begun);
    let mut requests = Vec::new();
    // Two strangers are one more than the limit for strangers.
    for gone in [&refused, &idle, &waiting] {
        assert!(!is_closed(gone));
        requests.push(begin(&open()));
        assert!(is_closed(gone));
    }
    drop((refused, idle, waiting, refused_request));
    assert!(!is_closed(&uploading));
    requests.push(begin(&open()));
    assert!(is_closed(&uploading));
    assert!(connections.client().is_none() && !is_closed(&whole));
    drop((upload, soon_whole));
    assert!(connections.client().is_some(), "its answer has left");
}

#[tokio::test(start_paused = true)]
async fn small_answers_of_a_connection_are_its_own_and_others_count() {
    const MAX: usize = 256 << 20;
    let budget = Budget::new(MAX);
    let connections = Connections::new(2);
    let [client, kept] = [connections.client(), connections.client()].map(Option::unwrap);
    let answer = |client: &Arc<ClientConnection>, bytes| {
        let mut busy = begin_until(client, Stage::LetIn);
        busy.count_answer(bytes, &budget).then_some(busy)
    };
    let mut other = budget.begin(Owner::of_connection(9), Arc::default());
    other.complete();
    // Takes all memory of the budget except the reserve for small requests.
    let mut fits = |left: usize| other.set(MAX / 16 * 15 - left);
    let small: Vec<_> = (0..SMALL_ANSWERS_MAX).map(|_| answer(&client, 4096).unwrap()).collect();
    assert!(fits(0) && fits(1 << 20));
    let more: Vec<_> = (0..10).map(|_| answer(&client, 0).unwrap()).collect();
    let _large = answer(&kept, 100_000).unwrap();
    assert!(!fits(100_000 + 10 * 4096) && fits(100_000 + 11 * 4096 + 4096));
    assert!(answer(&client, 200 << 20).is_none(), "there is not so much");
    // Memory of unread answers goes to other requests after a while.
    tokio::time::advance(Duration::from_secs(3)).await;
    assert!(!is_closed(&client) && fits(0) && is_closed(&client) && is_closed(&kept));
    drop((small, more));
    assert_eq!(locked(&client.state).small_answers, 0);
}

#[tokio::test(start_paused = true)]
async fn refusals_that_nobody_reads_end_no_upload_of_their_connection() {
    const MAX: usize = 256 << 20;
    let (budget, connections) = (Budget::new(MAX), Connections::new(2));
    let [shared, alone] = [connections.client(), connections.client()].map(Option::unwrap);
    let refuse = |client: &Arc<ClientConnection>| {
        let mut busy = client.begin();
        busy.count_answer(100_000, &budget).then_some(busy).unwrap()
    };
    let _refusals =
        [&shared, &alone].map(|client| (0..5).map(|_| refuse(client)).collect::<Vec<_>>());
    let upload = begin_until(&shared, Stage::LetIn);
    let mut other = budget.begin(Owner::of_connection(9), Arc::default());
    assert!(other.set(MAX / 16 * 15));
    assert!(is_closed(&alone) && !is_closed(&shared));
    drop(upload);
}

#[tokio::test]
async fn a_connection_that_has_got_a_request_is_not_closed() {
    let connections = Connections::new(1);
    let first = connections.client().unwrap();
    let _second = connections.client().unwrap();
    // The connection was asked to close, but its request had already come.
    let request = begin(&first);
    assert!(!is_closed(&first));
    drop(request);
    assert!(connections.client().is_some() && is_closed(&first));
}

#[tokio::test]
async fn a_connection_that_is_gone_leaves_its_place() {
    let connections = Connections::new(3);
    let clients: Vec<_> = (0..3).map(|_| connections.client().unwrap()).collect();
    let requests: Vec<_> = clients.iter().map(begin).collect();
    assert!(connections.client().is_none());
    drop((clients, requests));
    assert!(connections.client().is_some() && locked(&connections.clients).closable.is_empty());
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
    // An upstream may take long, and the client's next request may too.
    let waits = || tokio::time::timeout(Duration::from_secs(1000), late.ended());
    assert!(waits().await.is_err());
    drop(request);
    assert!(waits().await.is_err());
}
