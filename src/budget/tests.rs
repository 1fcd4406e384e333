//! Tests of `mod.rs`.

use super::*;

const MIB: usize = 1 << 20;

fn budget() -> Budget {
    Budget::new(16 * MIB)
}

/// Begins a request that holds so much, if it may.
fn hold(budget: &mut Budget, owner: u64, bytes: usize, now: Millis) -> Result<Holding, Full> {
    let holding = budget.begin(Owner(owner), now);
    match budget.set(holding, bytes, now) {
        Ok(()) => Ok(holding),
        Err(Full) => {
            budget.end(holding);
            Err(Full)
        }
    }
}

/// Begins requests with whole bodies until one is refused.
fn fill(budget: &mut Budget, owner: u64, bytes: usize) -> usize {
    let mut count = 0;
    while let Ok(holding) = hold(budget, owner, bytes, 0) {
        budget.complete(holding);
        count += 1;
    }
    count
}

#[test]
fn what_one_request_gives_back_another_can_take() {
    let mut budget = budget();
    let first = hold(&mut budget, 1, 15 * MIB, 0).unwrap();
    budget.complete(first);
    assert_eq!(hold(&mut budget, 2, 2 * MIB, 0), Err(Full));
    budget.set(first, MIB, 0).unwrap();
    let second = hold(&mut budget, 2, 14 * MIB, 0).unwrap();
    assert_eq!(budget.held_bytes(), 15 * MIB);
    budget.end(first);
    budget.end(second);
    assert_eq!((budget.held_bytes(), budget.owners.len(), budget.by_share.len()), (0, 0, 0));
}

#[test]
fn a_single_request_leaves_a_reserve() {
    let mut budget = budget();
    assert_eq!(hold(&mut budget, 1, 15 * MIB + 1, 0), Err(Full));
    let single = hold(&mut budget, 1, 15 * MIB, 0).unwrap();
    budget.complete(single);
    assert_eq!(hold(&mut budget, 2, MIB / 16, 0), Err(Full));
    hold(&mut budget, 2, MIB / 64, 0).unwrap();
}

#[test]
fn nobody_holds_more_than_what_is_left_for_others() {
    let mut budget = budget();
    assert_eq!(fill(&mut budget, 1, MIB / 4), 32, "half of all");
    assert_eq!(fill(&mut budget, 2, MIB / 4), 16, "half of the rest");
    for owner in 3..60 {
        fill(&mut budget, owner, 4 << 10);
    }
    assert!(hold(&mut budget, 1000, 4 << 10, 0).is_ok(), "{}", budget.held_bytes());
}

#[test]
fn who_holds_most_gives_up_the_oldest_request_without_a_whole_body() {
    let mut budget = budget();
    let whole = hold(&mut budget, 1, MIB, 0).unwrap();
    budget.complete(whole);
    let old = hold(&mut budget, 1, 2 * MIB, 0).unwrap();
    let new = hold(&mut budget, 1, MIB, 0).unwrap();
    let other = hold(&mut budget, 2, MIB, 0).unwrap();
    let large = hold(&mut budget, 3, 9 * MIB, 0).unwrap();
    budget.complete(large);
    assert!(hold(&mut budget, 4, 2 * MIB, 0).is_ok());
    assert_eq!((budget.poll_given_up(), budget.poll_given_up()), (Some(old), None));
    assert_eq!(budget.set(old, 1, 0), Err(Full), "it is over");
    // Nobody gives anything up for one that would hold more, or that would not fit all the same.
    assert_eq!(budget.set(other, 5 * MIB, 0), Err(Full));
    assert_eq!(hold(&mut budget, 5, 8 * MIB, 9000), Err(Full));
    assert_eq!(budget.poll_given_up(), None);
    budget.set(new, MIB, 0).unwrap();
}

#[test]
fn a_body_that_does_not_come_gives_way_to_any_other() {
    let mut budget = budget();
    let slow: Vec<_> =
        (0..400).map_while(|owner| hold(&mut budget, owner, 100 << 10, 0).ok()).collect();
    assert!(slow.len() > 100);
    assert_eq!(hold(&mut budget, 1000, 4 * MIB, 1999), Err(Full));
    assert!(hold(&mut budget, 1000, 4 * MIB, 2000).is_ok());
    assert_eq!(budget.poll_given_up(), Some(slow[0]));
}

#[test]
fn sums_are_right_after_any_changes() {
    let mut budget = budget();
    let (mut known, mut state, mut refused, mut given_up) = (Vec::new(), 7_u64, 0, 0);
    for step in 0..20_000_u64 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (choice, pick) = ((state >> 60) as usize, (state >> 33) as usize);
        if known.is_empty() || choice < 5 {
            known.push(budget.begin(Owner((state >> 40) % 20), step));
            continue;
        }
        let place = pick % known.len();
        match choice {
            5..=11 => {
                refused += usize::from(budget.set(known[place], pick % (2 * MIB), step).is_err())
            }
            12 => budget.complete(known[place]),
            _ => budget.end(known.swap_remove(place)),
        }
        while let Some(gone) = budget.poll_given_up() {
            given_up += 1;
            known.retain(|holding| *holding != gone);
        }
        let sum: usize = budget.requests.values().map(|request| request.bytes).sum();
        assert_eq!(budget.bytes, sum);
        assert!(sum <= budget.bytes_max);
        assert_eq!(sum, budget.owners.values().map(|share| share.bytes).sum::<usize>());
        assert_eq!(budget.requests.len(), known.len());
        let waiting: usize = budget.owners.values().map(|share| share.incomplete.len()).sum();
        assert_eq!(waiting, budget.incomplete.len());
        for (bytes, owner) in &budget.by_share {
            assert_eq!(budget.owners[owner].bytes, *bytes);
        }
    }
    assert!(refused > 100 && given_up > 100, "{refused} {given_up}");
}
