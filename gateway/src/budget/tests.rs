//! Tests of `budget.rs`.

use super::*;

#[test]
fn what_one_exchange_gives_back_another_can_take() {
    let budget = Budget::new(8000);
    let mut first = budget.hold();
    assert!(first.grow(4000) && first.grow(3000));
    let mut second = budget.hold();
    assert!(!second.grow(600));
    drop(first);
    assert!(second.grow(7500));
    second.release();
    assert!(second.grow(7500) && !second.grow(1));
    assert!(second.set(10) && !second.set(8000) && second.set(7500));
}

#[test]
fn what_is_small_has_room_beside_all_that_is_large() {
    let budget = Budget::new(8000);
    let mut large: Vec<_> = (0..9).map(|_| budget.hold()).collect();
    for held in &mut large {
        while held.grow(10) {}
    }
    let mut small: Vec<_> = (0..25).map(|_| budget.hold()).collect();
    assert!(small.iter_mut().all(|held| held.grow(15)), "{budget:?}");
    assert!(!small[0].grow(1), "it is not small any more: {budget:?}");
}

#[test]
fn bytes_on_their_way_are_held_until_they_are_gone() {
    let budget = Budget::new(8000);
    let mut held = budget.hold();
    assert!(held.grow(7000));
    let bytes = held.with(vec![1; 10]);
    assert!(!held.grow(7000));
    let rest = bytes.slice(5..);
    drop(bytes);
    assert!(!held.grow(7000));
    drop(rest);
    assert!(held.grow(7000));
}
