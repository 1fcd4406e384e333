use super::*;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

/// Returns what a model with eyes and one without get of a result with this text, and the warnings.
fn told(given: &str) -> (Value, Value, String) {
    let history =
        json!([user("q"), assistant(json!([call("t")])), user(json!([result("t", given)]))]);
    let seen = messages_to(json!({"tool_content_parts": "images"}), history.clone());
    let blind = messages_to(json!({"image_parts": "none"}), history.clone());
    (seen[2]["content"].clone(), blind[2]["content"].clone(), warned(json!({"messages": history})))
}

fn part(data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}})
}

#[test]
fn a_text_that_is_mcps_content_becomes_images_and_texts() {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/jpeg"});
    let words = json!({"type": "text", "text": "a \"b\"\n\u{e9}", "annotations": {"x": [1]}});
    let omitted = "[image omitted: this model does not take images]";
    let both = json!([words, image]);
    for given in [
        image.to_string(),
        json!([image]).to_string(),
        format!("\n {} \n", json!({"data": PNG, "type": "image", "_meta": null})),
        format!(r#"{{"type":"image","data":"{PNG}"}}"#),
        serde_json::to_string_pretty(&json!([image])).unwrap(),
        json!({"content": [image], "isError": false}).to_string(),
    ] {
        let expected = (json!([part(PNG)]), json!(omitted), "image_in_text".to_owned());
        assert_eq!(told(&given), expected, "{given}");
    }
    for given in [both.to_string(), json!({"content": both, "_meta": {}}).to_string()] {
        let (seen, blind, warnings) = told(&given);
        assert_eq!(seen, json!([text("a \"b\"\n\u{e9}"), part(PNG)]), "{given}");
        assert_eq!(blind, format!("a \"b\"\n\u{e9}\n{omitted}"));
        assert_eq!(warnings, "image_in_text");
    }
    // PHP escapes slashes in the inner JSON, too.
    let jpeg = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wA=";
    let escaped = jpeg.replace('/', "\\/");
    let (seen, _, _) = told(&format!(r#"{{"type":"image","data":"{escaped}"}}"#));
    assert_eq!(seen[0]["image_url"]["url"], format!("data:image/jpeg;base64,{jpeg}"));
}

#[test]
fn a_long_data_url_becomes_an_image() {
    let data = format!("{PNG}{}", "A".repeat(8_192));
    let url = format!("data:image/png;base64,{data}");
    for given in [
        url.clone(),
        format!("\"{url}\"\n"),
        url.replace("image/png", "image/jpeg"),
        format!("\"{}\"", url.replace('/', "\\/")),
    ] {
        let (seen, blind, warnings) = told(&given);
        assert!(seen == json!([part(&data)]), "{}", &given[..40]);
        assert_eq!(blind, "[image omitted: this model does not take images]");
        assert_eq!(warnings, "image_in_text");
    }
    // It counts as an image, and not as the words that it is not.
    let long = format!("data:image/png;base64,{PNG}{}", "Ab9/".repeat(100_000));
    let history =
        json!([user("q"), assistant(json!([call("t")])), user(json!([result("t", long)]))]);
    let (sent, _) = try_with(&Config::default(), &whole(json!({"messages": history})));
    assert!(sent.unwrap().1.input_tokens < 5_000);
}

#[test]
fn a_text_that_is_more_than_an_image_or_none_stays() {
    let long = format!("data:image/png;base64,{PNG}{}", "A".repeat(8_192));
    let image = format!(r#"{{"type":"image","data":"{PNG}"}}"#);
    let deep = format!("{}{image}{}", "[".repeat(100_000), "]".repeat(100_000));
    let content = format!("{}{image}{}", r#"{"content":["#.repeat(40), "]}".repeat(40));
    let many = format!("[{}{image}]", format!("{image},").repeat(1_000));
    for given in [
        "image",
        "data:image/png;base64,iVBORw0KGgo",
        &format!("see {long}"),
        &format!("{long} there"),
        &format!("{long}\u{e9}"),
        &format!("{long}A==B"),
        &format!("\"{long}"),
        &format!("{{\"url\":\"{long}\"}}"),
        &long.replace(";base64", ""),
        &long.replace(PNG, "PHN2Zy"),
        &long.replace("image/png", "text/plain"),
        &format!("{image}{image}"),
        &format!("{image} and"),
        &image.replace("}", ""),
        &image.replace(PNG, "PHN2Zy"),
        &image.replace(PNG, "iVBORw0K Ggo"),
        &image.replace(PNG, "iVBORw0K\\nGgo"),
        &image.replace(PNG, ""),
        // Cut off.
        &image.replace(PNG, "iVBORw0KGgo"),
        &image.replace(PNG, "iVBORw0KGgo="),
        &image.replace(PNG, &format!("{PNG}A")),
        &image.replace(PNG, &format!("{PNG}AB")),
        &image.replace(PNG, &format!("{PNG}=")),
        &image.replace(&format!("\"{PNG}\""), "7"),
        &image.replace("\"type\"", "\"kind\""),
        &image.replace("{", r#"{"type":"image","#),
        &image.replace("{", r#"{"name":"a","#),
        &image.replace("{", r#"{"text":"a","#),
        &format!("[{image},7]"),
        &format!("[{image},{{\"type\":\"audio\",\"data\":\"AAAA\"}}]"),
        &format!("[{image},{{\"type\":\"text\",\"text\":\"\\ud83d\"}}]"),
        &format!("[[{image}]]"),
        r#"[{"type":"text","text":"an image"}]"#,
        "[]",
        "{}",
        r#"{"content":[]}"#,
        &format!("{{\"content\":[{image}],\"isError\":true}}"),
        &format!("{{\"content\":[{image}],\"content\":[{image}]}}"),
        &format!("{{\"content\":[{image}],\"structuredContent\":{{}}}}"),
        &format!("{{\"content\":[{{\"content\":[{image}]}}]}}"),
        &deep,
        &content,
        &many,
        &"{\"type\":\"image\",\"data\":\"\\".repeat(100),
        &"\u{e9}".repeat(100),
        &format!("{{{}", "\u{e9}".repeat(100)),
    ] {
        let (seen, blind, warnings) = told(given);
        let start: String = given.chars().take(80).collect();
        assert_eq!((&*warnings, seen == given, blind == given), ("", true, true), "{start}");
    }
}

#[test]
fn only_results_are_looked_at_and_strict_mode_leaves_them() {
    let image = format!(r#"{{"type":"image","data":"{PNG}"}}"#);
    assert_eq!(messages(json!([user(&*image)]))[0]["content"], image);
    let history =
        json!([user("q"), assistant(json!([call("t")])), user(json!([result("t", &*image)]))]);
    let config = config("openai-chat", json!({}), json!({"strict": true}));
    let (sent, warnings) = try_with(&config, &whole(json!({"messages": history})));
    assert_eq!((&sent.unwrap().0["messages"][2]["content"], &*warnings), (&json!(image), ""));
}

#[test]
fn a_later_request_begins_as_the_earlier_one() {
    let image = format!(r#"[{{"type":"text","text":"a"}},{{"type":"image","data":"{PNG}"}}]"#);
    let blocks = json!([text("b"), text(&image), text("c"), text(&image)]);
    let mut history =
        vec![user("q"), assistant(json!([call("t")])), user(json!([result("t", blocks)]))];
    let earlier = messages(json!(history));
    let (earlier, told) = (earlier.as_array().unwrap(), earlier[2]["content"].clone());
    assert_eq!(told, "b\na\nc\na");
    history.extend([assistant("r"), user("s")]);
    let later = messages(json!(history));
    assert_eq!(later.as_array().unwrap()[..earlier.len()], earlier[..]);
}

#[test]
fn a_hostile_text_of_fifty_megabytes_is_read_once() {
    let mut url = format!("data:image/png;base64,{PNG}{}", "A".repeat(50_000_000));
    url.push('!');
    let mut nested = r#"{"type":"image","_meta":"#.to_owned();
    nested.push_str(&"[".repeat(10_000_000));
    let blocks = json!([text(&url), text(&nested)]);
    let history =
        json!([user("q"), assistant(json!([call("t")])), user(json!([result("t", blocks)]))]);
    let sent = messages(history);
    assert_eq!(sent[2]["content"].as_str().map(str::len), Some(url.len() + 1 + nested.len()));
}
