//! Tests of the window of open questions.

use super::*;
use crate::steps::Nothing;

const NONE: Came = Came::Nothing(Nothing::TimedOut);

#[test]
fn a_question_that_cannot_be_asked_yet_keeps_its_place_while_later_ones_are_asked() {
    let (first, third) = (CallId(1), CallId(2));
    let mut window = Window::default();
    assert_eq!(window.next(0, 4), Some(0));
    assert_eq!(window.open(0, first, 10), 10);
    window.wait_at(1);
    assert_eq!(window.next(2, 4), Some(2));
    window.open(2, third, 20);
    assert_eq!((window.next(0, 4), window.place(third)), (Some(1), Some(2)));
    window.answer(third, NONE);
    assert!(window.take_answer().is_none());
    window.answer(first, NONE);
    assert!(matches!(window.take_answer(), Some((_, Some(10)))));
    // The second question is the first one now, and its time begins with its own call.
    assert_eq!(window.next(0, 4), Some(0));
    assert_eq!(window.open(0, CallId(3), 70), 70);
    assert_eq!(
        (window.until(), window.overdue(69), window.overdue(70)),
        (Some(70), None, Some(CallId(3)))
    );
}

#[test]
fn a_question_that_is_asked_again_keeps_its_time() {
    let mut window = Window::default();
    window.open(0, CallId(1), 10);
    window.answer(CallId(1), NONE);
    let (_, until) = window.take_answer().unwrap();
    window.put_back(until);
    assert_eq!(window.next(0, 1), Some(0));
    assert_eq!(window.open(0, CallId(2), 99), 10);
}
