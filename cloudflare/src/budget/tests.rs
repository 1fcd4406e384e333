//! Tests of `budget.rs`.

use super::*;

const MIB: usize = 1 << 20;

fn held_bytes(budget: &Budget) -> usize {
    budget.0.budget.borrow().held_bytes()
}

#[test]
fn bytes_are_free_when_a_request_ends() {
    let budget = Budget::new(16 * MIB);
    let first = budget.begin(Owner(1), 0);
    assert!(first.set(10 * MIB, 0) && !first.set(17 * MIB, 0));
    first.complete();
    let second = budget.begin(Owner(2), 0);
    assert!(!second.set(7 * MIB, 0));
    drop(first);
    assert!(second.set(7 * MIB, 0));
    drop(second);
    assert_eq!(held_bytes(&budget), 0);
}

#[test]
fn a_thousand_requests_of_one_owner_are_served_and_not_many_more() {
    let budget = Budget::new(16 * MIB);
    let begin = || {
        let held = budget.begin(Owner(1), 0);
        held.complete();
        held.set(0, 0).then_some(held)
    };
    let held: Vec<_> = std::iter::from_fn(begin).take(5000).collect();
    assert_eq!(held.len(), EXCHANGES / 2);
    assert!(budget.begin(Owner(2), 0).set(10_000, 0));
}

#[test]
fn a_request_that_is_given_up_frees_its_memory_at_once() {
    let budget = Budget::new(16 * MIB);
    let greedy = budget.begin(Owner(1), 0);
    assert!(greedy.set(14 * MIB, 0));
    let freed = Rc::new(Cell::new(false));
    let free = Rc::clone(&freed);
    greedy.collect(move || free.set(true));
    let other = budget.begin(Owner(2), 0);
    assert!(other.set(2 * MIB, 0) && freed.get());
    assert!(!greedy.set(0, 0) && budget.0.collecting.borrow().is_empty());
    drop(greedy);
    assert!(held_bytes(&budget) >= 2 * MIB);
}
