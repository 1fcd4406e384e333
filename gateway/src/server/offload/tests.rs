//! Tests of `offload.rs`.

use super::*;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

fn translations() -> Translations {
    Translations::new(Offload::start(NonZero::new(2).unwrap()).unwrap())
}

async fn thread(translations: &Translations, bytes: usize) -> ThreadId {
    translations.run(bytes, || thread::current().id()).await
}

#[tokio::test]
async fn only_what_is_short_is_translated_on_the_thread_that_serves() {
    let (translations, here) = (translations(), thread::current().id());
    for short in [0, 3000, 60_000] {
        assert_eq!(thread(&translations, short).await, here, "{short}");
    }
    for long in [APART_BYTES, 1 << 20, 30 << 20] {
        assert_ne!(thread(&translations, long).await, here, "{long}");
    }
}

#[tokio::test]
async fn large_bodies_take_turns_and_hold_up_no_other() {
    let translations = translations();
    let running = Arc::<AtomicUsize>::default();
    let (begun, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let large = (0..6).map(|_| {
        let (running, begun, most) = (Arc::clone(&running), Arc::clone(&begun), Arc::clone(&most));
        let apart = translations.apart.clone();
        tokio::spawn(async move {
            let job = move || {
                begun.fetch_add(1, Ordering::SeqCst);
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(50));
                running.fetch_sub(1, Ordering::SeqCst);
            };
            apart.run(30 << 20, job).await;
        })
    });
    let large: Vec<_> = large.collect();
    while begun.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // The caller of this job does not wait any more, and the job still runs alone.
    large[1].abort();
    let _ = thread(&translations, 1 << 20).await;
    assert!(begun.load(Ordering::SeqCst) < 6, "it waited for all of them");
    for large in large {
        let _ = large.await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
