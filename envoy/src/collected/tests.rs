//! Tests of `collected.rs`.

use super::*;

const MB: usize = 1 << 20;

fn filled(length: Option<usize>, bytes: usize, bytes_max: usize) -> Collected {
    let mut body = Collected::new(length);
    for _ in 0..bytes / (64 << 10) {
        assert!(body.push(vec![b' '; 64 << 10], |bytes| bytes <= bytes_max));
    }
    body
}

#[test]
fn what_is_reserved_counts_and_fits() {
    // A body occupies its announced length once half of the bytes have come.
    assert_eq!(filled(Some(8 * MB), 4 * MB + (64 << 10), 64 * MB).held_bytes(), 8 * MB);
    assert!(filled(Some(8 * MB), 2 * MB, 64 * MB).held_bytes() <= 4 * MB);
    // With scarce memory, an eighth more is reserved, whether the length is known or not.
    let scarce = |length| filled(length, 5 * MB, 6 * MB).held_bytes();
    assert!((5 * MB..=6 * MB).contains(&scarce(Some(8 * MB))) && scarce(None) <= 6 * MB);
    let doubled = filled(None, 2 * MB + (64 << 10), 64 * MB).held_bytes();
    assert!(doubled > 3 * MB && doubled <= 4 * MB + (128 << 10), "{doubled}");
}

#[test]
fn a_body_may_be_longer_than_it_says() {
    let mut body = filled(Some(2 * MB), 3 * MB, 4 * MB);
    assert_eq!(body.size(), 3 * MB);
    assert!(!body.push(vec![b' '; 2 * MB], |bytes| bytes <= 4 * MB), "there is no memory for it");
    assert_eq!(body.size(), 3 * MB);
}
