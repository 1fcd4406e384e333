//! Tests of `refused.rs`.

use super::*;

#[test]
fn the_space_beside_a_prompt_follows_what_the_upstream_counted() {
    let space = WindowSpace { answer: 2_000, prompt: 3_000, estimate: 1_500 };
    assert_eq!(space.window(), 5_000);
    assert_eq!(space.beside(1_500), Some(2_000));
    // Each further estimated token counts as two tokens and an eighth more.
    assert_eq!(space.beside(1_600), Some(2_000 - 225));
    // For a shorter prompt, each missing estimated token counts as one token, minus an eighth.
    assert_eq!(space.beside(1_400), Some(2_000 + 87));
    assert_eq!(space.beside(0), Some(2_000 + 1_312));
    // Space that is too small for a call is no result: the client gets the error and compacts.
    assert_eq!(space.beside(1_933), Some(2_000 - 974));
    assert_eq!((space.beside(1_940), space.beside(2_500)), (None, None));
    assert_eq!(space.beside(u64::MAX), None);
    let unknown = WindowSpace { estimate: 0, ..space };
    assert_eq!((unknown.beside(0), unknown.beside(1)), (Some(2_000), None));
    let huge = WindowSpace { answer: u64::MAX, prompt: u64::MAX, estimate: 1 };
    assert_eq!(huge.beside(2), None);
}

#[test]
fn a_window_replaces_the_limit_that_it_was_taken_for_and_no_lower_one() {
    let space = Refused::Space(WindowSpace { answer: 1_000, prompt: 3_000, estimate: 1_500 });
    assert!(space.replaces(&Refused::MaxTokens(4_000)) && space.replaces(&space));
    assert!(!space.replaces(&Refused::MaxTokens(3_999)));
    assert!(!Refused::MaxTokens(4_000).replaces(&space));
    assert!(Refused::MaxTokens(4_000).replaces(&Refused::MaxTokens(8_000)));
    assert!(
        !space.replaces(&Refused::Parameter(Parameter::Stop))
            && !Refused::Parameter(Parameter::TopK).replaces(&Refused::Parameter(Parameter::Stop))
    );
    assert!(Refused::Parameter(Parameter::Stop).replaces(&Refused::Parameter(Parameter::Stop)));
}
