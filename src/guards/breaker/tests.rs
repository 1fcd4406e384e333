//! Tests that a history, which is read from its end, is judged as if it were read from its
//! beginning.

use super::*;
use crate::guards::person::after_news;
use crate::json::Str;
use crate::model::turn::{User, UserPart};
use crate::model::{Block, Text};
use proptest::prelude::*;

const IDS: [&str; 3] = ["toolu_a", "toolu_b", "toolu_c"];

const SLEEPS: &str = r#"{"command":"sleep 1"}"#;

fn text(words: &'static str) -> Block<'static> {
    Block::Text(Text { text: Str::plain(words), cached: None, citations: None })
}

/// Tool call and its result: name, input, text of the result, and the value of `is_error`.
type Made = (&'static str, &'static str, &'static str, bool);

fn calls_of_a_turn() -> impl Strategy<Value = Vec<Made>> {
    let name = prop::sample::select(vec!["shell", "look"]);
    let input = prop::sample::select(vec!["{}", "{\"a\":1}", "{ \"a\": 1}", SLEEPS]);
    let said = prop::sample::select(vec!["fine", "fine", "done", "Error: no", "must"]);
    prop::collection::vec((name, input, said, prop::bool::weighted(0.1)), 0..3)
}

/// Generates histories in which nothing, a client's text, a person's text or a system message
/// follows the results.
fn history() -> impl Strategy<Value = Vec<Turn<'static>>> {
    let after = prop_oneof![30 => Just(0), 1 => Just(1), 1 => Just(2), 2 => Just(3), 1 => Just(4)];
    prop::collection::vec((calls_of_a_turn(), after, any::<bool>()), 1..40).prop_map(|all| {
        let mut turns = Vec::new();
        for (made, after, system) in all {
            let call = |(id, made): (&&'static str, &Made)| {
                let (id, name) = (Str::plain(id), Str::plain(made.0));
                Block::ToolUse(Box::new(ToolUse::of(id, name, made.1)))
            };
            turns.push(Turn::Assistant(IDS.iter().zip(&made).map(call).collect()));
            if system {
                turns.push(Turn::System(Vec::new()));
            }
            let result = |(id, made): (&&'static str, &Made)| ToolResult {
                id: Str::plain(id),
                content: vec![text(made.2)],
                is_error: made.3,
                cleared: false,
            };
            let results = IDS.iter().zip(&made).map(result).collect();
            let items = match after {
                1 => vec![UserPart::Block(text("stop"))],
                2 => vec![UserPart::Block(text("<system-reminder>x</system-reminder>"))],
                _ => Vec::new(),
            };
            turns.push(Turn::User(User { results, items }));
            match after {
                3 => turns.push(Turn::System(Vec::new())),
                4 => turns.push(Turn::System(vec![Str::plain("<task-notification>x")])),
                _ => {}
            }
        }
        turns
    })
}

proptest! {
    #[test]
    fn where_the_reading_begins_makes_no_difference(history in history(), most in 1u32..5) {
        let fits = |call: &ToolUse<'_>| &*call.input != "{}";
        let whole = count(&history, Start::News(after_news(&history)), most, &mut fits.clone());
        prop_assert_eq!(inspect(&history, most, fits), whole);
    }
}

#[test]
fn a_call_whose_result_comes_with_a_persons_words_does_not_count() {
    let (id, name) = (Str::plain("toolu_a"), Str::plain("look"));
    let call = ToolUse::of(id, name, "{}");
    let result = ToolResult { id, content: vec![text("no")], is_error: true, cleared: false };
    let user = User { results: vec![result], items: vec![UserPart::Block(text("stop"))] };
    let turns = [Turn::Assistant(vec![Block::ToolUse(Box::new(call))]), Turn::User(user)];
    assert_eq!(last_reset(&turns, &mut |_| true), Start::News(2));
    assert_eq!(inspect(&turns, 1, |_| true), BreakerFindings::default());
}

#[test]
fn a_history_that_gets_on_is_read_at_its_end_only() {
    let turns = successes(&[("look", "one"), ("look", "two"), ("look", "three")]);
    assert_eq!(last_reset(&turns, &mut |_| true), Start::New(4));
}

/// Returns turns with one successful call each and its result.
fn successes(made: &[(&'static str, &'static str)]) -> Vec<Turn<'static>> {
    let (id, mut turns) = (Str::plain("toolu_a"), Vec::new());
    for (name, said) in made {
        let name = Str::plain(name);
        let call = ToolUse::of(id, name, "{}");
        turns.push(Turn::Assistant(vec![Block::ToolUse(Box::new(call))]));
        let result = ToolResult { id, content: vec![text(said)], is_error: false, cleared: false };
        turns.push(Turn::User(User { results: vec![result], items: Vec::new() }));
    }
    turns
}

fn stuck(made: &[(&'static str, &'static str)]) -> Vec<(String, u32)> {
    let verdict = inspect(&successes(made), 3, |_| true);
    verdict.stuck.iter().map(|stuck| (stuck.name.clone().into_owned(), stuck.count)).collect()
}

#[test]
fn calls_that_take_turns_are_counted_each() {
    // A new success resets the counts of earlier calls, here of the first `look`.
    let pair = [("look", "a"), ("read", "b")].repeat(4);
    assert_eq!(stuck(&pair), [("read".to_owned(), 4), ("look".to_owned(), 3)]);
    let cycle = [("look", "a"), ("look", "b"), ("read", "b"), ("read", "b")].repeat(4);
    let look = ("look".to_owned(), 3);
    assert_eq!(stuck(&cycle), [("read".to_owned(), 8), look.clone(), look]);
}

#[test]
fn a_new_result_resets_what_takes_turns() {
    let mut made = [("look", "a"), ("read", "b")].repeat(4);
    made.push(("read", "c"));
    assert_eq!(stuck(&made), []);
    made.extend([("look", "a"), ("read", "b")].repeat(2));
    assert_eq!(stuck(&made), []);
}
