//! Tests of `text_filter.rs`.

use super::*;
use crate::model::request_context::AnswerLimits;
use crate::profile::Profile;

fn limits(stop_sequences: Vec<String>) -> AnswerLimits {
    AnswerLimits { stop_sequences, ..AnswerLimits::default() }
}

fn run(context: &RequestContext, text: &str) -> Vec<Piece> {
    let collect = |parts: &mut dyn Iterator<Item = &str>| {
        let mut filter = TextFilter::new(context).unwrap();
        let mut all: Vec<Piece> = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for part in parts {
            let mut raw = Vec::new();
            json::escape(&mut raw, part);
            pieces.extend(filter.push(std::str::from_utf8(&raw).unwrap(), false));
            if matches!(pieces.last(), Some(Piece::Stop(_))) {
                break;
            }
        }
        if !matches!(pieces.last(), Some(Piece::Stop(_))) {
            pieces.extend(
                filter.finish(&context.tools, AnswerEnd { alone: true, is_cut_off: false }),
            );
        }
        for piece in pieces {
            match (all.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text))
                | (Some(Piece::Thinking(_, before)), Piece::Thinking(_, text)) => {
                    before.push_str(&text);
                }
                (_, piece) => all.push(piece),
            }
        }
        all
    };
    let whole = collect(&mut std::iter::once(text));
    for (cut, _) in text.char_indices() {
        let (left, right) = text.split_at(cut);
        assert_eq!(collect(&mut [left, right].into_iter()), whole, "cut at {cut}");
    }
    assert_eq!(collect(&mut text.split_inclusive(|_: char| true)), whole);
    whole
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

#[test]
fn text_ends_at_the_first_stop_sequence() {
    let stop_sequences = vec!["END".to_owned(), "STOP".to_owned(), String::new()];
    let context = RequestContext { limits: limits(stop_sequences), ..RequestContext::default() };
    assert_eq!(run(&context, "a STOP b END"), [text("a "), Piece::Stop(1)]);
    assert_eq!(run(&context, "a EN b STO"), [text("a EN b STO")]);
    assert_eq!(run(&context, "EENDD"), [text("E"), Piece::Stop(0)]);
    assert_eq!(run(&context, "END"), [Piece::Stop(0)]);
}

#[test]
fn of_stop_sequences_that_overlap_the_one_that_ends_first_counts() {
    for (stops, said, before, found) in [
        (["\nObservation:", "Observation"], "x\nObservation: y", "x\n", 1),
        (["aba", "b"], "aabaX", "aa", 1),
        (["b", "aba"], "ababa", "a", 0),
        (["abc", "bcd"], "xabcd", "x", 0),
        (["bcd", "abc"], "xabcd", "x", 1),
        // Two stop sequences that end at the same position: the text ends before both.
        (["tion", "Observation"], "Observation", "", 1),
        (["Observation", "tion"], "Observation", "", 0),
    ] {
        let stop_sequences = stops.map(str::to_owned).to_vec();
        let context =
            RequestContext { limits: limits(stop_sequences), ..RequestContext::default() };
        let expected: Vec<Piece> = match before {
            "" => vec![Piece::Stop(found)],
            _ => vec![text(before), Piece::Stop(found)],
        };
        assert_eq!(run(&context, said), expected, "{stops:?} in {said:?}");
    }
}

#[test]
fn the_prefill_is_removed_only_if_all_of_it_comes_again() {
    let profile = Profile { strip_prefill_echo: true, ..Profile::default() };
    let context =
        RequestContext { prefill: "{\"a".to_owned(), profile, ..RequestContext::default() };
    assert_eq!(run(&context, "{\"a\": 1}"), [text("\": 1}")]);
    assert_eq!(run(&context, "{\"b\": 1}"), [text("{\"b\": 1}")]);
    assert_eq!(run(&context, "{\""), [text("{\"")]);
}

#[test]
fn a_stream_keeps_what_only_whole_answers_repeat() {
    let profile =
        Profile { strip_prefill_echo: true, stream_prefill_echo: false, ..Profile::default() };
    let context = RequestContext { prefill: "ha".to_owned(), profile, ..RequestContext::default() };
    assert_eq!(run(&context, "haha"), [text("haha")]);
    let mut filter = TextFilter::new(&context).unwrap();
    assert_eq!(filter.push("haha", true), [text("ha")]);
}

#[test]
fn stop_sequences_count_in_the_text_and_not_in_reasoning() {
    let profile = Profile { inline_think: true, ..Profile::default() };
    let stop_sequences = vec!["X".to_owned()];
    let context =
        RequestContext { limits: limits(stop_sequences), profile, ..RequestContext::default() };
    assert_eq!(
        run(&context, "<think>aXb</think>cXd"),
        [Piece::Thinking(SignatureField::Inline, "aXb".to_owned()), text("c"), Piece::Stop(0)]
    );
}
