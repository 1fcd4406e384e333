//! Tests of `budget.rs`.

use super::*;
use std::pin::pin;
use std::task::{Context, Waker};

fn begin(budget: &Arc<Budget>, connection: u64) -> Held {
    budget.begin(Owner::of_connection(connection), Arc::default())
}

fn is_given_up(held: &Held) -> bool {
    pin!(held.given_up()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn what_one_exchange_gives_back_another_can_take() {
    let budget = Budget::new(8000);
    let mut first = begin(&budget, 1);
    first.complete();
    assert!(first.grow(4000) && first.grow(3000));
    let mut second = begin(&budget, 2);
    second.complete();
    assert!(!second.grow(600));
    drop(first);
    assert!(second.grow(7500));
    second.release();
    assert!(second.grow(7500) && !second.grow(1));
    assert!(second.set(10) && !second.set(8000) && second.set(7500));
}

#[tokio::test]
async fn small_requests_are_served_beside_large_ones_of_many_connections() {
    let budget = Budget::new(8_000_000);
    let mut large: Vec<_> = (0..40).map(|connection| begin(&budget, connection)).collect();
    for held in &mut large {
        held.complete();
        while held.grow(10_000) {}
    }
    let mut small: Vec<_> = (100..125).map(|connection| begin(&budget, connection)).collect();
    assert!(small.iter_mut().all(|held| held.grow(2000)));
    assert!(!small[0].grow(100_000), "it is not small any more");
}

#[tokio::test]
async fn bytes_on_their_way_are_held_until_they_are_gone() {
    let budget = Budget::new(8000);
    let mut held = begin(&budget, 1);
    assert!(held.grow(7000));
    let bytes = held.with(vec![1; 10]);
    assert!(!held.grow(7000));
    let rest = bytes.slice(5..);
    drop(bytes);
    assert!(!held.grow(7000));
    drop(rest);
    assert!(held.grow(7000));
}

#[tokio::test]
async fn a_body_that_is_not_whole_gives_its_memory_up_at_once() {
    let budget = Budget::new(16 << 20);
    let (mut whole, mut slow) = (begin(&budget, 1), begin(&budget, 1));
    whole.complete();
    assert!(whole.grow(4 << 20) && slow.grow(4 << 20));
    let mut other = begin(&budget, 2);
    assert!(!is_given_up(&slow));
    assert!(other.grow(7 << 20) && other.part().grow(1 << 10));
    assert!(is_given_up(&slow) && !is_given_up(&whole) && !is_given_up(&other));
    assert!(!slow.grow(5000), "it is over");
    drop((slow, whole, other));
    let shared = locked(&budget.shared);
    assert_eq!((shared.core.held_bytes(), shared.incomplete.len()), (0, 0));
}

#[tokio::test]
async fn an_answer_that_has_begun_does_not_end_at_the_share_of_its_owner() {
    let budget = Budget::new(16 << 20);
    let (mut first, mut second) = (begin(&budget, 1), begin(&budget, 1));
    first.complete();
    second.complete();
    assert!(first.grow(4 << 20) && second.grow(4 << 20) && !first.grow(2 << 20));
    first.part().begin_answer();
    assert!(first.grow(7 << 20) && !first.grow(1) && !second.grow(4096));
}

#[tokio::test]
async fn the_parts_of_a_request_are_counted_together_and_in_steps() {
    let budget = Budget::new(1 << 30);
    let counted = || locked(&budget.shared).core.held_bytes();
    let mut first = begin(&budget, 1);
    let mut second = first.part();
    for (part, bytes, counts) in [(0, 1, 4096), (0, 4000, 4096), (1, 96, 4096), (1, 97, 8192)] {
        assert!([&mut first, &mut second][part].set(bytes));
        assert_eq!(counted(), counts);
    }
    drop(first);
    assert_eq!(counted(), 4096);
    second.release();
    assert_eq!(counted(), 0);
}
