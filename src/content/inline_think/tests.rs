//! Tests of `inline_think.rs`.

use super::*;

fn split(text: &str) -> (String, String) {
    let run = |pieces: &mut dyn Iterator<Item = &str>| {
        let mut found = (String::new(), String::new());
        let mut think = InlineThink::new();
        let mut each = |field: Option<SignatureField>, text: &str| {
            if field.is_some() { found.0.push_str(text) } else { found.1.push_str(text) }
        };
        for piece in pieces {
            think.push(piece, &mut each);
        }
        think.release(&mut each);
        found
    };
    let whole = run(&mut std::iter::once(text));
    for (cut, _) in text.char_indices() {
        let (left, right) = text.split_at(cut);
        assert_eq!(run(&mut [left, right].into_iter()), whole, "cut at {cut}");
    }
    assert_eq!(run(&mut text.split_inclusive(|_: char| true)), whole);
    whole
}

#[test]
fn only_a_tag_at_the_start_opens_reasoning() {
    for (text, reasoning, answer) in [
        ("<think>Hmm.</think>\n\nHi", "Hmm.", "Hi"),
        ("\n <think>Hmm.</think>Hi </think> <think>", "Hmm.", "Hi </think> <think>"),
        ("<think>a < b </ c</think>", "a < b </ c", ""),
        ("<think>never ends </thin", "never ends </thin", ""),
        ("[THINK]a </think>[/THINK] Hi", "a </think>", "Hi"),
        ("Hmm.</think>Hi", "", "Hmm.</think>Hi"),
        ("Say <think>x</think>", "", "Say <think>x</think>"),
        ("<thin", "", "<thin"),
        (" <b>", "", " <b>"),
        ("\n</think>\n\nHi </think>", "", "Hi </think>"),
        ("</b>", "", "</b>"),
        ("◁think▷Hmm. ◁/ ◁/think▷Hi", "Hmm. ◁/ ", "Hi"),
        ("<|channel>thought\nHmm.<channel|>Hi", "Hmm.", "Hi"),
        ("<|channel>though", "", "<|channel>though"),
        ("<|open|>think<|sep|>Hmm.<|close|>think<|sep|>Hi", "Hmm.", "Hi"),
        (
            "<reasoning>Hm</reasoning><reasoning>m.</reasoning>\n <reasoning> So</reasoning>Hi",
            "Hmm. So",
            "Hi",
        ),
        ("<think>Hmm.</think>Hi <think>x</think>", "Hmm.", "Hi <think>x</think>"),
        ("<think>Hmm.</think>\n<reasoning>x", "Hmm.", "<reasoning>x"),
        ("<think>Hmm.</think> <thin", "Hmm.", "<thin"),
    ] {
        assert_eq!(split(text), (reasoning.to_owned(), answer.to_owned()), "{text}");
    }
}
