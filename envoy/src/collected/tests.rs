//! Tests of `collected.rs`.

use super::*;

const MB: usize = 1 << 20;

fn filled(length: Option<usize>, bytes: usize, room_bytes: usize) -> Collected {
    let mut body = Collected::new(length);
    for _ in 0..bytes / (64 << 10) {
        assert!(body.push(vec![b' '; 64 << 10], room_bytes));
    }
    body
}

#[test]
fn what_is_reserved_counts_and_fits() {
    // As long as it says it is, once enough has come.
    assert_eq!(filled(Some(8 * MB), 2 * MB, 64 * MB).held_bytes(), 8 * MB);
    // As far as there is room, whether its length is known or not.
    assert_eq!(filled(Some(8 * MB), 2 * MB, 3 * MB).held_bytes(), 3 * MB);
    assert_eq!(filled(None, 2 * MB + (64 << 10), 3 * MB).held_bytes(), 3 * MB);
    let doubled = filled(None, 2 * MB + (64 << 10), 64 * MB).held_bytes();
    assert!(doubled > 3 * MB && doubled <= 4 * MB + (128 << 10), "{doubled}");
}

#[test]
fn a_body_may_be_longer_than_it_says() {
    let mut body = filled(Some(2 * MB), 3 * MB, 4 * MB);
    assert_eq!(body.size(), 3 * MB);
    assert!(!body.push(vec![b' '; 2 * MB], 4 * MB), "there is no room for it");
    assert_eq!(body.size(), 3 * MB);
}
