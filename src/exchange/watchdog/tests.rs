//! Tests of `watchdog.rs`.

use super::*;

fn watchdog() -> Watchdog {
    let settings = Settings {
        stall_timeout_ms: 1000,
        no_progress_timeout_ms: 3000,
        ping_interval_ms: 100,
        ..Settings::default()
    };
    let mut watchdog = Watchdog::new(&settings, true);
    watchdog.start(500, 0);
    watchdog
}

fn answering() -> Watchdog {
    let mut watchdog = watchdog();
    watchdog.head(true, 0);
    watchdog
}

#[test]
fn the_head_has_its_own_timeout() {
    let watchdog = watchdog();
    assert_eq!(watchdog.next(false), 500);
    assert!(matches!(watchdog.due(500), DueAction::Stalled(_)));
}

#[test]
fn silence_towards_the_client_asks_for_a_ping() {
    let mut watchdog = answering();
    assert_eq!(watchdog.due(99), DueAction::Nothing);
    assert_eq!(watchdog.due(100), DueAction::Ping);
    watchdog.sent(100);
    assert_eq!(watchdog.due(150), DueAction::Nothing);
    assert_eq!(watchdog.next(true), 200);
}

#[test]
fn signs_of_life_are_not_progress() {
    let mut watchdog = answering();
    for now in (0..3000).step_by(500) {
        watchdog.byte(now);
        assert!(!matches!(watchdog.due(now), DueAction::Stalled(_)));
    }
    watchdog.byte(2999);
    assert!(matches!(watchdog.due(3000), DueAction::Stalled(why) if why.contains("life")));
    watchdog.progress(1, 3000);
    assert!(!matches!(watchdog.due(3000), DueAction::Stalled(_)));
}

#[test]
fn an_answer_that_is_complete_is_not_waited_for_as_long() {
    let settings = Settings { ping_interval_ms: 600_000, ..Settings::default() };
    let mut watchdog = Watchdog::new(&settings, true);
    watchdog.start(500, 0);
    watchdog.head(true, 0);
    watchdog.ending(Ending::Sure, 5);
    watchdog.byte(9000);
    assert_eq!(watchdog.next(true), 10_005);
    assert_eq!(watchdog.due(10_004), DueAction::Nothing);
    assert_eq!(watchdog.due(10_005), DueAction::End);
    // The upstream went on sending content after all.
    watchdog.progress(1, 10_000);
    assert_eq!(watchdog.next(true), 20_000);
    watchdog.ending(Ending::Likely, 11_000);
    assert_eq!(watchdog.next(true), 70_000);
    watchdog.ending(Ending::Open, 12_000);
    assert_ne!(watchdog.due(80_000), DueAction::End);
}

#[test]
fn counts_behind_a_cut_are_waited_for_only_a_moment() {
    let settings = Settings { ping_interval_ms: 600_000, ..Settings::default() };
    for (writes, end) in [(true, 250), (false, 10_050)] {
        let mut watchdog = Watchdog::new(&settings, writes);
        watchdog.start(500, 0);
        watchdog.head(true, 0);
        watchdog.ending(Ending::Cut, 50);
        assert!(!watchdog.is_cut_over(249));
        watchdog.ending(Ending::Cut, 240);
        assert_eq!((watchdog.is_cut_over(250), watchdog.next(true)), (true, end));
        assert_eq!(
            (watchdog.due(end - 1), watchdog.due(end)),
            (DueAction::Nothing, DueAction::End)
        );
    }
}

#[test]
fn the_same_count_again_is_no_progress() {
    let mut watchdog = answering();
    watchdog.progress(1, 0);
    watchdog.byte(2999);
    watchdog.progress(1, 2999);
    assert!(matches!(watchdog.due(3000), DueAction::Stalled(why) if why.contains("life")));
}
