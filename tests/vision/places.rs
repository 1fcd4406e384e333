//! Places of images, and what stands there instead.

use super::*;

const NOTE: &str = "[image omitted: this model does not take images]";
const TREE: &str = "[An image, described by another model: a tree]";

fn user(content: Value) -> Value {
    json!([{"role": "user", "content": content}])
}

#[test]
fn a_description_stands_where_the_image_was() {
    let words = json!({"type": "text", "text": "what is it?"});
    let got = Session::new(user(json!([image(PNG), words]))).run(&says(" a tree\n"));
    assert_eq!(got.shown(), [format!("data:image/png;base64,{PNG}")]);
    let content = got.messages()[0]["content"].to_string();
    assert!(content.contains(TREE) && content.contains("what is it?"), "{content}");
    assert!(!got.call.body.windows(PNG.len()).any(|it| it == PNG.as_bytes()));
    assert_eq!(got.warnings(), "image_described");
}

#[test]
fn equal_images_are_described_once_and_others_each() {
    let escaped = JPEG.replace('/', "\\u002f");
    let content = json!([image(PNG), image(JPEG), image(PNG), image("ESCAPED"), image(PNG)]);
    let mut session = Session::new(user(content));
    session.body["messages"][0]["content"][3]["source"]["media_type"] = json!("image/jpeg");
    let raw = session.body.to_string().replace("ESCAPED", &escaped);
    session.body = serde_json::from_str(&raw).unwrap();
    let eyes = [says("a tree"), says("a dog")].concat();
    let got = session.run(&eyes);
    // The newest first.
    let shown = [format!("data:image/png;base64,{PNG}"), format!("data:image/jpeg;base64,{JPEG}")];
    assert_eq!(got.shown(), shown);
    let content = got.messages()[0]["content"].to_string();
    let order: Vec<_> =
        content.match_indices("a tree").chain(content.match_indices("a dog")).collect();
    assert_eq!(order.len(), 5, "{content}");
    let mut order: Vec<_> = order.into_iter().collect();
    order.sort_unstable();
    let order: Vec<_> = order.into_iter().map(|(_, what)| what).collect();
    assert_eq!(order, ["a tree", "a dog", "a tree", "a dog", "a tree"]);
    assert_eq!(
        got.report.warnings.iter().map(|it| (it.text(), it.count)).collect::<Vec<_>>(),
        [("image_described".to_owned(), 5)]
    );
}

#[test]
fn images_in_results_and_in_documents_count_too() {
    let document =
        json!({"type": "document", "source": {"type": "content", "content": [image(PNG)]}});
    for result in [json!([image(PNG)]), json!([document])] {
        let got = Session::new(history(result)).run(&says("a tree"));
        assert_eq!(got.asked.len(), 1);
        assert!(got.messages()[2]["content"].to_string().contains(TREE), "{}", got.messages());
        assert_eq!(got.warnings(), "image_described");
    }
}

#[test]
fn an_image_in_the_text_of_a_result_counts_too() {
    let hidden = json!({"type": "image", "data": PNG, "mimeType": "image/png"}).to_string();
    let both =
        json!([{"type": "text", "text": "a\nb"}, {"type": "image", "data": PNG}]).to_string();
    for (result, expected) in [
        (json!(hidden), TREE.to_owned()),
        (json!(both), format!("a\nb\n{TREE}")),
        (
            json!([{"type": "text", "text": both}, {"type": "text", "text": "c"}]),
            format!("a\nb\n{TREE}\nc"),
        ),
    ] {
        let got = Session::new(history(result)).run(&says("a tree"));
        assert_eq!(got.shown(), [format!("data:image/png;base64,{PNG}")]);
        assert_eq!(got.messages()[2]["content"], expected);
        assert_eq!(got.warnings(), "image_described,image_in_text");
    }
    let strict = CONFIG.replace(r#""vision""#, r#""strict": true, "vision""#);
    let got = Session::with(&strict, history(json!(hidden))).run(&[]);
    assert_eq!(
        (got.messages()[2]["content"].clone(), got.warnings()),
        (json!(hidden), String::new())
    );
}

#[test]
fn no_image_comes_into_a_result_that_tells_of_an_error() {
    let config = CONFIG
        .replace(r#""url": "http://main""#, r#""url": "http://main", "protocol": "anthropic""#);
    let items = json!([{"type": "image", "data": PNG}, {"type": "image", "data": JPEG}]);
    let mut told = history(json!(items.to_string()));
    told[2]["content"][0]["is_error"] = json!(true);
    let refused = Eyes::Answers(400, "{}".to_owned());
    let got = Session::with(&config, told.clone()).run(&[says("a tree"), vec![refused]].concat());
    assert_eq!(got.messages(), told);
    let got = Session::with(&config, told.clone()).run(&says("a tree"));
    let words = json!({"type": "text", "text": TREE});
    told[2]["content"][0]["content"] = json!([words, words]);
    assert_eq!(got.messages(), told);
}

#[test]
fn the_newest_are_described_and_older_ones_are_named_as_before() {
    let numbered = |number: u32| image(&format!("iVBORw0KGgoAAAA{number:04}"));
    let content: Vec<_> = (0..6).map(numbered).collect();
    let got = Session::new(user(json!(content))).run(&says("a tree"));
    let shown: Vec<_> =
        (2..6).rev().map(|at| format!("data:image/png;base64,iVBORw0KGgoAAAA{at:04}")).collect();
    assert_eq!(got.shown(), shown);
    let content = got.messages()[0]["content"].to_string();
    assert_eq!((content.matches(TREE).count(), content.matches(NOTE).count()), (4, 2), "{content}");
    assert_eq!(got.warnings(), "image_described,dropped:image");
}

#[test]
fn descriptions_do_not_make_a_request_larger_than_it_may_be() {
    let content: Vec<_> = (0..50).map(|_| image(PNG)).collect();
    let config = CONFIG.replace(r#""vision""#, r#""request_bytes_max": 30000, "vision""#);
    let got = Session::with(&config, user(json!(content))).run(&says(&"long ".repeat(1_000)));
    let content = got.messages()[0]["content"].to_string();
    let described = content.matches("another model").count();
    assert!((3..6).contains(&described), "{described}");
    assert!(content.find(NOTE).unwrap() < content.find("another model").unwrap());
    assert_eq!(content.matches(NOTE).count(), 50 - described);
}

#[test]
fn a_model_that_sees_gets_its_images_and_nobody_is_asked() {
    for config in [
        CONFIG.replace(r#""none", "profile_overrides": {"image_parts": "none"}"#, r#""none""#),
        CONFIG.replace("see-1", "").replace(r#", "upstream": "eyes""#, ""),
    ] {
        let got = Session::with(&config, user(json!([image(PNG)]))).run(&[]);
        assert_eq!(got.report.vision, None);
        assert!(!got.warnings().contains("vision"));
    }
    for content in [json!("an image"), json!([{"type": "text", "text": "an image"}])] {
        let got = Session::new(user(content)).run(&[]);
        assert_eq!((got.report.vision.clone(), got.warnings()), (None, String::new()));
    }
}

#[test]
fn what_no_model_takes_and_what_the_assistant_shows_are_not_described() {
    let svg = json!({"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zy8+"}});
    let got = Session::new(user(json!([svg, {"type": "text", "text": "?"}]))).run(&[]);
    assert_eq!(got.warnings(), "dropped:image");
    let shown = json!([{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "text", "text": "r"}, image(PNG)]},
        {"role": "user", "content": "s"}]);
    assert_eq!(Session::new(shown).run(&[]).warnings(), "dropped:assistant_image");
}

#[test]
fn an_upstream_that_speaks_messages_gets_the_description_and_all_else_byte_for_byte() {
    let config = CONFIG
        .replace(r#""url": "http://main""#, r#""url": "http://main", "protocol": "anthropic""#);
    let marked = json!({"type": "image", "cache_control": {"type": "ephemeral"}, "source": image(PNG)["source"]});
    let mut session = Session::with(&config, user(json!([marked])));
    session.body["new_member"] = json!([1.0]);
    let got = session.run(&says("a tree"));
    let words = json!({"type": "text", "text": TREE, "cache_control": {"type": "ephemeral"}});
    let expected = session.body.to_string().replace(&marked.to_string(), "WORDS");
    let sent = String::from_utf8(got.call.body.clone()).unwrap();
    let (before, behind) = expected.split_once("WORDS").unwrap();
    assert!(sent.starts_with(before) && sent.ends_with(behind), "{sent}");
    let inside = &sent[before.len()..sent.len() - behind.len()];
    assert_eq!(serde_json::from_str::<Value>(inside).unwrap(), words);
}
