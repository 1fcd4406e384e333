//! Tests of the memory budget.

use super::*;

const MIB: usize = 1 << 20;

fn budget() -> Budget {
    Budget::new(16 * MIB)
}

/// Begins a request that holds `bytes`, if the budget admits the request.
fn hold(budget: &mut Budget, owner: u64, bytes: usize, now: Millis) -> Result<Holding, MemoryFull> {
    let holding = budget.begin(Owner(owner), now);
    match budget.set(holding, bytes, now) {
        Ok(()) => Ok(holding),
        Err(MemoryFull) => {
            budget.end(holding);
            Err(MemoryFull)
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
    assert_eq!(hold(&mut budget, 2, 2 * MIB, 0), Err(MemoryFull));
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
    assert_eq!(hold(&mut budget, 1, 15 * MIB + 1, 0), Err(MemoryFull));
    let single = hold(&mut budget, 1, 15 * MIB, 0).unwrap();
    budget.complete(single);
    assert_eq!(hold(&mut budget, 2, MIB / 16, 0), Err(MemoryFull));
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
    assert_eq!(budget.set(old, 1, 0), Err(MemoryFull), "it is over");
    // No request is evicted for a request that would hold more, or that would not fit even then.
    assert_eq!(budget.set(other, 5 * MIB, 0), Err(MemoryFull));
    assert_eq!(hold(&mut budget, 5, 8 * MIB, 9000), Err(MemoryFull));
    assert_eq!(budget.poll_given_up(), None);
    budget.set(new, MIB, 0).unwrap();
}

#[test]
fn a_body_that_does_not_come_gives_way_to_any_other() {
    let mut budget = budget();
    let slow: Vec<_> =
        (0..400).map_while(|owner| hold(&mut budget, owner, 100 << 10, 0).ok()).collect();
    assert!(slow.len() > 100);
    assert_eq!(hold(&mut budget, 1000, 4 * MIB, 1999), Err(MemoryFull));
    assert!(hold(&mut budget, 1000, 4 * MIB, 2000).is_ok());
    assert_eq!(budget.poll_given_up(), Some(slow[0]));
}

/// Request of a table: owner, MiB, time of its beginning, and time of its last bytes. `None`: the
/// body is whole.
type Row = (u64, usize, Millis, Option<Millis>);

/// Returns a budget with these requests, of which none is evicted.
fn holding(rows: &[Row]) -> (Budget, Vec<Holding>) {
    let mut budget = Budget::new(16 * MIB);
    let all = rows.iter().map(|(owner, mib, began, came)| {
        let holding = budget.begin(Owner(*owner), *began);
        budget.change(holding, |request| request.bytes = mib * MIB);
        match came {
            Some(came) => budget.note_bytes(holding, PROGRESS_BYTES, *came),
            None => budget.complete(holding),
        }
        holding
    });
    let all = all.collect();
    assert_eq!(budget.poll_given_up(), None);
    (budget, all)
}

#[test]
fn a_full_memory_takes_silent_requests_first_then_the_largest_owners_then_old_ones() {
    let whole = (9, 6, 0, None);
    for (what, rows, asking, expected) in [
        (
            "silent for longest, though another owner holds most",
            vec![(3, 1, 0, Some(7900)), (2, 2, 0, Some(7800)), (1, 7, 9000, Some(9900)), whole],
            (4, 1),
            vec![1],
        ),
        (
            "silent for long, but of the asking owner",
            vec![(4, 2, 0, Some(1000)), (1, 8, 9000, Some(9900)), whole],
            (4, 1),
            vec![0],
        ),
        (
            "the oldest of who holds most",
            vec![
                (3, 4, 4000, Some(9900)),
                (1, 1, 5000, Some(9900)),
                (2, 2, 5500, Some(9900)),
                (2, 3, 6000, Some(9900)),
                whole,
            ],
            (4, 1),
            vec![2],
        ),
        (
            "nobody holds more: old ones, though bytes come",
            vec![
                (2, 4, 6000, Some(9900)),
                (3, 4, 7000, Some(9900)),
                (1, 2, 9000, Some(9900)),
                whole,
            ],
            (4, 4),
            vec![0, 1],
        ),
        (
            "all are young, and nobody holds more",
            vec![(1, 5, 9000, Some(9900)), (2, 5, 9000, Some(9900)), whole],
            (4, 5),
            vec![],
        ),
        (
            "more than one, as far as needed",
            vec![
                (1, 2, 0, Some(100)),
                (2, 2, 0, Some(200)),
                (3, 6, 9000, Some(9900)),
                (5, 2, 0, Some(300)),
                (9, 4, 0, None),
            ],
            (4, 3),
            vec![0, 1],
        ),
    ] {
        let (mut budget, all) = holding(&rows);
        let (owner, mib) = asking;
        let given = hold(&mut budget, owner, mib * MIB, 10_000);
        let given_up: Vec<_> = std::iter::from_fn(|| budget.poll_given_up()).collect();
        let expected: Vec<_> = expected.into_iter().map(|row: usize| all[row]).collect();
        assert_eq!(
            (given_up.as_slice(), given.is_ok()),
            (&*expected, !expected.is_empty()),
            "{what}"
        );
    }
}

#[test]
fn strangers_take_nothing_from_an_upload_and_give_way_to_it() {
    for (what, owners, each, count) in [
        ("heads of many connections", 4000, 64 << 10, 4000),
        ("refusals of one connection", 1, 5 << 10, 100_000),
        ("large ones of a few", 30, 2 * MIB, 300),
        ("small ones that fill the reserve", 20_000, 16 << 10, 20_000),
    ] {
        let mut budget = Budget::new(256 * MIB);
        let upload = hold(&mut budget, 1, 3 * MIB, 0).unwrap();
        let mut strangers = Vec::new();
        for number in 0..count {
            let stranger = budget.begin_stranger(Owner(2 + number % owners), 9000);
            match budget.set(stranger, each, 9000) {
                Ok(()) => strangers.push(stranger),
                Err(MemoryFull) => budget.end(stranger),
            }
            // Strangers are evicted even if their bodies are complete and their answers have begun.
            budget.complete(stranger);
            budget.begin_answer(stranger);
        }
        assert_eq!(budget.poll_given_up(), None, "{what}");
        assert!(budget.held_bytes() > 100 * MIB, "{what}");
        // An authenticated request gets the strangers' memory, however young the strangers are, and
        // the share of the request's owner is not full.
        budget.set(upload, 120 * MIB, 9000).unwrap();
        hold(&mut budget, 1, 4 * MIB, 9000).unwrap();
        let given_up: Vec<_> = std::iter::from_fn(|| budget.poll_given_up()).collect();
        assert_eq!(given_up, strangers[..given_up.len()], "{what}: the oldest first");
        assert!(!given_up.is_empty(), "{what}");
    }
}

#[test]
fn strangers_that_stay_give_way_to_new_ones_and_nobody_else_does() {
    let mut budget = budget();
    let upload = hold(&mut budget, 1, MIB, 0).unwrap();
    let begin = |budget: &mut Budget, owner, now| {
        let stranger = budget.begin_stranger(Owner(owner), now);
        budget.set(stranger, 100 << 10, now).map(|()| stranger)
    };
    let old: Vec<_> = (2..).map_while(|owner| begin(&mut budget, owner, 0).ok()).collect();
    assert_eq!(begin(&mut budget, 1000, 1999), Err(MemoryFull));
    assert!(begin(&mut budget, 1001, 2000).is_ok());
    assert_eq!((budget.poll_given_up(), budget.poll_given_up()), (Some(old[0]), None));
    // An old request of a stranger takes the memory of other old requests, and not its own.
    budget.set(old[1], 200 << 10, 9000).unwrap();
    assert_eq!((budget.poll_given_up(), budget.poll_given_up()), (Some(old[2]), None));
    let large = budget.begin_stranger(Owner(1002), 9000);
    assert_eq!(budget.set(large, 15 * MIB, 9000), Err(MemoryFull));
    assert_eq!((budget.held_bytes(), budget.requests.contains_key(&upload)), (MIB, true));
}

#[test]
fn a_full_share_takes_old_requests_of_its_own_and_never_those_of_others() {
    let rows = [(1, 4, 0, None), (2, 3, 0, Some(100))];
    let (mut budget, _) = holding(&rows);
    assert_eq!(
        hold(&mut budget, 1, 4 * MIB, 9000),
        Err(MemoryFull),
        "there is place, but not for it"
    );
    assert_eq!(budget.poll_given_up(), None);
    // The owner's own old request is evicted, which frees enough memory.
    let (mut budget, all) = holding(&[(1, 3, 0, Some(8900)), (2, 3, 0, Some(100))]);
    hold(&mut budget, 1, 6 * MIB, 9000).unwrap();
    assert_eq!((budget.poll_given_up(), budget.poll_given_up()), (Some(all[0]), None));
    // A young request of the same owner is not evicted.
    let (mut budget, _) = holding(&[(1, 3, 8000, Some(8000)), (2, 3, 0, Some(100))]);
    assert_eq!(hold(&mut budget, 1, 6 * MIB, 9000), Err(MemoryFull));
}

#[test]
fn old_requests_of_others_that_come_go_until_the_reserve_is_free_and_no_further() {
    let rows =
        [(1, 6, 0, None), (2, 2, 0, Some(8900)), (3, 3, 0, Some(8900)), (4, 3, 0, Some(8900))];
    let (mut budget, _) = holding(&rows);
    assert_eq!(
        hold(&mut budget, 1, 2 * MIB, 9000),
        Err(MemoryFull),
        "its share would be full then"
    );
    assert_eq!(budget.poll_given_up(), None);
    assert!(hold(&mut budget, 5, 2 * MIB, 9000).is_ok());
}

#[test]
fn an_owner_of_several_requests_gets_place_of_one_that_holds_more() {
    let mut rows = vec![(2, 2, 0, None), (3, 2, 0, None)];
    rows.extend([(1, 1, 8900, Some(8900)); 11]);
    let (mut budget, all) = holding(&rows);
    hold(&mut budget, 2, 2 * MIB, 9000).unwrap();
    let given_up: Vec<_> = std::iter::from_fn(|| budget.poll_given_up()).collect();
    assert_eq!(given_up, all[2..7], "until it holds no more than what is left");
}

#[test]
fn a_request_whose_answer_has_begun_is_not_limited_by_its_owners_share() {
    let mut budget = budget();
    let first = hold(&mut budget, 1, 4 * MIB, 0).unwrap();
    let second = hold(&mut budget, 1, 4 * MIB, 0).unwrap();
    budget.complete(first);
    budget.complete(second);
    assert_eq!(budget.set(first, 5 * MIB, 0), Err(MemoryFull), "half of the memory is the owner's");
    budget.begin_answer(first);
    budget.complete(first);
    budget.set(first, 11 * MIB, 0).unwrap();
    assert_eq!(budget.set(first, 11 * MIB + 1, 0), Err(MemoryFull), "the reserve stays");
    hold(&mut budget, 2, MIB / 64, 0).unwrap();
    assert_eq!(budget.set(second, 4 * MIB + 1, 0), Err(MemoryFull));
    // Requests whose bodies do not arrive are evicted for an answer.
    let (mut budget, all) = holding(&[(1, 8, 0, None), (1, 1, 0, None), (2, 7, 0, Some(100))]);
    budget.begin_answer(all[0]);
    budget.set(all[0], 9 * MIB, 9000).unwrap();
    assert_eq!(budget.poll_given_up(), Some(all[2]));
}

#[test]
fn bytes_that_come_keep_a_request_from_being_silent() {
    for (bytes, is_given_up) in [(PROGRESS_BYTES / 2, false), (PROGRESS_BYTES / 2 - 1, true)] {
        let (mut budget, all) =
            holding(&[(9, 12, 0, None), (1, 3, 0, Some(0)), (2, 1, 0, Some(100))]);
        budget.note_bytes(all[1], bytes, 1000);
        budget.note_bytes(all[1], bytes, 1500);
        hold(&mut budget, 3, MIB, 2500).unwrap();
        assert_eq!(budget.poll_given_up() == Some(all[1]), is_given_up, "{bytes}");
    }
}

#[test]
fn a_request_that_is_refused_costs_little_beside_a_hundred_thousand() {
    let mut budget = Budget::new(128 << 20);
    let large = hold(&mut budget, 1, 50 << 20, 0).unwrap();
    budget.complete(large);
    // Each of a thousand owners holds more than the asking owner, but all together free too little
    // memory.
    for owner in 0..1000 {
        for _ in 0..100 {
            hold(&mut budget, 10 + owner, 500, 0).unwrap();
        }
    }
    budget.change(large, |request| request.bytes = 79 << 20);
    let held = budget.held_bytes();
    let asking = budget.begin(Owner(2), 0);
    let began = std::time::Instant::now();
    for _ in 0..5000 {
        assert_eq!(budget.set(asking, 49_500, 0), Err(MemoryFull));
    }
    for _ in 0..5000 {
        assert_eq!(budget.set(asking, 46 << 20, 9000), Err(MemoryFull));
    }
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    assert_eq!((budget.held_bytes(), budget.poll_given_up()), (held, None));
}

#[test]
fn an_address_is_an_owner_and_of_ipv6_its_network() {
    let owner = |address: &str| Owner::of_address(address.parse().unwrap());
    for same in ["2001:db8::ffff", "2001:db8:0:0:1:2:3:4", "2001:0db8:0000:0000::1"] {
        assert_eq!(owner("2001:db8::1"), owner(same), "{same}");
    }
    assert_eq!(owner("::ffff:192.0.2.1"), owner("192.0.2.1"));
    let others = ["2001:db8:0:1::1", "2001:db9::1", "::1", "192.0.2.1", "192.0.2.2"];
    let mut all: Vec<_> = others.map(owner).into_iter().chain([owner("2001:db8::1")]).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), others.len() + 1);
}

#[test]
fn sums_are_right_after_any_changes() {
    let mut budget = budget();
    let (mut known, mut state, mut refused, mut given_up) = (Vec::new(), 7_u64, 0, 0);
    for step in 0..20_000_u64 {
        let now = step * 20;
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (choice, pick) = ((state >> 60) as usize, (state >> 33) as usize);
        if known.is_empty() || choice < 5 {
            let owner = Owner((state >> 40) % 20);
            known.push(match choice {
                0 => budget.begin_stranger(owner, now),
                _ => budget.begin(owner, now),
            });
            continue;
        }
        let place = pick % known.len();
        match choice {
            5..=10 => {
                let held = budget.held_bytes();
                let is_set = budget.set(known[place], pick % (2 * MIB), now).is_ok();
                // No request is evicted for a request that is refused all the same, except for a
                // stranger's.
                let is_kept = budget.held_bytes() == held && budget.given_up.is_empty();
                let is_stranger = budget.requests[&known[place]].state == BudgetState::Stranger;
                assert!(is_set || is_kept || is_stranger);
                refused += usize::from(!is_set);
            }
            11 => budget.note_bytes(known[place], pick % 2000, now),
            12 if pick % 2 == 0 => budget.complete(known[place]),
            12 => budget.begin_answer(known[place]),
            _ => budget.end(known.swap_remove(place)),
        }
        while let Some(gone) = budget.poll_given_up() {
            given_up += 1;
            known.retain(|holding| *holding != gone);
        }
        let is_incomplete =
            |(_, request): &(&Holding, &MemoryRequest)| request.state == BudgetState::Incomplete;
        let bytes = |(_, request): (&Holding, &MemoryRequest)| request.bytes;
        let incomplete = || budget.requests.iter().filter(is_incomplete);
        let old = incomplete().filter(|(holding, _)| **holding <= budget.last_old);
        assert_eq!(budget.bytes, budget.requests.iter().map(bytes).sum::<usize>());
        assert_eq!(budget.old_bytes, old.map(bytes).sum::<usize>());
        assert!(budget.bytes <= budget.bytes_max);
        let sum = |of: fn(&Share) -> usize| budget.owners.values().map(of).sum::<usize>();
        let strangers = budget.strangers.iter().map(|holding| budget.requests[holding].bytes);
        assert_eq!(strangers.sum::<usize>(), budget.stranger_bytes);
        assert_eq!(sum(|share| share.stranger_bytes), budget.stranger_bytes);
        assert_eq!(sum(|share| share.bytes) + budget.stranger_bytes, budget.bytes);
        assert_eq!(sum(|share| share.old_bytes), budget.old_bytes);
        assert_eq!(sum(|share| share.incomplete_bytes), incomplete().map(bytes).sum::<usize>());
        assert_eq!(sum(|share| share.requests), known.len());
        assert_eq!(budget.requests.len(), known.len());
        let count = incomplete().count();
        assert_eq!(sum(|share| share.incomplete.len()), count);
        assert_eq!((budget.incomplete.len(), budget.by_silence.len()), (count, count));
        let mut by_share: Vec<_> = budget.by_share.iter().copied().collect();
        by_share.sort_unstable_by_key(|(_, owner)| *owner);
        let owners = budget.owners.iter().filter(|(_, share)| !share.incomplete.is_empty());
        let expected: Vec<_> = owners.map(|(owner, share)| (share.bytes, *owner)).collect();
        assert_eq!(by_share, expected);
    }
    assert!(refused > 100 && given_up > 100, "{refused} {given_up}");
}
