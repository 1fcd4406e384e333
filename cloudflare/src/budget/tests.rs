//! Tests of `budget.rs`.

use super::*;

#[test]
fn what_one_request_gives_back_another_can_take() {
    let budget = Budget::default();
    let first = budget.hold();
    assert!(first.grow(6, 10, 0) && first.grow(4, 10, 0));
    let second = budget.hold();
    assert!(!second.grow(1, 10, 0));
    drop(first);
    assert!(second.grow(10, 10, 0) && !second.grow(1, 10, 0));
    second.release();
    assert_eq!(budget.bytes(), 0);
}

#[test]
fn what_the_runtime_dropped_silently_does_not_count_for_ever() {
    let budget = Budget::default();
    let lost = budget.hold();
    assert!(lost.grow(10, 10, 1000));
    std::mem::forget(lost);
    let next = budget.hold();
    assert!(!next.grow(10, 10, 1000 + FORGOTTEN_MS - 1));
    assert!(next.grow(10, 10, 1000 + FORGOTTEN_MS));
}
