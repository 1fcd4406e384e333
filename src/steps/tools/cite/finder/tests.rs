//! Tests of `finder.rs`.

use super::*;

/// Pages 1 to 12.
fn pages() -> NumberedPages {
    let mut pages = NumberedPages::default();
    for at in 1..=12 {
        pages.add(format!("https://a.example/{at}"), format!("Page {at}"), String::new());
    }
    pages
}

/// Parts of a text that comes in these pieces, each as its text and its citations. Parts without
/// citations are joined.
fn parts_of<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Vec<(String, Vec<u32>)> {
    let (pages, mut finder) = (pages(), MarkFinder::new(512));
    let mut found: Vec<TextPart> = Vec::new();
    for piece in pieces {
        found.extend(finder.push(piece, &pages));
    }
    found.extend(finder.end(&pages));
    let mut joined: Vec<(String, Vec<u32>)> = Vec::new();
    for TextPart { text, cites } in found {
        match joined.last_mut().filter(|(_, known)| known.is_empty() && cites.is_empty()) {
            Some((known, _)) => known.push_str(&text),
            None => joined.push((text, cites)),
        }
    }
    joined
}

/// Parts of a text, which must be the same for each cut.
fn parts(text: &str) -> Vec<(String, Vec<u32>)> {
    let whole = parts_of([text]);
    for (at, _) in text.char_indices() {
        let (start, end) = text.split_at(at);
        assert_eq!(parts_of([start, end]), whole, "cut at {at} of {text:?}");
    }
    let letters: Vec<String> = text.chars().map(String::from).collect();
    assert_eq!(parts_of(letters.iter().map(String::as_str)), whole, "letter by letter: {text:?}");
    whole
}

fn plain(text: &str) -> (String, Vec<u32>) {
    (text.to_owned(), Vec::new())
}

fn cited(text: &str, numbers: &[u32]) -> (String, Vec<u32>) {
    (text.to_owned(), numbers.to_vec())
}

#[test]
fn a_run_of_marks_cites_the_sentence_before_it() {
    let cases = [
        ("It is 1. [[1]] Maybe.", vec![cited("It is 1.", &[1]), plain(" Maybe.")]),
        ("It is 1.[[1]][[2]]", vec![cited("It is 1.", &[1, 2])]),
        ("A. B [[1]] [[2]]\n[[1]] C", vec![plain("A. "), cited("B", &[1, 2]), plain("\n[[1]] C")]),
        ("A.\n[[1]]\nB", vec![cited("A.", &[1]), plain("\nB")]),
        ("A.\n\n[[2]] says B.", vec![plain("A.\n\n[[2]] says B.")]),
        ("- [[2]] reports B", vec![plain("- [[2]] reports B")]),
        ("它是1。它也是2。[[1]]", vec![plain("它是1。"), cited("它也是2。", &[1])]),
        ("First!\nSecond [[12]].", vec![plain("First!\n"), cited("Second", &[12]), plain(".")]),
        ("Pi is 3.14 [[1]]", vec![cited("Pi is 3.14", &[1])]),
        ("它是1。[[1]]也许。", vec![cited("它是1。", &[1]), plain("也许。")]),
        ("A。 B！ [[1]]", vec![plain("A。 "), cited("B！", &[1])]),
        ("- A [[1]]\n- B [[2]]\n", vec![cited("- A", &[1]), cited("\n- B", &[2]), plain("\n")]),
    ];
    for (text, expected) in cases {
        assert_eq!(parts(text), expected, "{text:?}");
    }
}

#[test]
fn brackets_that_are_no_marks_stay_text() {
    for text in [
        "a [[9999]] b",
        "a [[0]] b",
        "a [[13]]",
        "a [1] b [[a]] [[]] [[ 1]] [[1 ]] [[-1]] [[+1]] [[1]",
        "a [[1, 2]] [[1]2]] [[[",
        "a [[1](https://a.example)]",
        "see [[1]](https://a.example)",
        "a [[1234567]]",
        "[[1]] says so",
        " \n[[1]]",
        "a [",
        "a [[1",
        "",
    ] {
        let expected: Vec<_> = (!text.is_empty()).then(|| plain(text)).into_iter().collect();
        assert_eq!(parts(text), expected, "{text:?}");
    }
    assert_eq!(parts("a [[1]][[99]] b"), [cited("a", &[1]), plain("[[99]] b")]);
    assert_eq!(parts("a [[99]][[1]] b"), [cited("a [[99]]", &[1]), plain(" b")]);
    assert_eq!(parts("a [[[1]] b"), [cited("a [", &[1]), plain(" b")]);
}

#[test]
fn brackets_in_code_stay_as_they_are() {
    for text in [
        "```python\na = [[1]]\n```\n",
        "~~~\n[[1]]\n```\n[[2]]\n",
        "Use `a[[1]]` there.",
        "Use ``a ` [[1]]`` there.",
        "- ```\n  x [[1]]\n  ```\n",
        "x\n```\ny\n``` [[1]]",
        "x\n```\ny\n```\n[[1]]",
    ] {
        assert_eq!(parts(text), [plain(text)], "{text:?}");
    }
    let text = "```\na [[1]]\n```\nIt is 1. [[1]]";
    assert_eq!(parts(text), [plain("```\na [[1]]\n```\n"), cited("It is 1.", &[1])]);
    assert_eq!(parts("Use `a`. [[1]]"), [cited("Use `a`.", &[1])]);
}

#[test]
fn a_long_text_is_not_held() {
    let (pages, mut finder) = (pages(), MarkFinder::new(512));
    for piece in ["word ", "x", "é", " ", "\n", "[", "[[", "[[1]] ", "`"] {
        let text = piece.repeat(5000);
        finder.push(&text, &pages);
        assert!(finder.held_bytes() <= 2 * SEGMENT_BYTES_MAX + 20, "{piece:?}");
    }
    let text = format!("{}end [[1]]", "word ".repeat(200));
    let found = parts_of([text.as_str()]);
    let [(before, _), (last, cites)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((format!("{before}{last}"), cites), (text.replace(" [[1]]", ""), &vec![1]));
    assert!(!last.trim().is_empty() && last.len() <= SEGMENT_BYTES_MAX, "{last:?}");
}

#[test]
fn a_megabyte_of_brackets_is_read_in_time() {
    for piece in ["[[", "[[1]]", "[[1", "a [[1]]", "[[1]] ", "a. "] {
        let text = piece.repeat((1 << 20) / piece.len());
        let begun = std::time::Instant::now();
        let parts = parts_of([text.as_str()]);
        assert!(begun.elapsed().as_secs() < 10, "{piece:?}");
        assert!(parts.iter().filter(|(_, cites)| !cites.is_empty()).count() <= 512);
    }
}

#[test]
fn marks_stay_text_once_an_answer_has_enough_citations() {
    let (pages, mut finder) = (pages(), MarkFinder::new(2));
    let mut found = finder.push("A [[1]][[2]][[3]] B [[4]]", &pages);
    found.extend(finder.end(&pages));
    let texts: Vec<&str> = found.iter().map(|part| part.text.as_str()).collect();
    assert_eq!((texts, finder.citations_left()), (vec!["A", "[[3]] B [[4]]"], 0));
}
