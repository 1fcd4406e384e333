//! Tests of `refused.rs`.

use super::*;

#[test]
fn the_room_beside_a_prompt_follows_what_the_upstream_counted() {
    let room = Room { answer: 2_000, prompt: 3_000, estimate: 1_500 };
    assert_eq!(room.window(), 5_000);
    assert_eq!(room.beside(1_500), Some(2_000));
    // Two tokens for each that is estimated, and an eighth more.
    assert_eq!(room.beside(1_600), Some(2_000 - 225));
    // Where it is shorter, the estimate alone, and an eighth less.
    assert_eq!(room.beside(1_400), Some(2_000 + 87));
    assert_eq!(room.beside(0), Some(2_000 + 1_312));
    // No room for a call: the upstream may know better, and clients compact.
    assert_eq!(room.beside(1_933), Some(2_000 - 974));
    assert_eq!((room.beside(1_940), room.beside(2_500)), (None, None));
    assert_eq!(room.beside(u64::MAX), None);
    let unknown = Room { estimate: 0, ..room };
    assert_eq!((unknown.beside(0), unknown.beside(1)), (Some(2_000), None));
    let huge = Room { answer: u64::MAX, prompt: u64::MAX, estimate: 1 };
    assert_eq!(huge.beside(2), None);
}

#[test]
fn a_window_replaces_the_limit_that_it_was_taken_for_and_no_lower_one() {
    let room = Refused::Room(Room { answer: 1_000, prompt: 3_000, estimate: 1_500 });
    assert!(room.replaces(&Refused::MaxTokens(4_000)) && room.replaces(&room));
    assert!(!room.replaces(&Refused::MaxTokens(3_999)));
    assert!(!Refused::MaxTokens(4_000).replaces(&room));
    assert!(Refused::MaxTokens(4_000).replaces(&Refused::MaxTokens(8_000)));
    assert!(!room.replaces(&Refused::Stop) && !Refused::TopK.replaces(&Refused::Stop));
    assert!(Refused::Stop.replaces(&Refused::Stop));
}
