//! Tests of `names.rs`.

use super::*;

#[test]
fn names_are_kept_once_and_listed_in_the_order_in_which_they_came() {
    let mut names = Names::default();
    assert_eq!(names.insert("b", 1), None);
    assert_eq!(names.insert("a".to_owned(), 2), None);
    assert_eq!(names.insert("b", 3), Some(1));
    names.update("c", |value| *value = 9);
    names.update("a", |value| *value += 5);
    assert_eq!(names.keys().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(names.values().copied().collect::<Vec<_>>(), [3, 7, 9]);
    assert_eq!(names.iter().last(), Some(("c", &9)));
    assert_eq!((names.get("b"), names.get("x"), names.len()), (Some(&3), None, 3));
    assert_eq!(names.clone().into_values().collect::<Vec<_>>(), [3, 7, 9]);
    names.clear();
    assert!(names.is_empty() && !names.contains("a"));
    assert_eq!(names.get_or_insert_with("a".into(), |name| name.len()), Some(&1));
    assert_eq!(names.get_or_insert_with("a".into(), |_| 7), Some(&1));
}

#[test]
fn names_are_told_apart_wherever_they_differ() {
    let mut texts = Vec::new();
    for common in 0..20 {
        for end in ["", "a", "b", "aa", "a\0", "\u{7f}", "é", "ba2345678", "ba23456789"] {
            texts.push(format!("{}{end}", "c".repeat(common)));
        }
    }
    let mut names = Names::default();
    for (at, text) in texts.iter().enumerate() {
        names.insert(text.as_str(), at);
    }
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(names.get(text), Some(&at), "{text}");
    }
    assert!(texts.iter().eq(names.keys()));
}

#[test]
fn names_with_one_hash_are_in_the_order_of_their_bytes() {
    let mut texts = vec!["", "a", "aa", "a\0", "é", "12345678", "123456789", "12345678é"];
    let name = |text: &&'static str| Name { hash: 7, text: Cow::Borrowed(*text) };
    let mut names: Vec<_> = texts.iter().map(name).collect();
    names.sort();
    texts.sort_unstable();
    assert!(names.iter().map(|name| name.text.as_ref()).eq(texts));
}
