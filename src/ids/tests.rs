//! Tests of `ids.rs`.

use super::*;

#[test]
fn ids_depend_on_seed_and_position_only() {
    let ids = Ids::new(7);
    assert_eq!(ids.call(0), Ids::new(7).call(0));
    assert_ne!(ids.call(0), ids.call(1));
    assert_ne!(ids.message(), Ids::new(8).message());
    assert_eq!(ids.message().len(), 28);
    assert!(ids.request().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
}

#[test]
fn no_two_exchanges_have_an_id_in_common_however_near_their_seeds_are() {
    let near = (0..1000).flat_map(|number| [number, number << 64, u128::MAX - number]);
    let ids = |seed| [Ids::new(seed).request(), Ids::new(seed).message(), Ids::new(seed).call(1)];
    let mut tails: Vec<String> =
        near.flat_map(ids).map(|id| id.rsplit('_').next().unwrap().to_owned()).collect();
    let count = tails.len();
    for place in 0..24 {
        // Each digit at each place about as often as any other.
        let mut often = [0; 128];
        tails.iter().for_each(|tail| often[usize::from(tail.as_bytes()[place])] += 1);
        assert!(often.iter().all(|times| *times < count / 40), "{place}: {often:?}");
        let seen = often.iter().filter(|times| **times > count / 100).count();
        assert_eq!(seen, 62, "{place}");
    }
    tails.sort_unstable();
    tails.dedup();
    // Seed 0 occurs twice, with three ids.
    assert_eq!(tails.len(), count - 3);
}

#[test]
fn hashes_are_those_of_other_tools() {
    // printf abc | sha256sum; the last is the same number in base 62, its least digit first.
    assert!(hex_of_hash(b"abc").starts_with("ba7816bf8f01cfea"));
    assert_eq!(hex_of_hash(b"abc").len(), 64);
    assert_eq!(base62_of_hash(b"abc", 22), "vab5RpW6i5Hzn7YMlm3bwc");
}
